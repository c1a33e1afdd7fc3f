/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an operator may change by hand: force and drain. JSON in, changed pools out. */
#ifndef SPILLWAY_OPERATE_H
#define SPILLWAY_OPERATE_H

#include <jansson.h>

#include "control/live.h"

#define SW_FORCE_DEFAULT_MS (10u * 60 * 1000)
#define SW_FORCE_MAX_MS	    (7u * 24 * 3600 * 1000)

/* {"pool": name or absent for all, "state": "saturated|open|auto", "for_ms": N}
 * {"pool": name or absent for all, "on": bool}
 * {"pool": name or absent if only one has it, "worker": name, "on": bool}
 * Changes one pool or all, or one worker, and stores the pools concerned in *first and *n. Returns
 * 0 or the HTTP status that says what is wrong with the request, with the reason in `err`. */
int sw_operate_force(struct sw_live *live, const json_t *body, uint64_t now_ms,
		     struct sw_live_pool **first, size_t *n, struct sw_error *err);
int sw_operate_drain(struct sw_live *live, const json_t *body, uint64_t now_ms,
		     struct sw_live_pool **first, size_t *n, struct sw_error *err);

#endif
