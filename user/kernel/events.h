/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events about requests that were shed, from the ring of a plane to the loop. What they mean is
 * their reader's matter. */
#ifndef SPILLWAY_EVENTS_H
#define SPILLWAY_EVENTS_H

#include <event2/event.h>
#include <stdbool.h>

#include "common/error.h"
#include <spillway/abi.h>

struct sw_events;

typedef void (*sw_events_fn)(void *arg, const struct sw_shed_event *e);

/* Hands over what comes in the ring `map`, a bounded number in each turn of the loop. It goes on to
 * be read when the plane is closed; what comes then is nothing. */
int sw_events_open(struct sw_events **out, int map, struct event_base *base, sw_events_fn fn,
		   void *arg, struct sw_error *err);
/* Is it this very map that is read? */
bool sw_events_reads(const struct sw_events *e, int map);
/* NULL is fine. */
void sw_events_close(struct sw_events *e);

#endif
