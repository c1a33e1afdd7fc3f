/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Busy evaluation: from the load that ranks report to "this worker is busy", pure: no I/O, no
 * clock, time comes in as an argument (milliseconds of any monotonic clock). The rules are those of
 * NVIDIA Dynamo's request rejection and of vLLM's, SGLang's and TGI's own admission limits.
 */
#ifndef SPILLWAY_BUSY_H
#define SPILLWAY_BUSY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW_MAX_RANKS	       64
#define SW_DEFAULT_MAX_BATCHED 10000000ULL /* max_num_batched_tokens when the engine tells none */

enum sw_signal {
	SW_SIG_DECODE_BLOCKS,  /* active_decode_blocks */
	SW_SIG_KV_USED,	       /* kv_used_blocks */
	SW_SIG_KV_TOTAL,       /* kv_total_blocks */
	SW_SIG_PREFILL_TOKENS, /* active_prefill_tokens */
	SW_SIG_MAX_BATCHED,    /* max_num_batched_tokens */
	SW_SIG_RUNNING,	       /* running requests */
	SW_SIG_WAITING,	       /* waiting requests */
	SW_SIG_QUEUED_TOKENS,  /* queued prompt tokens */
	SW_SIGNALS
};

enum sw_limit {
	SW_LIM_DECODE,		    /* active_decode_blocks_threshold */
	SW_LIM_PREFILL,		    /* active_prefill_tokens_threshold */
	SW_LIM_PREFILL_FRAC,	    /* active_prefill_tokens_threshold_frac */
	SW_LIM_QUEUED_REQS,	    /* max_num_queued_reqs, vLLM */
	SW_LIM_QUEUED_TOKENS,	    /* max_num_queued_tokens, vLLM */
	SW_LIM_QUEUED_REQUESTS,	    /* max_queued_requests, SGLang */
	SW_LIM_CONCURRENT_REQUESTS, /* max_concurrent_requests, TGI */
	SW_LIMITS
};

/* Configured thresholds; bit (1 << enum sw_limit) in `set` says which are present. */
struct sw_limits {
	uint32_t set;
	double decode;		   /* 0.0..1.0 */
	double prefill_frac;	   /* >= 0.0 */
	uint64_t count[SW_LIMITS]; /* the integer ones, by enum sw_limit */
	double release_ratio;	   /* busy clears only under ratio x threshold; 1.0 or 0.0: off */
	uint32_t min_hold_ms;	   /* a busy rank stays busy at least this long; 0: off */
};

enum sw_on_stale { SW_STALE_OPEN, SW_STALE_HOLD };

struct sw_ageing {
	uint32_t stale_after_ms; /* default 5000 */
	enum sw_on_stale on_stale;
	uint32_t hold_for_ms; /* with SW_STALE_HOLD: how long past stale_after the value is kept */
};

/* One report of one rank. An absent signal (bit not set in `have`) keeps its old value. */
struct sw_report {
	uint32_t rank;
	uint32_t have; /* bit (1 << enum sw_signal) */
	uint64_t value[SW_SIGNALS];
};

enum sw_state {
	SW_CLEAR,
	SW_OVER,
	SW_INERT, /* cannot fire: what it needs never arrived, or only ever read 0 under load */
	SW_STALE,
};

/* One threshold held against one rank (or, rank == -1, against the worker): what explain prints. */
struct sw_check {
	enum sw_limit limit;
	int rank;
	enum sw_signal signal; /* the one that decided, or would; a sum: SW_SIG_RUNNING */
	double measured;       /* NAN: the signal never arrived */
	double threshold;      /* in the unit of `measured`: the product for fractions. The decode
				* fraction itself while kv_total_blocks, then `signal`, lacks */
	uint64_t age_ms;       /* of `measured`; UINT64_MAX: never arrived */
	enum sw_state state;   /* SW_OVER includes "held by the latch or min_hold" */
};

struct sw_rank {
	bool seen;
	uint32_t have;
	uint32_t moved; /* signals that were ever above 0 */
	uint64_t value[SW_SIGNALS];
	uint64_t at_ms[SW_SIGNALS]; /* when each signal last arrived */
	bool latched;		    /* the decode latch */
	bool router_over, engine_over;
	uint32_t over;			/* limits over at the last evaluation, for release_ratio */
	uint64_t over_since[SW_LIMITS]; /* for min_hold_ms */
	bool busy;
};

struct sw_worker {
	uint32_t start_rank; /* data_parallel_start_rank */
	int32_t dp_size;     /* data_parallel_size; -1: not known, the ranks seen so far count */
	struct sw_rank rank[SW_MAX_RANKS]; /* index: rank - start_rank */
	unsigned n_ranks;		   /* one past the last index that was ever reported */
	uint64_t reported_ms;		   /* last load of any rank; 0: none yet */
	uint32_t worker_over;		   /* worker-level limits over at the last evaluation */
	uint64_t worker_over_since[SW_LIMITS];
	uint64_t dropped; /* reports of ranks outside the declared range */
	bool busy, stale;
};

void sw_worker_init(struct sw_worker *w, uint32_t start_rank, int32_t dp_size);

/* Takes one report in. -ERANGE: the rank is outside the declared range (dropped and counted). The
 * decode latch moves here, as each signal arrives. */
int sw_worker_report(struct sw_worker *w, const struct sw_limits *l, const struct sw_report *r,
		     uint64_t now_ms);

/* One past the last index of `rank` that was reported or is declared: all that tell anything. */
unsigned sw_worker_ranks(const struct sw_worker *w);

/* Evaluates all thresholds at `now_ms`, sets busy and stale of ranks and worker, and returns busy.
 */
bool sw_worker_eval(struct sw_worker *w, const struct sw_limits *l, const struct sw_ageing *a,
		    uint64_t now_ms);

/* The checks behind the last evaluation, one for each configured threshold and rank, worker-level
 * ones once. Returns how many there are; at most `max` are stored. */
size_t sw_worker_explain(const struct sw_worker *w, const struct sw_limits *l,
			 const struct sw_ageing *a, uint64_t now_ms, struct sw_check *out,
			 size_t max);

/* Does anything measured reach `share` of its threshold? What is stale or inert does not count. */
bool sw_worker_near(const struct sw_worker *w, const struct sw_limits *l, const struct sw_ageing *a,
		    double share, uint64_t now_ms);

const char *sw_limit_name(enum sw_limit limit);	   /* as in the configuration */
const char *sw_signal_name(enum sw_signal signal); /* "kv_used_blocks" */
const char *sw_state_name(enum sw_state state);	   /* "clear", "over", "inert", "stale" */

/* Is `value` a valid threshold? decode: finite, 0..1; prefill_frac: finite, >= 0. */
bool sw_limit_valid(enum sw_limit limit, double value);

/* The HTTP status meant by `text` (may be NULL): trimmed, an unsigned 16-bit number in 200..999;
 * anything else is 529. Source: DYN_HTTP_OVERLOAD_STATUS_CODE of NVIDIA Dynamo. */
uint16_t sw_overload_status(const char *text);

#endif
