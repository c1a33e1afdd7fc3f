// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What changes in pools and workers, as events to whoever follows them: the same that say.c writes
 * to the log. */
#include <string.h>

#include "common/clock.h"
#include "control/hub.h"
#include "control/json.h"
#include "daemon/daemon.h"

void sw_tell_pool(const struct sw_live_pool *pool, enum sw_pool_state was, uint64_t for_ms,
		  const char *cause)
{
	struct sw_hub *hub = pool->live->hub;

	if (!sw_hub_followed(hub))
		return;
	sw_hub_send(hub, "pool",
		    json_pack("{s:I, s:o, s:s, s:s, s:I, s:o}", "time_ms", (json_int_t)sw_unix_ms(),
			      "pool", sw_json_text(pool->conf->name), "from",
			      sw_pool_state_name(was), "to", sw_pool_state_name(pool->state),
			      "for_ms", (json_int_t)for_ms, "cause", sw_json_text(cause)));
}

static json_t *worker_event(const char *pool, const char *worker, const char *change)
{
	return json_pack("{s:I, s:o, s:o, s:s}", "time_ms", (json_int_t)sw_unix_ms(), "pool",
			 sw_json_text(pool), "worker", sw_json_text(worker), "change", change);
}

void sw_tell_worker(const struct sw_live_worker *w, const char *change, const struct sw_check *c)
{
	struct sw_hub *hub = w->pool->live->hub;
	json_t *event;

	if (!sw_hub_followed(hub))
		return;
	event = worker_event(w->pool->conf->name, w->conf->name, change);
	if (c)
		json_object_update_new(
			event, json_pack("{s:s, s:o, s:o, s:o}", "limit", sw_limit_name(c->limit),
					 "rank", c->rank < 0 ? json_null() : json_integer(c->rank),
					 "measured", sw_json_number(c->measured), "threshold",
					 sw_json_number(c->threshold)));
	sw_hub_send(hub, "worker", event);
}

/* ---- who joins and leaves ------------------------------------------------------------------- */

static bool has_worker(const struct sw_config *c, const char *pool, const char *worker)
{
	for (size_t i = 0; i < c->n_pools; i++) {
		const struct sw_pool_conf *p = &c->pools[i];

		if (strcmp(p->name, pool))
			continue;
		for (size_t j = 0; j < p->n_workers; j++)
			if (!strcmp(p->workers[j].name, worker))
				return true;
	}
	return false;
}

/* A change of each worker that `c` has and `other` has not. */
static void tell_others(struct sw_hub *hub, const struct sw_config *c,
			const struct sw_config *other, const char *change)
{
	for (size_t i = 0; i < c->n_pools; i++) {
		const struct sw_pool_conf *p = &c->pools[i];

		for (size_t j = 0; j < p->n_workers; j++)
			if (!has_worker(other, p->name, p->workers[j].name))
				sw_hub_send(hub, "worker",
					    worker_event(p->name, p->workers[j].name, change));
	}
}

void sw_tell_roster(const struct sw_live *live, const struct sw_config *was,
		    const struct sw_config *is)
{
	if (!sw_hub_followed(live->hub))
		return;
	tell_others(live->hub, was, is, "left");
	tell_others(live->hub, is, was, "joined");
}
