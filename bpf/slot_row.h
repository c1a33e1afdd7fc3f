/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One row of slots: takes a slot of it, and gives it back. The truth is `inuse`, which moves by
 * compare-and-swap against `cap`. Bitmaps only say where to look, and `notfull` among them is a
 * hint that the functions here keep: it may say "not full" of a full worker, which costs a try, but
 * not for long "full" of one that is not. Global functions as in slots.h.
 */
#ifndef SPILLWAY_BPF_SLOT_ROW_H
#define SPILLWAY_BPF_SLOT_ROW_H

#include "slot_maps.h"

#define LATEST(x)  (*(volatile typeof(x) *)&(x))
#define SWAP_TRIES 1000 /* of a take that others get ahead of */

/* As sequence numbers are compared, so that a credit row may wrap around. */
static __always_inline __s32 free_slots(const struct sw_slot *slot, const struct sw_worker_row *row)
{
	return LATEST(row->cap) - LATEST(slot->inuse);
}

static __always_inline struct sw_bits *bits(void *map)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}

/* Brings the hint of a row in line with what it holds. Who gives a slot back while the hint is
 * being cleared may still see it set, and leave it alone: so the row is looked at again after that.
 */
static __always_inline void hint(const struct sw_slot *slot, const struct sw_worker_row *row,
				 __u32 id)
{
	struct sw_bits *b = bits(&notfull);
	__u64 bit = 1ULL << (id & 63), *word;

	if (!b)
		return;
	word = &b->word[id / 64 % SW_WORDS];
	if (LATEST(*word) & bit) {
		if (free_slots(slot, row) > 0)
			return;
		/* a barrier only if the result is used */
		if (!(__sync_fetch_and_and(word, ~bit) & bit))
			return;
	}
	if (free_slots(slot, row) > 0)
		__sync_fetch_and_or(word, bit);
}

/* 0: taken. -1: it is full. */
__weak __noinline int slot_take(__u32 id)
{
	struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);
	struct sw_slot *slot = bpf_map_lookup_elem(&slots, &id);
	__u32 now, seen, most, i;
	__s32 left = 0;

	if (!row || !slot)
		return -1;
	now = LATEST(slot->inuse);
	for (i = 0; i < SWAP_TRIES; i++) {
		left = LATEST(row->cap) - now;
		if (left <= 0)
			break;
		seen = __sync_val_compare_and_swap(&slot->inuse, now, now + 1);
		if (seen == now)
			break;
		now = seen;
		left = 0;
	}
	if (left <= 0) {
		__sync_fetch_and_add(&slot->refusals, 1);
		hint(slot, row, id);
		return -1;
	}
	__sync_fetch_and_add(&slot->takes, 1);
	most = LATEST(slot->most);
	for (i = 0; i < SWAP_TRIES && (__s32)(now + 1 - most) > 0; i++)
		most = __sync_val_compare_and_swap(&slot->most, most, now + 1);
	if (left == 1)
		hint(slot, row, id);
	return 0;
}

/* Gives back whatever kind of row it is: for a take that nothing came of. */
__weak __noinline int slot_untake(__u32 id)
{
	struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);
	struct sw_slot *slot = bpf_map_lookup_elem(&slots, &id);

	if (!row || !slot)
		return -1;
	/* nothing was in use: a recount has been here before us */
	if (!__sync_fetch_and_sub(&slot->inuse, 1) && !(row->flags & SW_WF_CREDIT)) {
		__sync_fetch_and_add(&slot->inuse, 1);
		return -1;
	}
	__sync_fetch_and_add(&slot->gives, 1);
	hint(slot, row, id);
	return 0;
}

/* The end of a connection. */
__weak __noinline int slot_give(__u32 id)
{
	struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);

	if (!row || row->flags & SW_WF_CREDIT)
		return 0;
	return slot_untake(id);
}

#endif
