/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asks for the socket of a connection by its name, as if there were no program of ours on
 * sk_lookup. */
#ifndef SPILLWAY_BPF_FIND_SOCKET_H
#define SPILLWAY_BPF_FIND_SOCKET_H

#include <bpf/bpf_endian.h>

#include "asking.h"

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

#endif
