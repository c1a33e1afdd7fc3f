/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The start of a TCP segment, copied once into scratch memory of the CPU: options, path and
 * checksum are then read from there, at any offset, without asking the packet again and however the
 * skb is laid out. Zeroes follow the segment.
 */
#ifndef SPILLWAY_BPF_WINDOW_H
#define SPILLWAY_BPF_WINDOW_H

#include "parse.h"

#define WINDOW_MAX 512 /* bytes of segment */
#define WINDOW_PAD 64  /* zeroes behind it */

_Static_assert(sizeof(((struct window *)0)->bytes) >= WINDOW_MAX + 2 * WINDOW_PAD,
	       "text is read past the end");

/* The scratch of this CPU. Stages look it up themselves: older verifiers take no part of what came
 * in by an argument for a map's key. */
static __always_inline struct window *this_window(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&window, &zero);
}

static __always_inline struct window *open_window(ctx_t *ctx, const struct packet *p)
{
	__u32 size = p->end - p->l4, i;
	struct window *w = this_window();

	if (!w)
		return NULL;
	if (size > WINDOW_MAX)
		size = WINDOW_MAX;
	if (load_some(ctx, p->l4, w->bytes, size, WINDOW_MAX))
		return NULL;
	asm volatile("" : "+r"(size));
	if (size > WINDOW_MAX)
		return NULL;
	for (i = 0; i < WINDOW_PAD; i += 8)
		*(__u64 *)(w->bytes + size + i) = 0;
	return w;
}

#endif
