/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Load events that have come and were not handed on yet, in the order in which they came; one for
 * each publisher, worker and rank, so that a flood takes no more room than a trickle. Pure. */
#ifndef SPILLWAY_PENDING_H
#define SPILLWAY_PENDING_H

#include "sources/events.h"

#define SW_PENDING 2048 /* at once, at most */

struct sw_pending;

struct sw_pending *sw_pending_new(void); /* NULL: no memory */
void sw_pending_free(struct sw_pending *p);

enum sw_pended { SW_PENDED, SW_PENDED_REPLACED, SW_PENDED_FULL };

/* REPLACED: one of the same publisher, worker and rank waits already, and now has each signal that
 * `event` has. FULL: it was not taken; take one first. */
enum sw_pended sw_pending_put(struct sw_pending *p, const struct sw_load_event *event);
/* The one that has waited longest. False: there is none. */
bool sw_pending_take(struct sw_pending *p, struct sw_load_event *out);

#endif
