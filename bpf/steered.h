/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts what became of new connections, by pool: the names are in SW_STEERS of abi_slots.h. What
 * to do about each is left to the hooks. */
#ifndef SPILLWAY_BPF_STEERED_H
#define SPILLWAY_BPF_STEERED_H

#include "slots.h"

enum steered {
#define X(n, name, text) STEERED_##name = n,
	SW_STEERS(X)
#undef X
};

/* Atomic, though it is the CPU's own: a task may be interrupted by the softirq of another. */
static __always_inline void count_steered(__u32 pool, enum steered what)
{
	__u64 *count = bpf_map_lookup_elem(&counts_steer, &pool);

	if (count)
		__sync_fetch_and_add(&count[what], 1);
}

/* Why slot_pick found nothing; `pick` is what it gave. */
static __always_inline void count_unpicked(__u32 pool, int pick)
{
	switch (pick) {
	case -PICK_NO_SLOT: count_steered(pool, STEERED_no_slot); break;
	case -PICK_ALL_BUSY: count_steered(pool, STEERED_all_busy); break;
	case -PICK_CLOSED: count_steered(pool, STEERED_closed); break;
	case -PICK_HALF_OPEN: count_steered(pool, STEERED_half_open_limit); break;
	default: count_steered(pool, STEERED_unavailable);
	}
}

#endif
