/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads that somebody tells over the API, POST /v1/load: JSON in, reports of workers out. What
 * becomes of them is the daemon's matter. */
#ifndef SPILLWAY_PUSH_H
#define SPILLWAY_PUSH_H

#include <jansson.h>

#include "control/live.h"

#define SW_PUSH_LOADS 4096 /* in one request, at most: each is judged before it is answered */

struct sw_push {
	struct sw_live_worker *worker;
	struct sw_report *reports; /* one for each rank, 1 to SW_MAX_RANKS */
	int n;
};

/* {"pool": name, "worker": name or "worker_id": number, "ranks": [{"rank": 0, "running": ...}]}, or
 * {"loads": [such, ...]}. `pool` may be left out where only one has such a worker; null is the same
 * as absent. All is right, or nothing is given: 0, or the HTTP status that says what is wrong, with
 * the reason in `err`. To be freed also then. */
int sw_push_read(const struct sw_live *live, const json_t *body, struct sw_push **out, size_t *n,
		 struct sw_error *err);
void sw_push_free(struct sw_push *loads, size_t n);

#endif
