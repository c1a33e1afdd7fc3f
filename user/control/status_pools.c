// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools and their workers as JSON; see status.h. */
#include <stdio.h>

#include "control/json.h"
#include "control/status.h"
#include "control/thresholds.h"
#include "control/totals.h"

static json_t *check_json(const struct sw_check *c)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s}", "limit", sw_limit_name(c->limit),
			 "signal", sw_signal_name(c->signal), "measured",
			 sw_json_number(c->measured), "threshold", sw_json_number(c->threshold),
			 "age_ms", sw_json_age(c->age_ms), "state", sw_state_name(c->state));
}

/* Those of `checks` that belong to `rank`; -1: the worker's own. */
static json_t *checks_json(const struct sw_check *checks, size_t n, int rank)
{
	json_t *out = json_array();

	for (size_t i = 0; i < n; i++)
		if (checks[i].rank == rank)
			json_array_append_new(out, check_json(&checks[i]));
	return out;
}

/* Ranks that were seen or are declared. */
static json_t *ranks_json(const struct sw_worker *w, const struct sw_check *checks, size_t n)
{
	json_t *out = json_array();

	for (int i = 0; i < SW_MAX_RANKS; i++) {
		int rank = (int)w->start_rank + i;

		if (!w->rank[i].seen && i >= w->dp_size)
			continue;
		json_array_append_new(out, json_pack("{s:i, s:b, s:o}", "rank", rank, "busy",
						     w->rank[i].busy, "checks",
						     checks_json(checks, n, rank)));
	}
	return out;
}

static json_t *sources_json(const struct sw_live_worker *w, uint64_t now_ms)
{
	json_t *out = json_array();

	for (size_t i = 0; i < w->n_feeds; i++) {
		const struct sw_feed *f = &w->feeds[i];
		uint64_t at = f->at_ms;
		json_t *one =
			json_pack("{s:s, s:o, s:o, s:I, s:I, s:o}", "kind",
				  sw_feed_kind_name(f->kind), "publisher",
				  f->kind == SW_FEED_EVENTS
					  ? json_sprintf("%llx", (unsigned long long)f->publisher)
					  : json_null(),
				  "age_ms", sw_json_age(at ? now_ms - at : UINT64_MAX), "told",
				  (json_int_t)f->told, "failures", (json_int_t)f->failures, "error",
				  sw_json_text(f->failing ? f->error.text : ""));

		sw_json_last_error(one, f->error.text, f->error_ms, now_ms);
		json_array_append_new(out, one);
	}
	return out;
}

/* A number of 64 bits as text: not every reader of JSON has integers that large. */
static json_t *worker_id_json(const struct sw_worker_conf *conf)
{
	return conf->has_worker_id ? json_sprintf("%llu", (unsigned long long)conf->worker_id)
				   : json_null();
}

static json_t *worker_json(const struct sw_live_worker *w, uint64_t now_ms)
{
	const struct sw_live_pool *pool = w->pool;
	struct sw_check checks[SW_MAX_CHECKS];
	size_t n = sw_worker_explain(&w->load, &pool->limits, &pool->conf->ageing, now_ms, checks,
				     SW_MAX_CHECKS);
	uint64_t at = w->load.reported_ms;
	json_t *out;

	if (n > SW_MAX_CHECKS)
		n = SW_MAX_CHECKS;
	out = json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "name", sw_json_text(w->conf->name),
			"url", sw_json_text(w->conf->source.url), "engine",
			sw_json_text(sw_live_engine(w)), "at", sw_json_endpoint(&w->conf->at),
			"worker_id", worker_id_json(w->conf), "discovered", w->conf->discovered);
	json_object_update_new(
		out, json_pack("{s:b, s:o, s:b, s:o, s:b, s:o}", "busy", w->load.busy, "busy_ms",
			       sw_json_lasting(w->load.busy, w->busy_since_ms, now_ms), "suspect",
			       w->suspect, "suspect_ms",
			       sw_json_lasting(w->suspect, w->suspect_since_ms, now_ms), "drain",
			       w->drain, "drain_ms",
			       sw_json_lasting(w->drain, w->drain_since_ms, now_ms)));
	json_object_update_new(
		out,
		json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "stale", w->load.stale, "age_ms",
			  sw_json_age(at ? now_ms - at : UINT64_MAX), "error",
			  sw_json_text(sw_live_worker_error(w)), "slots", sw_worker_slots_json(w),
			  "ranks", ranks_json(&w->load, checks, n), "checks",
			  checks_json(checks, n, -1), "sources", sources_json(w, now_ms)));
	return out;
}

/* The furthest that any namespace's programs go for this pool. */
static enum sw_mode pool_mode(const struct sw_live *live, size_t pool)
{
	static const int how_far[] = {
		[SW_MODE_OPEN] = 0,
		[SW_MODE_FINISH] = 1,
		[SW_MODE_METERED] = 2,
		[SW_MODE_SHED] = 3,
	};
	enum sw_mode mode = SW_MODE_OPEN;

	for (size_t i = 0; i < live->n_planes; i++) {
		const struct sw_live_plane *p = &live->planes[i];

		if (p->plane && p->gates[pool].used &&
		    how_far[p->gates[pool].gate.mode] > how_far[mode])
			mode = p->gates[pool].gate.mode;
	}
	return mode;
}

static const char *steer_name(enum sw_steer_by by)
{
	switch (by) {
	case SW_STEER_CONNECT: return "connect";
	case SW_STEER_LOCAL: return "local";
	default: return NULL;
	}
}

/* What a worker of the pool is held against, and who said so. */
static json_t *thresholds_json(const struct sw_live_pool *p)
{
	const uint32_t api = sw_thresholds_set_of(p->live->thresholds, p->conf->model);
	const struct sw_limits *l = &p->limits;
	json_t *out = json_array();

	for (int i = 0; i < SW_LIMITS; i++) {
		double v = i == SW_LIM_DECODE	      ? l->decode
			   : i == SW_LIM_PREFILL_FRAC ? l->prefill_frac
						      : (double)l->count[i];

		if (l->set & 1U << i)
			json_array_append_new(out, json_pack("{s:s, s:o, s:s}", "name",
							     sw_limit_name((enum sw_limit)i),
							     "value", sw_json_number(v), "from",
							     api & 1U << i ? "api" : "file"));
	}
	return out;
}

/* Without its workers. */
static json_t *pool_json(const struct sw_live_pool *p, uint64_t now_ms)
{
	bool forced = sw_live_forced(p, now_ms);
	struct sw_pool_totals totals;
	json_t *out;

	sw_pool_totals_read(p, &totals);
	out = json_pack(
		"{s:o, s:o, s:s, s:s, s:I, s:o, s:o}", "name", sw_json_text(p->conf->name), "model",
		sw_json_text(p->conf->model), "mode",
		sw_mode_name(pool_mode(p->live, (size_t)(p - p->live->pools))), "state",
		sw_pool_state_name(p->state), "state_ms", (json_int_t)(now_ms - p->since_ms),
		"forced", sw_json_text(forced ? sw_force_name(p->force) : NULL), "forced_left_ms",
		forced ? json_integer((json_int_t)(p->force_until_ms - now_ms)) : json_null());
	json_object_update_new(out, json_pack("{s:b, s:b, s:o, s:o, s:o, s:I, s:I}", "drain",
					      p->drain, "observe", p->conf->observe, "steer",
					      sw_json_text(steer_name(p->conf->steer.by)), "slots",
					      sw_pool_slots_json(p), "thresholds",
					      thresholds_json(p), "shed", (json_int_t)totals.shed,
					      "admitted", (json_int_t)totals.admitted));
	return out;
}

json_t *sw_explain_json(const struct sw_live *live, const struct sw_live_pool *pool,
			uint64_t now_ms)
{
	json_t *pools = json_array();

	for (size_t i = 0; i < live->n_pools; i++) {
		const struct sw_live_pool *p = &live->pools[i];
		json_t *workers, *one;

		if (pool && pool != p)
			continue;
		one = pool_json(p, now_ms);
		workers = json_array();
		for (size_t j = 0; j < p->n_workers; j++)
			json_array_append_new(workers, worker_json(p->workers[j], now_ms));
		json_object_set_new(one, "workers", workers);
		json_array_append_new(pools, one);
	}
	return json_pack("{s:o}", "pools", pools);
}

json_t *sw_pools_json(const struct sw_live *live, uint64_t now_ms)
{
	json_t *pools = json_array();

	for (size_t i = 0; i < live->n_pools; i++)
		json_array_append_new(pools, pool_json(&live->pools[i], now_ms));
	return json_pack("{s:o}", "pools", pools);
}

json_t *sw_workers_json(const struct sw_live *live, const struct sw_live_pool *pool,
			uint64_t now_ms)
{
	json_t *workers = json_array();

	for (size_t i = 0; i < live->n_pools; i++) {
		const struct sw_live_pool *p = &live->pools[i];

		for (size_t j = 0; j < p->n_workers && (!pool || pool == p); j++) {
			json_t *one = worker_json(p->workers[j], now_ms);

			json_object_set_new(one, "pool", sw_json_text(p->conf->name));
			json_array_append_new(workers, one);
		}
	}
	return json_pack("{s:o}", "workers", workers);
}
