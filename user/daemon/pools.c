// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools and their workers while they run: reports come in from the scraper, are judged by policy/,
 * and what changed goes to the log and to the gates. Knows nothing of maps. */
#include "common/clock.h"
#include "daemon/daemon.h"

/* ---- judging ----------------------------------------------------------------------------- */

/* Did anything change that its pool is judged by? */
static bool judge_worker(struct sw_live_worker *w, uint64_t now_ms)
{
	const struct sw_live_pool *pool = w->pool;
	bool was_busy = w->load.busy, was_stale = w->load.stale, was_near = w->near;

	sw_worker_eval(&w->load, &pool->limits, &pool->conf->ageing, now_ms);
	if (w->load.stale != was_stale)
		sw_say_worker_stale(w, now_ms);
	if (w->load.busy != was_busy) {
		if (w->load.busy)
			w->busy_since_ms = now_ms;
		sw_say_worker_busy(w, now_ms);
	}
	w->near =
		sw_worker_near(&w->load, &pool->limits, &pool->conf->ageing, SW_NEAR_SHARE, now_ms);
	return w->load.busy != was_busy || w->near != was_near;
}

void sw_pool_update(struct sw_live_pool *pool)
{
	uint64_t now_ms = sw_now_ms();
	struct sw_pool_inputs in = {.workers = pool->n_workers,
				    .force = pool->force,
				    .force_until_ms = pool->force_until_ms,
				    .drain = pool->drain,
				    .awaited = pool->conf->discover && !pool->live->members_known};
	enum sw_pool_state was = pool->state;
	bool near = false, was_near = pool->near;

	for (size_t i = 0; i < pool->n_workers; i++) {
		in.draining += pool->workers[i]->drain;
		in.busy += pool->workers[i]->load.busy && !pool->workers[i]->drain;
		near |= pool->workers[i]->near;
	}
	pool->near = near;
	pool->state = sw_pool_decide(&in, now_ms);
	sw_steering_apply(pool);
	if (pool->state != was || pool->near != was_near)
		sw_gates_apply(pool);
	sw_words_choose(pool);
	if (pool->state == was)
		return;
	sw_say_pool(pool, was, now_ms - pool->since_ms, now_ms);
	pool->since_ms = now_ms;
}

/* The first check of a limit, an inert one if there is any; NULL: the limit is not held against
 * this worker. */
static const struct sw_check *find_check(const struct sw_check *checks, size_t n,
					 enum sw_limit limit)
{
	const struct sw_check *found = NULL;

	for (size_t i = 0; i < n; i++) {
		if (checks[i].limit != limit)
			continue;
		if (checks[i].state == SW_INERT)
			return &checks[i];
		if (!found)
			found = &checks[i];
	}
	return found;
}

/* One line for each limit that becomes inert for a worker, or is no more. */
static void judge_inert(struct sw_live_worker *w, uint64_t now_ms)
{
	const struct sw_live_pool *pool = w->pool;
	struct sw_check checks[SW_MAX_CHECKS];
	size_t n;

	if (!w->load.reported_ms)
		return;
	n = sw_worker_explain(&w->load, &pool->limits, &pool->conf->ageing, now_ms, checks,
			      SW_MAX_CHECKS);
	for (int limit = 0; limit < SW_LIMITS; limit++) {
		const struct sw_check *c =
			find_check(checks, n < SW_MAX_CHECKS ? n : SW_MAX_CHECKS, limit);
		bool inert = c && c->state == SW_INERT;

		if (c && inert != w->inert[limit])
			sw_say_inert(w, c, inert);
		w->inert[limit] = inert;
	}
}

void sw_pool_judge(struct sw_live_pool *pool)
{
	uint64_t now_ms = sw_now_ms();

	for (size_t i = 0; i < pool->n_workers; i++) {
		judge_worker(pool->workers[i], now_ms);
		judge_inert(pool->workers[i], now_ms);
	}
	sw_pool_update(pool);
}

void sw_pools_tick(struct sw_live *live)
{
	uint64_t now_ms = sw_now_ms();

	for (size_t i = 0; i < live->n_pools; i++) {
		struct sw_live_pool *pool = &live->pools[i];

		if (pool->force != SW_FORCE_AUTO && !sw_live_forced(pool, now_ms)) {
			sw_log(SW_INFO, "pool %s: forced %s no longer, its time is over",
			       pool->conf->name, sw_force_name(pool->force));
			pool->force = SW_FORCE_AUTO;
		}
		for (size_t j = 0; j < pool->n_workers; j++)
			sw_feeds_tick(pool->workers[j], now_ms);
		sw_pool_judge(pool);
	}
}

/* ---- reports ----------------------------------------------------------------------------- */

void sw_worker_take(struct sw_live_worker *w, size_t n, const struct sw_report *reports,
		    uint64_t now_ms)
{
	uint64_t dropped = w->load.dropped;

	for (size_t i = 0; i < n; i++)
		sw_worker_report(&w->load, &w->pool->limits, &reports[i], now_ms);
	if (!dropped && w->load.dropped)
		sw_log(SW_WARN,
		       "pool %s: worker %s reports a rank outside the declared ones; it is ignored. "
		       "Check data_parallel_start_rank and data_parallel_size",
		       w->pool->conf->name, w->conf->name);
	/* A pool may have a thousand workers, each of which reports every second. */
	if (judge_worker(w, now_ms))
		sw_pool_update(w->pool);
	else
		sw_steering_report(w);
}
