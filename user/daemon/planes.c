// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One data plane for each network namespace that has a listener: opened, watched once a second,
 * opened again when a container or an interface came back. What is written into them is gates.c's
 * matter, taking them to another configuration switch.c's, what is behind their ports servers.c's.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/totals.h"
#include "daemon/daemon.h"
#include "kernel/remove.h"
#include "kernel/netns.h"

const char *sw_plane_where(const char *netns, char *out, size_t size)
{
	if (netns)
		snprintf(out, size, "in network namespace %s", netns);
	else
		snprintf(out, size, "on this host");
	return out;
}

/* Are requests on established connections to be shed there? */
static bool is_kept(const struct sw_config *c, const char *netns)
{
	for (size_t i = 0; i < c->n_listeners; i++)
		if (sw_same_text(c->listeners[i].netns, netns) &&
		    c->listeners[i].intercept != SW_INTERCEPT_NEW)
			return true;
	return false;
}

struct sw_plane_conf sw_planes_conf(const struct sw_live *live, const struct sw_config *c,
				    const char *netns)
{
	bool lookup = live->steer && sw_planes_look_up(c, netns);
	struct sw_plane_conf out = {
		.netns = netns,
		.pin_root = c->pin_root,
		.interfaces = c->interfaces,
		.n_interfaces = c->n_interfaces,
		.attach = c->attach,
		.slots = lookup ? sw_steer_maps(live->steer) : NULL,
		.lookup = lookup,
		.flows = is_kept(c, netns) ? c->established_flows : 0,
	};

	/* Interfaces are the host's as soon as it has a listener; namespaces then guard all theirs
	 */
	for (size_t i = 0; netns && i < c->n_listeners; i++)
		if (!c->listeners[i].netns)
			out.n_interfaces = 0;
	return out;
}

struct sw_live_plane *sw_planes_list(const struct sw_config *c, size_t *n)
{
	struct sw_live_plane *planes = calloc(c->n_listeners + 1, sizeof(*planes));

	*n = 0;
	for (size_t i = 0; planes && i < c->n_listeners; i++) {
		size_t j = 0;

		while (j < *n && !sw_same_text(planes[j].netns, c->listeners[i].netns))
			j++;
		if (j == *n)
			planes[(*n)++].netns = c->listeners[i].netns;
	}
	return planes;
}

static void say_attached(const struct sw_live_plane *plane)
{
	const struct sw_attachment *at;
	size_t n = sw_plane_attachments(plane->plane, &at);
	char where[128];

	sw_plane_where(plane->netns, where, sizeof(where));
	for (size_t i = 0; i < n; i++)
		sw_log(SW_INFO, "guarding %s %s: %s, %s%s%s", at[i].interface, where,
		       !at[i].xdp			       ? "no xdp"
		       : at[i].xdp_hook != SW_HOOK_XDP_GENERIC ? "xdp native"
							       : "xdp generic",
		       at[i].tc_hook == SW_HOOK_TCX ? "tcx" : "clsact", at[i].note[0] ? "; " : "",
		       at[i].note);
}

/* Those of the configured interfaces that exist, all when none does. *out is to be freed. */
static size_t existing(const struct sw_plane_conf *conf, char ***out)
{
	char **names = calloc(conf->n_interfaces + 1, sizeof(*names));
	size_t n = 0;
	int former;

	*out = names;
	if (!names)
		return 0;
	if (!sw_netns_enter(conf->netns, &former, NULL)) {
		for (size_t i = 0; i < conf->n_interfaces; i++)
			if (if_nametoindex(conf->interfaces[i]))
				names[n++] = conf->interfaces[i];
		sw_netns_leave(former);
	}
	for (size_t i = 0; !n && i < conf->n_interfaces; i++)
		names[i] = conf->interfaces[i];
	return n ? n : conf->n_interfaces;
}

/* Opens and configures. A plane that is open already serves on until the new one has taken its
 * pins over, and goes on when that fails. */
static int open_plane(struct sw_live_plane *plane, const struct sw_config *c,
		      const struct sw_plane_conf *conf, struct sw_error *err)
{
	struct sw_plane *fresh = NULL;
	int e = sw_plane_open(&fresh, conf, err);

	if (e < 0)
		return e;
	e = sw_plane_configure(fresh, c, err);
	if (e < 0) {
		if (plane->plane)
			sw_plane_leave(fresh);
		else
			sw_plane_close(fresh, 0);
		return e;
	}
	if (plane->plane)
		sw_plane_leave(plane->plane);
	else if (sw_plane_in_conversation(fresh))
		sw_gates_adopt(plane, c->n_pools);
	plane->is_new = !plane->plane;
	plane->plane = fresh;
	plane->n_named = conf->n_interfaces;
	say_attached(plane);
	return 0;
}

int sw_planes_open_one(const struct sw_live *live, struct sw_live_plane *plane,
		       const struct sw_config *c, struct sw_error *err)
{
	struct sw_plane_conf conf = sw_planes_conf(live, c, plane->netns);

	return open_plane(plane, c, &conf, err);
}

/* The same for a plane that was right once: it does without interfaces that went away. */
static int open_what_exists(const struct sw_live *live, struct sw_live_plane *plane,
			    struct sw_error *err)
{
	struct sw_plane_conf conf = sw_planes_conf(live, live->conf, plane->netns);
	char **names;
	int e;

	conf.n_interfaces = existing(&conf, &names);
	conf.interfaces = names;
	e = names ? open_plane(plane, live->conf, &conf, err) : sw_fail(err, -ENOMEM, "no memory");
	free(names);
	return e;
}

/* Is the namespace just not there (yet, or any more)? Then waiting for it helps. */
static bool is_missing(const char *netns)
{
	int former, e = netns ? sw_netns_enter(netns, &former, NULL) : 0;

	if (netns && !e)
		sw_netns_leave(former);
	return e == -ENOENT || e == -ESRCH || e == -EINVAL;
}

/* One line when the reason is a new one. */
static void wait_for(struct sw_live_plane *plane, const struct sw_error *why)
{
	if (strcmp(plane->error.text, why->text))
		sw_log(SW_WARN, "%s; listeners there are not guarded, trying again every second",
		       why->text);
	plane->error = *why;
}

int sw_planes_try(const struct sw_live *live, struct sw_live_plane *plane,
		  const struct sw_config *c, struct sw_error *err)
{
	int e = sw_planes_open_one(live, plane, c, err);

	if (e < 0 && is_missing(plane->netns)) {
		wait_for(plane, err);
		return 0;
	}
	return e;
}

void sw_planes_remove_others(const struct sw_live *live)
{
	const char **netns = calloc(live->n_planes + 1, sizeof(*netns));

	if (!netns)
		return; /* at the next reload, then */
	for (size_t i = 0; i < live->n_planes; i++)
		netns[i] = live->planes[i].netns;
	sw_host_remove_others(live->conf->pin_root, netns, live->n_planes);
	free(netns);
}

int sw_planes_open(struct sw_live *live, struct sw_error *err)
{
	int e = 0;

	live->planes = sw_planes_list(live->conf, &live->n_planes);
	if (!live->planes)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; e >= 0 && i < live->n_planes; i++) {
		struct sw_live_plane *plane = &live->planes[i];

		plane->gates = sw_gates_make(live, plane, live->conf);
		e = plane->gates ? sw_planes_try(live, plane, live->conf, err)
				 : sw_fail(err, -ENOMEM, "no memory");
	}
	if (e < 0)
		sw_planes_close(live, 0);
	return e;
}

static void settle(struct sw_live *live, struct sw_live_plane *plane)
{
	if (plane->is_new)
		sw_totals_start(live, plane);
	plane->is_new = false;
	sw_steering_plane(live, plane);
	sw_gates_permit(live, plane);
	sw_gates_write(live, plane);
}

void sw_planes_settle(struct sw_live *live)
{
	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane)
			settle(live, &live->planes[i]);
}

static void open_again(struct sw_live *live, struct sw_live_plane *plane)
{
	struct sw_error err = {0};

	if (open_what_exists(live, plane, &err) < 0) {
		wait_for(plane, &err);
		return;
	}
	plane->error.text[0] = '\0';
	settle(live, plane);
}

/* 0: as it was opened; 1: to be opened again; negative: its namespace is gone. */
static int what_changed(const struct sw_live *live, const struct sw_live_plane *plane)
{
	struct sw_plane_conf conf = sw_planes_conf(live, live->conf, plane->netns);
	int changed = sw_plane_changed(plane->plane);
	char **names;
	size_t n;

	if (changed || plane->n_named == conf.n_interfaces)
		return changed;
	n = existing(&conf, &names); /* one that was missed may have come back */
	free(names);
	return names && n != plane->n_named;
}

static void watch(struct sw_live *live, struct sw_live_plane *plane)
{
	char where[128];
	int changed = plane->plane ? what_changed(live, plane) : 1;

	if (changed == 0) {
		sw_gates_permit(live, plane); /* net.ipv4.tcp_syncookies may have been changed */
		return;
	}
	if (plane->plane && changed > 0 && !plane->error.text[0])
		sw_log(SW_INFO, "interfaces changed %s: attaching again",
		       sw_plane_where(plane->netns, where, sizeof(where)));
	if (changed < 0) {
		sw_plane_close(plane->plane, 0);
		plane->plane = NULL;
	}
	open_again(live, plane);
}

static void expire_flows(struct sw_live *live, struct sw_live_plane *plane)
{
	int e = sw_plane_expire_flows(plane->plane, sw_gates_are_calm(plane, live->n_pools));
	char where[128];

	if (e < 0 && e != plane->expire_failing)
		sw_log(SW_ERROR, "cannot look for connections that have ended %s: %s",
		       sw_plane_where(plane->netns, where, sizeof(where)), strerror(-e));
	plane->expire_failing = e < 0 ? e : 0;
}

void sw_planes_tick(struct sw_live *live)
{
	for (size_t i = 0; i < live->n_planes; i++) {
		watch(live, &live->planes[i]);
		if (live->planes[i].plane)
			expire_flows(live, &live->planes[i]);
	}
}

void sw_planes_rotate_keys(struct sw_live *live)
{
	char where[128];

	for (size_t i = 0; i < live->n_planes; i++) {
		struct sw_live_plane *plane = &live->planes[i];
		int e = plane->plane ? sw_plane_rotate_key(plane->plane) : 0;

		if (e < 0)
			sw_log(SW_ERROR, "cannot write a new cookie key %s: %s; the old one stays",
			       sw_plane_where(plane->netns, where, sizeof(where)), strerror(-e));
	}
}

void sw_planes_close(struct sw_live *live, unsigned linger_ms)
{
	bool stays = sw_steering_stays(live);

	/* All stop shedding first, so that the time that the first one waits counts for all */
	for (size_t i = 0; linger_ms && i < live->n_planes; i++)
		sw_gates_pause(live, &live->planes[i]);
	for (size_t i = 0; i < live->n_planes; i++) {
		if (live->planes[i].plane) {
			if (!stays)
				sw_plane_end_lookup(live->planes[i].plane);
			sw_plane_close(live->planes[i].plane, linger_ms);
			linger_ms = 0;
		}
		free(live->planes[i].gates);
	}
	free(live->planes);
	live->planes = NULL;
	live->n_planes = 0;
}
