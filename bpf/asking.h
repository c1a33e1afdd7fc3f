/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Look-ups of sockets by programs of ours run our sk_lookup program too, as those of the stack do.
 * Here it is told what they are for. What it makes of that is in lookup.bpf.c.
 */
#ifndef SPILLWAY_BPF_ASKING_H
#define SPILLWAY_BPF_ASKING_H

#include "reservation.h"

/* Fact of load time: the cookie of the plane's namespace; 0: no connection is counted there. */
const volatile __u64 netns_cookie SEC(".rodata") __weak = 0;

/* Says why this CPU looks a socket up; returns what was said before, which is to be said again
 * afterwards: a sweep may be interrupted by a packet. */
static __always_inline __u32 ask(__u32 why)
{
	struct sw_pending *p = netns_cookie ? this_pending() : NULL;
	__u32 before;

	if (!p)
		return SW_ASKING_STACK;
	before = LATEST(p->asking);
	LATEST(p->asking) = why;
	return before;
}

/* The connection that SW_ASKING_NOTHING is about. Those who ask so may be interrupted, by packets
 * of others, whose look-ups are the stack's. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sw_tuple);
} left_alone SEC(".maps") __weak;

static __always_inline struct sw_tuple *this_left_alone(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&left_alone, &zero);
}

/* ---- addresses ------------------------------------------------------------------------------ */

static __always_inline void map_address(__u8 to[16], __u32 addr)
{
	__u32 *word = (__u32 *)to;

	word[0] = word[1] = 0;
	word[2] = bpf_htonl(0xffff);
	word[3] = addr;
}

static __always_inline int is_mapped(const __u8 addr[16])
{
	const __u32 *word = (const __u32 *)addr;

	return !word[0] && !word[1] && word[2] == bpf_htonl(0xffff);
}

#endif
