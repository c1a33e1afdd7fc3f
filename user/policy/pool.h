/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From workers to a pool, and from a pool to what the kernel is told: pure functions, time comes in
 * as an argument. Whether a worker is busy is busy.h's matter, writing the maps is plane.h's.
 */
#ifndef SPILLWAY_POOL_H
#define SPILLWAY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spillway/abi.h>

enum sw_pool_state {
	SW_POOL_OPEN,	     /* a worker can take a request */
	SW_POOL_SATURATED,   /* every worker is busy or draining */
	SW_POOL_DRAINING,    /* the operator lets it run empty */
	SW_POOL_UNAVAILABLE, /* it has no worker */
	SW_POOL_STATES
};

enum sw_force { SW_FORCE_AUTO, SW_FORCE_SATURATED, SW_FORCE_OPEN, SW_FORCES };

struct sw_pool_inputs {
	size_t workers, draining;
	size_t busy; /* of those not draining; stale ones are what sw_worker_eval() made of them */
	enum sw_force force;
	uint64_t force_until_ms; /* the force holds before this time */
	bool drain;
	bool awaited; /* who the workers are was not told yet: having none means nothing */
};

/* The state of a pool. An operator's word goes before what is measured: drain, then force (until
 * it expires), then no worker, then none that is neither busy nor draining. */
enum sw_pool_state sw_pool_decide(const struct sw_pool_inputs *in, uint64_t now_ms);

/* What one network namespace's programs are told about one pool. Zero: open. */
struct sw_gate {
	enum sw_mode mode;
	enum sw_cause cause;
	uint64_t finish_until_ns; /* until when conversations that we began may be under way */
	bool armed;		  /* established connections are followed */
	uint64_t armed_until_ns;  /* at least until then */
};

/* A gate of programs that a former daemon may have left in the middle of conversations. */
void sw_gate_adopt(struct sw_gate *g, uint64_t now_ns);

/* Moves a gate to where `state` wants it: SHED unless open, then METERED if the pool has a cap
 * (`metered`), else FINISH for one cookie lifetime after the last of the two, then OPEN. With
 * `may_close` false it never sheds, nor is it metered. To be called at least once a second while it
 * does either. True when mode or cause changed. */
bool sw_gate_step(struct sw_gate *g, enum sw_pool_state state, bool may_close, bool metered,
		  uint64_t now_ns);

#define SW_ARMED_NS   (60 * 1000000000ULL) /* that a pool stays armed after it has shed */
#define SW_NEAR_SHARE 0.8		   /* of a limit, from which on a pool is armed */

/* Arms or disarms after sw_gate_step(): armed while requests are shed, here or (`refuses`) for want
 * of a slot, and SW_ARMED_NS after, and while the pool is near one of its limits. True when that
 * changed. */
bool sw_gate_arm(struct sw_gate *g, bool refuses, bool near, uint64_t now_ns);

const char *sw_pool_state_name(enum sw_pool_state state); /* "open", "saturated", ... */
const char *sw_force_name(enum sw_force force);		  /* "auto", "saturated", "open" */
int sw_force_parse(const char *name, enum sw_force *out); /* -EINVAL */
const char *sw_mode_name(enum sw_mode mode);		  /* "open", ..., "metered" */

#endif
