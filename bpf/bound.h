/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A slot bound to a socket, and how it comes loose: once, by an atomic exchange, however many
 * programs hear of the end (an outer cgroup may have the same ones) and whoever is first.
 */
#ifndef SPILLWAY_BPF_BOUND_H
#define SPILLWAY_BPF_BOUND_H

#include "steered.h"

/* Between `inuse` and the socket's row a slot is nowhere to be seen: a recount that meets such a
 * socket must not believe what it counted. */
static __always_inline void begin_move(struct sw_socket *s)
{
	LATEST(s->moving) = 1;
	asm volatile("" ::: "memory");
}

static __always_inline void end_move(struct sw_socket *s)
{
	asm volatile("" ::: "memory");
	LATEST(s->moving) = 0;
}

/* A connection to this worker could not be made. */
static __always_inline void mark_suspect(__u32 id, __u32 pool)
{
	struct sw_slot *slot = bpf_map_lookup_elem(&slots, &id);
	struct sw_bits *b = bits(&suspect);

	if (!slot || !b)
		return;
	__sync_fetch_and_or(&b->word[id / 64 % SW_WORDS], 1ULL << (id & 63));
	__sync_fetch_and_add(&slot->failures, 1);
	count_steered(pool, STEERED_suspected);
}

/* Gives the socket's slot back, if it has one. */
static __always_inline void unbind(struct sw_socket *s, int failed)
{
	__u32 slot;

	begin_move(s);
	slot = __sync_lock_test_and_set(&s->slot, 0);
	if (slot && failed)
		mark_suspect(slot - 1, s->pool); /* first, or the free slot draws the next one */
	if (slot)
		slot_give(slot - 1);
	end_move(s);
}

#endif
