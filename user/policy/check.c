// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Readings, thresholds and the comparison between them; see check.h. What follows from a crossed
 * threshold is busy.c's matter.
 */
#include <math.h>

#include "policy/check.h"

bool sw_limit_of_worker(enum sw_limit limit)
{
	return limit >= SW_LIM_QUEUED_REQS;
}

unsigned sw_worker_ranks(const struct sw_worker *w)
{
	unsigned declared = w->dp_size > 0 ? (unsigned)w->dp_size : 0;

	if (declared > SW_MAX_RANKS)
		declared = SW_MAX_RANKS;
	return declared > w->n_ranks ? declared : w->n_ranks;
}

bool sw_rank_counts(const struct sw_worker *w, unsigned index)
{
	return w->dp_size < 0 ? w->rank[index].seen : index < (uint32_t)w->dp_size;
}

static uint64_t last_load(const struct sw_rank *r)
{
	uint64_t last = 0;

	for (int s = 0; s < SW_SIGNALS; s++) {
		if ((r->have & SW_LOAD_SIGNALS & SW_BIT(s)) && r->at_ms[s] > last)
			last = r->at_ms[s];
	}
	return last;
}

/* The time by which a rank's signals are judged. With SW_STALE_HOLD the clock of a rank that fell
 * silent stands still at the moment it went stale, for hold_for: what was fresh then stays fresh,
 * what had stopped before does not come back. */
static uint64_t judged_at(const struct sw_rank *r, const struct sw_ageing *a, uint64_t now_ms)
{
	uint64_t stale_at = last_load(r) + a->stale_after_ms;

	if (a->on_stale == SW_STALE_HOLD && now_ms > stale_at &&
	    now_ms - stale_at <= a->hold_for_ms)
		return stale_at;
	return now_ms;
}

struct sw_reading sw_read_signal(const struct sw_rank *r, enum sw_signal signal,
				 const struct sw_ageing *a, uint64_t now_ms)
{
	struct sw_reading reading = {.signal = signal, .age_ms = UINT64_MAX};

	if (!(r->have & SW_BIT(signal)))
		return reading;
	reading.value = r->value[signal];
	reading.age_ms = sw_age(r->at_ms[signal], now_ms);
	reading.fresh = sw_age(r->at_ms[signal], judged_at(r, a, now_ms)) <= a->stale_after_ms;
	return reading;
}

static uint32_t signals_of(enum sw_limit limit)
{
	switch (limit) {
	case SW_LIM_QUEUED_TOKENS: return SW_BIT(SW_SIG_QUEUED_TOKENS);
	case SW_LIM_QUEUED_REQUESTS: return SW_BIT(SW_SIG_WAITING);
	default: return SW_BIT(SW_SIG_RUNNING) | SW_BIT(SW_SIG_WAITING);
	}
}

/* Adds one part to a sum that saturates and is as old as its oldest part. */
static void add(struct sw_reading *sum, const struct sw_reading *part)
{
	if (__builtin_add_overflow(sum->value, part->value, &sum->value))
		sum->value = UINT64_MAX;
	if (sum->age_ms == UINT64_MAX || part->age_ms > sum->age_ms)
		sum->age_ms = part->age_ms;
}

struct sw_reading sw_read_worker(const struct sw_worker *w, enum sw_limit limit,
				 const struct sw_ageing *a, uint64_t now_ms)
{
	const uint32_t signals = signals_of(limit);
	const enum sw_signal first = __builtin_ctz(signals);
	struct sw_reading live = {.signal = first, .age_ms = UINT64_MAX, .fresh = true};
	struct sw_reading known = {.signal = first, .age_ms = UINT64_MAX};

	for (unsigned i = 0; i < sw_worker_ranks(w); i++) {
		if (!sw_rank_counts(w, i))
			continue;
		for (int s = 0; s < SW_SIGNALS; s++) {
			struct sw_reading part;

			if (!(w->rank[i].have & signals & SW_BIT(s)))
				continue;
			part = sw_read_signal(&w->rank[i], s, a, now_ms);
			add(&known, &part);
			if (part.fresh)
				add(&live, &part);
		}
	}
	return live.age_ms != UINT64_MAX ? live : known;
}

/* frac x max_num_batched_tokens, truncated and, where a u64 ends, saturated. */
static uint64_t prefill_tokens(const struct sw_limits *l, const struct sw_rank *r)
{
	bool told = r->have & SW_BIT(SW_SIG_MAX_BATCHED);
	double product = l->prefill_frac *
			 (double)(told ? r->value[SW_SIG_MAX_BATCHED] : SW_DEFAULT_MAX_BATCHED);

	return product < 0x1p64 ? (uint64_t)product : UINT64_MAX;
}

double sw_limit_bar(const struct sw_limits *l, enum sw_limit limit, const struct sw_rank *r)
{
	switch (limit) {
	case SW_LIM_DECODE: /* a product, not used / total: the two differ in floating point */
		return l->decode * (double)r->value[SW_SIG_KV_TOTAL];
	case SW_LIM_PREFILL_FRAC: return (double)prefill_tokens(l, r);
	default: return (double)l->count[limit];
	}
}

static bool crosses(const struct sw_limits *l, enum sw_limit limit, const struct sw_rank *r,
		    uint64_t measured)
{
	switch (limit) {
	case SW_LIM_DECODE:
		return r->value[SW_SIG_KV_TOTAL] > 0 &&
		       (double)measured > sw_limit_bar(l, limit, r);
	case SW_LIM_PREFILL: return measured > l->count[limit];
	case SW_LIM_PREFILL_FRAC: return measured > prefill_tokens(l, r);
	default: /* admission: there is no room for one more, measured + 1 > max */
		return measured >= l->count[limit];
	}
}

bool sw_limit_over(const struct sw_limits *l, enum sw_limit limit, const struct sw_rank *r,
		   uint64_t measured, bool was_over)
{
	double bar;

	if (crosses(l, limit, r, measured))
		return true;
	if (!was_over || !(l->release_ratio > 0 && l->release_ratio < 1))
		return false;
	/* Nothing is under 0: a threshold of 0 has no band to stay in, or it would stay for ever.
	 */
	bar = sw_limit_bar(l, limit, r);
	return bar > 0 && (double)measured >= l->release_ratio * bar;
}

bool sw_limit_valid(enum sw_limit limit, double value)
{
	switch (limit) {
	case SW_LIM_DECODE: return value >= 0.0 && value <= 1.0;
	case SW_LIM_PREFILL_FRAC: return isfinite(value) && value >= 0.0;
	default: return value >= 0.0 && value < 0x1p64 && value == floor(value);
	}
}
