// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Force and drain; see operate.h. Nothing is changed unless the whole request is right. */
#include <stdio.h>
#include <string.h>

#include "control/operate.h"

static int choose_pools(struct sw_live *live, const json_t *body, struct sw_live_pool **first,
			size_t *n, struct sw_error *err)
{
	const json_t *name = json_object_get(body, "pool");

	if (!json_is_object(body))
		return sw_fail(err, 400, "the request is not a JSON object");
	if (!name || json_is_null(name)) {
		*first = live->pools;
		*n = live->n_pools;
		return 0;
	}
	if (!json_is_string(name))
		return sw_fail(err, 422, "\"pool\" must be the name of a pool");
	*first = sw_live_find_pool(live, json_string_value(name));
	*n = 1;
	if (!*first)
		return sw_fail(err, 404, "no pool is named '%s'", json_string_value(name));
	return 0;
}

/* How long a force holds. It always ends: one that is forgotten must not shed for ever. */
static int force_length(const json_t *body, uint64_t *for_ms, struct sw_error *err)
{
	const json_t *v = json_object_get(body, "for_ms");

	*for_ms = SW_FORCE_DEFAULT_MS;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 1 ||
	    json_integer_value(v) > (json_int_t)SW_FORCE_MAX_MS)
		return sw_fail(err, 422, "\"for_ms\" must be a whole number from 1 to %u",
			       SW_FORCE_MAX_MS);
	*for_ms = (uint64_t)json_integer_value(v);
	return 0;
}

int sw_operate_force(struct sw_live *live, const json_t *body, uint64_t now_ms,
		     struct sw_live_pool **first, size_t *n, struct sw_error *err)
{
	const char *state = json_string_value(json_object_get(body, "state"));
	enum sw_force force;
	uint64_t for_ms;
	int status = choose_pools(live, body, first, n, err);

	if (status)
		return status;
	if (!state || sw_force_parse(state, &force))
		return sw_fail(err, 422, "\"state\" must be saturated, open or auto");
	status = force_length(body, &for_ms, err);
	if (status)
		return status;
	for (size_t i = 0; i < *n; i++) {
		(*first)[i].force = force;
		(*first)[i].force_until_ms = force == SW_FORCE_AUTO ? 0 : now_ms + for_ms;
		if (force == SW_FORCE_AUTO)
			sw_log(SW_INFO, "pool %s: no longer forced", (*first)[i].conf->name);
		else
			sw_log(SW_INFO, "pool %s: forced %s for %.0f s by an operator",
			       (*first)[i].conf->name, state, (double)for_ms / 1e3);
	}
	return 0;
}

/* ---- drain ------------------------------------------------------------------------------- */

/* 404 and what there is, of these pools. */
static int unknown_worker(const struct sw_live_pool *pools, size_t n, const char *name,
			  struct sw_error *err)
{
	char names[300] = "";
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < pools[i].n_workers && used < sizeof(names); j++)
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "; there are ",
						 pools[i].workers[j]->conf->name);
	return sw_fail(err, 404, "no worker is named '%s'%s%s", name, names,
		       used < sizeof(names) ? "" : " ...");
}

/* The one worker of that name in these pools. */
static int choose_worker(struct sw_live_pool *pools, size_t n, const char *name,
			 struct sw_live_worker **out, struct sw_error *err)
{
	*out = NULL;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < pools[i].n_workers; j++) {
			if (strcmp(pools[i].workers[j]->conf->name, name))
				continue;
			if (*out)
				return sw_fail(err, 422,
					       "worker '%s' is in pool '%s' and in pool '%s'; name "
					       "the pool too",
					       name, (*out)->pool->conf->name, pools[i].conf->name);
			*out = pools[i].workers[j];
		}
	if (!*out)
		return unknown_worker(pools, n, name, err);
	if ((*out)->pool->conf->steer.by == SW_STEER_NONE)
		return sw_fail(err, 422,
			       "pool '%s' is not steered, so nothing can be kept from one of its "
			       "workers; drain the pool",
			       (*out)->pool->conf->name);
	return 0;
}

static void drain_worker(struct sw_live_worker *w, bool on, uint64_t now_ms)
{
	if (on && !w->drain)
		w->drain_since_ms = now_ms;
	w->drain = on;
	sw_log(SW_INFO, "pool %s: worker %s: drain %s by an operator", w->pool->conf->name,
	       w->conf->name, on ? "on" : "off");
}

static void drain_pool(struct sw_live_pool *pool, bool on)
{
	pool->drain = on;
	sw_log(SW_INFO, "pool %s: drain %s by an operator", pool->conf->name, on ? "on" : "off");
}

int sw_operate_drain(struct sw_live *live, const json_t *body, uint64_t now_ms,
		     struct sw_live_pool **first, size_t *n, struct sw_error *err)
{
	const json_t *on = json_object_get(body, "on"), *name = json_object_get(body, "worker");
	struct sw_live_worker *worker = NULL;
	int status = choose_pools(live, body, first, n, err);

	if (status)
		return status;
	if (!json_is_boolean(on))
		return sw_fail(err, 422, "\"on\" must be true or false");
	if (name && !json_is_null(name)) {
		if (!json_is_string(name))
			return sw_fail(err, 422, "\"worker\" must be the name of a worker");
		status = choose_worker(*first, *n, json_string_value(name), &worker, err);
		if (status)
			return status;
		drain_worker(worker, json_is_true(on), now_ms);
		*first = worker->pool;
		*n = 1;
		return 0;
	}
	for (size_t i = 0; i < *n; i++)
		drain_pool(&(*first)[i], json_is_true(on));
	return 0;
}
