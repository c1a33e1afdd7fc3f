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
