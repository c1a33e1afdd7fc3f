/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots: picks a worker of a pool and takes a slot of it. What a slot is bound to, and what becomes
 * of a connection that gets none, is left to the hooks. How a row is taken from and given back to
 * is in slot_row.h, whom the bitmaps allow in slot_choose.h.
 *
 * Global functions with scalar arguments: the verifier reads each once, and not once a call.
 */
#ifndef SPILLWAY_BPF_SLOTS_H
#define SPILLWAY_BPF_SLOTS_H

#include "slot_choose.h"
#include "slot_row.h"

enum pick { /* why slot_pick found nothing; it gives them negated */
	    PICK_NO_SLOT = 1,
	    PICK_ALL_BUSY,  /* there are free slots, but of busy workers */
	    PICK_NONE,	    /* the pool has no worker */
	    PICK_CLOSED,    /* drained, or saturated by force */
	    PICK_HALF_OPEN, /* too many connections are not established yet */
};

#define SLOT_TRIES 4 /* of a pick, before it looks at all rows */

/* ---- picking -------------------------------------------------------------------------------- */

static __always_inline __s32 free_of(__u32 id)
{
	const struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);
	const struct sw_slot *slot = bpf_map_lookup_elem(&slots, &id);

	return row && slot ? free_slots(slot, row) : 0;
}

/* Takes a slot where the hints say that there is one: the worker's id, or -1. */
__weak __noinline int slot_try(__u32 pool, __u32 how)
{
	__u32 a, b, i;
	int pair;

	for (i = 0; i < SLOT_TRIES; i++) {
		pair = slot_choose(pool, how);
		if (pair < 0)
			return -1;
		a = pair & 0xffff;
		b = pair >> 16;
		if (a != b && free_of(b) > free_of(a))
			a = b;
		if (!slot_take(a))
			return a;
	}
	return -1;
}

__weak __noinline int slot_reread_word(__u32 pool, __u32 w)
{
	const struct sw_bits *b = bpf_map_lookup_elem(&members, &pool);
	__u32 id = w % SW_WORDS * 64, i;
	__u64 set;

	if (!b)
		return 0;
	set = LATEST(b->word[w % SW_WORDS]);
	for (i = 0; i < 64 && set; i++, id++, set >>= 1) {
		struct sw_worker_row *row;
		struct sw_slot *slot;

		if (!(set & 1))
			continue;
		row = bpf_map_lookup_elem(&workers, &id);
		slot = bpf_map_lookup_elem(&slots, &id);
		if (row && slot)
			hint(slot, row, id);
	}
	return 0;
}

/* The daemon moves caps and leaves the hints alone: brings those of all members in line. */
__weak __noinline int slot_reread(__u32 pool)
{
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);
	__u32 i;

	if (!steer)
		return 0;
	for (i = 0; i < SW_WORDS && i < steer->words; i++)
		slot_reread_word(pool, steer->first + i);
	return 0;
}

/* Why nothing of the pool may be given, whatever its workers: negative enum pick, or 0. */
static __always_inline int shut(__u32 pool, __u32 how)
{
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);
	const struct sw_pool_use *use = bpf_map_lookup_elem(&pool_use, &pool);
	__u32 total_key = SW_MAX_POOLS;
	const struct sw_pool_use *total = bpf_map_lookup_elem(&pool_use, &total_key);

	if (!steer || !use || !total)
		return -PICK_NONE;
	if (steer->flags & SW_SF_CLOSED)
		return -PICK_CLOSED;
	if (how & HOW_HALF_OPEN && (LATEST(use->half_open) >= steer->half_open ||
				    LATEST(total->half_open) >= SW_MAX_RESERVATIONS - 1))
		return -PICK_HALF_OPEN;
	return 0;
}

/* Rows that the hints take for full are looked at once a tick, so that a cap raised while others
 * have free slots is not overlooked. */
static __always_inline void reread_each_tick(__u32 pool)
{
	struct sw_pool_use *use = bpf_map_lookup_elem(&pool_use, &pool);
	__u32 now = bpf_jiffies64();

	if (!use || LATEST(use->reread) == now)
		return;
	LATEST(use->reread) = now;
	slot_reread(pool);
}

/* Suspects are taken where all are, and where no daemon is there to clear them. HOW_SUSPECT: all
 * are. Negative: there is nobody. */
static __always_inline int whom(__u32 pool, __u32 how)
{
	how = (how & HOW_ONLY4) | HOW_IGNORE_BUSY | HOW_FULL;
	if (slot_first(pool, how) >= 0)
		return 0;
	return slot_first(pool, how | HOW_SUSPECT) >= 0 ? HOW_SUSPECT : -PICK_NONE;
}

/* The hints left nothing: looks at the rows themselves. As slot_pick. */
__weak __noinline int slot_search(__u32 pool, __u32 how)
{
	int suspects = whom(pool, how), id;

	if (suspects < 0)
		return suspects;
	slot_reread(pool);
	id = slot_try(pool, how | suspects);
	if (id < 0 && how & HOW_IGNORE_BUSY)
		id = slot_try(pool, how | HOW_SUSPECT);
	if (id >= 0)
		return id;
	how |= suspects | HOW_IGNORE_BUSY;
	return slot_first(pool, how) < 0 ? -PICK_NO_SLOT : -PICK_ALL_BUSY;
}

/* ---- for the hooks -------------------------------------------------------------------------- */

/* Picks a worker and takes a slot of it: its id, or negative enum pick. */
__weak __noinline int slot_pick(__u32 pool, __u32 how)
{
	int id = shut(pool, how);

	if (id < 0)
		return id;
	reread_each_tick(pool);
	id = slot_try(pool, how);
	return id < 0 ? slot_search(pool, how) : id;
}

/* Some worker of the pool, not a suspect where there is another; takes nothing. -1: none. */
__weak __noinline int slot_any(__u32 pool)
{
	int pair = slot_choose(pool, HOW_IGNORE_BUSY | HOW_FULL);

	if (pair < 0)
		pair = slot_choose(pool, HOW_IGNORE_BUSY | HOW_FULL | HOW_SUSPECT);
	return pair < 0 ? -1 : pair & 0xffff;
}

/* 1: one of those that the hints let hope is not full indeed. */
__weak __noinline int slot_free(__u32 pool, __u32 how)
{
	struct sw_worker_row *row;
	struct sw_slot *slot;
	__u32 id, i;
	int first;

	for (i = 0; i < SLOT_TRIES; i++) {
		first = slot_first(pool, how);
		if (first < 0)
			return 0;
		id = first;
		row = bpf_map_lookup_elem(&workers, &id);
		slot = bpf_map_lookup_elem(&slots, &id);
		if (!row || !slot || free_slots(slot, row) > 0)
			return 1;
		hint(slot, row, id);
	}
	return 1;
}

/* 1: slot_pick would find something. 0: it would not; that a cap was raised is seen within a tick
 * in pools of more than a word, whose rows are too many to be read for every SYN. */
__weak __noinline int slot_room(__u32 pool, __u32 how)
{
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);
	int suspects;

	if (!steer || shut(pool, how) < 0)
		return 0;
	if (slot_free(pool, how))
		return 1;
	if (steer->words > 1)
		reread_each_tick(pool);
	else
		slot_reread(pool);
	suspects = how & HOW_IGNORE_BUSY ? HOW_SUSPECT : whom(pool, how);
	return slot_free(pool, how) || (suspects == HOW_SUSPECT && slot_free(pool, how | suspects));
}

#endif
