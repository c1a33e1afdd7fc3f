// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Latencies by status, sorted only when someone asks for percentiles.

#include <stdio.h>
#include <stdlib.h>

#include "tally.h"

void tally_add(struct tally *t, int status, uint64_t latency_us)
{
	struct tally_status *s = &t->by[status];

	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->latency_us = reallocarray(s->latency_us, s->room, sizeof(*s->latency_us));
		if (!s->latency_us)
			abort();
	}
	s->latency_us[s->n++] = latency_us > UINT32_MAX ? UINT32_MAX : latency_us;
}

size_t tally_count(const struct tally *t, int status)
{
	return t->by[status].n;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

json_t *tally_json(struct tally *t)
{
	json_t *all = json_object();

	for (int status = 0; status < 1000; status++) {
		struct tally_status *s = &t->by[status];
		char name[16];

		if (!s->n)
			continue;
		qsort(s->latency_us, s->n, sizeof(*s->latency_us), ascending);
		snprintf(name, sizeof(name), "%d", status);
		json_object_set_new(
			all, name,
			json_pack("{s:I,s:I,s:I,s:I}", "count", (json_int_t)s->n, "p50_us",
				  (json_int_t)s->latency_us[s->n / 2], "p99_us",
				  (json_int_t)s->latency_us[s->n - 1 - (s->n - 1) / 100], "max_us",
				  (json_int_t)s->latency_us[s->n - 1]));
	}
	return all;
}

void tally_reset(struct tally *t)
{
	for (int status = 0; status < 1000; status++) {
		free(t->by[status].latency_us);
		t->by[status] = (struct tally_status){0};
	}
}
