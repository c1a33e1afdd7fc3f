# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2046,SC2154
# For tests of steering, after lib.sh: four simulated engines on the host, a cgroup of the test's own,
# and what the daemon tells of workers. Sourced.

CGROUPS=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
GROUP=$CGROUPS/$TAG
WORKERS='w1 w2 w3 w4'
[ -n "$CGROUPS" ] || { echo "SKIP: no cgroup v2 is mounted"; exit 77; }

take_away() { # before the rest: a cgroup goes when its last process is gone
	local rc=$?
	kill $(jobs -p) 2>/dev/null
	wait 2>/dev/null
	until_true 5 find "$GROUP" -type d -delete # and those that a test made in it
	(exit $rc)
	finish
}
trap take_away EXIT
mkdir "$GROUP" || exit 1

# in_group COMMAND... and spawn_in_group COMMAND...: on the host, as a process of the cgroup
AS_MEMBER='echo $$ >"$0/cgroup.procs" && exec "$@"'
in_group() { in_host sh -c "$AS_MEMBER" "$GROUP" "$@"; }
spawn_in_group() { spawn "$HOST" sh -c "$AS_MEMBER" "$GROUP" "$@"; }

# start_worker NAME ADDRESS: one of w1 ... w4; the pid is in $spawned and in pid_of[NAME]
declare -A pid_of
start_worker() {
	spawn_in_group "$BUILD/engine" --listen "$2:900${1#w}" --slots 64 --service-ms "${SERVICE_MS:-20}" \
		--tokens 1 >>"$WORK/engine.log" 2>&1
	pid_of[$1]=$spawned
	until_true 5 in_host curl -fsm 1 "http://$2:900${1#w}/health"
}
# sim NAME ADDRESS WHAT
sim() { in_host curl -sX POST "http://$2:900${1#w}/sim?$3" >/dev/null; }

# start: spillwayd on $WORK/conf.yaml, as `daemon` of lib.sh
start() {
	spawn "$HOST" "$BUILD/spillwayd" --config "$WORK/conf.yaml" >>"$WORK/daemon.log" 2>&1
	daemon_pid=$spawned
	until_true 20 spillway status || {
		echo "spillwayd did not start"
		exit 1
	}
}

# of NAME FIELD and of_pool FIELD, as jq paths
of() { spillway status --json | jq ".pools[0].workers[] | select(.name == \"$1\") | .$2"; }
of_pool() { spillway status --json | jq -r ".pools[0].$1"; }
is() { [ "$(of "$1" "$2")" = "$3" ]; } # is NAME FIELD VALUE
all_picks() { spillway status --json | jq -c '[.pools[0].workers[].slots.picks]'; }
counts() { spillway status --json | jq -c '[.pools[0].workers[].slots.inuse]'; }
none_in_use() { [ "$(counts)" = '[0,0,0,0]' ]; }
over_the_cap() { spillway status --json | jq '[.pools[0].workers[].slots | select(.most > .cap)] | length'; }
logged() { until_true 2 grep -qE "$1" "$WORK/daemon.log"; }
# figures of the last checker or load run
figure() { tail -n 1 "$WORK/answers" | jq "$1"; }
