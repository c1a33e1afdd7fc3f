// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the kernel is told of each pool in each network namespace: mode, cause and, with every
 * heartbeat, a deadline. What a pool's state is, is pools.c's matter. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "control/use.h"
#include "daemon/daemon.h"

#define MINUTE_NS (60 * 1000000000ULL)

static bool listens(const struct sw_listener_conf *l, const struct sw_live_plane *plane,
		    size_t pool)
{
	return l->pool == pool && sw_same_text(l->netns, plane->netns);
}

struct sw_live_gate *sw_gates_make(const struct sw_live *live, const struct sw_live_plane *plane,
				   const struct sw_config *conf)
{
	struct sw_live_gate *gates = calloc(conf->n_pools + 1, sizeof(*gates));

	for (size_t i = 0; gates && i < conf->n_pools; i++) {
		const struct sw_live_pool *old = sw_live_find_pool(live, conf->pools[i].name);

		if (old && plane->gates)
			gates[i] = plane->gates[old - live->pools];
		gates[i].used = false;
		for (size_t j = 0; j < conf->n_listeners; j++)
			gates[i].used |= listens(&conf->listeners[j], plane, i);
	}
	return gates;
}

static void warn_not_closed(const struct sw_live *live, const struct sw_live_plane *plane, size_t i,
			    const char *why)
{
	const struct sw_listener_conf *l = &live->conf->listeners[i];
	char address[64], where[128];

	sw_format_listener(l, address, sizeof(address));
	sw_log(SW_WARN,
	       "pool %s is never closed %s: connections to %s with requests that must pass could "
	       "not be handed over (%s). Mend that, or set `intercept: established`, or `paths: "
	       "{all: true}`, on all its listeners",
	       live->conf->pools[l->pool].name, sw_plane_where(plane->netns, where, sizeof(where)),
	       address, why);
}

static void say_passes(const struct sw_live *live, const struct sw_live_plane *plane, size_t i,
		       const char *why)
{
	const struct sw_listener_conf *l = &live->conf->listeners[i];
	char address[64], where[128];

	sw_format_listener(l, address, sizeof(address));
	sw_log(SW_INFO,
	       "pool %s: new connections to %s %s are let in, as none could be handed over (%s); "
	       "requests are shed on established connections",
	       live->conf->pools[l->pool].name, address,
	       sw_plane_where(plane->netns, where, sizeof(where)), why);
}

/* What the listeners of one pool allow. Where nothing is intercepted, nothing is lost. */
static void permit_pool(const struct sw_live *live, struct sw_live_plane *plane, size_t pool)
{
	struct sw_live_gate *g = &plane->gates[pool];
	bool observe = live->conf->pools[pool].observe, warned = false, said = false;

	g->passes = false;
	for (size_t i = 0; i < live->conf->n_listeners; i++) {
		const char *why;

		if (!listens(&live->conf->listeners[i], plane, pool))
			continue;
		why = observe ? NULL : sw_live_danger(live, i);
		if (sw_live_passes_new(live, i)) {
			g->passes = true;
			if (why && !g->said && !said)
				say_passes(live, plane, i, why);
			said |= why != NULL;
		} else if (why) {
			if (!g->warned && !warned)
				warn_not_closed(live, plane, i, why);
			warned = true;
		}
	}
	g->may_close = g->used && !warned;
	g->warned = warned;
	g->said = said;
}

/* Would something be lost if the pool's overflow were sent away, in any namespace? */
static bool is_uncapped(const struct sw_live *live, size_t pool)
{
	bool found = false;

	for (size_t i = 0; i < live->n_planes; i++)
		found |= live->planes[i].plane &&
			 (live->planes[i].gates[pool].warned || live->planes[i].gates[pool].passes);
	return found;
}

/* Whether its new connections are counted makes no difference then. */
static bool is_passing(const struct sw_live *live, size_t pool)
{
	for (size_t i = 0; i < live->conf->n_listeners; i++)
		if (live->conf->listeners[i].pool == pool && !sw_live_passes_new(live, i))
			return false;
	return true;
}

static void write_listeners(const struct sw_live *live, struct sw_live_plane *plane)
{
	for (size_t i = 0; i < live->conf->n_listeners; i++)
		if (sw_same_text(live->conf->listeners[i].netns, plane->netns))
			sw_plane_pass_new(plane->plane, (unsigned)i + 1,
					  sw_live_passes_new(live, i));
}

void sw_gates_permit(struct sw_live *live, struct sw_live_plane *plane)
{
	write_listeners(live, plane);
	for (size_t i = 0; i < live->n_pools; i++) {
		permit_pool(live, plane, i);
		live->pools[i].passing = is_passing(live, i);
		live->pools[i].uncapped = is_uncapped(live, i);
	}
}

static void write_gate(struct sw_live *live, struct sw_live_plane *plane, size_t pool,
		       uint64_t now_ns)
{
	const struct sw_gate *g = &plane->gates[pool].gate;
	uint64_t deadline = now_ns + (uint64_t)live->conf->deadline_ms * 1000000ULL;
	int e = sw_plane_set_pool(plane->plane, (unsigned)pool, g->mode, g->cause, g->armed,
				  deadline);
	char where[128];

	if (e < 0 && e != plane->failing)
		sw_log(SW_ERROR, "cannot write the state of pool %s %s: %s",
		       live->conf->pools[pool].name,
		       sw_plane_where(plane->netns, where, sizeof(where)), strerror(-e));
	plane->failing = e < 0 ? e : 0;
}

/* Is the pool's cap held in the kernel? */
static bool is_metered(const struct sw_live_pool *pool)
{
	return pool->cap != UINT64_MAX &&
	       (pool->row >= 0 || (pool->live->steer && pool->conf->steer.by == SW_STEER_LOCAL));
}

/* Are most of the pool's slots taken? */
static bool is_nearly_full(const struct sw_live_pool *pool)
{
	struct sw_use use;

	return sw_use_pool(pool, &use) && use.cap != SW_UNLIMITED &&
	       (double)use.inuse >= SW_NEAR_SHARE * (double)use.cap;
}

static bool step(struct sw_live *live, struct sw_live_plane *plane, size_t pool, uint64_t now_ns)
{
	struct sw_live_gate *g = &plane->gates[pool];
	const struct sw_live_pool *p = &live->pools[pool];
	bool metered = is_metered(p);
	bool moved = sw_gate_step(&g->gate, p->state, g->may_close, metered, now_ns);
	bool armed = sw_gate_arm(&g->gate, g->may_close && metered && p->full,
				 g->may_close && (p->near || is_nearly_full(p)), now_ns);

	return moved || armed;
}

void sw_gates_write(struct sw_live *live, struct sw_live_plane *plane)
{
	uint64_t now_ns = sw_now_ns();

	for (size_t i = 0; i < live->n_pools; i++) {
		step(live, plane, i, now_ns);
		write_gate(live, plane, i, now_ns);
	}
}

void sw_gates_apply(struct sw_live_pool *pool)
{
	struct sw_live *live = pool->live;
	size_t index = (size_t)(pool - live->pools);
	uint64_t now_ns = sw_now_ns();

	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane && step(live, &live->planes[i], index, now_ns))
			write_gate(live, &live->planes[i], index, now_ns);
}

void sw_gates_pause(struct sw_live *live, struct sw_live_plane *plane)
{
	uint64_t deadline = sw_now_ns() + (uint64_t)live->conf->deadline_ms * 1000000ULL;

	for (size_t i = 0; plane->plane && i < live->n_pools; i++)
		if (plane->gates[i].gate.mode == SW_MODE_SHED ||
		    plane->gates[i].gate.mode == SW_MODE_METERED)
			sw_plane_set_pool(plane->plane, (unsigned)i, SW_MODE_FINISH,
					  plane->gates[i].gate.cause, false, deadline);
}

void sw_gates_adopt(struct sw_live_plane *plane, size_t n_pools)
{
	uint64_t now_ns = sw_now_ns();

	for (size_t i = 0; i < n_pools; i++)
		sw_gate_adopt(&plane->gates[i].gate, now_ns);
}

bool sw_gates_are_calm(const struct sw_live_plane *plane, size_t n_pools)
{
	for (size_t i = 0; i < n_pools; i++)
		if (plane->gates[i].gate.mode != SW_MODE_OPEN || plane->gates[i].gate.armed)
			return false;
	return true;
}

/* A late heartbeat is to be seen for a while, and not for ever. */
static void note_margin(struct sw_live *live, int64_t margin, uint64_t now_ns)
{
	int64_t *m = live->margins_ns;

	if (now_ns - live->minute_ns >= MINUTE_NS) {
		m[1] = live->minute_ns ? m[0] : margin;
		m[0] = margin;
		live->minute_ns = now_ns;
	} else if (margin < m[0]) {
		m[0] = margin;
	}
	live->least_margin_ns = m[0] < m[1] ? m[0] : m[1];
}

void sw_gates_beat(struct sw_live *live)
{
	uint64_t now_ns = sw_now_ns();
	int64_t margin = (int64_t)(live->beat_ns + live->conf->deadline_ms * 1000000ULL - now_ns);

	if (live->beat_ns)
		note_margin(live, margin, now_ns);
	live->beat_ns = now_ns;
	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane)
			sw_gates_write(live, &live->planes[i]);
}
