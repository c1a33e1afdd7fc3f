/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the daemon knows, as the JSON of GET /v1/status and GET /v1/explain (docs/control.md). */
#ifndef SPILLWAY_STATUS_H
#define SPILLWAY_STATUS_H

#include <jansson.h>

#include "control/live.h"

/* Everything. A new reference, or NULL when there is no memory. */
json_t *sw_status_json(const struct sw_live *live, uint64_t now_ms);

/* {"pools": [...]} with one pool, or with all when `pool` is NULL. */
json_t *sw_explain_json(const struct sw_live *live, const struct sw_live_pool *pool,
			uint64_t now_ms);

/* Totals of one listener over its programs, and what they mean in requests. */
struct sw_totals {
	struct sw_counts xdp, tc;
	uint64_t shed, handed_over, would_shed;
};

/* Reads the counters of the listener at `index` in the configuration. Zero where it is not
 * guarded now. */
void sw_totals_read(const struct sw_live *live, size_t index, struct sw_totals *out);

/* Counters by number and name: enum sw_reason. */
uint64_t sw_count(const struct sw_counts *c, unsigned reason);
extern const char *const sw_reason_names[SW_R_COUNT];

#endif
