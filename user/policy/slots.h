/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From limits and reports to what slot rows are told: caps and credits. Pure: no I/O, no clock.
 * The exact N + Q cap is that of NVIDIA Dynamo before 1.6; the other limits are vLLM's and TGI's.
 */
#ifndef SPILLWAY_SLOTS_H
#define SPILLWAY_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/busy.h"
#include <spillway/abi.h>

#define SW_DEFAULT_QUEUE 16
#define SW_LEAST_QUEUE	 2

/* What one worker may hold at once: the least of N + Q, vLLM's max_num_queued_reqs (running +
 * waiting + 1 > max rejects, so max) and TGI's max_concurrent_requests (max). 0 is a real value: a
 * limit that rejects all. SW_NO_CAP: no limit is set. `share` of it, rounded down, at least 1
 * unless the limit itself is 0. */
uint32_t sw_slots_cap(const struct sw_limits *l, uint64_t engine_limit, uint64_t queue_limit,
		      double share);

/* How many of `inuse` count as the engine's and how many as queued. */
void sw_slots_split(uint32_t inuse, uint64_t engine_limit, uint32_t *engine, uint32_t *queue);

/* Most reservations of a pool that are not established yet: half of its cap, at least 1, at most
 * SW_MAX_RESERVATIONS / 4. */
uint32_t sw_slots_half_open(uint64_t pool_cap);

/* ---- credits: where only reports tell what is in flight ------------------------------------ */

#define SW_CREDIT_STEPS	  64
#define SW_CREDIT_LAG_MAX 10000 /* the longest `lag_ms` that the ring reaches back over */

/* What was taken lately, as a ring of readings of the row's `inuse`, which only grows there. */
struct sw_credit {
	struct {
		uint64_t at_ms;
		uint32_t taken;
	} step[SW_CREDIT_STEPS];
	unsigned n, next;
};

/* Notes a reading; to be called at each report and each heartbeat. */
void sw_credit_note(struct sw_credit *c, uint32_t taken, uint64_t now_ms);

/* The new value of a credit row's `cap`: what was taken so far plus the free slots, less what was
 * admitted in the last `lag_ms`, which the report cannot show yet. `cap` is the pool's sum of caps
 * over its workers that are not busy, `in_flight` what their reports show (running + waiting). */
uint32_t sw_credit_grant(const struct sw_credit *c, uint32_t taken, uint64_t cap,
			 uint64_t in_flight, unsigned lag_ms, uint64_t now_ms);

#endif
