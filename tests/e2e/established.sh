# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2046,SC2154
# For tests of kept connections under a client that checks every byte, after lib.sh: who serves, a pool that
# changes, and the client. The test says where that one is (`$from`). Sourced.

good_wire() {
	add_namespace "$HOST"
	add_namespace "$CLIENT"
	join "$HOST" v0 10.77.0.1 fd77::1 "$CLIENT" v0 10.77.0.2 fd77::2
}
serve() {
	start_engine "$HOST"
	engine_pid=$spawned
	spawn "$HOST" "$BUILD/echo" --listen 0.0.0.0:8000 --listen '[::]:8000'
	echo_pid=$spawned
}
# kept FILTER: what `spillway status` says of connections that are kept
kept() { spillway status --json | jq ".listeners[0].established | $1"; }

changes() { grep -c 'forced saturated' "$WORK/daemon.log"; }
more_changes() { [ "$(changes)" -gt "$1" ]; }
# changing COMMAND...: while the pool saturates and opens 50 times a second
changing() {
	local toggler rc
	"$E2E/toggle.py" "$CONTROL" 50 86400 &
	toggler=$!
	until_true 10 more_changes "$(changes)"
	"$@"
	rc=$?
	kill $toggler || rc=1 # if it has failed
	wait $toggler 2>/dev/null
	return $rc
}
keep() {
	local rc
	$from "$BUILD/keeper" --timeout-ms 60000 "$@" >"$WORK/answers"
	rc=$?
	echo "     $(cat "$WORK/answers")"
	return $rc
}
figure() { jq "$1" "$WORK/answers"; }
# some WHAT COUNT: how many there are depends on how busy the machine is
some() { check "$1: $2" [ "$2" -gt 20 ]; }
