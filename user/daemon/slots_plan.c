// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which slot row stands for which worker and guarded pool of a configuration, before anything is
 * written; and under which names those have left whose rows are still in use. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/steering.h"

/* Keys of all that `pools` need, and their places in a plan: -1 stays where nothing is needed. */
static size_t collect(const struct sw_live_pool *pools, size_t n_pools, struct sw_id_key *keys,
		      int *places)
{
	size_t n = 0;
	int place = 0;

	for (size_t i = 0; i < n_pools; i++) {
		const struct sw_pool_conf *p = pools[i].conf;

		for (size_t j = 0; j < p->n_workers; j++, place++) {
			if (p->steer.by == SW_STEER_NONE)
				continue;
			keys[n] = sw_id_of_worker(p->workers[j].at.addr, p->workers[j].at.port);
			places[n++] = place;
		}
		if (sw_pool_has_row(p)) {
			keys[n] = sw_id_of_pool(p->name, p->steer.count == SW_COUNT_REPORTS);
			places[n++] = place;
		}
		place++;
	}
	return n;
}

static int assign(const struct sw_steering *s, const struct sw_live_pool *pools, size_t n_pools,
		  struct sw_slots_plan *plan, struct sw_error *err)
{
	struct sw_id_key *keys = calloc(plan->n + 1, sizeof(*keys));
	int *places = calloc(plan->n + 1, sizeof(*places));
	int *ids = calloc(plan->n + 1, sizeof(*ids));
	size_t n;
	int e = -ENOMEM;

	if (keys && places && ids) {
		n = collect(pools, n_pools, keys, places);
		e = sw_ids_assign(s->rows, keys, n, ids);
		for (size_t i = 0; !e && i < n; i++)
			plan->ids[places[i]] = ids[i];
	}
	free(ids);
	free(places);
	free(keys);
	if (e == -ENOSPC)
		return sw_fail(err, e,
			       "more than %d workers and counted pools, those included that have "
			       "left and have connections yet ('spillway status' lists them)",
			       SW_MAX_WORKERS);
	return e ? sw_fail(err, e, "no memory") : 0;
}

static void name_by_address(const struct sw_worker_row *row, char *out, size_t size)
{
	static const __u8 mapped[12] = {[10] = 0xff, [11] = 0xff};
	bool v4 = !memcmp(row->addr, mapped, sizeof(mapped));
	char addr[INET6_ADDRSTRLEN];

	if (row->flags & SW_WF_ROW)
		snprintf(out, size, "pool #%016llx", (unsigned long long)row->tag);
	else
		snprintf(out, size, v4 ? "%s:%u" : "[%s]:%u",
			 inet_ntop(v4 ? AF_INET : AF_INET6, row->addr + (v4 ? 12 : 0), addr,
				   sizeof(addr)),
			 row->port);
}

/* As it was known until now. */
static void name_row(const struct sw_steering *s, int id, char *out, size_t size)
{
	const struct sw_live *live = s->live;

	for (size_t i = 0; i < live->n_pools; i++) {
		const struct sw_live_pool *p = &live->pools[i];

		if (p->row == id) {
			snprintf(out, size, "%s", p->conf->name);
			return;
		}
		for (size_t j = 0; j < p->n_workers; j++) {
			if (p->workers[j]->id != id)
				continue;
			snprintf(out, size, "%s/%s", p->conf->name, p->workers[j]->conf->name);
			return;
		}
	}
	name_by_address(&s->rows[id], out, size);
}

static bool plan_holds(const struct sw_slots_plan *plan, int id)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->ids[i] == id)
			return true;
	return false;
}

const struct sw_live_leaving *sw_slots_leaving(const struct sw_live *live, int id)
{
	for (size_t i = 0; i < live->n_leaving; i++)
		if (live->leaving[i].id == id)
			return &live->leaving[i];
	return NULL;
}

static int list_leaving(const struct sw_steering *s, struct sw_slots_plan *plan,
			struct sw_error *err)
{
	uint64_t now_ms = sw_now_ms();

	plan->leaving = calloc(SW_MAX_WORKERS, sizeof(*plan->leaving));
	if (!plan->leaving)
		return sw_fail(err, -ENOMEM, "no memory");
	for (int id = 0; id < SW_MAX_WORKERS; id++) {
		struct sw_live_leaving *l = &plan->leaving[plan->n_leaving];
		const struct sw_live_leaving *known = sw_slots_leaving(s->live, id);

		if (sw_id_free(&s->rows[id]) || plan_holds(plan, id))
			continue;
		l->id = id;
		l->since_ms = now_ms;
		if (known)
			*l = *known;
		else
			name_row(s, id, l->name, sizeof(l->name));
		plan->n_leaving++;
	}
	return 0;
}

int sw_slots_plan(const struct sw_steering *s, const struct sw_live_pool *pools, size_t n_pools,
		  struct sw_slots_plan *out, struct sw_error *err)
{
	int e;

	*out = (struct sw_slots_plan){0};
	for (size_t i = 0; i < n_pools; i++)
		out->n += pools[i].conf->n_workers + 1;
	out->ids = malloc((out->n + 1) * sizeof(*out->ids));
	if (!out->ids)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < out->n; i++)
		out->ids[i] = -1;
	e = assign(s, pools, n_pools, out, err);
	if (!e)
		e = list_leaving(s, out, err);
	if (e)
		sw_slots_plan_free(out);
	return e;
}

void sw_slots_plan_free(struct sw_slots_plan *plan)
{
	free(plan->ids);
	free(plan->leaving);
	*plan = (struct sw_slots_plan){0};
}
