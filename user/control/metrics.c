// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The metrics page; see metrics.h. One function for each group of series; the names and labels are
 * an interface: docs/control.md lists them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "control/metrics.h"
#include "control/page.h"
#include "control/totals.h"

static void daemon_series(struct sw_page *p)
{
	const struct sw_live *l = p->live;

	sw_page_head(p, "spillway_build_info", "gauge", "The version that runs.");
	sw_page_sample(p, "spillway_build_info", 1, "version", SW_VERSION, NULL);
	sw_page_head(p, "spillway_uptime_seconds", "gauge", "Time since the daemon started.");
	sw_page_sample(p, "spillway_uptime_seconds", (double)(p->now_ms - l->started_ms) / 1e3,
		       NULL);
	sw_page_head(p, "spillway_heartbeat_age_seconds", "gauge",
		     "Time since the last heartbeat.");
	sw_page_sample(p, "spillway_heartbeat_age_seconds",
		       (double)(sw_now_ns() - l->beat_ns) / 1e9, NULL);
	sw_page_head(p, "spillway_heartbeat_margin_seconds", "gauge",
		     "The least time that was left to the deadline when a heartbeat moved it.");
	sw_page_sample(p, "spillway_heartbeat_margin_seconds", (double)l->least_margin_ns / 1e9,
		       NULL);
	sw_page_head(p, "spillway_reloads_total", "counter",
		     "Reloads of the configuration by result.");
	sw_page_sample(p, "spillway_reloads_total", (double)l->reloads, "result", "ok", NULL);
	sw_page_sample(p, "spillway_reloads_total", (double)l->reload_failures, "result", "failed",
		       NULL);
	sw_page_head(p, "spillway_plane_guarded", "gauge",
		     "1 while the programs of a network namespace are attached.");
	for (size_t i = 0; i < l->n_planes; i++)
		sw_page_sample(p, "spillway_plane_guarded", l->planes[i].plane != NULL, "netns",
			       l->planes[i].netns ? l->planes[i].netns : "", NULL);
}

static void flow_series(struct sw_page *p)
{
	const struct sw_live *l = p->live;

	for (int limit = 0; limit < 2; limit++) {
		const char *name =
			limit ? "spillway_established_flows_limit" : "spillway_established_flows";

		sw_page_head(p, name, "gauge",
			     limit ? "Room for those."
				   : "Established connections that are followed or translated.");
		for (size_t i = 0; i < l->n_planes; i++) {
			const struct sw_live_plane *plane = &l->planes[i];
			unsigned room, n;

			if (!plane->plane || !sw_plane_can_keep(plane->plane, NULL))
				continue;
			n = sw_plane_flows(plane->plane, &room);
			sw_page_sample(p, name, limit ? room : n, "netns",
				       plane->netns ? plane->netns : "", NULL);
		}
	}
}

static void pool_series(struct sw_page *p)
{
	const struct sw_live *l = p->live;

	sw_page_head(p, "spillway_pool_state", "gauge", "1 for the state that the pool is in.");
	for (size_t i = 0; i < l->n_pools; i++)
		for (int s = 0; s < SW_POOL_STATES; s++)
			sw_page_sample(p, "spillway_pool_state", (int)l->pools[i].state == s,
				       "pool", l->pools[i].conf->name, "state",
				       sw_pool_state_name(s), NULL);
	sw_page_head(p, "spillway_pool_forced", "gauge", "1 while an operator forces the state.");
	for (size_t i = 0; i < l->n_pools; i++)
		sw_page_sample(p, "spillway_pool_forced", sw_live_forced(&l->pools[i], p->now_ms),
			       "pool", l->pools[i].conf->name, NULL);
	sw_page_head(
		p, "spillway_pool_mode", "gauge",
		"What the kernel was told in a namespace: 0 open, 1 finish, 2 shed, 3 metered.");
	for (size_t i = 0; i < l->n_planes; i++)
		for (size_t j = 0; j < l->n_pools; j++)
			if (l->planes[i].plane && l->planes[i].gates[j].used)
				sw_page_sample(p, "spillway_pool_mode",
					       l->planes[i].gates[j].gate.mode, "pool",
					       l->pools[j].conf->name, "netns",
					       l->planes[i].netns ? l->planes[i].netns : "", NULL);
}

/* One value for each worker. */
static void worker_series(struct sw_page *p, const char *name, const char *type, const char *help,
			  double (*value)(const struct sw_live_worker *w, uint64_t now_ms))
{
	sw_page_head(p, name, type, help);
	for (size_t i = 0; i < p->live->n_pools; i++) {
		const struct sw_live_pool *pool = &p->live->pools[i];

		for (size_t j = 0; j < pool->n_workers; j++) {
			double v = value(pool->workers[j], p->now_ms);

			if (isfinite(v))
				sw_page_sample(p, name, v, "pool", pool->conf->name, "worker",
					       pool->workers[j]->conf->name, NULL);
		}
	}
}

static double busy(const struct sw_live_worker *w, uint64_t now_ms)
{
	(void)now_ms;
	return w->load.busy;
}

static double stale(const struct sw_live_worker *w, uint64_t now_ms)
{
	(void)now_ms;
	return w->load.stale;
}

static double suspect(const struct sw_live_worker *w, uint64_t now_ms)
{
	(void)now_ms;
	return w->suspect;
}

static double draining(const struct sw_live_worker *w, uint64_t now_ms)
{
	(void)now_ms;
	return w->drain;
}

static double source_age(const struct sw_live_worker *w, uint64_t now_ms)
{
	return w->load.reported_ms ? (double)(now_ms - w->load.reported_ms) / 1e3 : NAN;
}

/* How often its page was asked for, or how often in vain. */
static uint64_t told(const struct sw_live_worker *w, bool in_vain)
{
	for (size_t i = 0; i < w->n_feeds; i++)
		if (w->feeds[i].kind == SW_FEED_SCRAPE)
			return in_vain ? w->feeds[i].failures : w->feeds[i].told;
	return 0;
}

static double scrapes(const struct sw_live_worker *w, uint64_t now_ms)
{
	(void)now_ms;
	return (double)told(w, false);
}

static double failures(const struct sw_live_worker *w, uint64_t now_ms)
{
	(void)now_ms;
	return (double)told(w, true);
}

static double dropped(const struct sw_live_worker *w, uint64_t now_ms)
{
	(void)now_ms;
	return (double)w->load.dropped;
}

enum check_field { MEASURED, LIMIT, OVER, INERT, STALE };

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

static void check_samples(struct sw_page *p, const char *name, enum check_field field,
			  const struct sw_live_worker *w)
{
	const struct sw_live_pool *pool = w->pool;
	struct sw_check checks[SW_MAX_CHECKS];
	size_t n = sw_worker_explain(&w->load, &pool->conf->limits, &pool->conf->ageing, p->now_ms,
				     checks, SW_MAX_CHECKS);

	for (size_t i = 0; i < n && i < SW_MAX_CHECKS; i++) {
		double v = check_value(&checks[i], field);
		char rank[16] = "";

		if (checks[i].rank >= 0)
			snprintf(rank, sizeof(rank), "%d", checks[i].rank);
		if (isfinite(v))
			sw_page_sample(p, name, v, "pool", pool->conf->name, "worker",
				       w->conf->name, "rank", rank, "threshold",
				       sw_limit_name(checks[i].limit), NULL);
	}
}

static void check_series(struct sw_page *p)
{
	static const struct {
		const char *name, *help;
	} series[] = {
		[MEASURED] = {"spillway_check_measured",
			      "The value that a threshold is held against."},
		[LIMIT] = {"spillway_check_limit", "The limit, in the unit of the measured value."},
		[OVER] = {"spillway_check_over",
			  "1 while the check finds its rank or worker busy."},
		[INERT] = {"spillway_check_inert",
			   "1 while the engine does not tell what the check needs."},
		[STALE] = {"spillway_check_stale",
			   "1 while the measured value is too old to count."},
	};

	for (size_t s = 0; s < sizeof(series) / sizeof(series[0]); s++) {
		sw_page_head(p, series[s].name, "gauge", series[s].help);
		for (size_t i = 0; i < p->live->n_pools; i++)
			for (size_t j = 0; j < p->live->pools[i].n_workers; j++)
				check_samples(p, series[s].name, s, p->live->pools[i].workers[j]);
	}
}

struct listener_row {
	char address[64];
	const char *pool, *netns;
	struct sw_totals totals;
};

static struct listener_row *listener_rows(const struct sw_live *l)
{
	struct listener_row *rows = calloc(l->conf->n_listeners + 1, sizeof(*rows));

	for (size_t i = 0; rows && i < l->conf->n_listeners; i++) {
		const struct sw_listener_conf *conf = &l->conf->listeners[i];

		sw_format_listener(conf, rows[i].address, sizeof(rows[i].address));
		rows[i].pool = l->conf->pools[conf->pool].name;
		rows[i].netns = conf->netns ? conf->netns : "";
		sw_totals_read(l, i, &rows[i].totals);
	}
	return rows;
}

static void packet_samples(struct sw_page *p, const struct listener_row *row, const char *program,
			   const struct sw_counts *c)
{
	for (unsigned r = 0; r < SW_R_COUNT; r++)
		if (sw_count(c, r))
			sw_page_sample(p, "spillway_packets_total", (double)sw_count(c, r),
				       "listener", row->address, "netns", row->netns, "program",
				       program, "reason", sw_reason_names[r], NULL);
}

static void shed_samples(struct sw_page *p, const struct listener_row *row)
{
	static const struct {
		unsigned reason;
		const char *name;
	} causes[] = {
		{SW_R_shed_saturated, "saturated"},	{SW_R_shed_no_slots, "no-slots"},
		{SW_R_shed_draining, "draining"},	{SW_R_shed_unavailable, "unavailable"},
		{SW_R_shed_no_handover, "no-handover"},
	};

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		const struct sw_listener_counts *c = &row->totals.packets;
		uint64_t n = sw_count(&c->xdp, causes[i].reason) +
			     sw_count(&c->tc, causes[i].reason) +
			     sw_count(&c->keep, causes[i].reason);

		sw_page_sample(p, "spillway_shed_total", (double)n, "listener", row->address,
			       "netns", row->netns, "pool", row->pool, "reason", causes[i].name,
			       NULL);
	}
}

/* Returns how many requests were shed. */
static double listener_series(struct sw_page *p)
{
	const size_t n = p->live->conf->n_listeners;
	struct listener_row *rows = listener_rows(p->live);

	double shed = 0;

	if (!rows)
		return 0;
	sw_page_head(p, "spillway_packets_total", "counter",
		     "Packets by program and reason of verdict.");
	for (size_t i = 0; i < n; i++) {
		packet_samples(p, &rows[i], "xdp", &rows[i].totals.packets.xdp);
		packet_samples(p, &rows[i], "tc", &rows[i].totals.packets.tc);
		packet_samples(p, &rows[i], "keep", &rows[i].totals.packets.keep);
	}
	sw_page_head(p, "spillway_shed_total", "counter",
		     "Requests answered in the kernel by cause.");
	for (size_t i = 0; i < n; i++) {
		shed_samples(p, &rows[i]);
		shed += (double)rows[i].totals.shed;
	}
	sw_page_head(p, "spillway_handed_over_total", "counter", "Connections given to the stack.");
	for (size_t i = 0; i < n; i++)
		sw_page_sample(p, "spillway_handed_over_total", (double)rows[i].totals.handed_over,
			       "listener", rows[i].address, "netns", rows[i].netns, "pool",
			       rows[i].pool, NULL);
	sw_page_head(p, "spillway_would_shed_total", "counter",
		     "Requests that observe counted and let through.");
	for (size_t i = 0; i < n; i++)
		sw_page_sample(p, "spillway_would_shed_total", (double)rows[i].totals.would_shed,
			       "listener", rows[i].address, "netns", rows[i].netns, "pool",
			       rows[i].pool, NULL);
	free(rows);
	return shed;
}

void sw_metrics_write(const struct sw_live *live, uint64_t now_ms, struct evbuffer *out)
{
	struct sw_page p = {.live = live, .out = out, .now_ms = now_ms};

	daemon_series(&p);
	flow_series(&p);
	pool_series(&p);
	worker_series(&p, "spillway_worker_busy", "gauge", "1 while all ranks are busy.", busy);
	worker_series(&p, "spillway_worker_stale", "gauge",
		      "1 while the worker's load is too old to count.", stale);
	worker_series(&p, "spillway_worker_suspect", "gauge",
		      "1 from a connection that could not be made until the worker answers.",
		      suspect);
	worker_series(&p, "spillway_worker_draining", "gauge",
		      "1 while the worker is given no new connections.", draining);
	worker_series(&p, "spillway_source_age_seconds", "gauge",
		      "Time since the worker's last report.", source_age);
	worker_series(&p, "spillway_scrapes_total", "counter", "Reads of the worker's load.",
		      scrapes);
	worker_series(&p, "spillway_scrape_failures_total", "counter", "Reads that gave no data.",
		      failures);
	worker_series(&p, "spillway_reports_dropped_total", "counter",
		      "Reports of ranks that the worker does not have.", dropped);
	check_series(&p);
	sw_metrics_write_slots(&p);
	sw_metrics_write_rejections(&p, listener_series(&p));
}
