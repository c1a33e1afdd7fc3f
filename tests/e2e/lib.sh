# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2046
# What every end-to-end test starts from: two network namespaces joined by a veth pair, nginx as the
# router and a simulated engine in one, clients in the other, spillwayd between them. Sourced; all that
# it makes is taken away again when the test ends, whatever way.

set -uo pipefail
cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
E2E=$PWD/tests/e2e
TAG=spw$$
HOST=$TAG-host CLIENT=$TAG-client
WORK=$(mktemp -d "/tmp/$TAG-XXXX")
PINS=/sys/fs/bpf/$TAG
CONTROL=$WORK/control.sock
V4=10.77.0.1:8000 V6='[fd77::1]:8000'
SHED_PATH=/v1/chat/completions
failed=0
namespaces=()

[ "$(id -u)" -eq 0 ] || { echo "SKIP: root is needed"; exit 77; }

finish() {
	local rc=$?
	# Not pids from a list: one that was waited for may be another process's by now
	kill $(jobs -p) 2>/dev/null
	wait 2>/dev/null
	for ns in "${namespaces[@]}"; do ip netns del "$ns" 2>/dev/null; done
	[ ! -d "$PINS" ] || rm -rf "$PINS"
	[ $rc -eq 0 ] && [ $failed -ne 0 ] && rc=1
	if [ $rc -ne 0 ] && [ -e "$WORK/daemon.log" ]; then
		echo "--- the end of the daemon's log:"
		tail -n 20 "$WORK/daemon.log"
	fi
	until_true 3 rm -rf "$WORK" # a browser that is ending may still write there
	exit $rc
}
trap finish EXIT
trap 'exit 130' INT TERM

# nsenter and not `ip netns exec`, which mounts a new /sys without our pins.
in_ns() {
	local ns=$1
	shift
	nsenter --net="/run/netns/$ns" "$@"
}
# spawn NS COMMAND...: in the background; its pid is in $spawned, and it ends with the test
spawn() {
	nsenter --net="/run/netns/$1" "${@:2}" &
	spawned=$!
}
in_host() { in_ns "$HOST" "$@"; }
in_client() { in_ns "$CLIENT" "$@"; }

pass() { printf 'ok   %4d s  %s\n' $SECONDS "$*"; }
fail() {
	printf 'FAIL %4d s  %s\n' $SECONDS "$*"
	failed=1
}
# check NAME COMMAND...: the command must succeed.
check() {
	local name=$1
	shift
	if "$@"; then pass "$name"; else fail "$name: $*"; fi
}
# equal NAME WANT GOT
equal() {
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1: want '$2', got '$3'"; fi
}
# at_most NAME LIMIT VALUE, numbers may have fractions
at_most() {
	if awk -v l="$2" -v v="$3" 'BEGIN { exit !(v != "" && v <= l) }'; then
		pass "$1: $3 <= $2"
	else
		fail "$1: $3, at most $2"
	fi
}
# until_true SECONDS COMMAND...: tries every 20 ms. A busy machine is given four times as long; what has to
# be quick is measured.
until_true() {
	local end=$(($(date +%s%N) + $1 * 4000000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s%N)" -lt $end ] || return 1
		sleep 0.02
	done
}

add_namespace() {
	ip netns add "$1" || exit 1
	namespaces+=("$1")
	ip -n "$1" link set lo up
}

# join NS NAME ADDR4 ADDR6 NS NAME ADDR4 ADDR6: a veth pair between two namespaces
join() {
	ip link add "$2" netns "$1" type veth peer name "$6" netns "$5" || exit 1
	ip -n "$1" addr add "$3/24" dev "$2"
	ip -n "$1" addr add "$4/64" dev "$2" nodad
	ip -n "$5" addr add "$7/24" dev "$6"
	ip -n "$5" addr add "$8/64" dev "$6" nodad
	ip -n "$1" link set "$2" up
	ip -n "$5" link set "$6" up
}

# nginx_conf PORT [IDLE-TIME]: the router, whose own pages are /health and /metrics; the rest is the engine's
nginx_conf() {
	cat <<C
daemon off; user root; worker_processes 1; pid $WORK/nginx.pid; error_log $WORK/nginx.log;
events { worker_connections 8192; }
http {
  access_log off; client_max_body_size 16m; keepalive_requests 1000000; keepalive_timeout ${2:-600s};
  client_body_temp_path $WORK/nb; proxy_temp_path $WORK/np; fastcgi_temp_path $WORK/nf;
  uwsgi_temp_path $WORK/nu; scgi_temp_path $WORK/ns;
  server {
    listen $1 backlog=4096; listen [::]:$1 backlog=4096;
    location = /health { return 200 "healthy\n"; }
    location = /metrics { return 200 "up 1\n"; }
    location / { proxy_pass http://127.0.0.1:9000; proxy_http_version 1.1; }
  }
}
C
}

start_nginx() { # start_nginx NAMESPACE [IDLE-TIME]
	nginx_conf 8000 "${2:-}" >"$WORK/nginx.conf"
	spawn "$1" nginx -c "$WORK/nginx.conf" >"$WORK/nginx.out" 2>&1
	nginx_master=$spawned
	until_true 5 in_ns "$1" curl -fsm 1 http://127.0.0.1:8000/health || {
		echo "nginx did not start"
		cat "$WORK/nginx.log"
		exit 1
	}
	nginx_worker=$(pgrep -P $nginx_master)
}

start_engine() { # start_engine NAMESPACE [ARGUMENTS...]
	spawn "$1" "$BUILD/engine" --listen 127.0.0.1:9000 --slots 64 --service-ms 5 --tokens 1 "${@:2}" \
		>"$WORK/engine.log" 2>&1
	until_true 5 in_ns "$1" curl -fsm 1 http://127.0.0.1:9000/health || {
		echo "the engine did not start"
		exit 1
	}
}

# The usual scene: host with nginx and engine, client; in the client GRO is on, so that the host's veth
# can transmit from XDP.
scene() { # scene [IDLE-TIME]: of the router's connections
	add_namespace "$HOST"
	add_namespace "$CLIENT"
	join "$HOST" v0 10.77.0.1 fd77::1 "$CLIENT" v0 10.77.0.2 fd77::2
	in_client ethtool -K v0 gro on >/dev/null
	start_engine "$HOST"
	start_nginx "$HOST" "${1:-}"
}

spillway() { "$BUILD/spillway" --control "$CONTROL" "$@"; }

# daemon ARGUMENTS...: starts spillwayd in the host's namespace and waits until it answers
daemon() {
	spawn "$HOST" "$BUILD/spillwayd" --control "$CONTROL" --pin-root "$PINS" "$@" \
		>>"$WORK/daemon.log" 2>&1
	daemon_pid=$spawned
	until_true 20 spillway status || {
		echo "spillwayd did not start: $*"
		exit 1
	}
}
# The zero-configuration form on the usual scene; more arguments may follow.
guard() {
	daemon --interface v0 --guard 8000 --engine vllm --scrape http://127.0.0.1:9000/metrics \
		--decode-threshold 0.85 "$@"
}
stop_daemon() {
	kill "$daemon_pid" 2>/dev/null
	wait "$daemon_pid" 2>/dev/null
}
saturate() { spillway force saturated >/dev/null; }
reopen() { spillway force open >/dev/null; }

# status_of [CURL ARGUMENTS...]: the HTTP status a client sees; 000: none
status_of() { in_client curl -s -m 5 -o /dev/null -w '%{http_code}' "$@"; }
shed_status() { status_of -d '{}' "http://$V4$SHED_PATH"; }
# counted LISTENER-INDEX REASON: the sum over both programs
counted() {
	spillway status --json |
		jq ".listeners[$1].counts | [.xdp.$2 // 0, .tc.$2 // 0] | add"
}
# await_follower: until `spillway events`, in the background, hears of what happens
connected() { # a connection is in the namespace of who has made it
	[ -n "$(ss -xH state connected src "$CONTROL"; in_host ss -xH state connected src "$CONTROL")" ]
}
followed() { connected && sleep 0.2 && connected; }
await_follower() { until_true 5 followed || fail "nobody follows events"; }
# switches: context switches of the router's worker so far
switches() {
	awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$nginx_worker/status"
}
