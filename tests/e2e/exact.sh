# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2046,SC2154
# For tests that slots are counted exactly, after steering.sh: what disturbs connections either way they are
# steered, and what has to be true then, by the kernel's own maps and not by what the daemon makes of them.
# The test says who connects (`as_client`, `spawn_client`), where to ($TARGET), how ($ADDRESS of the workers
# and `conf`). LONG=1 (`make soak`) disturbs as often as a release has to bear, and takes minutes.
# Sourced.

N=2 Q=2
CAP=$((N + Q))
SERVICE_MS=5
KILLS=20 # of the daemon; each start exchanges the programs
if [ -n "${LONG:-}" ]; then
	SHORT=50000 RELOADS=1000 ABORTS=5000
else
	SHORT=10000 RELOADS=50 ABORTS=1000
fi

# ---- the kernel's maps -------------------------------------------------------------------------------------
# values MAP FILTER: what jq makes of all values of one of the maps, as one list
values() { bpftool -j map dump pinned "$PINS"/v2/slots/"$1" | jq -c "[.[].formatted.value] | $2"; }
nothing_held() {
	[ "$(values slots 'map(.inuse) | add')" = 0 ] &&
		[ "$(values pool_use 'map(.half_open) | add')" = 0 ] &&
		[ "$(values reservations length)" = 0 ]
}
# settles WHAT [SECONDS]: all slots come back, and no worker ever had more than it may
settles() {
	if until_true "${2:-8}" nothing_held; then
		pass "$1: all slots are back"
	else
		fail "$1: slots are still held"
		held
	fi
	at_most "$1: most at a worker" $CAP "$(values slots 'map(.most) | max')"
}
held() {
	values slots 'map(select(.inuse != 0))'
	values pool_use 'map(select(.half_open != 0))'
	values reservations .
}
in_use() { [ "$(values slots 'map(.inuse) | add')" -eq "$1" ]; }
all_held() { in_use $((4 * CAP)); }
corrected() { values slots 'map(.corrected) | add'; }
decisions() { values slots 'map(.takes) | add'; }
picked_since() { [ "$(of "$1" slots.picks)" -gt "$2" ]; }
decisions_for() { of "$1" 'slots | .picks + .refusals + .failures'; }
# rows: what the daemon has written of w1 and w2, and under which ids
rows() { values workers 'to_entries | map(select(.value.port == (9001, 9002)))'; }

# ---- clients -----------------------------------------------------------------------------------------------
wrk() { as_client wrk -t 2 -c 200 -s "$E2E/post.lua" -H 'Connection: close' "$@" "http://$TARGET$SHED_PATH"; }
# hey CONCURRENCY
hey() { as_client hey -n $SHORT -c "$1" -m POST -d '{}' -disable-keepalive "http://$TARGET$SHED_PATH" >"$WORK/hey"; }
requests() {
	as_client "$BUILD/checker" --timeout-ms 10000 "$@" "$TARGET" >"$WORK/answers" && return
	tail -n 1 "$WORK/answers" | jq -c '{status, faults, first_error}'
	return 1
}
rude() { as_client "$BUILD/rude" --rate 0 "$@" "$TARGET" >"$WORK/rude"; }

# at_work COMMAND...: over and over in the background, until it fails or `stop_work`, which has its status
at_work() {
	touch "$WORK/at-work"
	while [ -e "$WORK/at-work" ] && "$@"; do :; done &
	working=$!
}
stop_work() {
	local lost=0
	kill -0 "$working" 2>/dev/null || lost=1
	rm "$WORK/at-work"
	wait "$working"
	return $lost
}

# reload: and waits until it is done
reload() {
	conf >"$WORK/conf.yaml"
	kill -HUP "$daemon_pid"
	until_true 3 knows_workers
}
knows_workers() {
	local w all=''
	for w in $WORKERS; do all+=" $w $ADDRESS:900${w#w}"; done
	[ "$(spillway status --json | jq -r '[.pools[0].workers[] | .name, .at] | join(" ")')" = "${all# }" ]
}

# ---- disturbances ------------------------------------------------------------------------------------------
wrk_until_enough() {
	local n=0 more
	while [ $n -lt $SHORT ]; do
		more=$(wrk -d 1s | awk '/requests in/ { print $1 }')
		[ "${more:-0}" -gt 0 ] || return 1
		n=$((n + more))
	done
}
short_connections() {
	check "$SHORT short connections of wrk" wrk_until_enough
	settles wrk
	check "$SHORT short connections of hey" hey 200
	settles hey
	equal "the limit was reached" $CAP "$(values slots 'map(.most) | max')"
}

resets() {
	check "$ABORTS connections reset, at every point" rude --abort $ABORTS
	settles reset
	equal "and all that without a recount" 0 "$(corrected)"
}

worker_dies() {
	local all one before
	at_work wrk -d 1s >/dev/null
	sleep 0.3
	kill -9 "${pid_of[w4]}"
	wait "${pid_of[w4]}" 2>/dev/null
	stop_work
	check "a dead worker is suspect" until_true 2 is w4 suspect true
	all=$(decisions) one=$(decisions_for w4)
	hey 8
	all=$(($(decisions) - all)) one=$(($(decisions_for w4) - one))
	at_most "its part of $all decisions" $((all / 1000)) $one

	at_work wrk -d 1s >/dev/null
	start_worker w4 "$ADDRESS"
	before=$(of w4 slots.picks)
	check "it serves within a second of listening" until_true 1 picked_since w4 "$before"
	stop_work
	settles "worker killed"
}

client_dies() {
	for _ in 1 2 3; do
		spawn_client wrk -t 2 -c 200 -d 20s -s "$E2E/post.lua" "http://$TARGET$SHED_PATH" >/dev/null
		check "$1 holds all slots" until_true 5 all_held
		kill -9 "$spawned"
		wait "$spawned" 2>/dev/null
	done
	settles "$1 killed"
}

cookies() {
	in_host sysctl -qw net.ipv4.tcp_syncookies=2
	check "connections by SYN cookies" requests --count 1000 --concurrency 6 --expect-status 200
	check "were by cookies" \
		[ "$(in_host nstat -asz TcpExtSyncookiesRecv | awk 'END { print $2 }')" -gt 100 ]
	# who has a cookie has no slot: it may find none left when it comes back, and then is reset
	requests --count 2000 --concurrency 32 >/dev/null
	at_most "of more than there are slots for, few are lost" 40 "$(figure .errors)"
	in_host sysctl -qw net.ipv4.tcp_syncookies=1
	settles "SYN cookies"
}

# daemon_dies COMMAND...: the command tells which programs there are
daemon_dies() {
	local before
	before=$("$@")
	at_work requests --count 300 --concurrency 6 --expect-status 200
	for _ in $(seq $KILLS); do
		kill -9 "$daemon_pid"
		wait "$daemon_pid" 2>/dev/null
		sleep 0.1
		start
		sleep 0.1
	done
	check "no request is lost while the daemon dies $KILLS times" stop_work
	check "programs were exchanged" [ "$before" != "$("$@")" ]
	settles "daemon killed"
}

workers_come_and_go() {
	local before had
	before=$(rows) had=$(corrected)
	at_work requests --count 300 --concurrency 8
	for _ in $(seq $((RELOADS / 2))); do
		WORKERS='w1 w2' reload
		reload
	done
	check "no request is lost in $RELOADS reloads" stop_work
	equal "rows of workers that stay are as they were" "$before" "$(rows)"
	equal "no recount had to help" "$had" "$(corrected)"
	settles "workers come and go"
}

# hold COUNT: a client that opens connections and does nothing; its pid is in $holder
hold() {
	spawn_client /usr/bin/python3 -c "
import socket, time
held = [socket.create_connection(('${TARGET%:*}', ${TARGET#*:})) for _ in range($1)]
time.sleep(60)"
	holder=$spawned
	check "connections are held" until_true 2 in_use "$1"
}
let_go() {
	kill -9 "$holder"
	wait "$holder" 2>/dev/null
}

# add_bad_wire NAMESPACE: 10.78.0.2 there, 10.78.0.1 on the host, a round trip of 1 ms and 10 % loss
add_bad_wire() {
	add_namespace "$1"
	spawn "$HOST" "$BUILD/relay" --delay-ms 0.5 --loss 0.1 "$HOST:r0" "$1:r0" >"$WORK/relay"
	until_true 5 grep -q ready "$WORK/relay"
	ip -n "$HOST" addr add 10.78.0.1/24 dev r0
	ip -n "$1" addr add 10.78.0.2/24 dev r0
}
bad_wire() {
	local racing=()
	check "10 % loss" requests --duration 4 --concurrency 32 --timeout-ms 30000
	check "most was served" [ "$(figure '.status["200"].count')" -gt 50 ]
	for _ in $(seq 10); do
		rude --abort 20 --phases syn,request,response &
		racing+=($!)
	done
	wait "${racing[@]}"
}
