// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part of the metrics page that is about listeners: what the programs on interfaces did there;
 * see page.h. */
#include <stdio.h>

#include "control/page.h"

static void packet_samples(struct sw_page *p, const struct sw_listener_row *row,
			   const char *program, const struct sw_counts *c)
{
	for (unsigned r = 0; r < SW_R_COUNT; r++)
		if (sw_count(c, r))
			sw_page_sample(p, (double)sw_count(c, r), "listener", row->address, "netns",
				       row->netns, "program", program, "reason", sw_reason_names[r],
				       NULL);
}

/* The status of the answer; "" where it may have been any of the pool's. */
static void status_text(const struct sw_answer_spec *spec, unsigned reason, char out[8])
{
	switch (reason) {
	case SW_R_shed_draining: snprintf(out, 8, "%u", spec->drain_status); break;
	case SW_R_shed_unavailable: snprintf(out, 8, "503"); break;
	case SW_R_shed_no_handover: out[0] = '\0'; break;
	default: snprintf(out, 8, "%u", spec->status);
	}
}

static void shed_samples(struct sw_page *p, const struct sw_listener_row *row)
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
		char status[8];

		status_text(&row->pool->answer, causes[i].reason, status);
		sw_page_sample(p, (double)n, "listener", row->address, "netns", row->netns, "pool",
			       row->pool->name, "reason", causes[i].name, "status", status, NULL);
	}
}

static void failure_samples(struct sw_page *p, const struct sw_listener_row *row)
{
	const struct sw_listener_counts *c = &row->totals.packets;
	const struct {
		const char *program;
		const struct sw_counts *counts;
	} programs[] = {{"xdp", &c->xdp}, {"tc", &c->tc}, {"keep", &c->keep}};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		sw_page_sample(p, (double)sw_count(programs[i].counts, SW_R_drop_failed),
			       "listener", row->address, "netns", row->netns, "program",
			       programs[i].program, NULL);
}

/* One number for each listener. */
static void request_series(struct sw_page *p, const struct sw_listener_row *rows, size_t n,
			   const char *name, const char *help,
			   uint64_t (*value)(const struct sw_totals *t))
{
	sw_page_series(p, name, "counter", help);
	for (size_t i = 0; i < n; i++)
		sw_page_sample(p, (double)value(&rows[i].totals), "listener", rows[i].address,
			       "netns", rows[i].netns, "pool", rows[i].pool->name, NULL);
}

static uint64_t shed_kept(const struct sw_totals *t)
{
	return t->shed_kept;
}

static uint64_t handed_over(const struct sw_totals *t)
{
	return t->handed_over;
}

static uint64_t would_shed(const struct sw_totals *t)
{
	return t->would_shed;
}

static uint64_t untold(const struct sw_totals *t)
{
	return t->packets.shed.untold;
}

void sw_metrics_write_listeners(struct sw_page *p, const struct sw_listener_row *rows, size_t n)
{
	sw_page_series(p, "spillway_packets_total", "counter",
		       "Packets by program and reason of verdict.");
	for (size_t i = 0; i < n; i++) {
		packet_samples(p, &rows[i], "xdp", &rows[i].totals.packets.xdp);
		packet_samples(p, &rows[i], "tc", &rows[i].totals.packets.tc);
		packet_samples(p, &rows[i], "keep", &rows[i].totals.packets.keep);
	}
	sw_page_series(p, "spillway_shed_total", "counter",
		       "Requests answered in the kernel by cause and status.");
	for (size_t i = 0; i < n; i++)
		shed_samples(p, &rows[i]);
	request_series(p, rows, n, "spillway_shed_kept_total",
		       "Of those, requests on connections that were kept.", shed_kept);
	request_series(p, rows, n, "spillway_shed_untold_total",
		       "Of those, requests that no event tells of, as events are a sample.",
		       untold);
	request_series(p, rows, n, "spillway_handed_over_total", "Connections given to the stack.",
		       handed_over);
	request_series(p, rows, n, "spillway_would_shed_total",
		       "Requests that observe counted and let through.", would_shed);
	sw_page_series(p, "spillway_transmit_failures_total", "counter",
		       "Answers that could not be built or sent.");
	for (size_t i = 0; i < n; i++)
		failure_samples(p, &rows[i]);
}
