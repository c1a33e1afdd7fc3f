// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The daemon's log lines about load: what changed, which measured value stands where against which
 * limit. Looks only; who calls decides when. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/daemon.h"

/* "rank 0 active_decode_blocks_threshold 9012 > 8500" */
static void say_check(const struct sw_check *c, char *out, size_t size)
{
	/* Limits on ranks are strict; those on workers refuse the request that would be one more */
	const char *over = c->rank < 0 ? ">=" : ">", *under = c->rank < 0 ? "<" : "<=";
	bool crossed = c->rank < 0 ? c->measured >= c->threshold : c->measured > c->threshold;
	int n = 0;

	if (c->rank >= 0)
		n = snprintf(out, size, "rank %d ", c->rank);
	n += snprintf(out + n, size - (size_t)n, "%s %.10g %s %.10g", sw_limit_name(c->limit),
		      c->measured, crossed ? over : under, c->threshold);
	if (c->state == SW_OVER && !crossed)
		snprintf(out + n, size - (size_t)n, " (held)");
}

/* The check that tells most about a worker: an over one, else the one closest to its limit. */
static bool telling_check(const struct sw_live_worker *w, uint64_t now_ms, struct sw_check *out)
{
	const struct sw_live_pool *pool = w->pool;
	struct sw_check checks[SW_MAX_CHECKS];
	double best = -1;
	size_t n = sw_worker_explain(&w->load, &pool->limits, &pool->conf->ageing, now_ms, checks,
				     SW_MAX_CHECKS);

	for (size_t i = 0; i < n && i < SW_MAX_CHECKS; i++) {
		const struct sw_check *c = &checks[i];
		double ratio = c->threshold > 0 ? c->measured / c->threshold : 0;

		if (isnan(c->measured) || (c->state != SW_OVER && c->state != SW_CLEAR))
			continue;
		if (c->state == SW_OVER)
			ratio = INFINITY;
		if (ratio > best) {
			best = ratio;
			*out = *c;
		}
	}
	return best >= 0;
}

/* "worker NAME " and its most telling check */
static void say_worker(const struct sw_live_worker *w, uint64_t now_ms, char *out, size_t size)
{
	struct sw_check c;
	int n = snprintf(out, size, "worker %s ", w->conf->name);

	if (n < 0 || (size_t)n >= size)
		return;
	if (w->load.stale && !w->load.busy)
		snprintf(out + n, size - (size_t)n, "is stale and counts as free");
	else if (telling_check(w, now_ms, &c))
		say_check(&c, out + n, size - (size_t)n);
	else
		snprintf(out + n, size - (size_t)n, "has told no load yet");
}

const struct sw_live_worker *sw_pool_decisive(const struct sw_live_pool *pool)
{
	const struct sw_live_worker *last = pool->workers[0];

	for (size_t i = 0; i < pool->n_workers; i++) {
		const struct sw_live_worker *w = pool->workers[i];

		if (pool->state == SW_POOL_OPEN && !w->load.busy)
			return w;
		if (w->busy_since_ms > last->busy_since_ms)
			last = w;
	}
	return last;
}

void sw_say_pool(const struct sw_live_pool *pool, enum sw_pool_state was, uint64_t for_ms,
		 uint64_t now_ms)
{
	char why[320];

	if (pool->state == SW_POOL_DRAINING)
		snprintf(why, sizeof(why), "drained by an operator");
	else if (sw_live_forced(pool, now_ms))
		snprintf(why, sizeof(why), "forced by an operator for %.0f s more",
			 (double)(pool->force_until_ms - now_ms) / 1e3);
	else if (pool->n_workers == 0)
		snprintf(why, sizeof(why), "it has no worker");
	else
		say_worker(sw_pool_decisive(pool), now_ms, why, sizeof(why));
	sw_tell_pool(pool, was, for_ms, why);
	sw_log(SW_INFO, "pool %s %s: %s (was %s for %.1f s)%s", pool->conf->name,
	       sw_pool_state_name(pool->state), why, sw_pool_state_name(was), (double)for_ms / 1e3,
	       pool->conf->observe && pool->state != SW_POOL_OPEN ? "; observe: nothing is shed"
								  : "");
}

void sw_say_worker_busy(const struct sw_live_worker *w, uint64_t now_ms)
{
	struct sw_check c;
	char why[320];

	say_worker(w, now_ms, why, sizeof(why));
	sw_tell_worker(w, w->load.busy ? "busy" : "free", telling_check(w, now_ms, &c) ? &c : NULL);
	/* in a pool of one worker the pool's line says it all */
	sw_log(w->pool->n_workers > 1 ? SW_INFO : SW_DEBUG, "pool %s: %s: %s", w->pool->conf->name,
	       w->load.busy ? "busy" : "free", why);
}

void sw_say_worker_stale(const struct sw_live_worker *w, uint64_t now_ms)
{
	const struct sw_ageing *a = &w->pool->conf->ageing;

	sw_tell_worker(w, w->load.stale ? "stale" : "fresh", NULL);
	if (!w->load.stale)
		sw_log(SW_INFO, "pool %s: worker %s reports again", w->pool->conf->name,
		       w->conf->name);
	else if (a->on_stale == SW_STALE_HOLD)
		sw_log(SW_WARN,
		       "pool %s: worker %s is stale: no load for %.1f s (limit %.1f s); its last "
		       "load is kept for %.1f s",
		       w->pool->conf->name, w->conf->name,
		       (double)(now_ms - w->load.reported_ms) / 1e3, a->stale_after_ms / 1e3,
		       a->hold_for_ms / 1e3);
	else
		sw_log(SW_WARN,
		       "pool %s: worker %s is stale: no load for %.1f s (limit %.1f s); it counts "
		       "as free",
		       w->pool->conf->name, w->conf->name,
		       (double)(now_ms - w->load.reported_ms) / 1e3, a->stale_after_ms / 1e3);
}

void sw_say_inert(const struct sw_live_worker *w, const struct sw_check *c, bool inert)
{
	sw_tell_worker(w, inert ? "inert" : "active", c);
	if (!inert)
		sw_log(SW_INFO, "pool %s: worker %s: %s is inert no more", w->pool->conf->name,
		       w->conf->name, sw_limit_name(c->limit));
	else if (isnan(c->measured))
		sw_log(SW_WARN,
		       "pool %s: worker %s: %s is inert: the engine does not tell %s, so this limit "
		       "cannot fire",
		       w->pool->conf->name, w->conf->name, sw_limit_name(c->limit),
		       sw_signal_name(c->signal));
	else
		sw_log(SW_WARN,
		       "pool %s: worker %s: %s is inert: what it needs was never told or never "
		       "moved (%s is %.10g); see 'spillway explain'",
		       w->pool->conf->name, w->conf->name, sw_limit_name(c->limit),
		       sw_signal_name(c->signal), c->measured);
}
