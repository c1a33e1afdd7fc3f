// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the running configuration to a new one while traffic flows. Each step can be undone until
 * the last one, so a configuration that cannot be applied leaves everything as it was. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/totals.h"
#include "daemon/daemon.h"

static struct sw_live_plane *find_plane(struct sw_live *live, const char *netns)
{
	for (size_t i = 0; i < live->n_planes; i++)
		if (sw_same_text(live->planes[i].netns, netns))
			return &live->planes[i];
	return NULL;
}

static bool same_attachment(const struct sw_plane_conf *a, const struct sw_plane_conf *b)
{
	if (a->attach != b->attach || a->n_interfaces != b->n_interfaces ||
	    a->lookup != b->lookup || a->flows != b->flows || strcmp(a->pin_root, b->pin_root))
		return false;
	for (size_t i = 0; i < a->n_interfaces; i++)
		if (strcmp(a->interfaces[i], b->interfaces[i]))
			return false;
	return true;
}

/* Does each pool keep its index, by which the kernel knows it? */
static bool same_indices(const struct sw_config *was, const struct sw_config *is)
{
	for (size_t i = 0; i < was->n_pools && i < is->n_pools; i++)
		if (strcmp(was->pools[i].name, is->pools[i].name))
			return false;
	return true;
}

/* Gives an open plane the new tables, and attaches it anew where that is to be otherwise: the new
 * one takes the running one's pins over, which is only left when nothing can fail any more. */
static int switch_plane(struct sw_live *live, struct sw_live_plane *old, struct sw_live_plane *new,
			struct sw_config *next, struct sw_error *err)
{
	struct sw_plane_conf was = sw_planes_conf(live, live->conf, new->netns);
	struct sw_plane_conf is = sw_planes_conf(live, next, new->netns);
	int e;

	if (!old || !old->plane)
		return sw_planes_try(live, new, next, err);
	if (!same_indices(live->conf, next))
		sw_gates_pause(live, old);
	if (!same_attachment(&was, &is)) {
		e = sw_planes_open_one(live, new, next, err);
		new->is_new = false; /* the same maps, counted on */
		return e;
	}
	e = sw_plane_configure(old->plane, next, err);
	new->plane = e < 0 ? NULL : old->plane;
	new->n_named = old->n_named;
	return e;
}

/* Back to the running configuration. */
static void switch_back(struct sw_live *live, struct sw_live_plane *old, struct sw_live_plane *new)
{
	bool shared = old && old->plane;
	bool attached = shared && new->plane &&new->plane != old->plane;
	struct sw_error err = {0};
	int e;

	if (attached) {
		sw_plane_leave(new->plane);
	} else if (new->plane && !shared) {
		sw_plane_end_lookup(new->plane);
		sw_plane_close(new->plane, 0);
	}
	if (!shared)
		return;
	e = attached ? sw_planes_open_one(live, old, live->conf, &err)
		     : sw_plane_configure(old->plane, live->conf, &err);
	if (e < 0)
		sw_log(SW_ERROR, "%s", err.text);
	sw_gates_write(live, old);
}

static void free_planes(struct sw_live_plane *planes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(planes[i].gates);
	free(planes);
}

/* Makes the planes of `next` out of the running ones. */
static int switch_planes(struct sw_live *live, struct sw_config *next, struct sw_live_plane **out,
			 size_t *n, struct sw_error *err)
{
	struct sw_live_plane *planes = sw_planes_list(next, n);
	size_t i;
	int e = 0;

	if (!planes)
		return sw_fail(err, -ENOMEM, "no memory");
	for (i = 0; i < *n && e >= 0; i++) {
		struct sw_live_plane *old = find_plane(live, planes[i].netns);

		planes[i].gates = sw_gates_make(live, old ? old : &planes[i], next);
		e = planes[i].gates ? switch_plane(live, old, &planes[i], next, err)
				    : sw_fail(err, -ENOMEM, "no memory");
	}
	if (e >= 0) {
		*out = planes;
		return 0;
	}
	while (i-- > 0)
		switch_back(live, find_plane(live, planes[i].netns), &planes[i]);
	free_planes(planes, *n);
	return e;
}

/* The last step: nothing fails any more. */
static void replace_planes(struct sw_live *live, struct sw_live_plane *planes, size_t n)
{
	struct sw_live gone = {0};

	for (size_t i = 0; i < n; i++) {
		struct sw_live_plane *old = find_plane(live, planes[i].netns);

		if (!old || !old->plane)
			continue;
		if (old->plane != planes[i].plane)
			sw_plane_leave(old->plane);
		old->plane = NULL; /* planes[i] goes on with its programs */
	}
	gone.planes = live->planes;
	gone.n_planes = live->n_planes;
	live->planes = planes;
	live->n_planes = n;
	sw_planes_close(&gone, 0);
}

int sw_switch(struct sw_live *live, struct sw_config *next, struct sw_error *err)
{
	enum sw_server *servers = calloc(next->n_listeners + 1, sizeof(*servers));
	struct sw_listener_counts *offsets = sw_totals_carry(live, next);
	struct sw_live_plane *planes = NULL;
	struct sw_live_pool *pools = NULL;
	struct sw_steering_change *steering = NULL;
	size_t n_planes = 0;
	int e = servers && offsets ? 0 : sw_fail(err, -ENOMEM, "no memory");

	if (!e && live->steer)
		e = sw_keep_numbers(live->conf, next, err);
	if (!e)
		e = sw_pools_build(live, next, &pools, err);
	if (!e)
		e = sw_steering_prepare(live, next, pools, &steering, err);
	if (!e)
		e = switch_planes(live, next, &planes, &n_planes, err);
	if (e) {
		if (steering)
			sw_steering_undo(live, steering);
		if (pools)
			sw_pools_discard(live, pools, next->n_pools);
		free(offsets);
		free(servers);
		return e;
	}
	replace_planes(live, planes, n_planes);
	sw_pools_replace(live, pools, next->n_pools);
	sw_tell_roster(live, live->conf, next);
	sw_config_free(live->conf);
	free(live->offsets);
	free(live->servers);
	live->conf = next;
	live->offsets = offsets;
	live->servers = servers;
	sw_steering_commit(live, steering);
	sw_shed_renew(live);
	sw_pools_tick(live);
	sw_planes_settle(live);
	sw_planes_remove_others(live);
	return 0;
}
