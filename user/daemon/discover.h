/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which workers of Dynamo's membership belong to which pools of a configuration. Pure: where
 * members come from, and when a configuration is exchanged, is dynamo.c's matter. */
#ifndef SPILLWAY_DISCOVER_H
#define SPILLWAY_DISCOVER_H

#include "config/config.h"
#include "sources/members.h"

/* Members as they were at one time. */
struct sw_found;

/* A copy of what the table says. NULL: no memory. */
struct sw_found *sw_found_take(const struct sw_members *m);
void sw_found_free(struct sw_found *f);

/* Workers that a configuration gets from it. */
struct sw_additions {
	struct sw_added_worker *workers; /* in the order of pools, then of members' keys */
	size_t n;
	size_t left_out;       /* members that a pool asks for and cannot have */
	struct sw_error error; /* which one, and why; empty: none */
};

/* What the pools of `c` that discover get; a worker that the file names by the same worker_id is
 * not added. Strings belong to `c` and `f`. -ENOMEM. */
int sw_additions_choose(const struct sw_found *f, const struct sw_config *c,
			struct sw_additions *out);
void sw_additions_free(struct sw_additions *a);

/* Are just these the discovered workers of `c`? */
bool sw_additions_are_in(const struct sw_additions *a, const struct sw_config *c);

#endif
