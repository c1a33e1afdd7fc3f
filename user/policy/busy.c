// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reports in, busy out; see busy.h. Readings and comparisons are check.c's, the words for people
 * explain.c's.
 */
#include <errno.h>
#include <string.h>

#include "policy/check.h"

void sw_worker_init(struct sw_worker *w, uint32_t start_rank, int32_t dp_size)
{
	memset(w, 0, sizeof(*w));
	w->start_rank = start_rank;
	w->dp_size = dp_size;
}

/* Is one decode signal over? While the latch holds, it clears only below the release ratio. */
static bool decode_over(const struct sw_rank *r, const struct sw_limits *l, enum sw_signal signal)
{
	bool was_over = r->latched || (r->over & SW_BIT(SW_LIM_DECODE));

	return (l->set & SW_BIT(SW_LIM_DECODE)) &&
	       sw_limit_over(l, SW_LIM_DECODE, r, r->value[signal], was_over);
}

int sw_worker_report(struct sw_worker *w, const struct sw_limits *l, const struct sw_report *r,
		     uint64_t now_ms)
{
	const uint32_t index = r->rank - w->start_rank;
	struct sw_rank *rank;

	if (r->rank < w->start_rank || index >= SW_MAX_RANKS ||
	    (w->dp_size >= 0 && index >= (uint32_t)w->dp_size)) {
		w->dropped++;
		return -ERANGE;
	}
	rank = &w->rank[index];
	rank->seen = true;
	if (index >= w->n_ranks)
		w->n_ranks = index + 1;
	for (int s = 0; s < SW_SIGNALS; s++) {
		if (!(r->have & SW_BIT(s)))
			continue;
		rank->have |= SW_BIT(s);
		rank->value[s] = r->value[s];
		rank->at_ms[s] = now_ms;
		if (r->value[s] > 0)
			rank->moved |= SW_BIT(s);
	}
	/* Between two evaluations a value may rise over the threshold and come back into the band
	 * of release_ratio, so the latch moves with each arrival. */
	if (r->have & SW_BIT(SW_SIG_DECODE_BLOCKS))
		rank->router_over = decode_over(rank, l, SW_SIG_DECODE_BLOCKS);
	if (r->have & SW_BIT(SW_SIG_KV_USED))
		rank->engine_over = decode_over(rank, l, SW_SIG_KV_USED);
	rank->latched = rank->router_over || rank->engine_over;
	if (r->have & SW_LOAD_SIGNALS)
		w->reported_ms = now_ms;
	return 0;
}

/* Moves one limit's bit in `mask`. A limit that is no longer over stays for min_hold_ms from when
 * it first was, unless its signal is gone: nobody sheds on what is not known. */
static void settle(uint32_t *mask, uint64_t *since_ms, const struct sw_limits *l,
		   enum sw_limit limit, bool over, bool known, uint64_t now_ms)
{
	const uint32_t bit = SW_BIT(limit);

	if (over) {
		if (!(*mask & bit))
			since_ms[limit] = now_ms;
		*mask |= bit;
	} else if (!(l->set & bit) || !known || sw_age(since_ms[limit], now_ms) >= l->min_hold_ms) {
		*mask &= ~bit;
	}
}

/* A threshold may have changed since the signals arrived, and a signal may have stopped: then it
 * counts as clear, so that the latch cannot stick for ever. */
static void eval_decode(struct sw_rank *r, const struct sw_limits *l, const struct sw_ageing *a,
			uint64_t now_ms)
{
	bool router = sw_read_signal(r, SW_SIG_DECODE_BLOCKS, a, now_ms).fresh;
	bool engine = sw_read_signal(r, SW_SIG_KV_USED, a, now_ms).fresh;

	r->router_over = router && decode_over(r, l, SW_SIG_DECODE_BLOCKS);
	r->engine_over = engine && decode_over(r, l, SW_SIG_KV_USED);
	r->latched = r->router_over || r->engine_over;
	settle(&r->over, r->over_since, l, SW_LIM_DECODE, r->latched, router || engine, now_ms);
}

static void eval_prefill(struct sw_rank *r, const struct sw_limits *l, enum sw_limit limit,
			 const struct sw_ageing *a, uint64_t now_ms)
{
	struct sw_reading tokens = sw_read_signal(r, SW_SIG_PREFILL_TOKENS, a, now_ms);
	bool over = (l->set & SW_BIT(limit)) && tokens.fresh &&
		    sw_limit_over(l, limit, r, tokens.value, r->over & SW_BIT(limit));

	settle(&r->over, r->over_since, l, limit, over, tokens.fresh, now_ms);
}

static void eval_worker(struct sw_worker *w, const struct sw_limits *l, enum sw_limit limit,
			const struct sw_ageing *a, uint64_t now_ms)
{
	struct sw_reading sum = sw_read_worker(w, limit, a, now_ms);
	bool over = (l->set & SW_BIT(limit)) && sum.fresh &&
		    sw_limit_over(l, limit, NULL, sum.value, w->worker_over & SW_BIT(limit));

	settle(&w->worker_over, w->worker_over_since, l, limit, over, sum.fresh, now_ms);
}

bool sw_worker_eval(struct sw_worker *w, const struct sw_limits *l, const struct sw_ageing *a,
		    uint64_t now_ms)
{
	/* Declared ranks past SW_MAX_RANKS cannot report here, and who has not reported is free. */
	bool all_busy = w->dp_size <= SW_MAX_RANKS;
	bool any = false, loaded = false;

	for (unsigned i = 0; i < sw_worker_ranks(w); i++) {
		struct sw_rank *r = &w->rank[i];

		if (!sw_rank_counts(w, i))
			continue;
		eval_decode(r, l, a, now_ms);
		eval_prefill(r, l, SW_LIM_PREFILL, a, now_ms);
		eval_prefill(r, l, SW_LIM_PREFILL_FRAC, a, now_ms);
		r->busy = r->over != 0;
		all_busy = all_busy && r->busy;
		any = true;
		loaded = loaded || (r->have & SW_LOAD_SIGNALS);
	}
	for (int limit = 0; limit < SW_LIMITS; limit++) {
		if (sw_limit_of_worker(limit))
			eval_worker(w, l, limit, a, now_ms);
	}
	w->stale = loaded && sw_age(w->reported_ms, now_ms) > a->stale_after_ms;
	w->busy = (any && all_busy) || w->worker_over;
	return w->busy;
}
