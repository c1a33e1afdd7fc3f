/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whose connection is it? A conversation of ours has no socket, so whatever the kernel has one for
 * is the kernel's. Skipping this costs stalls and stuck sockets as soon as client ports are reused.
 */
#ifndef SPILLWAY_BPF_SOCKET_H
#define SPILLWAY_BPF_SOCKET_H

#include "asking.h"
#include "parse.h"

/* The lookup's key; returns its size. */
static __always_inline __u32 socket_tuple(const struct packet *p, struct bpf_sock_tuple *t)
{
	if (p->v6) {
		__builtin_memcpy(t->ipv6.saddr, p->saddr, 16);
		__builtin_memcpy(t->ipv6.daddr, p->daddr, 16);
		t->ipv6.sport = bpf_htons(p->sport);
		t->ipv6.dport = bpf_htons(p->dport);
		return sizeof(t->ipv6);
	}
	t->ipv4.saddr = p->saddr[3];
	t->ipv4.daddr = p->daddr[3];
	t->ipv4.sport = bpf_htons(p->sport);
	t->ipv4.dport = bpf_htons(p->dport);
	return sizeof(t->ipv4);
}

/* GO_ON: there is a listener and nothing else. TIME_WAIT is the kernel's too: we answer no SYN
 * while one is there, so it can only stem from a connection that was handed over. */
__noinline int STAGE(check_socket)(ctx_t *ctx, const struct packet *p)
{
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;
	__u32 state, size, before;

	if (!p)
		return SW_R_pass_no_listener;
	size = socket_tuple(p, &t);
	before = ask(SW_ASKING_ANY);
	sk = bpf_skc_lookup_tcp(ctx, &t, size, BPF_F_CURRENT_NETNS, 0);
	ask(before);
	if (!sk)
		return SW_R_pass_no_listener;
	state = sk->state;
	bpf_sk_release(sk);
	return state == BPF_TCP_LISTEN ? GO_ON : SW_R_pass_socket;
}

#endif
