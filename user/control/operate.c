// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Force and drain; see operate.h. Nothing is changed unless the whole request is right. */
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

int sw_operate_drain(struct sw_live *live, const json_t *body, struct sw_live_pool **first,
		     size_t *n, struct sw_error *err)
{
	const json_t *on = json_object_get(body, "on");
	int status = choose_pools(live, body, first, n, err);

	if (status)
		return status;
	if (!json_is_boolean(on))
		return sw_fail(err, 422, "\"on\" must be true or false");
	for (size_t i = 0; i < *n; i++) {
		(*first)[i].drain = json_is_true(on);
		sw_log(SW_INFO, "pool %s: drain %s by an operator", (*first)[i].conf->name,
		       json_is_true(on) ? "on" : "off");
	}
	return 0;
}
