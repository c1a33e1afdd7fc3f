/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was counted for each listener since the daemon started. The kernel counts by listener id,
 * which stands for another listener after a reload and goes on when a daemon takes over; an offset
 * for each listener makes its own figures of that.
 */
#ifndef SPILLWAY_TOTALS_H
#define SPILLWAY_TOTALS_H

#include "control/live.h"

struct sw_totals {
	struct sw_listener_counts packets;	/* by reason */
	uint64_t shed, handed_over, would_shed; /* what they mean in requests */
	uint64_t shed_kept;			/* of those shed, on connections that were kept */
	uint64_t endpoints[SW_API_ENDPOINTS];	/* those shed, by enum sw_api_endpoint */
};

/* The listener at `index` in the configuration. Zero where it is not guarded now. */
void sw_totals_read(const struct sw_live *live, size_t index, struct sw_totals *out);

/* Of one pool, as far as the kernel's programs see it. */
struct sw_pool_totals {
	uint64_t shed;	   /* requests, and connections that were steered nowhere */
	uint64_t admitted; /* connections or requests that took a slot, where slots are counted;
			    * else requests that were read and handed over: what passes while the
			    * pool is open is not looked at */
};

void sw_pool_totals_read(const struct sw_live_pool *p, struct sw_pool_totals *out);

/* Counting starts from 0 for the listeners of a plane that was just opened. */
void sw_totals_start(struct sw_live *live, const struct sw_live_plane *plane);

/* Offsets for the listeners of `next`, by which those known already go on where they are. To be
 * asked for while `live` still is what ran before. NULL: no memory. */
struct sw_listener_counts *sw_totals_carry(const struct sw_live *live,
					   const struct sw_config *next);

/* One counter by its number, and the names: enum sw_reason. */
uint64_t sw_count(const struct sw_counts *c, unsigned reason);
extern const char *const sw_reason_names[SW_R_COUNT];

#endif
