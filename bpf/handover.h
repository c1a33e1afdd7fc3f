/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hand-over: the kernel gets the segment with the request together with what the SYN had agreed,
 * and makes an established connection of it, as it does for its own SYN cookies. Kernel 6.9 and
 * newer, TC only, and net.ipv4.tcp_syncookies must not be 0.
 */
#ifndef SPILLWAY_BPF_HANDOVER_H
#define SPILLWAY_BPF_HANDOVER_H

#include "cookie.h"
#include "options.h"
#include "socket.h"
#include "window.h"

#define HAND_OVER_NOBODY 1

#if CTX_IS_XDP
static __always_inline int hand_over(ctx_t *ctx, const struct packet *p, const struct options *o,
				     __u32 guess, __u32 why)
{
	(void)ctx, (void)p, (void)o, (void)guess, (void)why;
	return -1;
}
#else
#include <stdbool.h>

struct sock { /* the kernel's; only its kind matters to the type check */
	char opaque;
};

/* As the kernel has it; not in the UAPI headers, and declared here so that building needs no
 * particular kernel's BTF. */
struct bpf_tcp_req_attrs {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
	__u16 mss;
	__u8 rcv_wscale;
	__u8 snd_wscale;
	__u8 ecn_ok;
	__u8 wscale_ok;
	__u8 sack_ok;
	__u8 tstamp_ok;
	__u8 usec_ts_ok;
	__u8 reserved[3];
};

extern int bpf_sk_assign_tcp_reqsk(struct __sk_buff *skb, struct sock *sk,
				   struct bpf_tcp_req_attrs *attrs, int attrs__sz) __ksym __weak;

/* Fact of load time: the loader has probed for the kfunc. While it is false the verifier sees that
 * the call below is dead code, and an older kernel takes the program. */
const volatile bool have_hand_over = false;

/* The stack makes no request of its own for what it is given, so the slot that the look-up of a
 * listening socket has taken is reserved by hand. NULL: there is none left. */
static __always_inline const struct sw_tuple *reserve(const struct packet *p)
{
	struct window *w = this_window();

	if (!w)
		return NULL;
	w->tuple.netns = netns_cookie;
	__builtin_memcpy(w->tuple.peer, p->saddr, 16);
	__builtin_memcpy(w->tuple.local, p->daddr, 16);
	w->tuple.peer_port = p->sport;
	w->tuple.local_port = p->dport;
	return reservation_confirm(&w->tuple) ? NULL : &w->tuple;
}

static __always_inline int give(ctx_t *ctx, const struct packet *p, struct bpf_sock *sk,
				struct bpf_tcp_req_attrs *attrs)
{
	const struct sw_tuple *t = NULL;
	int err;

	if (sk->state != BPF_TCP_LISTEN)
		return -1;
	if (netns_cookie) {
		t = reserve(p);
		if (!t)
			return HAND_OVER_NOBODY;
	}
	err = bpf_sk_assign_tcp_reqsk(ctx, (struct sock *)sk, attrs, sizeof(*attrs));
	if (err && t)
		reservation_drop(t);
	return err;
}

/* 0: the connection is the kernel's. HAND_OVER_NOBODY: no socket takes it. Negative: the kernel
 * does not. `why`: SW_ASKING_HAND_OVER or _PASS. */
__noinline int hand_over(ctx_t *ctx, const struct packet *p, const struct options *o, __u32 guess,
			 __u32 why)
{
	struct bpf_tcp_req_attrs attrs = {.mss = mss_value(guess)};
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;
	__u32 size, before;
	int err;

	if (!p || !o || !have_hand_over)
		return -1;
	if (p->v6 && attrs.mss < 1220)
		attrs.mss = 1220;
	if (o->timestamp) {
		__u32 memory = o->tsecr;

		attrs.tstamp_ok = 1;
		attrs.rcv_tsval = o->tsval;
		attrs.rcv_tsecr = o->tsecr;
		attrs.ecn_ok = memory >> 5 & 1;
		attrs.sack_ok = memory >> 4 & 1;
		if ((memory & 15) != NO_WSCALE) {
			attrs.wscale_ok = 1;
			attrs.snd_wscale = memory & 15;
			attrs.rcv_wscale = OUR_WSCALE;
		}
	}
	size = socket_tuple(p, &t);
	before = ask(why);
	sk = bpf_sk_lookup_tcp(ctx, &t, size, BPF_F_CURRENT_NETNS, 0);
	ask(before);
	if (!sk)
		return HAND_OVER_NOBODY;
	err = give(ctx, p, sk, &attrs);
	bpf_sk_release(sk);
	return err;
}
#endif

#endif
