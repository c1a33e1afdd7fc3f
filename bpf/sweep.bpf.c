// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Gives back what was taken for connections that never came to be, and returns how many. The daemon
 * runs it inside a plane's namespace, by BPF_PROG_TEST_RUN on an empty packet.
 *
 * Not loaded unless asked for.
 */
#include "find_socket.h"
#include "steered.h"

#define LONG_PENDING_NS	 100000000ULL	 /* of a lookup; what follows it takes microseconds */
#define LONG_RESERVED_NS 600000000000ULL /* no SYN is answered for so long */
#define MAX_CPUS	 8192

struct task {
	struct __sk_buff *skb;
	__u64 now;
	__u32 count;
};

/* ---- sweep ---------------------------------------------------------------------------------- */

static __always_inline int has_socket(struct __sk_buff *skb, const struct sw_tuple *t)
{
	struct bpf_sock *sk = find_socket(skb, t);
	__u32 state;

	if (!sk)
		return 0;
	state = sk->state;
	bpf_sk_release(sk);
	return state != BPF_TCP_LISTEN && state != BPF_TCP_TIME_WAIT;
}

/* Takes a reservation that we have claimed out of the map. A SYN from the same ports may have made
 * a new one of it meanwhile, which has to stay. */
static __always_inline void take_out(const struct sw_tuple *key, const struct sw_tuple *t,
				     struct sw_reservation *r)
{
	struct sw_reservation kept = {};

	bpf_map_delete_elem(&reservations, t);
	kept.since_ns = LATEST(r->since_ns);
	kept.slot = r->slot;
	kept.pool = r->pool;
	/* the memory may be another connection's already */
	if (!kept.since_ns || !same_tuple(key, t) || !claim(&r->since_ns, kept.since_ns))
		return;
	if (bpf_map_update_elem(&reservations, t, &kept, BPF_NOEXIST))
		slot_release(kept.slot, kept.pool);
}

/* In the moment between confirming a reservation and hashing its request there is no socket: so it
 * has to be missing twice. */
static __always_inline int is_lost(const struct task *task, const struct sw_tuple *t,
				   struct sw_reservation *r)
{
	if ((__s64)(task->now - r->since_ns) > (__s64)LONG_RESERVED_NS)
		return 1;
	if (t->netns != netns_cookie)
		return 0;
	if (!has_socket(task->skb, t))
		return r->missing++;
	r->missing = 0;
	return 0;
}

static long sweep_one(void *map, const struct sw_tuple *key, struct sw_reservation *r,
		      struct task *task)
{
	__u64 since = LATEST(r->since_ns);
	__u32 slot = r->slot, pool = r->pool;
	struct sw_tuple t = *key;

	(void)map;
	if (since) {
		if (!is_lost(task, &t, r) || !claim(&r->since_ns, since))
			return 0;
		slot_release(slot, pool);
		count_steered(pool, STEERED_swept);
		task->count++;
	}
	take_out(key, &t, r);
	return 0;
}

static long sweep_pending(__u32 cpu, struct task *task)
{
	__u32 zero = 0;
	struct sw_pending *p = bpf_map_lookup_percpu_elem(&pending, &zero, cpu);

	if (!p)
		return 1;
	if ((__s64)(task->now - LATEST(p->since_ns)) > (__s64)LONG_PENDING_NS)
		pending_drop(p);
	return 0;
}

SEC("?tc")
int spillway_sweep(struct __sk_buff *skb)
{
	struct task task = {.skb = skb, .now = bpf_ktime_get_ns()};

	bpf_loop(MAX_CPUS, sweep_pending, &task, 0);
	bpf_for_each_map_elem(&reservations, sweep_one, &task, 0);
	return task.count;
}
