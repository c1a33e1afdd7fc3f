/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several sources that tell the load of one rank: the worst live value of each signal counts, so
 * that one that sees little of a full worker cannot hide what another sees. Pure, as busy.h is.
 */
#ifndef SPILLWAY_WORST_H
#define SPILLWAY_WORST_H

#include "policy/busy.h"

/* What one source has told of one rank. */
struct sw_told {
	uint32_t rank;
	uint32_t have; /* bit (1 << enum sw_signal) */
	uint64_t value[SW_SIGNALS];
	uint64_t at_ms[SW_SIGNALS]; /* when each last came */
};

void sw_told_note(struct sw_told *t, const struct sw_report *r, uint64_t now_ms);

/*
 * The report `r`, which one of n sources has just told (and which was noted), as it is to be taken:
 * the same signals, each with its worst value among those that are not older than `stale_after_ms`.
 * That is the largest, and of max_num_batched_tokens the smallest. Blocks are measured against the
 * largest kv_total_blocks; those of a source with a smaller total of its own are scaled up to it,
 * and that total goes along. What only one source tells is left as it is. Entries of `told` may
 * be NULL.
 */
struct sw_report sw_worst(const struct sw_told *const *told, size_t n, const struct sw_report *r,
			  uint32_t stale_after_ms, uint64_t now_ms);

#endif
