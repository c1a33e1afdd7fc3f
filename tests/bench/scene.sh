# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# What the benchmarks on the scene of the end-to-end tests share: everything on one CPU, receiving in
# threads, and who has run for how long. Sourced, after lib.sh; what is measured is the caller's matter.

CPU=$(($(nproc) - 1)) # on which all of it runs

say() { echo "bench: $*" >&2; }
pin() { taskset -cp "$CPU" "$1" >/dev/null; }

threads() { pgrep '^napi/v0-' | sort; }

# receive_in_thread NS: the ids of its receive threads go to $receivers. Without GRO, and as long
# as the sender has TSO, a veth hands packets to the sender's CPU instead.
receive_in_thread() {
	local before
	before=$(threads)
	in_ns "$1" ethtool -K v0 gro on tso off >/dev/null
	# only `ip netns exec` shows the namespace's own devices under /sys
	ip netns exec "$1" sh -c 'echo 1 >/sys/class/net/v0/threaded' || {
		echo "SKIP: receiving in a thread needs Linux 5.12"
		exit 77
	}
	receivers=$(comm -13 <(echo "$before") <(threads))
	[ -n "$receivers" ] || { echo "$1 has no receive thread"; exit 1; }
	for pid in $receivers; do pin "$pid"; done
}

# ran PID...: nanoseconds that they have run, all together; nothing for one that is not there
ran() {
	local pid ns sum=0
	for pid in "$@"; do
		read -r ns _ 2>/dev/null <"/proc/$pid/schedstat" && sum=$((sum + ns))
	done
	echo $sum
}
switched() { awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$1/status"; }
# nanoseconds that our CPU was idle, or not given to this machine by its hypervisor
idle() { awk -v c="cpu$CPU" -v hz="$(getconf CLK_TCK)" '$1 == c { print ($5 + $6 + $9) * 1e9 / hz }' /proc/stat; }

# used WORKER: what was used so far; ns, but for the fourth
used() {
	# shellcheck disable=SC2086 # ids apart
	echo "$(ran $host_receivers)" "$(ran "$1")" "$(ran "$daemon_pid")" "$(switched "$1")" \
		"$(ran $client_receivers)" "$(idle)" "$(date +%s%N)"
}
