/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots in figures, for status and metrics: what the kernel's rows hold at this moment, and what
 * they add up to for a pool. Reads only; caps and busy sets are the daemon's matter.
 */
#ifndef SPILLWAY_USE_H
#define SPILLWAY_USE_H

#include "control/live.h"

#define SW_UNLIMITED UINT64_MAX

struct sw_use {
	uint64_t inuse, engine, queue; /* all, and how they are shared out */
	uint64_t cap, free;	       /* SW_UNLIMITED: no limit is set */
};

/* The row of a worker. False: it is neither steered nor counted. */
bool sw_use_worker(const struct sw_live_worker *w, struct sw_use *use, struct sw_slot *slot);

/* The row of a guarded pool that is counted as a whole. False: it has none. */
bool sw_use_row(const struct sw_live_pool *p, struct sw_slot *slot);

/* All of a pool. `free` is what new connections can get: nothing of busy or draining workers, and
 * nothing at all while the pool is closed. False: it is neither steered nor counted. */
bool sw_use_pool(const struct sw_live_pool *p, struct sw_use *use);

#endif
