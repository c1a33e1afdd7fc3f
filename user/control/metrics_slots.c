// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part of the metrics page that is about slots; see page.h. Names and labels are an interface:
 * docs/monitoring.md lists them. Those that begin with "dynamo_" are NVIDIA Dynamo's. */
#include <math.h>
#include <stdlib.h>

#include "control/page.h"
#include "control/use.h"

/* A worker that has a row, or a pool that has one for all of its workers: `worker` is empty. */
struct row {
	const char *pool, *worker;
	struct sw_use use;
	struct sw_slot slot;
};

static double number(uint64_t v)
{
	return v == SW_UNLIMITED ? NAN : (double)v;
}

static double inuse(const struct row *r)
{
	return (double)r->use.inuse;
}

static double cap(const struct row *r)
{
	return number(r->use.cap);
}

static double picks(const struct row *r)
{
	return (double)r->slot.takes;
}

static double refusals(const struct row *r)
{
	return (double)r->slot.refusals;
}

static double failures(const struct row *r)
{
	return (double)r->slot.failures;
}

static double corrected(const struct row *r)
{
	return (double)r->slot.corrected;
}

static double engine(const struct row *r)
{
	return (double)r->use.engine;
}

static double queue(const struct row *r)
{
	return (double)r->use.queue;
}

static const struct {
	const char *name, *type, *help;
	double (*value)(const struct row *r);
} row_series[] = {
	{"spillway_worker_slots_inuse", "gauge", "Slots in use.", inuse},
	{"spillway_worker_slots_cap", "gauge", "Slots that there are; absent without a limit.",
	 cap},
	{"spillway_worker_picks_total", "counter", "Slots taken.", picks},
	{"spillway_worker_refusals_total", "counter",
	 "Times that no slot was left when one was to be taken.", refusals},
	{"spillway_worker_connect_failures_total", "counter",
	 "Connections to the worker that could not be made.", failures},
	{"spillway_recount_corrected_total", "counter", "Slots that recounts have put right.",
	 corrected},
	{"dynamo_engine_request", "gauge", "Requests in flight that count as the engine's.",
	 engine},
	{"dynamo_request_queue", "gauge", "Requests in flight that count as queued.", queue},
};

static size_t list_rows(const struct sw_live *live, struct row *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < live->n_pools; i++) {
		const struct sw_live_pool *p = &live->pools[i];

		if (sw_use_row(p, &rows[n].slot) && sw_use_pool(p, &rows[n].use)) {
			rows[n].pool = p->conf->name;
			rows[n++].worker = "";
		}
		for (size_t j = 0; j < p->n_workers; j++) {
			if (!sw_use_worker(p->workers[j], &rows[n].use, &rows[n].slot))
				continue;
			rows[n].pool = p->conf->name;
			rows[n++].worker = p->workers[j]->conf->name;
		}
	}
	return n;
}

static void write_rows(struct sw_page *p, const struct row *rows, size_t n)
{
	for (size_t s = 0; s < sizeof(row_series) / sizeof(row_series[0]); s++) {
		sw_page_series(p, row_series[s].name, row_series[s].type, row_series[s].help);
		for (size_t i = 0; i < n; i++) {
			double v = row_series[s].value(&rows[i]);

			if (isfinite(v))
				sw_page_sample(p, v, "pool", rows[i].pool, "worker", rows[i].worker,
					       NULL);
		}
	}
}

/* One value for each pool that is steered or counted. */
static void pool_series(struct sw_page *p, const char *name, const char *help,
			double (*value)(const struct sw_live_pool *pool))
{
	sw_page_series(p, name, "gauge", help);
	for (size_t i = 0; i < p->live->n_pools; i++) {
		const struct sw_live_pool *pool = &p->live->pools[i];
		double v = value(pool);

		if (isfinite(v))
			sw_page_sample(p, v, "pool", pool->conf->name, NULL);
	}
}

static double pool_free(const struct sw_live_pool *pool)
{
	struct sw_use use;

	return sw_use_pool(pool, &use) ? number(use.free) : NAN;
}

/* Is it steered or counted? */
static bool has_rows(const struct sw_live_pool *pool)
{
	return pool->live->steer &&
	       (pool->row >= 0 || (pool->n_workers && pool->workers[0]->id >= 0));
}

static double reservations(const struct sw_live_pool *pool)
{
	struct sw_pool_use half_open = {0};

	if (!has_rows(pool))
		return NAN;
	sw_steer_use(pool->live->steer, (unsigned)(pool - pool->live->pools), &half_open);
	return half_open.half_open;
}

static void steer_series(struct sw_page *p)
{
	sw_page_series(p, "spillway_steer_total", "counter",
		       "What became of new connections that were to be steered or counted.");
	for (size_t i = 0; i < p->live->n_pools; i++) {
		struct sw_steer_counts c = {0};

		if (!has_rows(&p->live->pools[i]))
			continue;
		sw_steer_counts(p->live->steer, (unsigned)i, &c);
#define X(n, field, text)                                                                          \
	sw_page_sample(p, (double)c.field, "pool", p->live->pools[i].conf->name, "result", #field, \
		       NULL);
		SW_STEERS(X)
#undef X
	}
}

/* What can run full while the daemon runs; the other maps are as large as the configuration. */
static void map_series(struct sw_page *p, size_t n_rows)
{
	struct sw_pool_use all = {0};

	if (p->live->steer)
		sw_steer_use(p->live->steer, SW_MAX_POOLS, &all);
	sw_page_series(p, "spillway_map_entries", "gauge",
		       "What a map of the whole host holds that may run full.");
	sw_page_sample(p, (double)(n_rows + p->live->n_leaving), "map", "workers", NULL);
	sw_page_sample(p, all.half_open, "map", "reservations", NULL);
	sw_page_series(p, "spillway_map_entries_limit", "gauge", "Room in that map.");
	sw_page_sample(p, SW_MAX_WORKERS, "map", "workers", NULL);
	sw_page_sample(p, SW_MAX_RESERVATIONS, "map", "reservations", NULL);
}

void sw_metrics_write_slots(struct sw_page *p)
{
	struct row *rows;
	size_t n = p->live->n_pools;

	for (size_t i = 0; i < p->live->n_pools; i++)
		n += p->live->pools[i].n_workers;
	rows = calloc(n + 1, sizeof(*rows)); /* one more, which list_rows() tries in vain */
	if (!rows)
		return;
	n = list_rows(p->live, rows);
	write_rows(p, rows, n);
	free(rows);
	pool_series(p, "spillway_pool_slots_free",
		    "Free slots of workers that may be given connections; absent without a limit.",
		    pool_free);
	pool_series(p, "spillway_reservations",
		    "Slots held by connections that are not established yet.", reservations);
	steer_series(p);
	map_series(p, n);
	sw_page_series(p, "spillway_recounts_total", "counter", "Recounts of all slots.");
	sw_page_sample(p, (double)p->live->recounts, NULL);
}
