/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which events have been here before: several brokers pass on the same ones, and one may lag behind
 * the other. Pure. */
#ifndef SPILLWAY_REPEATS_H
#define SPILLWAY_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#define SW_REPEATS	    4096 /* publishers that are remembered, those last heard */
#define SW_REPEATS_QUIET_MS 3000 /* after which anything of a publisher counts as new */

struct sw_repeats;

struct sw_repeats *sw_repeats_new(void); /* NULL: no memory */
void sw_repeats_free(struct sw_repeats *r);

/* Is this an event that was seen, or an older one than was seen? A publisher that begins with a low
 * number again is known by its clock, and heard at the latest when nothing new has come from it
 * for SW_REPEATS_QUIET_MS. */
bool sw_repeats_knows(struct sw_repeats *r, uint64_t publisher, uint64_t sequence,
		      uint64_t published_ms, uint64_t now_ms);

#endif
