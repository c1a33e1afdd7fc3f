// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Responders for pools, and which canned response a request gets; see overflow.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/overflow.h"
#include "daemon/steering.h"
#include "policy/paths.h"

/* ---- answers ------------------------------------------------------------------------------ */

/* "/v2/models/{name}/infer": the name is one part of a path, and not empty. */
static bool matches(const char *pattern, const char *path)
{
	const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
	size_t before = (size_t)(open - pattern), name;

	if (!close)
		return !strcmp(pattern, path);
	if (strncmp(pattern, path, before))
		return false;
	name = strcspn(path + before, "/");
	return name && !strcmp(close + 1, path + before + name);
}

/* The operator's own paths come last in the list, and win. NULL: none fits. */
static const struct sw_path_conf *find_path(const struct sw_listener_conf *l, enum sw_method method,
					    const char *path)
{
	for (size_t i = l->n_paths; i-- > 0;) {
		const struct sw_path_conf *p = &l->paths[i];

		if (p->method == method && p->action == SW_PATH_SHED && matches(p->path, path))
			return p;
	}
	return NULL;
}

static const struct sw_builtin_path *find_builtin(const struct sw_pool_conf *pool,
						  enum sw_method method, const char *path)
{
	enum sw_engine engine = pool->n_workers ? pool->workers[0].source.engine : SW_ENGINE_VLLM;
	const struct sw_builtin_path *table;
	size_t n;

	table = sw_builtin_paths(engine, &n);
	for (size_t i = 0; i < n; i++)
		if (table[i].method == method && matches(table[i].path, path))
			return &table[i];
	return NULL;
}

enum sw_family sw_overflow_family(const struct sw_config *c, size_t pool, enum sw_method method,
				  const char *path, enum sw_api_endpoint *endpoint)
{
	const struct sw_builtin_path *builtin;
	const struct sw_path_conf *own = NULL;

	for (size_t i = 0; i < c->n_listeners && !own; i++)
		if (c->listeners[i].pool == pool)
			own = find_path(&c->listeners[i], method, path);
	builtin = own ? NULL : find_builtin(&c->pools[pool], method, path);
	*endpoint = own ? own->endpoint : builtin ? builtin->endpoint : SW_API_EP_OTHER;
	return own ? own->family : builtin ? builtin->family : SW_FAMILY_DEFAULT;
}

static enum sw_cause cause_of(enum sw_pool_state state)
{
	switch (state) {
	case SW_POOL_OPEN: return SW_CAUSE_NO_SLOTS;
	case SW_POOL_DRAINING: return SW_CAUSE_DRAINING;
	case SW_POOL_UNAVAILABLE: return SW_CAUSE_UNAVAILABLE;
	default: return SW_CAUSE_SATURATED;
	}
}

static bool render(struct sw_overflow *o, const struct sw_pool_conf *pool)
{
	struct sw_error err = {0};

	o->answers = calloc(SW_ANSWERS_PER_SET, sizeof(*o->answers));
	if (!o->answers || !sw_answers_render(&pool->answer, o->answers, &o->variants_mask, &err))
		return o->answers != NULL;
	sw_log(SW_ERROR, "pool %s: %s", pool->name, err.text);
	free(o->answers);
	o->answers = NULL;
	return false;
}

static const struct sw_answer *answer(void *arg, int connection, enum sw_method method,
				      const char *path)
{
	struct sw_overflow *o = arg;
	struct sw_live_pool *pool = sw_live_find_pool(o->live, o->pool);
	enum sw_api_endpoint endpoint;
	enum sw_family family;

	if (!pool || (!o->answers && !render(o, pool->conf)))
		return NULL;
	family = sw_overflow_family(o->live->conf, (size_t)(pool - o->live->pools), method, path,
				    &endpoint);
	sw_shed_answered(pool, connection, method, endpoint, cause_of(pool->state));
	return &o->answers[SW_ANSWER_INDEX(0, cause_of(pool->state), family,
					   o->answered++ & o->variants_mask)];
}

/* ---- responders --------------------------------------------------------------------------- */

static int open_responder(struct sw_overflow *o, struct event_base *base, struct sw_error *err)
{
	int former, e = sw_netns_enter(o->netns, &former, err);

	if (e)
		return e;
	e = sw_netns_identify(&o->id);
	sw_netns_leave(former);
	return e ? sw_fail(err, e, "asking for a network namespace: %s", strerror(-e))
		 : sw_responder_open(&o->responder, base, o->netns, answer, o, err);
}

static void free_overflow(struct sw_overflow *o)
{
	sw_responder_close(o->responder);
	free(o->answers);
	free(o->netns);
	free(o->pool);
	free(o);
}

/* Is its namespace still the same? Else it is let go, as a socket would keep it alive. */
static bool is_there(const struct sw_overflow *o)
{
	struct sw_netns_id now;
	int former;
	bool same;

	if (sw_netns_enter(o->netns, &former, NULL))
		return false;
	same = !sw_netns_identify(&now) && sw_netns_same(&now, &o->id);
	sw_netns_leave(former);
	return same;
}

bool sw_overflows_tick(struct sw_overflows *o, struct event_base *base)
{
	bool opened = false;

	for (size_t i = 0; i < o->n; i++) {
		struct sw_overflow *it = o->list[i];

		if (it->netns && it->responder && !is_there(it)) {
			sw_responder_close(it->responder);
			it->responder = NULL;
		}
		if (!it->responder)
			opened |= !open_responder(it, base, NULL);
	}
	return opened;
}

/* ---- the list ----------------------------------------------------------------------------- */

static struct sw_overflow *find(const struct sw_overflows *o, const char *pool, const char *netns)
{
	for (size_t i = 0; o && i < o->n; i++)
		if (!strcmp(o->list[i]->pool, pool) && sw_same_text(o->list[i]->netns, netns))
			return o->list[i];
	return NULL;
}

const struct sw_overflow *sw_overflow_find(const struct sw_overflows *o, const char *pool,
					   const char *netns)
{
	return find(o, pool, netns);
}

static struct sw_overflow *new_overflow(struct sw_live *live, const char *pool, const char *netns)
{
	struct sw_overflow *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->live = live;
	o->pool = strdup(pool);
	o->netns = netns ? strdup(netns) : NULL;
	if (o->pool && (o->netns || !netns))
		return o;
	free_overflow(o);
	return NULL;
}

/* A namespace that does not exist is told apart from other failures by the caller's planes. */
static int add(struct sw_live *live, struct event_base *base, const char *pool, const char *netns,
	       const struct sw_overflows *running, struct sw_overflows *out, struct sw_error *err)
{
	struct sw_overflow *o = find(running, pool, netns);
	int e = 0;

	if (find(out, pool, netns))
		return 0;
	if (!o) {
		o = new_overflow(live, pool, netns);
		if (!o)
			return sw_fail(err, -ENOMEM, "no memory");
		e = open_responder(o, base, err);
	}
	out->list[out->n++] = o;
	return netns && (e == -ENOENT || e == -ESRCH || e == -EINVAL) ? 0 : e;
}

int sw_overflows_build(struct sw_live *live, struct event_base *base, const struct sw_config *c,
		       const struct sw_overflows *running, struct sw_overflows *out,
		       struct sw_error *err)
{
	int e = 0;

	out->n = 0;
	out->list = calloc(c->n_pools + c->n_listeners + 1, sizeof(struct sw_overflow *));
	if (!out->list)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; !e && i < c->n_pools; i++)
		if (c->pools[i].steer.by == SW_STEER_CONNECT && !c->pools[i].steer.refuse)
			e = add(live, base, c->pools[i].name, c->pools[i].steer.netns, running, out,
				err);
	for (size_t i = 0; !e && i < c->n_listeners; i++) {
		const struct sw_pool_conf *p = &c->pools[c->listeners[i].pool];

		if (p->steer.by == SW_STEER_LOCAL || sw_pool_has_row(p))
			e = add(live, base, p->name, c->listeners[i].netns, running, out, err);
	}
	if (e)
		sw_overflows_free(out, running);
	return e;
}

static bool holds(const struct sw_overflows *o, const struct sw_overflow *it)
{
	for (size_t i = 0; o && i < o->n; i++)
		if (o->list[i] == it)
			return true;
	return false;
}

void sw_overflows_free(struct sw_overflows *o, const struct sw_overflows *kept)
{
	for (size_t i = 0; i < o->n; i++)
		if (!holds(kept, o->list[i]))
			free_overflow(o->list[i]);
	free(o->list);
	*o = (struct sw_overflows){0};
}

void sw_overflows_renew(struct sw_overflows *o)
{
	for (size_t i = 0; i < o->n; i++) {
		free(o->list[i]->answers);
		o->list[i]->answers = NULL;
	}
}
