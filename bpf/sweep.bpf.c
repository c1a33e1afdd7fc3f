// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the daemon runs inside a plane's namespace, by BPF_PROG_TEST_RUN on an empty packet:
 * spillway_sweep gives back what was taken for connections that never came to be, spillway_find
 * looks for the workers' listening sockets. Both return how many.
 *
 * Not loaded unless asked for.
 */
#include <bpf/bpf_endian.h>

#include "asking.h"
#include "steered.h"

#define LONG_PENDING_NS	 100000000ULL	 /* of a lookup; what follows it takes microseconds */
#define LONG_RESERVED_NS 600000000000ULL /* no SYN is answered for so long */
#define MAX_CPUS	 8192

struct task {
	struct __sk_buff *skb;
	__u64 now;
	__u32 count;
};

static __always_inline __u32 socket_tuple(const struct sw_tuple *from, struct bpf_sock_tuple *t)
{
	if (is_mapped(from->local)) {
		__builtin_memcpy(&t->ipv4.saddr, from->peer + 12, 4);
		__builtin_memcpy(&t->ipv4.daddr, from->local + 12, 4);
		t->ipv4.sport = bpf_htons(from->peer_port);
		t->ipv4.dport = bpf_htons(from->local_port);
		return sizeof(t->ipv4);
	}
	__builtin_memcpy(t->ipv6.saddr, from->peer, 16);
	__builtin_memcpy(t->ipv6.daddr, from->local, 16);
	t->ipv6.sport = bpf_htons(from->peer_port);
	t->ipv6.dport = bpf_htons(from->local_port);
	return sizeof(t->ipv6);
}

/* The socket of a connection, or the one that listens for it, as if we were not there. */
static __always_inline struct bpf_sock *find_socket(struct __sk_buff *skb, const struct sw_tuple *t)
{
	struct sw_tuple *alone = this_left_alone();
	struct bpf_sock_tuple key = {};
	__u32 size = socket_tuple(t, &key), before;
	struct bpf_sock *sk;

	if (!alone)
		return NULL;
	*alone = *t;
	before = ask(SW_ASKING_NOTHING);
	sk = bpf_skc_lookup_tcp(skb, &key, size, BPF_F_CURRENT_NETNS, 0);
	ask(before);
	return sk;
}

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

/* ---- find ------------------------------------------------------------------------------------ */

/* Is this a worker whose connections go to its listening socket in this namespace? */
static __always_inline int is_ours(const struct sw_worker_row *row)
{
	const struct sw_steer_pool *steer;
	__u32 pool = row->pool;

	if (!row->port || row->flags & SW_WF_ROW || (row->tag && row->tag != netns_cookie))
		return 0;
	steer = bpf_map_lookup_elem(&steers, &pool);
	return steer && steer->flags & SW_SF_ASSIGN;
}

/* 1: it is where it is looked for, now. */
static __always_inline int note_listener(__u32 id, struct bpf_sock *sk)
{
	struct bpf_sock *known = bpf_map_lookup_elem(&listening, &id);
	int same = known && known == sk;

	if (known)
		bpf_sk_release(known);
	return same || !bpf_map_update_elem(&listening, &id, sk, BPF_ANY);
}

static long find_one(__u32 id, struct task *task)
{
	const struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);
	struct sw_tuple t = {.netns = netns_cookie};
	struct bpf_sock *sk;

	if (!row || !is_ours(row))
		return 0;
	__builtin_memcpy(t.local, row->addr, 16);
	t.local_port = row->port;
	if (is_mapped(t.local))
		map_address(t.peer, 0);
	sk = find_socket(task->skb, &t);
	if (!sk)
		return 0;
	if (sk->state == BPF_TCP_LISTEN)
		task->count += note_listener(id, sk);
	bpf_sk_release(sk);
	return 0;
}

SEC("?tc")
int spillway_find(struct __sk_buff *skb)
{
	struct task task = {.skb = skb};

	bpf_loop(SW_MAX_WORKERS, find_one, &task, 0);
	return task.count;
}
