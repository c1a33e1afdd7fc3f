// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the daemon runs inside a plane's namespace, by BPF_PROG_TEST_RUN on an empty packet: removes
 * flows whose socket is gone. The daemon says which to look at, a part of the map at a time: a walk
 * over all of it would hold a CPU for too long. The return value is how many were removed.
 */
#include "ctx_tc.h"
#include "parse.h"
#include "asking.h"
#include "exchange.h"

/* The keys to look at: the first `n` of expire_keys. Mapped by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_EXPIRE_KEYS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sw_tuple);
} expire_keys SEC(".maps") __weak;

struct expiry {
	struct __sk_buff *skb;
	__u32 translated_only; /* forget those that are only followed */
	__u32 removed;
};

static __always_inline __u32 to_tuple(const struct sw_tuple *from, struct bpf_sock_tuple *t)
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

static __always_inline int has_socket(struct __sk_buff *skb, const struct sw_tuple *key)
{
	struct bpf_sock_tuple t = {};
	__u32 size = to_tuple(key, &t), before = ask(SW_ASKING_ANY), state;
	struct bpf_sock *sk = bpf_skc_lookup_tcp(skb, &t, size, BPF_F_CURRENT_NETNS, 0);

	ask(before);
	if (!sk)
		return 0;
	state = sk->state;
	bpf_sk_release(sk);
	return state != BPF_TCP_LISTEN;
}

/* A connection that is being set up anew under the same tuple has no socket for a moment: so it has
 * to be missing twice. */
static int is_over(const struct expiry *e, const struct sw_tuple *key, struct flow *f)
{
	if (e->translated_only && !(f->flags & FLOW_TRANSLATED))
		return 1;
	if (!has_socket(e->skb, key))
		return f->missing++;
	f->missing = 0;
	return 0;
}

static long expire_one(__u32 i, struct expiry *e)
{
	struct sw_tuple key, *at = bpf_map_lookup_elem(&expire_keys, &i);
	struct flow *f;

	if (!at)
		return 1;
	key = *at;
	f = bpf_map_lookup_elem(&flows, &key);
	if (!f)
		return 0;
	if (is_over(e, &key, f) && !bpf_map_delete_elem(&flows, &key)) {
		count_flows(-1);
		e->removed++;
	}
	return 0;
}

/* skb->cb[0]: how many keys. cb[1]: 1: nothing is shed now, forget what is only followed. */
SEC("?tc")
int spillway_expire(struct __sk_buff *skb)
{
	struct expiry e = {.skb = skb, .translated_only = skb->cb[1]};
	__u32 n = skb->cb[0];

	if (n > SW_EXPIRE_KEYS)
		n = SW_EXPIRE_KEYS;
	bpf_loop(n, expire_one, &e, 0);
	return e.removed;
}
