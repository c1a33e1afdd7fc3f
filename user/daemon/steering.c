// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Steering and counting from one configuration to the next: what can fail is prepared first and can
 * be undone, what cannot is done at the end. A start is a change from nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/steering.h"
#include "kernel/link.h"
#include "kernel/pindir.h"

/* ---- is it needed ------------------------------------------------------------------------- */

static bool is_steered(const struct sw_config *c)
{
	for (size_t i = 0; i < c->n_pools; i++)
		if (c->pools[i].steer.by != SW_STEER_NONE)
			return true;
	return false;
}

static bool is_wanted(const struct sw_config *c)
{
	for (size_t i = 0; i < c->n_pools; i++)
		if (sw_pool_has_row(&c->pools[i]))
			return true;
	return is_steered(c);
}

/* Did a former daemon leave anything? */
static bool is_pinned(const struct sw_config *c)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/v%d/slots", c->pin_root, SW_LAYOUT);
	return !access(path, F_OK);
}

bool sw_planes_look_up(const struct sw_config *c, const char *netns)
{
	for (size_t i = 0; i < c->n_listeners; i++) {
		const struct sw_pool_conf *p = &c->pools[c->listeners[i].pool];

		if (sw_same_text(c->listeners[i].netns, netns) &&
		    (p->steer.by == SW_STEER_LOCAL || sw_pool_has_row(p)))
			return true;
	}
	return false;
}

/* ---- from one to the next ----------------------------------------------------------------- */

/* Can this host count at all? */
static int try_opening(struct sw_live *live, const struct sw_config *c, struct sw_error *err)
{
	char root[PATH_MAX];
	int e = sw_cgroup_resolve(NULL, root, sizeof(root), err);

	return e ? e : sw_steer_open(&live->steer, c->pin_root, err);
}

static int open_steer(struct sw_steering *s, const struct sw_config *c, struct sw_error *err)
{
	int e;

	s->found = is_pinned(c);
	if (s->live->steer || (!is_wanted(c) && !s->found))
		return 0;
	e = try_opening(s->live, c, err);
	if (e && is_steered(c))
		return e;
	if (e) { /* guards go without, as on a host that has never been able to */
		sw_log(SW_WARN,
		       "connections are not counted, and caps not held between reports: %s",
		       err->text);
		err->text[0] = '\0';
		return 0;
	}
	sw_slots_read(s);
	return 0;
}

/* As it was before it was opened. */
static void close_steer(struct sw_steering *s)
{
	if (s->found)
		sw_steer_leave(s->live->steer);
	else
		sw_steer_remove(s->live->steer);
	s->live->steer = NULL;
}

static int prepare(struct sw_steering *s, struct sw_steering_change *ch,
		   const struct sw_live_pool *pools, struct sw_error *err)
{
	const struct sw_config *c = ch->conf;
	int e;

	e = sw_slots_plan(s, pools, c->n_pools, &ch->slots, err);
	if (!e)
		e = sw_overflows_build(s->live, s->base, c, &s->overflows, &ch->overflows, err);
	if (!e)
		e = sw_cgroups_list(c, &ch->cgroups, true, err);
	if (!e)
		e = sw_cgroups_widen(s, &ch->cgroups, err);
	if (!e)
		e = sw_virtuals_list(c, &ch->virtuals, err);
	if (!e)
		e = sw_virtuals_thin(s, c, &ch->virtuals, err);
	if (!e)
		sw_steer_narrow(s, pools, c->n_pools, &ch->slots, true);
	return e;
}

int sw_steering_prepare(struct sw_live *live, const struct sw_config *c,
			const struct sw_live_pool *pools, struct sw_steering_change **out,
			struct sw_error *err)
{
	struct sw_steering *s = live->steering;
	struct sw_steering_change *ch = calloc(1, sizeof(*ch));
	bool was_open = live->steer;
	int e;

	if (!ch)
		return sw_fail(err, -ENOMEM, "no memory");
	ch->conf = c;
	e = open_steer(s, c, err);
	ch->opened = !e && live->steer && !was_open;
	if (!e && live->steer)
		e = prepare(s, ch, pools, err);
	if (e) {
		sw_steering_undo(live, ch);
		return e;
	}
	*out = ch;
	return 0;
}

static void free_change(struct sw_steering_change *ch)
{
	sw_slots_plan_free(&ch->slots);
	free(ch->cgroups.list);
	free(ch->virtuals.list);
	free(ch);
}

void sw_steering_undo(struct sw_live *live, struct sw_steering_change *ch)
{
	struct sw_steering *s = live->steering;
	struct sw_error err = {0};

	sw_overflows_free(&ch->overflows, &s->overflows);
	if (ch->opened) {
		close_steer(s);
	} else if (live->steer) {
		if (sw_cgroups_attach(live, &s->cgroups, &err) ||
		    sw_steer_virtuals(live->steer, s->virtuals.list, s->virtuals.n, &err))
			sw_log(SW_ERROR, "%s", err.text);
		sw_steer_write(s);
	}
	free_change(ch);
}

/* A namespace in which a former daemon counted, and this one has nothing to do: its programs would
 * take the numbers of our pools for those of its own. */
static void end_stray(void *arg, const char *dir, const char *scope)
{
	const struct sw_config *c = arg;
	char path[PATH_MAX], netns[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s/netns", dir, scope);
	n = readlink(path, netns, sizeof(netns) - 1);
	netns[n > 0 ? n : 0] = '\0';
	for (size_t i = 0; i < c->n_listeners; i++)
		if (sw_same_text(c->listeners[i].netns, n > 0 ? netns : NULL))
			return; /* a plane of ours has seen to it */
	snprintf(path, sizeof(path), "%s/%s/link_lookup", dir, scope);
	if (access(path, F_OK))
		return;
	sw_link_remove_pinned(path);
	snprintf(path, sizeof(path), "%s/%s", dir, scope);
	sw_pindir_remove(path);
}

static void end_strays(const struct sw_config *c)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/v%d", c->pin_root, SW_LAYOUT);
	sw_pindir_each(dir, end_stray, (void *)c);
}

/* Rows come before pools that have them as members. Addresses lead to a number when it has its new
 * members, but at a start, when nobody knows what the old ones meant, the other way round. */
void sw_steering_commit(struct sw_live *live, struct sw_steering_change *ch)
{
	struct sw_steering *s = live->steering;
	struct sw_overflows was = s->overflows;
	struct sw_error err = {0};
	bool first = !s->settled;
	int e = 0;

	if (!live->steer) {
		free_change(ch);
		return;
	}
	if (first)
		sw_steer_narrow(s, live->pools, live->n_pools, &ch->slots, false);
	sw_slots_commit(s, &ch->slots);
	s->overflows = ch->overflows;
	sw_overflows_free(&was, &s->overflows);
	sw_overflows_renew(&s->overflows);
	sw_slots_write(s);
	if (first)
		e = sw_virtuals_write(s, &ch->virtuals, &err);
	s->settled = true;
	sw_steer_write(s);
	if (!first)
		e = sw_virtuals_write(s, &ch->virtuals, &err);
	sw_steer_clear(s);
	if (first)
		end_strays(live->conf);
	if (e || sw_cgroups_attach(live, &ch->cgroups, &err))
		sw_log(SW_ERROR, "%s", err.text);
	sw_cgroups_take(s, &ch->cgroups);
	free_change(ch);
}

/* ---- while it runs ------------------------------------------------------------------------ */

void sw_steering_plane(struct sw_live *live, struct sw_live_plane *plane)
{
	struct sw_steering *s = live->steering;
	char where[128];
	int e = 0;

	if (!live->steer || !sw_planes_look_up(live->conf, plane->netns))
		return;
	for (size_t i = 0; i < live->n_pools; i++) {
		const struct sw_overflow *o =
			sw_overflow_find(&s->overflows, live->conf->pools[i].name, plane->netns);

		for (int v6 = 0; !e && o && o->responder && v6 < 2; v6++)
			if (sw_responder_socket(o->responder, v6) >= 0)
				e = sw_plane_set_responder(plane->plane, (unsigned)i, v6,
							   sw_responder_socket(o->responder, v6));
	}
	if (!e)
		e = sw_plane_find_workers(plane->plane);
	if (e < 0)
		sw_log(SW_ERROR, "cannot give sockets to the programs %s: %s",
		       sw_plane_where(plane->netns, where, sizeof(where)), strerror(-e));
}

void sw_steering_answers(struct sw_live *live)
{
	sw_overflows_renew(&live->steering->overflows);
}

void sw_steering_beat(struct sw_live *live)
{
	struct sw_steering *s = live->steering;
	uint64_t now_ms = sw_now_ms();

	if (!live->steer || !s->settled)
		return;
	for (size_t i = 0; i < live->n_pools; i++)
		sw_slots_credit(s, &live->pools[i], now_ms);
	sw_slots_write(s);
	sw_slots_beat(s, now_ms);
	sw_steer_write(s);
}

void sw_steering_second(struct sw_live *live)
{
	struct sw_steering *s = live->steering;

	if (!live->steer)
		return;
	if (sw_overflows_tick(&s->overflows, s->base))
		for (size_t i = 0; i < live->n_planes; i++)
			if (live->planes[i].plane)
				sw_steering_plane(live, &live->planes[i]);
	sw_cgroups_tick(s);
	sw_watch_second(s);
}

/* ---- start and stop ----------------------------------------------------------------------- */

int sw_steering_new(struct sw_live *live, struct event_base *base, struct sw_error *err)
{
	struct sw_steering *s = calloc(1, sizeof(*s));
	int e;

	if (!s)
		return sw_fail(err, -ENOMEM, "no memory");
	s->live = live;
	s->base = base;
	e = sw_watch_start(s, err);
	if (e)
		free(s);
	else
		live->steering = s;
	return e;
}

/* What connections hold would be lost otherwise. Credits hold nothing. */
bool sw_steering_stays(const struct sw_live *live)
{
	const struct sw_steering *s = live->steering;

	if (!s || !live->steer)
		return false;
	if (!s->settled)
		return s->found;
	for (size_t i = 0; i < live->n_pools; i++)
		if (!sw_pool_is_plain(&live->pools[i]) &&
		    live->pools[i].conf->steer.count == SW_COUNT_CONNECTIONS)
			return true;
	return live->n_leaving > 0;
}

static void end(struct sw_steering *s)
{
	struct sw_live *live = s->live;

	if (!s->settled) {
		close_steer(s);
	} else if (!sw_steering_stays(live)) {
		sw_steer_remove(live->steer);
	} else {
		sw_steer_farewell(s);
		sw_steer_leave(live->steer);
		sw_log(SW_INFO, "connections are steered and counted on, with the caps as they "
				"are; to take that off too: spillwayd --remove");
	}
	live->steer = NULL;
}

void sw_steering_free(struct sw_live *live)
{
	struct sw_steering *s = live->steering;

	if (!s)
		return;
	sw_watch_stop(s);
	if (live->steer)
		end(s);
	sw_overflows_free(&s->overflows, NULL);
	free(s->cgroups.list);
	free(s->virtuals.list);
	free(live->leaving);
	free(s);
	live->steering = NULL;
	live->leaving = NULL;
	live->n_leaving = 0;
}
