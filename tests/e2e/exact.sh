# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2046,SC2154
# For tests that slots are counted exactly, after steering.sh: reads the kernel's own maps, not what the
# daemon makes of them, and holds them to be all zero after a disturbance. Sourced.
# EXACT_FULL=1 disturbs as often as a release has to bear, and takes minutes.

N=2 Q=2
CAP=$((N + Q))
if [ -n "${EXACT_FULL:-}" ]; then
	SHORT=50000 KILLS=20 RELOADS=1000 ABORTS=5000
else
	SHORT=10000 KILLS=5 RELOADS=50 ABORTS=1000
fi

# A cgroup of the router alone, in that of the test
take_all_away() {
	local rc=$?
	kill $(jobs -p) 2>/dev/null
	wait 2>/dev/null
	[ ! -d "$GROUP/router" ] || until_true 3 rmdir "$GROUP/router"
	(exit $rc)
	take_away
}
trap take_all_away EXIT

# values MAP FILTER: what jq makes of all values of one of the maps, as one list
values() { bpftool -j map dump pinned "$PINS"/v2/slots/"$1" | jq -c "[.[].formatted.value] | $2"; }
nothing_held() {
	[ "$(values slots 'map(.inuse) | add')" = 0 ] &&
		[ "$(values pool_use 'map(.half_open) | add')" = 0 ] &&
		[ "$(values reservations length)" = 0 ]
}
# settles WHAT [SECONDS]: all slots come back, and no worker ever had more than it may
settles() {
	until_true "${2:-8}" nothing_held
	check "$1: all slots are back" nothing_held
	nothing_held || held
	at_most "$1: most at a worker" $CAP "$(values slots 'map(.most) | max')"
}
held() {
	values slots 'map(select(.inuse != 0))'
	values pool_use 'map(select(.half_open != 0))'
	values reservations .
}
corrected() { values slots 'map(.corrected) | add'; }
takes() { values slots 'map(.takes) | add'; }
# row ID: what the daemon has written of a worker; id_of WORKER: from its port
row() { values workers ".[$1]"; }
id_of() { values workers "map(.port == 900${1#w}) | index(true)"; }

# wrk_many COMMAND...: wrk over and over until SHORT connections were made; COMMAND says as who
wrk_many() {
	local n=0 more
	while [ $n -lt $SHORT ]; do
		more=$("$@" wrk -t 2 -c 200 -d 1s -H 'Connection: close' "$URL" |
			awk '/requests in/ { print $1 }')
		n=$((n + ${more:-0}))
		[ "${more:-0}" -gt 0 ] || return 1
	done
}
# hey_many CONCURRENCY COMMAND...
hey_many() { "${@:2}" hey -n $SHORT -c "$1" -disable-keepalive "$URL" >"$WORK/hey"; }

# at_work COMMAND...: over and over in the background, until it fails or `stop_work`, which has its status
at_work() {
	touch "$WORK/at-work"
	while [ -e "$WORK/at-work" ] && "$@"; do :; done &
	working=$!
}
stop_work() {
	local lost=0
	kill -0 $working 2>/dev/null || lost=1
	rm "$WORK/at-work"
	wait $working
	return $lost
}

# kill_daemon: dies and is started again, under whatever load there is
kill_daemon() {
	kill -9 "$daemon_pid"
	wait "$daemon_pid" 2>/dev/null
	sleep 0.3
	start
	sleep 0.3
}
# few_decisions WORKER COMMAND...: the worker is dead, and the command makes many connections
few_decisions() {
	local w=$1 all one
	shift
	all=$(takes) one=$(decisions_for "$w")
	"$@"
	all=$(($(takes) - all)) one=$(($(decisions_for "$w") - one))
	at_most "a dead worker's part of $all decisions" $((all / 1000)) $one
}
decisions_for() { of "$1" 'slots | .picks + .refusals + .failures'; }
