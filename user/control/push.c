// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loads from JSON; see push.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/push.h"

static const json_t *given(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_null(v) ? NULL : v;
}

/* ---- which worker ------------------------------------------------------------------------- */

struct wanted {
	const char *pool, *name; /* NULL: any */
	bool has_id;
	uint64_t id;
};

/* A whole number, or the text of one: status shows it as text, since it may have 64 bits. */
static int take_id(const json_t *v, struct wanted *w)
{
	const char *text = json_string_value(v);
	char *end;

	w->has_id = true;
	if (json_is_integer(v) && json_integer_value(v) >= 0) {
		w->id = (uint64_t)json_integer_value(v);
		return 0;
	}
	if (!text || text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	w->id = strtoull(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

static int take_wanted(const json_t *load, struct wanted *w, struct sw_error *err)
{
	const json_t *pool = given(load, "pool"), *name = given(load, "worker");
	const json_t *id = given(load, "worker_id");

	*w = (struct wanted){.pool = json_string_value(pool), .name = json_string_value(name)};
	if (pool && !w->pool)
		return sw_fail(err, 422, "\"pool\" must be the name of a pool");
	if (name && !w->name)
		return sw_fail(err, 422, "\"worker\" must be the name of a worker");
	if (id && take_id(id, w))
		return sw_fail(err, 422, "\"worker_id\" must be a whole number of 64 bits");
	if (!name && !id)
		return sw_fail(err, 422, "\"worker\" or \"worker_id\" must say whose load it is");
	return 0;
}

static bool is_wanted(const struct wanted *want, const struct sw_live_worker *w)
{
	if (want->name && strcmp(want->name, w->conf->name))
		return false;
	return !want->has_id || (w->conf->has_worker_id && w->conf->worker_id == want->id);
}

static int find_worker(const struct sw_live *live, const struct wanted *want,
		       struct sw_live_worker **out, struct sw_error *err)
{
	char id[32] = "";

	*out = NULL;
	if (want->has_id)
		snprintf(id, sizeof(id), "%" PRIu64, want->id);
	for (size_t i = 0; i < live->n_pools; i++) {
		const struct sw_live_pool *p = &live->pools[i];

		if (want->pool && strcmp(want->pool, p->conf->name))
			continue;
		for (size_t j = 0; j < p->n_workers; j++) {
			if (!is_wanted(want, p->workers[j]))
				continue;
			if (*out && (*out)->pool != p)
				return sw_fail(err, 422,
					       "worker '%s' is in pool '%s' and in pool '%s'; name "
					       "the pool too",
					       want->name ? want->name : id,
					       (*out)->pool->conf->name, p->conf->name);
			*out = p->workers[j];
		}
	}
	if (*out)
		return 0;
	if (want->pool && !sw_live_find_pool(live, want->pool))
		return sw_fail(err, 404, "no pool is named '%s'", want->pool);
	return want->name ? sw_fail(err, 404, "no worker is named '%s'", want->name)
			  : sw_fail(err, 404, "no worker has the worker_id %s", id);
}

/* ---- its load ----------------------------------------------------------------------------- */

static int take_rank(const json_t *from, struct sw_report *r, struct sw_error *err)
{
	const json_t *rank = given(from, "rank");

	if (!json_is_object(from))
		return sw_fail(err, 422, "each of \"ranks\" must be an object");
	if (!json_is_integer(rank) || json_integer_value(rank) < 0 ||
	    json_integer_value(rank) > UINT32_MAX)
		return sw_fail(err, 422, "\"rank\" must be a whole number from 0");
	r->rank = (uint32_t)json_integer_value(rank);
	for (int s = 0; s < SW_SIGNALS; s++) {
		const char *name = sw_signal_name((enum sw_signal)s);
		const json_t *v = given(from, name);

		if (!v)
			continue;
		if (!json_is_integer(v) || json_integer_value(v) < 0)
			return sw_fail(err, 422, "\"%s\" must be a whole number from 0", name);
		r->have |= 1U << s;
		r->value[s] = (uint64_t)json_integer_value(v);
	}
	return 0;
}

static int take_load(const struct sw_live *live, const json_t *load, struct sw_push *out,
		     struct sw_error *err)
{
	const json_t *ranks = given(load, "ranks");
	size_t n = json_array_size(ranks);
	struct wanted want;
	int status;

	if (!json_is_object(load))
		return sw_fail(err, 422, "a load must be an object");
	status = take_wanted(load, &want, err);
	if (!status && (n < 1 || n > SW_MAX_RANKS))
		status = sw_fail(err, 422, "\"ranks\" must be a list of 1 to %d", SW_MAX_RANKS);
	if (status)
		return status;
	out->reports = calloc(n, sizeof(*out->reports));
	if (!out->reports)
		return sw_fail(err, 500, "no memory");
	out->n = (int)n;
	for (size_t i = 0; i < n && !status; i++)
		status = take_rank(json_array_get(ranks, i), &out->reports[i], err);
	return status ? status : find_worker(live, &want, &out->worker, err);
}

int sw_push_read(const struct sw_live *live, const json_t *body, struct sw_push **out, size_t *n,
		 struct sw_error *err)
{
	const json_t *list = given(body, "loads");
	size_t count = list ? json_array_size(list) : 1;
	struct sw_error why = {""};
	int status = 0;

	*out = NULL;
	*n = 0;
	if (list && (count < 1 || count > SW_PUSH_LOADS))
		return sw_fail(err, 422, "\"loads\" must be a list of 1 to %d", SW_PUSH_LOADS);
	*out = calloc(count, sizeof(**out));
	if (!*out)
		return sw_fail(err, 500, "no memory");
	*n = count;
	for (size_t i = 0; i < count && !status; i++) {
		status = take_load(live, list ? json_array_get(list, i) : body, &(*out)[i], &why);
		if (status && list)
			sw_fail(err, status, "loads[%zu]: %.480s", i, why.text);
		else if (status)
			*err = why;
	}
	return status;
}

void sw_push_free(struct sw_push *loads, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(loads[i].reports);
	free(loads);
}
