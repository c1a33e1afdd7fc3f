// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Members to workers, see discover.h. What would make the whole configuration invalid is left out
 * here, so that one odd registration does not keep all others out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"
#include "daemon/discover.h"

struct found { /* one member; strings are owned */
	char *name, *namespace, *component, *endpoint, *model, *address;
	struct sw_endpoint at; /* of `address`; port 0: it is no address */
	uint64_t id, kv_blocks, max_batched;
	uint32_t start_rank;
	int32_t dp_size;
};

struct sw_found {
	struct found *members;
	size_t n;
};

/* ---- members -------------------------------------------------------------------------------- */

static int copy(const struct sw_member *m, struct found *f)
{
	const struct sw_registration *instance = m->instance, *model = m->model;

	f->id = instance->id;
	f->kv_blocks = model->kv_blocks;
	f->max_batched = model->max_batched;
	f->start_rank = model->start_rank;
	f->dp_size = model->dp_size;
	f->namespace = strdup(instance->namespace);
	f->component = strdup(instance->component);
	f->endpoint = strdup(instance->endpoint);
	f->model = strdup(model->model);
	if (asprintf(&f->name, "%s-%" PRIx64, instance->component, f->id) < 0)
		f->name = NULL;
	if (instance->address && !sw_parse_endpoint(instance->address, &f->at, NULL))
		f->address = strdup(instance->address);
	else
		f->at.port = 0;
	return f->name && f->namespace && f->component && f->endpoint && f->model &&
			       !f->address == !f->at.port
		       ? 0
		       : -ENOMEM;
}

struct sw_found *sw_found_take(const struct sw_members *m)
{
	struct sw_found *f = calloc(1, sizeof(*f));
	struct sw_member *list = NULL;
	size_t n = 0;
	int e;

	if (f)
		list = sw_members_list(m, &n);
	if (list)
		f->members = calloc(n + 1, sizeof(*f->members));
	e = list && f->members ? 0 : -ENOMEM;
	for (size_t i = 0; i < n && !e; i++)
		e = copy(&list[i], &f->members[f->n++]);
	free(list);
	if (!e)
		return f;
	sw_found_free(f);
	return NULL;
}

void sw_found_free(struct sw_found *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		struct found *m = &f->members[i];

		free(m->name);
		free(m->namespace);
		free(m->component);
		free(m->endpoint);
		free(m->model);
		free(m->address);
	}
	free(f->members);
	free(f);
}

/* ---- members and pools ---------------------------------------------------------------------- */

static bool fits(const char *wanted, const char *is)
{
	return !wanted || !strcmp(wanted, is);
}

static bool belongs(const struct found *m, const struct sw_pool_conf *p)
{
	const struct sw_discover_conf *d = p->discover;

	return d && !strcmp(m->model, p->model) && fits(d->namespace, m->namespace) &&
	       fits(d->component, m->component) && fits(d->endpoint, m->endpoint);
}

static bool same_endpoint(const struct sw_endpoint *a, const struct sw_endpoint *b)
{
	return a->port == b->port && !memcmp(a->addr, b->addr, sizeof(a->addr));
}

/* Does the file have it already? */
static bool is_known(const struct found *m, const struct sw_pool_conf *p)
{
	for (size_t i = 0; i < p->n_workers; i++)
		if (!p->workers[i].discovered && p->workers[i].has_worker_id &&
		    p->workers[i].worker_id == m->id)
			return true;
	return false;
}

static bool is_virtual(const struct sw_endpoint *at, const struct sw_config *c)
{
	for (size_t i = 0; i < c->n_pools; i++)
		for (size_t j = 0; j < c->pools[i].steer.n_virtuals; j++)
			if (same_endpoint(at, &c->pools[i].steer.virtuals[j]))
				return true;
	return false;
}

/* Is it where the pool's own listeners are, whose connections are steered away? */
static bool is_listener(const struct sw_endpoint *at, const struct sw_config *c, size_t pool)
{
	static const uint8_t any[16];

	for (size_t i = 0; i < c->n_listeners; i++) {
		const struct sw_listener_conf *l = &c->listeners[i];

		if (l->pool == pool && l->port == at->port &&
		    (!memcmp(l->addr, any, sizeof(any)) ||
		     !memcmp(l->addr, at->addr, sizeof(l->addr))))
			return true;
	}
	return false;
}

struct chosen { /* those of one pool, so far */
	const struct found **members;
	size_t n;
};

/* Why the pool cannot have it; NULL: it can. */
static const char *objection(const struct found *m, const struct sw_config *c, size_t pool,
			     const struct chosen *others)
{
	const struct sw_pool_conf *p = &c->pools[pool];
	bool steered = p->steer.by != SW_STEER_NONE;

	for (size_t i = 0; i < p->n_workers; i++)
		if (!p->workers[i].discovered && !strcmp(p->workers[i].name, m->name))
			return "the file has a worker of that name";
	if (m->at.port && is_virtual(&m->at, c))
		return "its address is a virtual one";
	if (!steered)
		return NULL;
	if (!m->at.port)
		return "it registers no address, so that nothing can be steered to it";
	if (p->steer.by == SW_STEER_LOCAL && is_listener(&m->at, c, pool))
		return "its address is a listener's";
	for (size_t i = 0; i < p->n_workers; i++)
		if (!p->workers[i].discovered && same_endpoint(&p->workers[i].at, &m->at))
			return "the file has a worker with that address";
	for (size_t i = 0; i < others->n; i++)
		if (same_endpoint(&others->members[i]->at, &m->at))
			return "another one has the same address";
	return NULL;
}

static bool is_chosen(const struct found *m, const struct chosen *others)
{
	for (size_t i = 0; i < others->n; i++)
		if (!strcmp(others->members[i]->name, m->name))
			return true; /* a worker's second endpoint */
	return false;
}

static void add(struct sw_additions *a, const struct sw_pool_conf *p, const struct found *m)
{
	a->workers[a->n++] = (struct sw_added_worker){
		.pool = p->name,
		.name = m->name,
		.worker_id = m->id,
		.address = m->address,
		.kv_total = m->kv_blocks,
		.max_batched = m->max_batched,
		.start_rank = m->start_rank,
		.dp_size = m->dp_size,
	};
}

static int choose_for(const struct sw_found *f, const struct sw_config *c, size_t pool,
		      struct sw_additions *out)
{
	const struct sw_pool_conf *p = &c->pools[pool];
	struct chosen chosen = {.members = calloc(f->n + 1, sizeof(*chosen.members))};
	struct sw_added_worker *grown =
		reallocarray(out->workers, out->n + f->n + 1, sizeof(*grown));

	if (grown)
		out->workers = grown;
	for (size_t i = 0; i < f->n && grown && chosen.members; i++) {
		const struct found *m = &f->members[i];
		const char *why;

		if (!belongs(m, p) || is_known(m, p) || is_chosen(m, &chosen))
			continue;
		why = objection(m, c, pool, &chosen);
		if (why) {
			out->left_out++;
			sw_fail(&out->error, -EINVAL, "pool %s: worker %s is left out: %s", p->name,
				m->name, why);
			continue;
		}
		chosen.members[chosen.n++] = m;
		add(out, p, m);
	}
	free(chosen.members);
	return grown && chosen.members ? 0 : -ENOMEM;
}

int sw_additions_choose(const struct sw_found *f, const struct sw_config *c,
			struct sw_additions *out)
{
	int e = 0;

	*out = (struct sw_additions){0};
	for (size_t i = 0; i < c->n_pools && !e; i++)
		if (c->pools[i].discover)
			e = choose_for(f, c, i, out);
	if (e)
		sw_additions_free(out);
	return e;
}

void sw_additions_free(struct sw_additions *a)
{
	free(a->workers);
	*a = (struct sw_additions){0};
}

/* ---- what is running ------------------------------------------------------------------------ */

static bool is_as_added(const struct sw_worker_conf *w, const struct sw_added_worker *a)
{
	struct sw_endpoint at = {0};

	if (a->address)
		sw_parse_endpoint(a->address, &at, NULL);
	return !strcmp(w->name, a->name) && w->worker_id == a->worker_id &&
	       same_endpoint(&w->at, &at) && w->source.hints.kv_total == a->kv_total &&
	       w->source.hints.max_batched == a->max_batched && w->start_rank == a->start_rank &&
	       w->dp_size == a->dp_size;
}

bool sw_additions_are_in(const struct sw_additions *a, const struct sw_config *c)
{
	size_t at = 0;

	for (size_t i = 0; i < c->n_pools; i++)
		for (size_t j = 0; j < c->pools[i].n_workers; j++) {
			const struct sw_worker_conf *w = &c->pools[i].workers[j];

			if (!w->discovered)
				continue;
			if (at == a->n || strcmp(a->workers[at].pool, c->pools[i].name) ||
			    !is_as_added(w, &a->workers[at++]))
				return false;
		}
	return at == a->n;
}
