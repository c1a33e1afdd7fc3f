/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The metrics page while it is written, and how it is written: Prometheus' exposition format 0.0.4.
 * What is on it is in metrics*.c, one file for each thing that it is about. */
#ifndef SPILLWAY_PAGE_H
#define SPILLWAY_PAGE_H

#include <event2/buffer.h>

#include "control/live.h"
#include "control/totals.h"

struct sw_page {
	const struct sw_live *live;
	uint64_t now_ms;
	const char *name; /* of the series that is being written */
	struct evbuffer *out;
	size_t n; /* bytes that are not in `out` yet */
	char bytes[4096];
};

/* Begins a series: what comes before its samples, once. */
void sw_page_series(struct sw_page *p, const char *name, const char *type, const char *help);
/* One sample of it: the value, then label and value in turns up to NULL. */
void sw_page_sample(struct sw_page *p, double value, ...);

/* For series of which one look at their source gives a sample each: a page beside `p`, which is
 * put behind it when all are complete. False: no memory, `side` is not to be used. */
bool sw_page_beside(const struct sw_page *p, struct sw_page *side);
void sw_page_append(struct sw_page *p, struct sw_page *side);

/* Moves all bytes to `out`. */
void sw_page_flush(struct sw_page *p);

/* A listener and what was counted there. */
struct sw_listener_row {
	char address[64];
	const char *netns;
	const struct sw_pool_conf *pool;
	struct sw_totals totals;
};

/* Workers: their state, and each threshold that they are held against. */
void sw_metrics_write_workers(struct sw_page *p);
/* Who tells workers and their load. */
void sw_metrics_write_sources(struct sw_page *p);
/* Slots of workers and pools, and what became of new connections. */
void sw_metrics_write_slots(struct sw_page *p);
/* What the programs on interfaces did: a row for each listener of the configuration. */
void sw_metrics_write_listeners(struct sw_page *p, const struct sw_listener_row *rows, size_t n);
/* NVIDIA Dynamo's names. */
void sw_metrics_write_dynamo(struct sw_page *p, const struct sw_listener_row *rows, size_t n);

#endif
