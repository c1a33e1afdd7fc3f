/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events about requests that were shed, out of the ring of a plane. What they mean is their
 * reader's matter. */
#ifndef SPILLWAY_SHED_RING_H
#define SPILLWAY_SHED_RING_H

#include <stdbool.h>

#include "common/error.h"
#include <spillway/abi.h>

struct sw_shed_ring;

typedef void (*sw_shed_ring_fn)(void *arg, const struct sw_shed_event *e);

/* The ring `map`; it goes on to be read when the plane is closed, what comes then is nothing. */
int sw_shed_ring_open(struct sw_shed_ring **out, int map, sw_shed_ring_fn fn, void *arg,
		      struct sw_error *err);
/* Hands over what has come. Nobody is woken for it, as a reader that was cost more than what it
 * reads about: to be called often enough that the ring does not fill at SW_SHED_EVENTS a second. */
void sw_shed_ring_read(struct sw_shed_ring *r);
/* Is it this very map that is read? */
bool sw_shed_ring_reads(const struct sw_shed_ring *r, int map);
/* NULL is fine. */
void sw_shed_ring_close(struct sw_shed_ring *r);

#endif
