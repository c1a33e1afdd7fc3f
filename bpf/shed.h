/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes known of a request that was shed: it is counted by its kind, and a sample of all is
 * told to whoever reads `shed_events`. Reasons are counted by verdict.h.
 */
#ifndef SPILLWAY_BPF_SHED_H
#define SPILLWAY_BPF_SHED_H

#include "window.h"

#define SHED_STEP (1000000000ULL / SW_SHED_EVENTS) /* ns from one told to the next */

/* What a request asks: method, and kind of endpoint above it. */
static __always_inline __u32 asked(const struct window *w)
{
	return w ? w->request.path.method | w->request.endpoint << 4 : 0;
}

/* All that is told of it but who and when, in one argument. */
#define SHED_NOTE(reason, cause, asked, kept)                                                      \
	((__u32)(reason) | (cause) << 8 | (asked) << 16 | (__u32)(kept) << 24)

_Static_assert(SW_METHOD_TRACE < 16 && SW_API_ENDPOINTS <= 16, "both fit into a byte");

static __always_inline int is_shed(int reason)
{
	return reason >= SW_R_shed_saturated && reason <= SW_R_shed_no_handover;
}

/* One time line for all CPUs: each event told moves it on by a step, and it never lies further
 * ahead than the burst. While the rate is used up it is only read. */
static __always_inline int may_tell(__u64 now)
{
	__u64 *until, was, from;
	__u32 zero = 0;

	until = bpf_map_lookup_elem(&shed_sample, &zero);
	if (!until)
		return 0;
	was = *(volatile __u64 *)until;
	from = was > now ? was : now;
	if (from > now + (SW_SHED_BURST - 1) * SHED_STEP)
		return 0;
	return __sync_val_compare_and_swap(until, was, from + SHED_STEP) == was;
}

static __always_inline int tell_shed(const struct packet *p, __u32 listener, __u32 note, __u64 now)
{
	struct sw_shed_event *e = bpf_ringbuf_reserve(&shed_events, sizeof(*e), 0);
	__u32 *source;

	if (!e)
		return -1;
	source = (__u32 *)e->source;
	source[0] = p->saddr[0];
	source[1] = p->saddr[1];
	source[2] = p->v6 ? 0 : p->saddr[2];
	source[3] = p->v6 ? 0 : p->saddr[3] & bpf_htonl(0xffffff00);
	e->at_ns = now;
	e->listener = listener;
	e->reason = note;
	e->cause = note >> 8;
	e->method = note >> 16 & 15;
	e->endpoint = note >> 20 & 15;
	e->kept = note >> 24;
	e->pad = 0;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP); /* the daemon looks at each beat */
	return 0;
}

/* A function of its own, as the callers have no stack to spare. */
__weak __noinline int note_shed(const struct packet *p, __u32 listener, __u32 note, __u64 now)
{
	struct sw_shed_counts *counts = bpf_map_lookup_elem(&counts_shed, &listener);
	__u32 endpoint = note >> 20 & 15;

	if (!p || !counts)
		return 0;
	asm volatile("" : "+r"(endpoint));
	if (endpoint >= SW_API_ENDPOINTS)
		endpoint = SW_API_EP_OTHER;
	counts->endpoints[endpoint]++;
	if (!may_tell(now) || tell_shed(p, listener, note, now))
		counts->untold++;
	return 0;
}

#endif
