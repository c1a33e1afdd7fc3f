// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the kernel is told of each pool in each network namespace: mode, cause and, with every
 * heartbeat, a deadline. What a pool's state is, is pools.c's matter. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/daemon.h"

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

/* The first listener whose requests could be lost if the pool shed, since nothing could be handed
 * over behind it; NULL: none. `why` is replaced where the server is the reason. */
static const struct sw_listener_conf *endangered(const struct sw_live *live,
						 const struct sw_live_plane *plane, size_t pool,
						 bool hand_over, const char **why)
{
	const struct sw_config *c = live->conf;

	if (c->pools[pool].observe)
		return NULL; /* nothing is intercepted */
	for (size_t i = 0; i < c->n_listeners; i++) {
		bool mptcp = live->servers[i] == SW_SERVER_MPTCP;

		if (!listens(&c->listeners[i], plane, pool) || c->listeners[i].all_paths ||
		    (hand_over && !mptcp))
			continue;
		if (hand_over)
			*why = "its server listens with MPTCP, to which the kernel hands nothing "
			       "over; Go: GODEBUG=multipathtcp=0";
		return &c->listeners[i];
	}
	return NULL;
}

static void warn_not_closed(const struct sw_live *live, const struct sw_live_plane *plane,
			    size_t pool, const struct sw_listener_conf *l, const char *why)
{
	char address[64], where[128];

	sw_format_listener(l, address, sizeof(address));
	sw_log(SW_WARN,
	       "pool %s is never closed %s: connections to %s with requests that must pass could "
	       "not be handed over (%s). Mend that, or set `paths: {all: true}` on all its listeners",
	       live->conf->pools[pool].name, sw_plane_where(plane->netns, where, sizeof(where)),
	       address, why);
}

/* Is there a namespace where something would be lost if the pool's overflow were sent away? */
static bool is_uncapped(const struct sw_live *live, size_t pool)
{
	bool found = false;

	for (size_t i = 0; i < live->n_planes; i++)
		found |= live->planes[i].plane && live->planes[i].gates[pool].warned;
	return found;
}

void sw_gates_permit(struct sw_live *live, struct sw_live_plane *plane)
{
	const char *kernel = "the kernel cannot";
	bool hand_over = sw_plane_can_hand_over(plane->plane, &kernel);

	for (size_t i = 0; i < live->n_pools; i++) {
		struct sw_live_gate *g = &plane->gates[i];
		const char *why = kernel;
		const struct sw_listener_conf *l = endangered(live, plane, i, hand_over, &why);

		g->may_close = g->used && !l;
		if (l && !g->warned)
			warn_not_closed(live, plane, i, l, why);
		g->warned = l != NULL;
		live->pools[i].uncapped = is_uncapped(live, i);
	}
}

static void write_gate(struct sw_live *live, struct sw_live_plane *plane, size_t pool,
		       uint64_t now_ns)
{
	const struct sw_gate *g = &plane->gates[pool].gate;
	uint64_t deadline = now_ns + (uint64_t)live->conf->deadline_ms * 1000000ULL;
	int e = sw_plane_set_pool(plane->plane, (unsigned)pool, g->mode, g->cause, deadline);
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

static bool step(struct sw_live *live, struct sw_live_plane *plane, size_t pool, uint64_t now_ns)
{
	struct sw_live_gate *g = &plane->gates[pool];

	return sw_gate_step(&g->gate, live->pools[pool].state, g->may_close,
			    is_metered(&live->pools[pool]), now_ns);
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
					  plane->gates[i].gate.cause, deadline);
}

void sw_gates_adopt(struct sw_live_plane *plane, size_t n_pools)
{
	uint64_t now_ns = sw_now_ns();

	for (size_t i = 0; i < n_pools; i++)
		sw_gate_adopt(&plane->gates[i].gate, now_ns);
}

void sw_gates_beat(struct sw_live *live)
{
	uint64_t now_ns = sw_now_ns();
	int64_t margin = (int64_t)(live->beat_ns + live->conf->deadline_ms * 1000000ULL - now_ns);

	if (live->beat_ns && margin < live->least_margin_ns)
		live->least_margin_ns = margin;
	live->beat_ns = now_ns;
	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane)
			sw_gates_write(live, &live->planes[i]);
}
