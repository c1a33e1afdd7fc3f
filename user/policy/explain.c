// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which measured value stands where against which threshold, and the names of all three; see
 * busy.h. Looks only: what it shows was decided by busy.c.
 */
#include <math.h>

#include "policy/check.h"

/* The decode signal that decides: of the two, held against one total, the larger that is fresh. */
static struct sw_reading read_decode(const struct sw_rank *r, const struct sw_ageing *a,
				     uint64_t now_ms)
{
	struct sw_reading router = sw_read_signal(r, SW_SIG_DECODE_BLOCKS, a, now_ms);
	struct sw_reading engine = sw_read_signal(r, SW_SIG_KV_USED, a, now_ms);

	if (router.fresh != engine.fresh)
		return router.fresh ? router : engine;
	if (engine.age_ms == UINT64_MAX && router.age_ms != UINT64_MAX)
		return router;
	return router.value > engine.value ? router : engine;
}

/* Can this threshold not fire, whatever the load? */
static bool is_inert(const struct sw_rank *r, enum sw_limit limit)
{
	uint32_t needs = limit == SW_LIM_DECODE
				 ? SW_BIT(SW_SIG_DECODE_BLOCKS) | SW_BIT(SW_SIG_KV_USED)
				 : SW_BIT(SW_SIG_PREFILL_TOKENS);

	if (limit == SW_LIM_DECODE && r->value[SW_SIG_KV_TOTAL] == 0)
		return true;
	if (limit == SW_LIM_PREFILL_FRAC && !(r->have & SW_BIT(SW_SIG_MAX_BATCHED)))
		return true;
	if (!(r->have & needs))
		return true;
	/* The rank worked and this signal never left 0: it is published but not filled. */
	return !(r->moved & needs) && (r->moved & SW_LOAD_SIGNALS);
}

static enum sw_state state_of(bool over, bool inert, uint64_t age_ms, const struct sw_ageing *a)
{
	if (over)
		return SW_OVER;
	if (inert)
		return SW_INERT;
	return age_ms > a->stale_after_ms ? SW_STALE : SW_CLEAR;
}

static struct sw_check check_rank(const struct sw_worker *w, unsigned index,
				  const struct sw_limits *l, enum sw_limit limit,
				  const struct sw_ageing *a, uint64_t now_ms)
{
	const struct sw_rank *r = &w->rank[index];
	struct sw_reading reading;
	struct sw_check c = {.limit = limit, .rank = (int)(w->start_rank + index)};

	if (limit != SW_LIM_DECODE)
		reading = sw_read_signal(r, SW_SIG_PREFILL_TOKENS, a, now_ms);
	else if (r->value[SW_SIG_KV_TOTAL] == 0)
		reading = sw_read_signal(r, SW_SIG_KV_TOTAL, a, now_ms);
	else
		reading = read_decode(r, a, now_ms);
	c.signal = reading.signal;
	c.measured = reading.age_ms == UINT64_MAX ? NAN : (double)reading.value;
	c.threshold = reading.signal == SW_SIG_KV_TOTAL ? l->decode : sw_limit_bar(l, limit, r);
	c.age_ms = reading.age_ms;
	c.state = state_of(r->over & SW_BIT(limit), is_inert(r, limit), c.age_ms, a);
	return c;
}

static struct sw_check check_worker(const struct sw_worker *w, const struct sw_limits *l,
				    enum sw_limit limit, const struct sw_ageing *a, uint64_t now_ms)
{
	struct sw_reading sum = sw_read_worker(w, limit, a, now_ms);
	bool never = sum.age_ms == UINT64_MAX;

	return (struct sw_check){
		.limit = limit,
		.rank = -1,
		.signal = sum.signal,
		.measured = never ? NAN : (double)sum.value,
		.threshold = sw_limit_bar(l, limit, NULL),
		.age_ms = sum.age_ms,
		.state = state_of(w->worker_over & SW_BIT(limit), never, sum.age_ms, a),
	};
}

size_t sw_worker_explain(const struct sw_worker *w, const struct sw_limits *l,
			 const struct sw_ageing *a, uint64_t now_ms, struct sw_check *out,
			 size_t max)
{
	size_t n = 0;

	for (unsigned i = 0; i < sw_worker_ranks(w); i++) {
		if (!sw_rank_counts(w, i))
			continue;
		for (int limit = 0; limit < SW_LIMITS; limit++) {
			if (sw_limit_of_worker(limit) || !(l->set & SW_BIT(limit)))
				continue;
			if (n < max)
				out[n] = check_rank(w, i, l, limit, a, now_ms);
			n++;
		}
	}
	for (int limit = 0; limit < SW_LIMITS; limit++) {
		if (!sw_limit_of_worker(limit) || !(l->set & SW_BIT(limit)))
			continue;
		if (n < max)
			out[n] = check_worker(w, l, limit, a, now_ms);
		n++;
	}
	return n;
}

bool sw_worker_near(const struct sw_worker *w, const struct sw_limits *l, const struct sw_ageing *a,
		    double share, uint64_t now_ms)
{
	struct sw_check checks[SW_MAX_RANKS * SW_LIMITS];
	size_t n = sw_worker_explain(w, l, a, now_ms, checks, SW_MAX_RANKS * SW_LIMITS);

	for (size_t i = 0; i < n; i++) {
		const struct sw_check *c = &checks[i];

		if (c->state == SW_OVER ||
		    (c->state == SW_CLEAR && c->measured >= share * c->threshold))
			return true;
	}
	return false;
}

const char *sw_limit_name(enum sw_limit limit)
{
	static const char *const names[SW_LIMITS] = {
		[SW_LIM_DECODE] = "active_decode_blocks_threshold",
		[SW_LIM_PREFILL] = "active_prefill_tokens_threshold",
		[SW_LIM_PREFILL_FRAC] = "active_prefill_tokens_threshold_frac",
		[SW_LIM_QUEUED_REQS] = "max_num_queued_reqs",
		[SW_LIM_QUEUED_TOKENS] = "max_num_queued_tokens",
		[SW_LIM_QUEUED_REQUESTS] = "max_queued_requests",
		[SW_LIM_CONCURRENT_REQUESTS] = "max_concurrent_requests",
	};

	return limit < SW_LIMITS ? names[limit] : "?";
}

const char *sw_signal_name(enum sw_signal signal)
{
	static const char *const names[SW_SIGNALS] = {
		[SW_SIG_DECODE_BLOCKS] = "active_decode_blocks",
		[SW_SIG_KV_USED] = "kv_used_blocks",
		[SW_SIG_KV_TOTAL] = "kv_total_blocks",
		[SW_SIG_PREFILL_TOKENS] = "active_prefill_tokens",
		[SW_SIG_MAX_BATCHED] = "max_num_batched_tokens",
		[SW_SIG_RUNNING] = "running",
		[SW_SIG_WAITING] = "waiting",
		[SW_SIG_QUEUED_TOKENS] = "queued_tokens",
	};

	return signal < SW_SIGNALS ? names[signal] : "?";
}

const char *sw_state_name(enum sw_state state)
{
	static const char *const names[] = {"clear", "over", "inert", "stale"};

	return state <= SW_STALE ? names[state] : "?";
}
