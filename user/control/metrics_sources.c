// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part of the metrics page that is about who tells: each source of a worker's load, and those
 * that tell workers or loads for the whole fleet; see page.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control/page.h"

/* ---- of one worker ----------------------------------------------------------------------- */

static double age(const struct sw_feed *f, uint64_t now_ms)
{
	return f->at_ms ? (double)(now_ms - f->at_ms) / 1e3 : NAN;
}

static double told(const struct sw_feed *f, uint64_t now_ms)
{
	(void)now_ms;
	return (double)f->told;
}

static double failures(const struct sw_feed *f, uint64_t now_ms)
{
	(void)now_ms;
	return (double)f->failures;
}

static void feed_samples(struct sw_page *p, const struct sw_live_worker *w,
			 double (*value)(const struct sw_feed *f, uint64_t now_ms))
{
	for (size_t i = 0; i < w->n_feeds; i++) {
		const struct sw_feed *f = &w->feeds[i];
		double v = value(f, p->now_ms);
		char publisher[24] = "";

		if (f->kind == SW_FEED_EVENTS)
			snprintf(publisher, sizeof(publisher), "%" PRIx64, f->publisher);
		if (isfinite(v))
			sw_page_sample(p, v, "pool", w->pool->conf->name, "worker", w->conf->name,
				       "kind", sw_feed_kind_name(f->kind), "publisher", publisher,
				       NULL);
	}
}

/* One value for each feed of each worker. */
static void feed_series(struct sw_page *p, const char *name, const char *type, const char *help,
			double (*value)(const struct sw_feed *f, uint64_t now_ms))
{
	sw_page_series(p, name, type, help);
	for (size_t i = 0; i < p->live->n_pools; i++)
		for (size_t j = 0; j < p->live->pools[i].n_workers; j++)
			feed_samples(p, p->live->pools[i].workers[j], value);
}

/* ---- of the fleet ------------------------------------------------------------------------ */

enum fleet_field { UP, AGE, MESSAGES, DROPPED, BAD, ERRORS, FLEET_FIELDS };

static const struct {
	const char *name, *type, *help;
} fleet_fields[FLEET_FIELDS] = {
	[UP] = {"spillway_fleet_source_up", "gauge", "1 while the source is heard."},
	[AGE] = {"spillway_fleet_source_age_seconds", "gauge", "Time since it was last heard."},
	[MESSAGES] = {"spillway_fleet_source_messages_total", "counter",
		      "Keys or events that it told."},
	[DROPPED] = {"spillway_fleet_source_dropped_total", "counter",
		     "Of those, ones that were not taken in."},
	[BAD] = {"spillway_fleet_source_bad_total", "counter",
		 "Of those, ones that could not be understood."},
	[ERRORS] = {"spillway_fleet_source_errors_total", "counter", "Times that it failed."},
};

static double fleet_value(const struct sw_live_source *s, enum fleet_field field, uint64_t now_ms)
{
	switch (field) {
	case UP: return !strcmp(s->state, "ok");
	case AGE: return s->at_ms ? (double)(now_ms - s->at_ms) / 1e3 : NAN;
	case MESSAGES: return (double)s->messages;
	case DROPPED: return (double)s->dropped;
	case BAD: return (double)s->bad;
	default: return (double)s->errors;
	}
}

static void fleet_samples(struct sw_page *pages, const struct sw_live_source *s)
{
	for (int f = 0; f < FLEET_FIELDS; f++) {
		double v = fleet_value(s, f, pages->now_ms);

		if (isfinite(v))
			sw_page_sample(&pages[f], v, "kind", s->kind, "name", s->name, NULL);
	}
}

static void fleet_series(struct sw_page *p)
{
	const struct sw_live *l = p->live;
	struct sw_page pages[FLEET_FIELDS];
	struct sw_live_source s;
	int n = 0;

	while (n < FLEET_FIELDS && sw_page_beside(p, &pages[n])) {
		sw_page_series(&pages[n], fleet_fields[n].name, fleet_fields[n].type,
			       fleet_fields[n].help);
		n++;
	}
	for (size_t i = 0; n == FLEET_FIELDS && l->source && l->source(l, i, &s); i++)
		fleet_samples(pages, &s);
	for (int i = 0; i < n; i++)
		sw_page_append(p, &pages[i]);
}

void sw_metrics_write_sources(struct sw_page *p)
{
	feed_series(p, "spillway_source_age_seconds", "gauge",
		    "Time since this source last told the worker's load.", age);
	feed_series(p, "spillway_source_reports_total", "counter",
		    "Times that this source was read or told something.", told);
	feed_series(p, "spillway_source_failures_total", "counter",
		    "Of those, times that it was no load.", failures);
	fleet_series(p);
	sw_page_series(p, "spillway_fleet_unknown_worker_events_total", "counter",
		       "Events about workers that no pool has.");
	sw_page_sample(p, (double)p->live->strangers, NULL);
}
