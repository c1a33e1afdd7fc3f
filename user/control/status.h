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

/* {"pools": [...]} without workers, and {"workers": [...]} of one pool or of all. */
json_t *sw_pools_json(const struct sw_live *live, uint64_t now_ms);
json_t *sw_workers_json(const struct sw_live *live, const struct sw_live_pool *pool,
			uint64_t now_ms);

/* Parts of it. Null: neither steered nor counted. */
json_t *sw_worker_slots_json(const struct sw_live_worker *w);
json_t *sw_pool_slots_json(const struct sw_live_pool *p);

#endif
