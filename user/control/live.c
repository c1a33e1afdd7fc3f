// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finding things in what the daemon knows; see live.h. */
#include <string.h>

#include "control/live.h"

bool sw_same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

const struct sw_live_plane *sw_live_plane_of(const struct sw_live *live,
					     const struct sw_listener_conf *l)
{
	for (size_t i = 0; i < live->n_planes; i++)
		if (sw_same_text(live->planes[i].netns, l->netns))
			return &live->planes[i];
	return NULL;
}

const char *sw_live_danger(const struct sw_live *live, size_t index)
{
	const struct sw_listener_conf *l = &live->conf->listeners[index];
	const struct sw_live_plane *plane = sw_live_plane_of(live, l);
	const char *why = NULL;

	if (!plane || !plane->plane || l->all_paths)
		return NULL;
	if (!sw_plane_can_hand_over(plane->plane, &why))
		return why;
	return live->servers[index] == SW_SERVER_MPTCP
		       ? "its server listens with MPTCP, to which the kernel hands nothing over; "
			 "Go: GODEBUG=multipathtcp=0"
		       : NULL;
}

bool sw_live_passes_new(const struct sw_live *live, size_t index)
{
	const struct sw_listener_conf *l = &live->conf->listeners[index];
	const struct sw_live_plane *plane = sw_live_plane_of(live, l);

	if (!plane || !plane->plane)
		return false;
	switch (l->intercept) {
	case SW_INTERCEPT_ESTABLISHED: return true;
	case SW_INTERCEPT_AUTO:
		return sw_live_danger(live, index) && sw_plane_can_keep(plane->plane, NULL);
	default: return false;
	}
}

struct sw_live_pool *sw_live_find_pool(const struct sw_live *live, const char *name)
{
	for (size_t i = 0; i < live->n_pools; i++)
		if (!strcmp(live->pools[i].conf->name, name))
			return &live->pools[i];
	return NULL;
}

bool sw_live_forced(const struct sw_live_pool *pool, uint64_t now_ms)
{
	return pool->force != SW_FORCE_AUTO && now_ms < pool->force_until_ms;
}

const char *sw_live_worker_error(const struct sw_live_worker *w)
{
	for (size_t i = 0; i < w->n_feeds; i++)
		if (w->feeds[i].failing)
			return w->feeds[i].error.text;
	return "";
}

const char *sw_live_engine(const struct sw_live_worker *w)
{
	enum sw_engine engine = w->conf->source.engine;

	if (w->target < 0)
		return NULL;
	if (engine == SW_ENGINE_AUTO)
		engine = sw_scraper_engine(w->pool->live->scraper, w->target);
	return sw_engine_name(engine);
}

const char *sw_feed_kind_name(enum sw_feed_kind kind)
{
	static const char *const names[SW_FEEDS] = {"scrape", "push", "events"};

	return names[kind];
}
