/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A best-effort memory of conversations answered a moment ago. What was in flight behind a request
 * still carries the acknowledgement of the SYN-ACK; with the memory it gets the answer again at
 * once and all of it acknowledged, instead of a retransmission timeout. A miss costs that timeout,
 * no more. Entries are one 64-bit word, so a reader never sees half of one.
 */
#ifndef SPILLWAY_BPF_RECENT_H
#define SPILLWAY_BPF_RECENT_H

#include "reply.h"

static __always_inline struct sw_recent *recent_place(const struct packet *p)
{
	__u32 place = (p->ack ^ p->sport << 16 ^ p->saddr[3]) * 0x9e3779b1U >> 18;

	return bpf_map_lookup_elem(&recent, &place);
}

_Static_assert(SW_RECENT == 1 << 14, "the place takes the top 14 bits of the hash");
_Static_assert(SW_CAUSES <= 4 && SW_FAMILIES <= 4, "both fit the low four bits of a mark");

static __always_inline void remember_answer(const struct packet *p, __u32 cause, __u32 family,
					    __u32 next)
{
	struct sw_recent *place = recent_place(p);

	if (place)
		*(volatile __u64 *)place =
			(p->ack & ~15U) | cause << 2 | family | (__u64)next << 32;
}

/* Copies the entry of this packet's conversation to `out`; 0: there is none. A reused port may have
 * the same mark, once in 4,096 times; so the packet must also lie in what the entry has
 * acknowledged, or right behind it, and the SYN-ACK's window bounds how much that can be. */
static __always_inline int find_answer(const struct packet *p, struct sw_recent *out)
{
	struct sw_recent *place = recent_place(p);
	__u64 word;

	if (!place)
		return 0;
	word = *(volatile __u64 *)place;
	out->mark = word;
	out->next = word >> 32;
	return word && (out->mark & ~15U) == (p->ack & ~15U) &&
	       out->next - p->seq <= WINDOW_SYN_ACK + 1;
}

#endif
