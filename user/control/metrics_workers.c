// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part of the metrics page that is about workers: their state, and each threshold beside what
 * is measured; see page.h. Who tells their load is in metrics_sources.c. */
#include <math.h>
#include <stdio.h>

#include "control/page.h"

/* ---- state ------------------------------------------------------------------------------- */

static double busy(const struct sw_live_worker *w)
{
	return w->load.busy;
}

static double stale(const struct sw_live_worker *w)
{
	return w->load.stale;
}

static double suspect(const struct sw_live_worker *w)
{
	return w->suspect;
}

static double draining(const struct sw_live_worker *w)
{
	return w->drain;
}

static double dropped(const struct sw_live_worker *w)
{
	return (double)w->load.dropped;
}

/* One value for each worker. */
static void worker_series(struct sw_page *p, const char *name, const char *type, const char *help,
			  double (*value)(const struct sw_live_worker *w))
{
	sw_page_series(p, name, type, help);
	for (size_t i = 0; i < p->live->n_pools; i++) {
		const struct sw_live_pool *pool = &p->live->pools[i];

		for (size_t j = 0; j < pool->n_workers; j++)
			sw_page_sample(p, value(pool->workers[j]), "pool", pool->conf->name,
				       "worker", pool->workers[j]->conf->name, NULL);
	}
}

/* ---- thresholds -------------------------------------------------------------------------- */

enum check_field { MEASURED, LIMIT, OVER, INERT, STALE, CHECK_FIELDS };

static const struct {
	const char *name, *help;
} check_fields[CHECK_FIELDS] = {
	[MEASURED] = {"spillway_check_measured", "The value that a threshold is held against."},
	[LIMIT] = {"spillway_check_limit", "The limit, in the unit of the measured value."},
	[OVER] = {"spillway_check_over", "1 while the check finds its rank or worker busy."},
	[INERT] = {"spillway_check_inert",
		   "1 while the engine does not tell what the check needs."},
	[STALE] = {"spillway_check_stale", "1 while the measured value is too old to count."},
};

static double check_value(const struct sw_check *c, enum check_field field)
{
	switch (field) {
	case MEASURED: return c->measured;
	case LIMIT: return c->threshold;
	case OVER: return c->state == SW_OVER;
	case INERT: return c->state == SW_INERT;
	default: return c->state == SW_STALE;
	}
}

static void check_samples(struct sw_page *pages, const struct sw_live_worker *w)
{
	const struct sw_live_pool *pool = w->pool;
	struct sw_check checks[SW_MAX_CHECKS];
	size_t n = sw_worker_explain(&w->load, &pool->limits, &pool->conf->ageing, pages->now_ms,
				     checks, SW_MAX_CHECKS);

	for (size_t i = 0; i < n && i < SW_MAX_CHECKS; i++) {
		char rank[16] = "";

		if (checks[i].rank >= 0)
			snprintf(rank, sizeof(rank), "%d", checks[i].rank);
		for (int f = 0; f < CHECK_FIELDS; f++) {
			double v = check_value(&checks[i], f);

			if (isfinite(v))
				sw_page_sample(&pages[f], v, "pool", pool->conf->name, "worker",
					       w->conf->name, "rank", rank, "threshold",
					       sw_limit_name(checks[i].limit), NULL);
		}
	}
}

static void check_series(struct sw_page *p)
{
	struct sw_page pages[CHECK_FIELDS];
	int n = 0;

	while (n < CHECK_FIELDS && sw_page_beside(p, &pages[n])) {
		sw_page_series(&pages[n], check_fields[n].name, "gauge", check_fields[n].help);
		n++;
	}
	for (size_t i = 0; n == CHECK_FIELDS && i < p->live->n_pools; i++)
		for (size_t j = 0; j < p->live->pools[i].n_workers; j++)
			check_samples(pages, p->live->pools[i].workers[j]);
	for (int i = 0; i < n; i++)
		sw_page_append(p, &pages[i]);
}

void sw_metrics_write_workers(struct sw_page *p)
{
	worker_series(p, "spillway_worker_busy", "gauge", "1 while all ranks are busy.", busy);
	worker_series(p, "spillway_worker_stale", "gauge",
		      "1 while the worker's load is too old to count.", stale);
	worker_series(p, "spillway_worker_suspect", "gauge",
		      "1 from a connection that could not be made until the worker answers.",
		      suspect);
	worker_series(p, "spillway_worker_draining", "gauge",
		      "1 while the worker is given no new connections.", draining);
	worker_series(p, "spillway_reports_dropped_total", "counter",
		      "Reports of ranks that the worker does not have.", dropped);
	check_series(p);
}
