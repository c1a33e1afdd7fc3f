// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The decision over a pool and the mode of its gates; see pool.h. */
#include <errno.h>
#include <string.h>

#include "policy/pool.h"

enum sw_pool_state sw_pool_decide(const struct sw_pool_inputs *in, uint64_t now_ms)
{
	if (in->drain)
		return SW_POOL_DRAINING;
	if (in->force != SW_FORCE_AUTO && now_ms < in->force_until_ms)
		return in->force == SW_FORCE_OPEN ? SW_POOL_OPEN : SW_POOL_SATURATED;
	if (in->workers == 0)
		return in->awaited ? SW_POOL_OPEN : SW_POOL_UNAVAILABLE;
	return in->busy + in->draining >= in->workers ? SW_POOL_SATURATED : SW_POOL_OPEN;
}

void sw_gate_adopt(struct sw_gate *g, uint64_t now_ns)
{
	g->mode = SW_MODE_FINISH;
	g->cause = SW_CAUSE_SATURATED;
	g->finish_until_ns = now_ns + SW_LIFETIME_NS;
}

static enum sw_cause cause_of(enum sw_pool_state state)
{
	switch (state) {
	case SW_POOL_DRAINING: return SW_CAUSE_DRAINING;
	case SW_POOL_UNAVAILABLE: return SW_CAUSE_UNAVAILABLE;
	default: return SW_CAUSE_SATURATED;
	}
}

bool sw_gate_step(struct sw_gate *g, enum sw_pool_state state, bool may_close, bool metered,
		  uint64_t now_ns)
{
	const struct sw_gate was = *g;
	bool shed = state != SW_POOL_OPEN;

	if (may_close && (shed || metered)) {
		g->mode = shed ? SW_MODE_SHED : SW_MODE_METERED;
		g->cause = shed ? cause_of(state) : SW_CAUSE_NO_SLOTS;
		g->finish_until_ns = now_ns + SW_LIFETIME_NS;
	} else if (now_ns < g->finish_until_ns) {
		g->mode =
			SW_MODE_FINISH; /* the cause stays: repeated requests get the same answer */
	} else {
		g->mode = SW_MODE_OPEN;
	}
	return g->mode != was.mode || g->cause != was.cause;
}

bool sw_gate_arm(struct sw_gate *g, bool refuses, bool near, uint64_t now_ns)
{
	bool was = g->armed;

	if (refuses || g->mode == SW_MODE_SHED)
		g->armed_until_ns = now_ns + SW_ARMED_NS;
	g->armed = near || now_ns < g->armed_until_ns;
	return g->armed != was;
}

const char *sw_pool_state_name(enum sw_pool_state state)
{
	static const char *const names[SW_POOL_STATES] = {"open", "saturated", "draining",
							  "unavailable"};

	return state < SW_POOL_STATES ? names[state] : "?";
}

static const char *const force_names[SW_FORCES] = {"auto", "saturated", "open"};

const char *sw_force_name(enum sw_force force)
{
	return force < SW_FORCES ? force_names[force] : "?";
}

int sw_force_parse(const char *name, enum sw_force *out)
{
	for (int i = 0; i < SW_FORCES; i++) {
		if (!strcmp(name, force_names[i])) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *sw_mode_name(enum sw_mode mode)
{
	static const char *const names[] = {"open", "finish", "shed", "metered"};

	return mode <= SW_MODE_METERED ? names[mode] : "?";
}
