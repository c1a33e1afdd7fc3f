/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection that the kernel has and on which requests are shed. Each shed request takes bytes
 * out of the client's stream and puts an answer into the server's, so from then on both ends count
 * differently, and every segment's numbers are translated. This file keeps the state and the
 * arithmetic; when to shed is established.bpf.c's matter.
 *
 *   client's numbers            the socket's numbers
 *   sequence c                  c - din
 *   acknowledgement a           a - dout
 *
 * Only the last shed request has to be remembered: it is only shed when all before it has been
 * acknowledged on both sides.
 */
#ifndef SPILLWAY_BPF_FLOW_H
#define SPILLWAY_BPF_FLOW_H

#include "http1.h"

#define FLOW_SYNCED	(1U << 0) /* followed from a boundary that is certain */
#define FLOW_LATE	(1U << 1) /* it was there before following began */
#define FLOW_ALONE	(1U << 2) /* not understood: nothing is shed here any more */
#define FLOW_TRANSLATED (1U << 3)
#define FLOW_SWALLOW	(1U << 4) /* decided, the body is still coming in */
#define FLOW_ANSWERED	(1U << 5) /* the client has not acknowledged the answer yet */
#define FLOW_ENDED	(1U << 6) /* by us, before there was a socket */
#define FLOW_ASKED	8	  /* from this bit on a byte: what the last shed request asked */
#define FLOW_WHY	16 /* and from this one on: why it is left alone, until that is counted */

struct exchange {
	struct stream in;      /* requests, in the client's numbers */
	struct stream out;     /* responses, in the socket's */
	__u64 heads;	       /* bit n % 64: request number n was a HEAD */
	__u32 asked, answered; /* heads of requests and of final responses, without those shed */
	__u32 received;	       /* the client's stream that went up to the socket, in its numbers */
};

struct flow {
	struct exchange x;
	__u32 lock;
	__u32 flags;

	/* The last shed request: [from, to) of the client's stream, its answer at `at` of the
	 * socket's. Before there is one, `from` is where following began. */
	__u32 from, to, at;
	__u32 din, din_before;
	__u32 dout, dout_before;
	__u32 swallowed;	    /* of the client's stream, while its body comes in */
	__u32 ahead_from, ahead_to; /* a range of it that came before its time */
	__u32 acked;   /* what the client is told when the socket acknowledges all before `from` */
	__u32 answer;  /* index of it */
	__u16 window;  /* that the socket last advertised, as it stands in the header */
	__u16 missing; /* sweeps in a row that found no socket */
};

/* Never evicts: a translation that is lost is a connection that hangs. When it is full, new flows
 * are not shed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SW_DEFAULT_FLOWS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sw_tuple);
	__type(value, struct flow);
} flows SEC(".maps") __weak;

/* flow_use[0]: how many flows there are; while it is 0 nobody looks for one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} flow_use SEC(".maps") __weak;

/* The first reason is the one that is counted. */
static __always_inline void leave_alone(struct flow *f, __u32 why)
{
	if (!(f->flags & FLOW_ALONE))
		f->flags |= FLOW_ALONE | why << FLOW_WHY;
}

static __always_inline void count_flows(__s32 change)
{
	__u32 zero = 0, *n = bpf_map_lookup_elem(&flow_use, &zero);

	if (n)
		__sync_fetch_and_add(n, change);
}

static __always_inline int before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

/* The first byte behind the last shed request, in the socket's numbers: where its rcv_nxt stands as
 * long as the client has sent nothing more. */
static __always_inline __u32 boundary(const struct flow *f)
{
	return f->from - f->din_before;
}

static __always_inline __u32 seq_to_socket(const struct flow *f, __u32 c)
{
	if (!(f->flags & FLOW_TRANSLATED))
		return c;
	if (!before(c, f->to))
		return c - f->din;
	/* While a body is swallowed only the next byte stands where the socket's stream does: a RST
	 * with any other number must not seem exact. */
	if (f->flags & FLOW_SWALLOW && before(f->from, c))
		return c == f->swallowed ? boundary(f) : boundary(f) - 1;
	return before(c, f->from) ? c - f->din_before : c - f->din;
}

static __always_inline __u32 ack_to_socket(const struct flow *f, __u32 a)
{
	if (!(f->flags & FLOW_TRANSLATED))
		return a;
	if (!before(a, f->at + f->dout))
		return a - f->dout;
	if (!before(a, f->at + f->dout_before))
		return f->at;
	return a - f->dout_before;
}

static __always_inline __u32 seq_to_client(const struct flow *f, __u32 s)
{
	if (!(f->flags & FLOW_TRANSLATED))
		return s;
	return before(s, f->at) ? s + f->dout_before : s + f->dout;
}

static __always_inline __u32 ack_to_client(const struct flow *f, __u32 s)
{
	if (!(f->flags & FLOW_TRANSLATED))
		return s;
	if (s == boundary(f))
		return f->acked;
	return before(s, boundary(f)) ? s + f->din_before : s + f->din;
}

#define LOCK_TRIES 1024 /* some 20 us: longer than a head takes to read */

struct waiting {
	struct flow *f;
	__u32 held;
};

/* 1: the lock is ours. */
static long try_lock(__u32 i, struct waiting *w)
{
	(void)i;
	w->held = __sync_lock_test_and_set(&w->f->lock, 1);
	return !w->held;
}

/* Two packets of a flow may be on two CPUs. 0: ours. */
static __always_inline int lock_flow(struct flow *f)
{
	struct waiting w = {.f = f};

	if (!__sync_lock_test_and_set(&f->lock, 1))
		return 0;
	bpf_loop(LOCK_TRIES, try_lock, &w, 0);
	return w.held ? -1 : 0;
}

static __always_inline void unlock_flow(struct flow *f)
{
	__sync_lock_test_and_set(&f->lock, 0);
}

#endif
