// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The metrics page; see metrics.h. Here is what is about the daemon, its planes and pools, the rest
 * is in metrics_*.c. Names and labels are an interface: docs/monitoring.md lists them. */
#include <stdlib.h>

#include "common/clock.h"
#include "control/metrics.h"
#include "control/page.h"

static void daemon_series(struct sw_page *p)
{
	const struct sw_live *l = p->live;

	sw_page_series(p, "spillway_build_info", "gauge", "The version that runs.");
	sw_page_sample(p, 1, "version", SW_VERSION, NULL);
	sw_page_series(p, "spillway_uptime_seconds", "gauge", "Time since the daemon started.");
	sw_page_sample(p, (double)(p->now_ms - l->started_ms) / 1e3, NULL);
	sw_page_series(p, "spillway_reloads_total", "counter",
		       "Reloads of the configuration by result.");
	sw_page_sample(p, (double)l->reloads, "result", "ok", NULL);
	sw_page_sample(p, (double)l->reload_failures, "result", "failed", NULL);
}

static void heartbeat_series(struct sw_page *p)
{
	const struct sw_live *l = p->live;

	sw_page_series(p, "spillway_heartbeat_age_seconds", "gauge",
		       "Time since the last heartbeat.");
	sw_page_sample(p, (double)(sw_now_ns() - l->beat_ns) / 1e9, NULL);
	sw_page_series(p, "spillway_heartbeat_deadline_seconds", "gauge",
		       "Time without a heartbeat after which everything passes.");
	sw_page_sample(p, l->conf->deadline_ms / 1e3, NULL);
	sw_page_series(p, "spillway_heartbeat_margin_seconds", "gauge",
		       "The least time that was left to the deadline when a heartbeat moved it, in "
		       "this minute and the one before.");
	sw_page_sample(p, (double)l->least_margin_ns / 1e9, NULL);
}

static const char *netns_of(const struct sw_live_plane *plane)
{
	return plane->netns ? plane->netns : "";
}

static void plane_series(struct sw_page *p)
{
	const struct sw_live *l = p->live;

	sw_page_series(p, "spillway_plane_guarded", "gauge",
		       "1 while the programs of a network namespace are attached.");
	for (size_t i = 0; i < l->n_planes; i++)
		sw_page_sample(p, l->planes[i].plane != NULL, "netns", netns_of(&l->planes[i]),
			       NULL);
	for (int limit = 0; limit < 2; limit++) {
		sw_page_series(
			p,
			limit ? "spillway_established_flows_limit" : "spillway_established_flows",
			"gauge",
			limit ? "Room for established connections that are followed or translated."
			      : "Established connections that are followed or translated.");
		for (size_t i = 0; i < l->n_planes; i++) {
			const struct sw_live_plane *plane = &l->planes[i];
			unsigned room, n;

			if (!plane->plane || !sw_plane_can_keep(plane->plane, NULL))
				continue;
			n = sw_plane_flows(plane->plane, &room);
			sw_page_sample(p, limit ? room : n, "netns", netns_of(plane), NULL);
		}
	}
}

static void mode_series(struct sw_page *p)
{
	const struct sw_live *l = p->live;

	sw_page_series(
		p, "spillway_pool_mode", "gauge",
		"What the kernel was told in a namespace: 0 open, 1 finish, 2 shed, 3 metered.");
	for (size_t i = 0; i < l->n_planes; i++)
		for (size_t j = 0; j < l->n_pools; j++)
			if (l->planes[i].plane && l->planes[i].gates[j].used)
				sw_page_sample(p, l->planes[i].gates[j].gate.mode, "pool",
					       l->pools[j].conf->name, "netns",
					       netns_of(&l->planes[i]), NULL);
}

static void pool_series(struct sw_page *p)
{
	const struct sw_live *l = p->live;

	sw_page_series(p, "spillway_pool_state", "gauge", "1 for the state that the pool is in.");
	for (size_t i = 0; i < l->n_pools; i++)
		for (int s = 0; s < SW_POOL_STATES; s++)
			sw_page_sample(p, (int)l->pools[i].state == s, "pool",
				       l->pools[i].conf->name, "state", sw_pool_state_name(s),
				       NULL);
	sw_page_series(p, "spillway_pool_forced", "gauge", "1 while an operator forces the state.");
	for (size_t i = 0; i < l->n_pools; i++)
		sw_page_sample(p, sw_live_forced(&l->pools[i], p->now_ms), "pool",
			       l->pools[i].conf->name, NULL);
	mode_series(p);
	sw_page_series(
		p, "spillway_admitted_total", "counter",
		"Connections or requests that took a slot; where none are counted, those that "
		"were given to the stack.");
	for (size_t i = 0; i < l->n_pools; i++) {
		struct sw_pool_totals totals;

		sw_pool_totals_read(&l->pools[i], &totals);
		sw_page_sample(p, (double)totals.admitted, "pool", l->pools[i].conf->name, NULL);
	}
}

static struct sw_listener_row *listener_rows(const struct sw_live *l)
{
	struct sw_listener_row *rows = calloc(l->conf->n_listeners + 1, sizeof(*rows));

	for (size_t i = 0; rows && i < l->conf->n_listeners; i++) {
		const struct sw_listener_conf *conf = &l->conf->listeners[i];

		sw_format_listener(conf, rows[i].address, sizeof(rows[i].address));
		rows[i].pool = &l->conf->pools[conf->pool];
		rows[i].netns = conf->netns ? conf->netns : "";
		sw_totals_read(l, i, &rows[i].totals);
	}
	return rows;
}

void sw_metrics_write(const struct sw_live *live, uint64_t now_ms, struct evbuffer *out)
{
	struct sw_page p = {.live = live, .out = out, .now_ms = now_ms};
	struct sw_listener_row *rows = listener_rows(live);
	size_t n = rows ? live->conf->n_listeners : 0;

	daemon_series(&p);
	heartbeat_series(&p);
	plane_series(&p);
	pool_series(&p);
	sw_metrics_write_workers(&p);
	sw_metrics_write_sources(&p);
	sw_metrics_write_slots(&p);
	sw_metrics_write_listeners(&p, rows, n);
	sw_metrics_write_dynamo(&p, rows, n);
	free(rows);
	sw_page_flush(&p);
}
