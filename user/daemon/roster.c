// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which pools and workers there are: built from a configuration, and exchanged on a reload so that
 * what is known of a worker whose source stays is kept. Judging them is pools.c's matter. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "control/thresholds.h"
#include "daemon/daemon.h"

static void free_worker(struct sw_live *live, struct sw_live_worker *w)
{
	if (w->target >= 0)
		sw_scraper_remove(live->scraper, w->target);
	sw_feeds_free(w);
	free(w);
}

/* A connection that is kept would hold a slot of the very server whose load it reads. */
static bool scrapes_once(const struct sw_pool_conf *p)
{
	return p->steer.by == SW_STEER_NONE && p->steer.count == SW_COUNT_CONNECTIONS;
}

static struct sw_live_worker *new_worker(struct sw_live *live, struct sw_live_pool *pool,
					 const struct sw_worker_conf *conf, struct sw_error *err)
{
	struct sw_live_worker *w = calloc(1, sizeof(*w));
	struct sw_target target = {
		.url = conf->source.url,
		.engine = conf->source.engine,
		.hints = conf->source.hints,
		.period_ms = conf->source.period_ms,
		.timeout_ms = conf->source.timeout_ms,
		.bearer_token_file = conf->source.bearer_token_file,
		.ca_file = conf->source.ca_file,
		.insecure = conf->source.insecure,
		.netns = conf->source.netns,
		.once = scrapes_once(pool->conf),
	};

	if (!w) {
		sw_fail(err, -ENOMEM, "no memory");
		return NULL;
	}
	w->conf = conf;
	w->pool = pool;
	w->target = -1;
	w->id = -1;
	w->drain = conf->drain;
	w->drain_since_ms = sw_now_ms();
	sw_worker_init(&w->load, conf->start_rank, conf->dp_size);
	if (!conf->source.url)
		return w; /* its load is not read */
	if (sw_scraper_add(live->scraper, &target, sw_worker_scraped, w, &w->target, err) < 0) {
		free(w);
		return NULL;
	}
	return w;
}

static bool same_source(const struct sw_worker_conf *a, const struct sw_worker_conf *b)
{
	const struct sw_source_conf *s = &a->source, *t = &b->source;

	/* nothing but its address and its id tell it */
	if (!s->url && (memcmp(&a->at, &b->at, sizeof(a->at)) ||
			a->has_worker_id != b->has_worker_id || a->worker_id != b->worker_id))
		return false;
	if (!s->url && !a->at.port && !a->has_worker_id && strcmp(a->name, b->name))
		return false; /* it is pushed, and its name is all that it has */
	return a->start_rank == b->start_rank && a->dp_size == b->dp_size &&
	       sw_same_text(s->url, t->url) && s->engine == t->engine &&
	       sw_engine_hints_same(&s->hints, &t->hints) && s->period_ms == t->period_ms &&
	       s->timeout_ms == t->timeout_ms &&
	       sw_same_text(s->bearer_token_file, t->bearer_token_file) &&
	       sw_same_text(s->ca_file, t->ca_file) && sw_same_text(s->netns, t->netns) &&
	       s->insecure == t->insecure;
}

/* A running worker of the same pool and source that nobody has claimed yet. */
static struct sw_live_worker *find_worker(const struct sw_live *live,
					  const struct sw_pool_conf *pool,
					  const struct sw_worker_conf *conf)
{
	const struct sw_live_pool *p = sw_live_find_pool(live, pool->name);

	if (!p || scrapes_once(p->conf) != scrapes_once(pool))
		return NULL;
	for (size_t i = 0; i < p->n_workers; i++)
		if (!p->workers[i]->claimed && same_source(p->workers[i]->conf, conf))
			return p->workers[i];
	return NULL;
}

/* Frees an array of pools and those of their workers that are not claimed. */
static void drop(struct sw_live *live, struct sw_live_pool *pools, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < pools[i].n_workers; j++)
			if (!pools[i].workers[j]->claimed)
				free_worker(live, pools[i].workers[j]);
		free(pools[i].workers);
	}
	free(pools);
}

static void unclaim(struct sw_live_pool *pools, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < pools[i].n_workers; j++)
			pools[i].workers[j]->claimed = false;
}

static int build_pool(struct sw_live *live, struct sw_live_pool *pool,
		      const struct sw_pool_conf *conf, struct sw_error *err)
{
	pool->conf = conf;
	pool->live = live;
	pool->limits = sw_thresholds_merge(live->thresholds, conf);
	pool->since_ms = sw_now_ms();
	pool->row = -1;
	pool->cap = UINT64_MAX;
	pool->workers = calloc(conf->n_workers + 1, sizeof(struct sw_live_worker *));
	if (!pool->workers)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < conf->n_workers; i++) {
		struct sw_live_worker *w = find_worker(live, conf, &conf->workers[i]);

		if (w)
			w->claimed = true;
		else
			w = new_worker(live, pool, &conf->workers[i], err);
		if (!w)
			return -EINVAL;
		pool->workers[pool->n_workers++] = w;
	}
	return 0;
}

int sw_pools_build(struct sw_live *live, const struct sw_config *conf, struct sw_live_pool **out,
		   struct sw_error *err)
{
	struct sw_live_pool *pools = calloc(conf->n_pools + 1, sizeof(*pools));

	if (!pools)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < conf->n_pools; i++) {
		int e = build_pool(live, &pools[i], &conf->pools[i], err);

		if (e) {
			sw_pools_discard(live, pools, i + 1);
			return e;
		}
	}
	*out = pools;
	return 0;
}

void sw_pools_discard(struct sw_live *live, struct sw_live_pool *pools, size_t n)
{
	drop(live, pools, n);
	unclaim(live->pools, live->n_pools);
}

/* An operator's word stands until the configuration says something new. */
static void settle_drain(struct sw_live_worker *w, const struct sw_worker_conf *conf)
{
	if (conf->drain == w->conf->drain || conf->drain == w->drain)
		return;
	w->drain = conf->drain;
	w->drain_since_ms = sw_now_ms();
	sw_log(SW_INFO, "pool %s: worker %s: drain %s by the configuration", w->pool->conf->name,
	       conf->name, w->drain ? "on" : "off");
}

/* Takes over what an operator and time made of a pool, and ties the workers to their new home. */
static void settle(struct sw_live_pool *pool, const struct sw_live_pool *old)
{
	if (old) {
		pool->state = old->state;
		pool->since_ms = old->since_ms;
		pool->force = old->force;
		pool->force_until_ms = old->force_until_ms;
		pool->drain = old->drain;
		pool->credit = old->credit;
		pool->uncapped = old->uncapped;
		pool->passing = old->passing;
		pool->near = old->near;
		memcpy(pool->answered, old->answered, sizeof(pool->answered));
	}
	for (size_t i = 0; i < pool->n_workers; i++) {
		settle_drain(pool->workers[i], &pool->conf->workers[i]);
		pool->workers[i]->pool = pool;
		pool->workers[i]->conf = &pool->conf->workers[i];
	}
}

void sw_pools_replace(struct sw_live *live, struct sw_live_pool *pools, size_t n)
{
	for (size_t i = 0; i < n; i++)
		settle(&pools[i], sw_live_find_pool(live, pools[i].conf->name));
	drop(live, live->pools, live->n_pools);
	live->pools = pools;
	live->n_pools = n;
	live->rosters++;
	unclaim(pools, n);
}

void sw_pools_stop_reading(struct sw_live *live)
{
	if (!live->scraper)
		return;
	for (size_t i = 0; i < live->n_pools; i++)
		for (size_t j = 0; j < live->pools[i].n_workers; j++) {
			struct sw_live_worker *w = live->pools[i].workers[j];

			if (w->target >= 0)
				sw_scraper_remove(live->scraper, w->target);
			w->target = -1;
		}
	sw_scraper_free(live->scraper);
	live->scraper = NULL;
}
