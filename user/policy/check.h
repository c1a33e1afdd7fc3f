/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One threshold held against one measured value: what evaluation (busy.c) and explanation
 * (explain.c) share, so that they cannot disagree. Private to user/policy.
 */
#ifndef SPILLWAY_CHECK_H
#define SPILLWAY_CHECK_H

#include "policy/busy.h"

#define SW_BIT(n) (1u << (n))

/* A measured value, and whether it may count. */
struct sw_reading {
	enum sw_signal signal;
	uint64_t value;
	uint64_t age_ms; /* UINT64_MAX: never arrived */
	bool fresh;	 /* arrived, and not too old */
};

/* Is `limit` evaluated once for the whole worker? Otherwise for each rank. */
bool sw_limit_of_worker(enum sw_limit limit);

/* Does the rank at `index` belong to the worker: declared or, before that is known, seen? */
bool sw_rank_counts(const struct sw_worker *w, unsigned index);

struct sw_reading sw_read_signal(const struct sw_rank *r, enum sw_signal signal,
				 const struct sw_ageing *a, uint64_t now_ms);

/* The sum that a worker-level limit measures: over the ranks whose value is fresh, so a lower
 * bound when some are silent; when none is fresh, over the last known values. */
struct sw_reading sw_read_worker(const struct sw_worker *w, enum sw_limit limit,
				 const struct sw_ageing *a, uint64_t now_ms);

/* The threshold in the unit of what is measured; 0 for decode without kv_total_blocks. `r` gives
 * kv_total_blocks and max_num_batched_tokens, NULL for worker-level limits. */
double sw_limit_bar(const struct sw_limits *l, enum sw_limit limit, const struct sw_rank *r);

/* Is `measured` over the limit? `was_over` brings release_ratio in. */
bool sw_limit_over(const struct sw_limits *l, enum sw_limit limit, const struct sw_rank *r,
		   uint64_t measured, bool was_over);

static inline uint64_t sw_age(uint64_t at_ms, uint64_t now_ms)
{
	return now_ms > at_ms ? now_ms - at_ms : 0;
}

/* Signals that tell load and age; the totals are properties of an engine and do not. */
#define SW_LOAD_SIGNALS                                                                            \
	(SW_BIT(SW_SIG_DECODE_BLOCKS) | SW_BIT(SW_SIG_KV_USED) | SW_BIT(SW_SIG_PREFILL_TOKENS) |   \
	 SW_BIT(SW_SIG_RUNNING) | SW_BIT(SW_SIG_WAITING) | SW_BIT(SW_SIG_QUEUED_TOKENS))

#endif
