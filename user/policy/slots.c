// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Caps and credits of slot rows; see slots.h. When they are computed is the daemon's matter,
 * writing them steer.h's. */
#include <math.h>

#include "policy/check.h"
#include "policy/slots.h"

/* Steps are so far apart that the ring reaches back over SW_CREDIT_LAG_MAX. */
#define STEP_MS (SW_CREDIT_LAG_MAX / (SW_CREDIT_STEPS - 2))

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- caps -------------------------------------------------------------------------------- */

uint32_t sw_slots_cap(const struct sw_limits *l, uint64_t engine_limit, uint64_t queue_limit,
		      double share)
{
	uint64_t cap = UINT64_MAX;

	if (engine_limit)
		cap = engine_limit + least(queue_limit, UINT64_MAX - engine_limit);
	if (l->set & SW_BIT(SW_LIM_QUEUED_REQS))
		cap = least(cap, l->count[SW_LIM_QUEUED_REQS]);
	if (l->set & SW_BIT(SW_LIM_CONCURRENT_REQUESTS))
		cap = least(cap, l->count[SW_LIM_CONCURRENT_REQUESTS]);
	if (cap >= SW_NO_CAP)
		return SW_NO_CAP;
	if (!cap)
		return 0;
	/* 0.29 of 100 is 29, though the product is a hair less */
	cap = (uint64_t)floor((double)cap * share + 1e-9);
	return cap ? (uint32_t)cap : 1;
}

void sw_slots_split(uint32_t inuse, uint64_t engine_limit, uint32_t *engine, uint32_t *queue)
{
	*engine = engine_limit ? (uint32_t)least(inuse, engine_limit) : inuse;
	*queue = inuse - *engine;
}

uint32_t sw_slots_half_open(uint64_t pool_cap)
{
	uint64_t half = least(pool_cap / 2, SW_MAX_RESERVATIONS / 4);

	return half ? (uint32_t)half : 1;
}

/* ---- credits ----------------------------------------------------------------------------- */

void sw_credit_note(struct sw_credit *c, uint32_t taken, uint64_t now_ms)
{
	unsigned last = (c->next + SW_CREDIT_STEPS - 1) % SW_CREDIT_STEPS;

	if (c->n && now_ms - c->step[last].at_ms < STEP_MS)
		return;
	c->step[c->next].at_ms = now_ms;
	c->step[c->next].taken = taken;
	c->next = (c->next + 1) % SW_CREDIT_STEPS;
	c->n += c->n < SW_CREDIT_STEPS;
}

/* What was taken since `lag_ms` ago, or since the first reading. Between two steps the older one
 * counts: rather a credit too few. */
static uint32_t taken_lately(const struct sw_credit *c, uint32_t taken, unsigned lag_ms,
			     uint64_t now_ms)
{
	uint32_t then = taken;

	for (unsigned i = 1; i <= c->n; i++) {
		unsigned step = (c->next + SW_CREDIT_STEPS - i) % SW_CREDIT_STEPS;

		then = c->step[step].taken;
		if (now_ms - c->step[step].at_ms >= lag_ms)
			break;
	}
	return taken - then;
}

uint32_t sw_credit_grant(const struct sw_credit *c, uint32_t taken, uint64_t cap,
			 uint64_t in_flight, unsigned lag_ms, uint64_t now_ms)
{
	uint64_t free = cap > in_flight ? cap - in_flight : 0;
	uint64_t lately = taken_lately(c, taken, lag_ms, now_ms);

	free = free > lately ? free - lately : 0;
	return taken + (uint32_t)least(free, INT32_MAX);
}
