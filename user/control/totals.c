// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters of listeners; see totals.h. */
#include <stdlib.h>
#include <string.h>

#include "control/totals.h"
#include "control/use.h"

const char *const sw_reason_names[SW_R_COUNT] = {
#define X(n, name, class, text) [n] = #name,
	SW_REASONS(X)
#undef X
};

/* Is the reason's class GIVE? */
static const bool gives[SW_R_COUNT] = {
#define CLASS_PASS		false
#define CLASS_DROP		false
#define CLASS_REPLY		false
#define CLASS_GIVE		true
#define X(n, name, class, text) [n] = CLASS_##class,
	SW_REASONS(X)
#undef X
};

/* The struct is nothing but __u64s, of packets one for each reason by number. */
#define N_COUNTERS (sizeof(struct sw_listener_counts) / sizeof(__u64))

uint64_t sw_count(const struct sw_counts *c, unsigned reason)
{
	__u64 values[SW_R_COUNT];

	memcpy(values, c, sizeof(values));
	return values[reason];
}

/* a += sign * b, each counter on its own; they may wrap around. */
static void add(struct sw_listener_counts *a, const struct sw_listener_counts *b, __u64 sign)
{
	__u64 x[N_COUNTERS], y[N_COUNTERS];

	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	for (size_t i = 0; i < N_COUNTERS; i++)
		x[i] += sign * y[i];
	memcpy(a, x, sizeof(x));
}

/* What the kernel has for listener id 1 + index. */
static bool read_kernel(const struct sw_live_plane *plane, size_t index,
			struct sw_listener_counts *out)
{
	memset(out, 0, sizeof(*out));
	return plane && plane->plane &&
	       sw_plane_counts(plane->plane, (unsigned)index + 1, &out->xdp, &out->tc,
			       &out->keep) >= 0 &&
	       sw_plane_shed_counts(plane->plane, (unsigned)index + 1, &out->shed) >= 0;
}

static void read_packets(const struct sw_live *live, size_t index, struct sw_listener_counts *out)
{
	if (read_kernel(sw_live_plane_of(live, &live->conf->listeners[index]), index, out))
		add(out, &live->offsets[index], 1);
}

void sw_totals_read(const struct sw_live *live, size_t index, struct sw_totals *out)
{
	memset(out, 0, sizeof(*out));
	read_packets(live, index, &out->packets);
	for (unsigned e = 0; e < SW_API_ENDPOINTS; e++)
		out->endpoints[e] = out->packets.shed.endpoints[e];
	for (unsigned r = 0; r < SW_R_COUNT; r++) {
		uint64_t kept = sw_count(&out->packets.keep, r);
		uint64_t n = sw_count(&out->packets.xdp, r) + sw_count(&out->packets.tc, r);

		if (r >= SW_R_shed_saturated && r <= SW_R_shed_no_handover) {
			out->shed += n + kept; /* shed_again sheds nothing more */
			out->shed_kept += kept;
		} else if (gives[r]) {
			out->handed_over += n;
		} else if (r == SW_R_would_shed) {
			/* spillway_tc sees what spillway_keep counts, unless it leaves all alone */
			out->would_shed += n > kept ? n : kept;
		}
	}
}

void sw_pool_totals_read(const struct sw_live_pool *p, struct sw_pool_totals *out)
{
	const size_t pool = (size_t)(p - p->live->pools);
	struct sw_steer_counts steered = {0};
	uint64_t handed_over = 0;
	struct sw_slot row;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < p->live->conf->n_listeners; i++) {
		struct sw_totals t;

		if (p->live->conf->listeners[i].pool != pool)
			continue;
		sw_totals_read(p->live, i, &t);
		out->shed += t.shed;
		handed_over += t.handed_over;
	}
	if (p->live->steer)
		sw_steer_counts(p->live->steer, (unsigned)pool, &steered);
	out->shed += steered.answered + steered.refused;
	if (p->conf->steer.by != SW_STEER_NONE)
		out->admitted = steered.steered;
	else
		out->admitted = sw_use_row(p, &row) ? row.takes : handed_over;
}

void sw_totals_start(struct sw_live *live, const struct sw_live_plane *plane)
{
	for (size_t i = 0; i < live->conf->n_listeners; i++) {
		struct sw_listener_counts now;

		if (!sw_same_text(live->conf->listeners[i].netns, plane->netns))
			continue;
		memset(&live->offsets[i], 0, sizeof(live->offsets[i]));
		if (read_kernel(plane, i, &now))
			add(&live->offsets[i], &now, -1);
	}
}

static bool same_listener(const struct sw_listener_conf *a, const struct sw_listener_conf *b)
{
	return a->port == b->port && a->v4 == b->v4 && a->v6 == b->v6 &&
	       !memcmp(a->addr, b->addr, sizeof(a->addr)) && sw_same_text(a->netns, b->netns);
}

struct sw_listener_counts *sw_totals_carry(const struct sw_live *live, const struct sw_config *next)
{
	struct sw_listener_counts *offsets = calloc(next->n_listeners + 1, sizeof(*offsets));

	for (size_t i = 0; offsets && i < next->n_listeners; i++) {
		const struct sw_listener_conf *l = &next->listeners[i];
		struct sw_listener_counts now;

		for (size_t j = 0; j < live->conf->n_listeners; j++)
			if (same_listener(&live->conf->listeners[j], l))
				read_packets(live, j, &offsets[i]);
		if (read_kernel(sw_live_plane_of(live, l), i, &now))
			add(&offsets[i], &now, -1);
	}
	return offsets;
}
