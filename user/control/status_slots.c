// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Slots of workers and pools as JSON; see status.h. */
#include "control/json.h"
#include "control/status.h"
#include "control/use.h"

static json_t *limit(uint64_t v)
{
	return v == SW_UNLIMITED ? json_null() : json_integer((json_int_t)v);
}

/* What a row counted since its id was given. */
static int add_slot(json_t *to, const struct sw_slot *slot)
{
	return json_object_update_new(
		to, json_pack("{s:I, s:I, s:I, s:I}", "most", (json_int_t)slot->most, "picks",
			      (json_int_t)slot->takes, "refusals", (json_int_t)slot->refusals,
			      "failures", (json_int_t)slot->failures));
}

static json_t *use_json(const struct sw_use *use)
{
	return json_pack("{s:I, s:I, s:I, s:o, s:o}", "inuse", (json_int_t)use->inuse, "engine",
			 (json_int_t)use->engine, "queue", (json_int_t)use->queue, "cap",
			 limit(use->cap), "free", limit(use->free));
}

json_t *sw_worker_slots_json(const struct sw_live_worker *w)
{
	const struct sw_worker_conf *conf = w->conf;
	struct sw_slot slot;
	struct sw_use use;
	json_t *out;

	if (!sw_use_worker(w, &use, &slot))
		return json_null();
	out = use_json(&use);
	json_object_set_new(out, "id", json_integer(w->id));
	json_object_set_new(out, "engine_limit",
			    limit(conf->engine_limit ? conf->engine_limit : SW_UNLIMITED));
	json_object_set_new(out, "queue_limit",
			    limit(conf->engine_limit ? conf->queue_limit : SW_UNLIMITED));
	add_slot(out, &slot);
	return out;
}

static json_t *steer_counts_json(const struct sw_live *live, unsigned pool)
{
	struct sw_steer_counts counts = {0};
	json_t *out = json_object();

	sw_steer_counts(live->steer, pool, &counts);
#define X(n, name, text)                                                                           \
	if (counts.name)                                                                           \
		json_object_set_new(out, #name, json_integer((json_int_t)counts.name));
	SW_STEERS(X)
#undef X
	return out;
}

static json_t *virtuals_json(const struct sw_steer_conf *steer)
{
	json_t *out = json_array();

	for (size_t i = 0; i < steer->n_virtuals; i++)
		json_array_append_new(out, sw_json_endpoint(&steer->virtuals[i]));
	return out;
}

static json_t *row_json(const struct sw_live_pool *p)
{
	struct sw_slot slot;
	json_t *out;

	if (!sw_use_row(p, &slot))
		return json_null();
	out = json_pack("{s:i}", "id", p->row);
	add_slot(out, &slot);
	return out;
}

json_t *sw_pool_slots_json(const struct sw_live_pool *p)
{
	const struct sw_steer_conf *steer = &p->conf->steer;
	const unsigned pool = (unsigned)(p - p->live->pools);
	struct sw_pool_use half_open = {0};
	struct sw_use use;
	json_t *out;

	if (!sw_use_pool(p, &use))
		return json_null();
	sw_steer_use(p->live->steer, pool, &half_open);
	out = use_json(&use);
	json_object_update_new(
		out,
		json_pack("{s:o, s:s, s:b, s:b, s:I, s:o, s:o}", "virtuals", virtuals_json(steer),
			  "count", steer->count == SW_COUNT_REPORTS ? "reports" : "connections",
			  "full", p->full, "close_idle", steer->close_idle, "half_open",
			  (json_int_t)half_open.half_open, "row", row_json(p), "counts",
			  steer_counts_json(p->live, pool)));
	return out;
}
