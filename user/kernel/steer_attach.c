// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which programs are on which cgroups; see steer.h. Links are pinned as link_HOOK_CGROUPID. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/cgroup.h"
#include "kernel/link.h"
#include "kernel/pindir.h"
#include "kernel/steer_impl.h"

/* In the order in which they are put on, and in the reverse of which they are taken off: nothing
 * takes a slot where nobody would hear of the connection's end. */
enum {
	SOCKOPS,
	RELEASE,
	GETPEERNAME4,
	GETPEERNAME6,
	INGRESS,
	EGRESS,
	ASKED,
	CONNECT4,
	CONNECT6,
	HOOKS
};

static const struct {
	const char *name, *program;
	enum bpf_attach_type type;
} hooks[HOOKS] = {
	[SOCKOPS] = {"sockops", "spillway_sockops", BPF_CGROUP_SOCK_OPS},
	[RELEASE] = {"release", "spillway_sock_release", BPF_CGROUP_INET_SOCK_RELEASE},
	[GETPEERNAME4] = {"getpeername4", "spillway_getpeername4", BPF_CGROUP_INET4_GETPEERNAME},
	[GETPEERNAME6] = {"getpeername6", "spillway_getpeername6", BPF_CGROUP_INET6_GETPEERNAME},
	[INGRESS] = {"ingress", "spillway_upstream_in", BPF_CGROUP_INET_INGRESS},
	[EGRESS] = {"egress", "spillway_upstream_out", BPF_CGROUP_INET_EGRESS},
	[ASKED] = {"asked", "spillway_upstream_asked", BPF_CGROUP_GETSOCKOPT},
	[CONNECT4] = {"connect4", "spillway_connect4", BPF_CGROUP_INET4_CONNECT},
	[CONNECT6] = {"connect6", "spillway_connect6", BPF_CGROUP_INET6_CONNECT},
};

#define BIT(hook) (1U << (hook))
#define ACCEPTING BIT(SOCKOPS)
#define CONNECTING                                                                                 \
	(BIT(CONNECT4) | BIT(CONNECT6) | BIT(GETPEERNAME4) | BIT(GETPEERNAME6) | BIT(RELEASE) |    \
	 BIT(SOCKOPS))
#define FOLLOWING (BIT(INGRESS) | BIT(EGRESS) | BIT(ASKED))

struct target { /* a cgroup, and what is to be on it */
	const char *path;
	int fd;
	uint64_t id;
	unsigned hooks;
};

struct plan {
	struct target *at;
	size_t n;
	char **routers; /* cgroups whose upstream connections are followed */
	size_t n_routers;
	unsigned hooks;		/* all of them */
	struct spillway *fresh; /* programs loaded for this; NULL: the ones that run will do */
};

/* ---- the plan ------------------------------------------------------------------------------- */

static unsigned hooks_for(const struct sw_steer_cgroup *c)
{
	return (c->connect ? CONNECTING : 0) | (c->accept ? ACCEPTING : 0) |
	       (c->connect && c->upstreams ? FOLLOWING : 0);
}

static void free_paths(char **paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
}

static void free_plan(struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		close(plan->at[i].fd);
	free(plan->at);
	free_paths(plan->routers, plan->n_routers);
}

static int add_target(struct plan *plan, const struct sw_steer_cgroup *c, struct sw_error *err)
{
	struct target *t = &plan->at[plan->n];

	*t = (struct target){.path = c->path, .hooks = hooks_for(c)};
	t->fd = sw_cgroup_open(c->path, &t->id, err);
	if (t->fd < 0)
		return t->fd;
	plan->hooks |= t->hooks;
	plan->n++;
	return 0;
}

static int add_router(struct plan *plan, const char *path)
{
	plan->routers[plan->n_routers] = strdup(path);
	if (!plan->routers[plan->n_routers])
		return -ENOMEM;
	plan->n_routers++;
	return 0;
}

static int make_plan(struct plan *plan, const struct sw_steer_cgroup *list, size_t n,
		     struct sw_error *err)
{
	int ret = 0;

	plan->at = calloc(n + 1, sizeof(*plan->at));
	plan->routers = calloc(n + 1, sizeof(*plan->routers));
	if (!plan->at || !plan->routers)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; !ret && i < n; i++) {
		ret = add_target(plan, &list[i], err);
		if (!ret && hooks_for(&list[i]) & FOLLOWING)
			ret = add_router(plan, list[i].path);
	}
	return ret;
}

/* Programs are loaded when a cgroup wants one that is not there yet. Of accepting, connecting and
 * following each includes the one before, so nothing that was loaded is missing then. */
static int load_for(struct sw_steer *s, struct plan *plan, struct sw_error *err)
{
	const char *names[HOOKS + 1];
	size_t n = 0;

	if (!(plan->hooks & ~s->hooks))
		return 0;
	for (int hook = 0; hook < HOOKS; hook++)
		if (plan->hooks & BIT(hook))
			names[n++] = hooks[hook].program;
	names[n] = NULL;
	return sw_steer_load(s, names, &plan->fresh, err);
}

/* ---- one link ------------------------------------------------------------------------------- */

static void pin_path(const struct sw_steer *s, unsigned hook, uint64_t cgroup, char *out,
		     size_t size)
{
	snprintf(out, size, "%s/link_%s_%llu", s->dir, hooks[hook].name,
		 (unsigned long long)cgroup);
}

static void remove_link(const struct sw_steer *s, const struct sw_steer_link *l)
{
	char pin[512];

	pin_path(s, l->hook, l->cgroup, pin, sizeof(pin));
	sw_link_remove(pin, l->fd);
}

static struct sw_steer_link *find_link(const struct sw_steer *s, unsigned hook, uint64_t cgroup)
{
	for (size_t i = 0; i < s->n_links; i++)
		if (s->links[i].hook == hook && s->links[i].cgroup == cgroup)
			return &s->links[i];
	return NULL;
}

static struct sw_steer_link *add_link(struct sw_steer *s, unsigned hook, uint64_t cgroup)
{
	struct sw_steer_link *more = realloc(s->links, (s->n_links + 1) * sizeof(*more));

	if (!more)
		return NULL;
	s->links = more;
	more[s->n_links] = (struct sw_steer_link){.hook = hook, .cgroup = cgroup, .fd = -1};
	return &more[s->n_links++];
}

/* A link of ours that runs is left alone; else one of a daemon before us is taken over in place, or
 * a new one made. */
static int link_one(struct sw_steer *s, const struct plan *plan, const struct target *t,
		    unsigned hook)
{
	struct spillway *programs = plan->fresh ? plan->fresh : s->programs;
	int program = sw_steer_program(programs, hooks[hook].program);
	struct sw_steer_link *l = find_link(s, hook, t->id);
	char pin[512];
	struct sw_link_at at = {.pin = pin, .target = t->fd, .id = t->id, .type = hooks[hook].type};

	if (!l)
		l = add_link(s, hook, t->id);
	if (!l)
		return -ENOMEM;
	l->wanted = true;
	if (l->fd >= 0 && sw_link_target(l->fd) == t->id)
		return 0;
	if (l->fd >= 0)
		close(l->fd);
	pin_path(s, hook, t->id, pin, sizeof(pin));
	l->fd = sw_link_take_over(&at, program);
	l->is_new = l->fd < 0;
	if (l->is_new)
		l->fd = sw_link_make(&at, program);
	return l->fd < 0 ? l->fd : 0;
}

static int link_failed(const struct target *t, unsigned hook, int ret, struct sw_error *err)
{
	return sw_fail(err, ret, "attaching %s to cgroup %s: %s%s", hooks[hook].name, t->path,
		       strerror(-ret),
		       ret == -EPERM
			       ? " (needs CAP_NET_ADMIN, and no program of others that tolerates "
				 "none beside it: bpftool cgroup tree)"
			       : "");
}

/* ---- all links ------------------------------------------------------------------------------ */

static int link_all(struct sw_steer *s, const struct plan *plan, struct sw_error *err)
{
	for (size_t i = 0; i < s->n_links; i++)
		s->links[i].is_new = s->links[i].wanted = false;
	for (size_t i = 0; i < plan->n; i++)
		for (unsigned hook = 0; hook < HOOKS; hook++) {
			int ret = plan->at[i].hooks & BIT(hook)
					  ? link_one(s, plan, &plan->at[i], hook)
					  : 0;

			if (ret)
				return link_failed(&plan->at[i], hook, ret, err);
		}
	return 0;
}

static bool hears_of_ends(unsigned hook)
{
	return hook == SOCKOPS || hook == RELEASE;
}

/* Connections that were steered may be there yet, and only the cgroup's programs hear of their end.
 * Where the cgroup is gone the kernel takes them off with the last one. */
static bool has_stragglers(const struct sw_steer *s, unsigned hook, int link, uint64_t cgroup)
{
	return sw_link_target(link) == cgroup &&
	       (sw_cgroup_is_removed(cgroup) || (hears_of_ends(hook) && sw_steer_held(s)));
}

static bool is_done(const struct sw_steer *s, const struct sw_steer_link *l)
{
	return !l->wanted && !has_stragglers(s, l->hook, l->fd, l->cgroup);
}

/* Takes off those that are new, or those that are done with, and forgets what is none. */
static void drop(struct sw_steer *s, bool new)
{
	size_t kept = 0;

	for (size_t i = s->n_links; i-- > 0;) {
		struct sw_steer_link *l = &s->links[i];

		if (l->fd >= 0 && (new ? l->is_new : is_done(s, l))) {
			remove_link(s, l);
			l->fd = -1;
		}
	}
	for (size_t i = 0; i < s->n_links; i++)
		if (s->links[i].fd >= 0)
			s->links[kept++] = s->links[i];
	s->n_links = kept;
}

struct sweep { /* of pins of one hook */
	const struct sw_steer *steer;
	unsigned hook;
};

/* Those of a daemon before us that nobody wants any more, those of dead cgroups among them. */
static void sweep_one(void *arg, const char *dir, const char *name)
{
	const struct sweep *sweep = arg;
	const struct sw_steer *s = sweep->steer;
	uint64_t cgroup;
	char path[512];
	int link;

	snprintf(path, sizeof(path), "link_%s_", hooks[sweep->hook].name);
	if (strncmp(name, path, strlen(path)))
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (size_t i = 0; i < s->n_links; i++) {
		char pin[512];

		pin_path(s, s->links[i].hook, s->links[i].cgroup, pin, sizeof(pin));
		if (!strcmp(pin, path))
			return;
	}
	cgroup = strtoull(strrchr(name, '_') + 1, NULL, 10);
	link = bpf_obj_get(path);
	if (link >= 0 && has_stragglers(s, sweep->hook, link, cgroup))
		close(link);
	else if (link >= 0)
		sw_link_remove(path, link);
}

static void sweep(const struct sw_steer *s)
{
	for (unsigned hook = HOOKS; hook-- > 0;)
		sw_pindir_each(s->dir, sweep_one, &(struct sweep){s, hook});
}

static void warn_in_container(const struct sw_steer *s, const struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		const struct target *t = &plan->at[i];
		const struct sw_steer_link *l = find_link(s, SOCKOPS, t->id);

		if (l && l->is_new && sw_cgroup_is_container_top(t->path, t->id))
			sw_log(SW_WARN,
			       "cgroup %s is the top of this container and not of the host: nothing "
			       "outside of the container is steered or counted",
			       t->path);
	}
}

/* What the plan holds is what runs from now on. */
static void take_plan(struct sw_steer *s, struct plan *plan)
{
	if (plan->fresh) {
		sw_steer_unload(s->programs);
		s->programs = plan->fresh;
		s->hooks = plan->hooks;
	}
	free_paths(s->routers, s->n_routers);
	s->routers = plan->routers;
	s->n_routers = plan->n_routers;
	plan->routers = NULL;
	plan->n_routers = 0;
}

int sw_steer_attach(struct sw_steer *s, const struct sw_steer_cgroup *list, size_t n,
		    struct sw_error *err)
{
	struct plan plan = {0};
	int ret = make_plan(&plan, list, n, err);

	if (!ret)
		ret = load_for(s, &plan, err);
	if (!ret)
		ret = link_all(s, &plan, err);
	if (ret) {
		drop(s, true);
		sw_steer_unload(plan.fresh);
	} else {
		drop(s, false);
		sweep(s);
		warn_in_container(s, &plan);
		take_plan(s, &plan);
	}
	free_plan(&plan);
	return ret;
}

void sw_steer_drop_links(struct sw_steer *s)
{
	for (size_t i = 0; i < s->n_links; i++)
		close(s->links[i].fd);
	free(s->links);
	free_paths(s->routers, s->n_routers);
}
