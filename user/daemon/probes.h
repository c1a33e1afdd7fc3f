/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Does a worker take connections again? Asked by opening one and closing it, a few at a time.
 * Whom to ask, and how often, is its owner's matter.
 */
#ifndef SPILLWAY_PROBES_H
#define SPILLWAY_PROBES_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#define SW_PROBES 8 /* at a time */

struct sw_probes;

/* A worker answered. */
typedef void (*sw_probe_fn)(void *arg, int id);

struct sw_probes *sw_probes_new(struct event_base *base, sw_probe_fn fn, void *arg);
/* Breaks off those under way. NULL is fine. */
void sw_probes_free(struct sw_probes *p);

/* Tries to connect to addr:port (IPv4-mapped where IPv4) out of a network namespace (NULL: the
 * caller's). Nothing is heard of one that fails. -EBUSY: one is under way for the id, or too many
 * for others. */
int sw_probe_start(struct sw_probes *p, int id, const uint8_t addr[16], uint16_t port,
		   const char *netns);

#endif
