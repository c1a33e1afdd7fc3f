// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which cgroups the configuration means, and whether they are the same still; see steering.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/steering.h"

/* One entry for each directory, whatever the pools call it. */
static void add(struct sw_cgroup_uses *uses, const char *path, const struct sw_steer_conf *steer)
{
	struct sw_cgroup_use *use = uses->list;
	struct stat st;

	if (stat(path, &st))
		return; /* gone since it was found */
	while (use < uses->list + uses->n && strcmp(use->path, path))
		use++;
	if (use == uses->list + uses->n) {
		snprintf(use->path, sizeof(use->path), "%s", path);
		use->ino = st.st_ino;
		uses->n++;
	}
	if (steer->by == SW_STEER_CONNECT) {
		use->connect = true;
		use->upstreams |= steer->close_idle;
	} else {
		use->accept = true;
	}
}

int sw_cgroups_list(const struct sw_config *c, struct sw_cgroup_uses *out, bool aloud,
		    struct sw_error *err)
{
	out->n = 0;
	out->list = calloc(c->n_pools + 1, sizeof(*out->list));
	if (!out->list)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < c->n_pools; i++) {
		const struct sw_pool_conf *p = &c->pools[i];
		char path[PATH_MAX];
		struct sw_error why = {0};
		int e;

		if (p->steer.by == SW_STEER_NONE && !sw_pool_has_row(p))
			continue;
		e = sw_cgroup_resolve(p->steer.cgroup, path, sizeof(path), &why);
		if (e == -ENOENT || e == -ESRCH) {
			if (aloud)
				sw_log(SW_WARN,
				       "pool %s: %s; its connections are not %s until it is there",
				       p->name, why.text,
				       p->steer.by == SW_STEER_CONNECT ? "steered" : "counted");
			continue;
		}
		if (e) {
			free(out->list);
			*out = (struct sw_cgroup_uses){0};
			return sw_fail(err, e, "pool %s: %s", p->name, why.text);
		}
		add(out, path, &p->steer);
	}
	return 0;
}

int sw_cgroups_attach(struct sw_live *live, const struct sw_cgroup_uses *uses, struct sw_error *err)
{
	struct sw_steer_cgroup *list = calloc(uses->n + 1, sizeof(*list));
	int e;

	if (!list)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < uses->n; i++)
		list[i] = (struct sw_steer_cgroup){.path = uses->list[i].path,
						   .connect = uses->list[i].connect,
						   .accept = uses->list[i].accept,
						   .upstreams = uses->list[i].upstreams};
	e = sw_steer_attach(live->steer, list, uses->n, err);
	free(list);
	return e;
}

static bool same(const struct sw_cgroup_uses *a, const struct sw_cgroup_uses *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct sw_cgroup_use *x = &a->list[i], *y = &b->list[i];

		if (strcmp(x->path, y->path) || x->ino != y->ino || x->connect != y->connect ||
		    x->accept != y->accept || x->upstreams != y->upstreams)
			return false;
	}
	return true;
}

static void say(const struct sw_cgroup_uses *uses)
{
	for (size_t i = 0; i < uses->n; i++) {
		const struct sw_cgroup_use *use = &uses->list[i];

		sw_log(SW_INFO, "cgroup %s: connections are %s", use->path,
		       use->connect && use->accept ? "steered and counted"
		       : use->connect		   ? "steered"
						   : "counted");
	}
}

int sw_cgroups_widen(struct sw_steering *s, const struct sw_cgroup_uses *uses, struct sw_error *err)
{
	struct sw_cgroup_uses both = {
		.list = calloc(uses->n + s->cgroups.n + 1, sizeof(*both.list))};
	int e;

	if (!both.list)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < uses->n; i++)
		both.list[both.n++] = uses->list[i];
	for (size_t i = 0; i < s->cgroups.n; i++)
		if (!access(s->cgroups.list[i].path, F_OK))
			both.list[both.n++] = s->cgroups.list[i];
	e = sw_cgroups_attach(s->live, &both, err);
	free(both.list);
	return e;
}

void sw_cgroups_take(struct sw_steering *s, struct sw_cgroup_uses *uses)
{
	if (!same(uses, &s->cgroups))
		say(uses);
	free(s->cgroups.list);
	s->cgroups = *uses;
	*uses = (struct sw_cgroup_uses){0};
}

void sw_cgroups_tick(struct sw_steering *s)
{
	struct sw_cgroup_uses now;
	struct sw_error err = {0};
	bool changed;
	int e = sw_cgroups_list(s->live->conf, &now, false, &err);

	changed = !e && !same(&now, &s->cgroups);
	if (!e)
		free(now.list);
	if (changed)
		e = sw_cgroups_list(s->live->conf, &now, !s->cgroups_error.text[0], &err);
	if (changed && !e) {
		e = sw_cgroups_attach(s->live, &now, &err);
		if (e)
			free(now.list);
		else
			sw_cgroups_take(s, &now);
	}
	if (e && strcmp(s->cgroups_error.text, err.text))
		sw_log(SW_ERROR, "%s; trying again every second", err.text);
	s->cgroups_error = err;
}
