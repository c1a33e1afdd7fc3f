// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Is there a server behind each guarded port, and one that connections can be handed to? Says so
 * when one goes and when it comes. */
#include <string.h>

#include "daemon/daemon.h"

static enum sw_server find_one(struct sw_plane *plane, const struct sw_listener_conf *l)
{
	if (sw_plane_has_mptcp_server(plane, l))
		return SW_SERVER_MPTCP;
	return sw_plane_has_server(plane, l) ? SW_SERVER_TCP : SW_SERVER_NONE;
}

/* A worker as a listener of its own. */
static struct sw_listener_conf listener_of(const struct sw_worker_conf *w)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct sw_listener_conf l = {.port = w->at.port};

	memcpy(l.addr, w->at.addr, sizeof(l.addr));
	l.v4 = !memcmp(l.addr, mapped, sizeof(mapped));
	l.v6 = !l.v4;
	return l;
}

/* Where connections are steered to workers of this host, these are the servers: one that the kernel
 * cannot hand over to is one too many. */
static enum sw_server find_server(const struct sw_live *live, struct sw_plane *plane,
				  const struct sw_listener_conf *l)
{
	const struct sw_pool_conf *pool = &live->conf->pools[l->pool];
	enum sw_server found = SW_SERVER_NONE;

	if (pool->steer.by != SW_STEER_LOCAL)
		return find_one(plane, l);
	for (size_t i = 0; i < pool->n_workers; i++) {
		struct sw_listener_conf worker = listener_of(&pool->workers[i]);
		enum sw_server one = find_one(plane, &worker);

		if (one == SW_SERVER_MPTCP)
			return one;
		if (one == SW_SERVER_TCP)
			found = one;
	}
	return found;
}

/* One line when a guarded port has no server, and one when it has again. */
static void look_for_server(struct sw_live *live, size_t index)
{
	const struct sw_listener_conf *l = &live->conf->listeners[index];
	const struct sw_live_plane *plane = sw_live_plane_of(live, l);
	enum sw_server now, before = live->servers[index];
	char address[64], where[128];

	if (!plane || !plane->plane)
		return;
	now = find_server(live, plane->plane, l);
	live->servers[index] = now;
	sw_format_listener(l, address, sizeof(address));
	sw_plane_where(l->netns, where, sizeof(where));
	if (now == SW_SERVER_NONE && before != SW_SERVER_NONE)
		sw_log(SW_WARN,
		       "listener %s: no server listens on this port %s, so there is nothing to "
		       "guard; start it, or mend the listener's address",
		       address, where);
	else if (now != SW_SERVER_NONE && before == SW_SERVER_NONE)
		sw_log(SW_INFO, "listener %s: a server listens %s now", address, where);
}

void sw_planes_look_for_servers(struct sw_live *live)
{
	for (size_t i = 0; i < live->conf->n_listeners; i++)
		look_for_server(live, i);
	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane)
			sw_gates_permit(live, &live->planes[i]);
}
