/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The metrics page while it is written, and how it is written: Prometheus' exposition format 0.0.4.
 * What is on it is in metrics.c, and in metrics_slots.c what is about slots. */
#ifndef SPILLWAY_PAGE_H
#define SPILLWAY_PAGE_H

#include <event2/buffer.h>

#include "control/live.h"

struct sw_page {
	const struct sw_live *live;
	struct evbuffer *out;
	uint64_t now_ms;
};

/* What comes before a series' samples, once. */
void sw_page_head(struct sw_page *p, const char *name, const char *type, const char *help);
/* One sample: name, value, then label and value in turns up to NULL. */
void sw_page_sample(struct sw_page *p, const char *name, double value, ...);

/* Slots of workers and pools, and what became of new connections. */
void sw_metrics_write_slots(struct sw_page *p);
/* All that was turned away: `shed` by programs on interfaces, and what steering did not let in. */
void sw_metrics_write_rejections(struct sw_page *p, double shed);

#endif
