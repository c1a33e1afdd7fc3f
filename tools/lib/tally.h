/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts outcomes by status and keeps their latencies for exact percentiles. */
#ifndef TOOLS_TALLY_H
#define TOOLS_TALLY_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct tally_status {
	uint32_t *latency_us; /* one for each response */
	size_t n, room;
};

struct tally { /* all zero: empty */
	struct tally_status by[1000];
};

void tally_add(struct tally *t, int status, uint64_t latency_us);
size_t tally_count(const struct tally *t, int status);
/* {"200":{"count":9,"p50_us":..,"p99_us":..,"max_us":..},...} */
json_t *tally_json(struct tally *t);
void tally_reset(struct tally *t);

#endif
