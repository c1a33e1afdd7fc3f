/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs tell of requests that were shed: counters by kind, and events. */
#ifndef SPILLWAY_TEST_SHED_H
#define SPILLWAY_TEST_SHED_H

#include <stdint.h>

#include <spillway/abi.h>

enum { SHED_EVENTS_MAX = 512 };

struct spillway;

/* From now on: forgets what came before, and the rate is unused. */
void shed_begin(const struct spillway *skel, unsigned listener);
void shed_rate_unused(void);
/* Since then. */
struct sw_shed_counts shed_counted(void);
/* The events that came since the last call; *list is valid until the next. */
unsigned shed_told(const struct sw_shed_event **list);
void shed_end(void);

/* Makes a path's requests of this kind. */
void shed_kind(const struct sw_path *key, enum sw_api_endpoint endpoint);

#endif
