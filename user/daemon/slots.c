// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Slot rows of workers and guarded pools while pools come and go: what each may hold, and when it
 * is free for another. Which id stands for whom is slots_plan.c's matter, who may be given new
 * connections steer.c's. */
#include <string.h>

#include "daemon/steering.h"

#define LEAVE_MS 1100 /* a connection may have been on its way to a row when it left its pool */

/* ---- rows --------------------------------------------------------------------------------- */

void sw_slots_read(struct sw_steering *s)
{
	for (unsigned id = 0; id < SW_MAX_WORKERS; id++)
		sw_steer_get_worker(s->live->steer, id, &s->rows[id]);
}

static void write_row(struct sw_steering *s, int id, const struct sw_worker_row *row)
{
	int e = sw_steer_set_worker(s->live->steer, (unsigned)id, row);

	if (e && memcmp(&s->rows[id], row, sizeof(*row)))
		sw_log(SW_ERROR, "cannot write slot row %d: %s", id, strerror(-e));
	s->rows[id] = *row;
}

/* Credits are never given back. Without the flag the next recount makes of them what there is. */
static void begin_leaving(struct sw_steering *s, const struct sw_live_leaving *l)
{
	struct sw_worker_row row = s->rows[l->id];
	struct sw_slot slot;

	sw_steer_slot(s->live->steer, (unsigned)l->id, &slot);
	if (row.flags & SW_WF_CREDIT) {
		row.flags &= ~SW_WF_CREDIT;
		write_row(s, l->id, &row);
		sw_log(SW_INFO, "%s was removed; its id %d is kept for now", l->name, l->id);
	} else {
		sw_log(SW_INFO,
		       "%s was removed with %u connections; its id %d is kept until they end",
		       l->name, slot.inuse, l->id);
	}
}

void sw_slots_commit(struct sw_steering *s, struct sw_slots_plan *plan)
{
	struct sw_live *live = s->live;
	const int *id = plan->ids;

	for (size_t i = 0; i < plan->n_leaving; i++)
		if (!sw_slots_leaving(live, plan->leaving[i].id))
			begin_leaving(s, &plan->leaving[i]);
	free(live->leaving);
	live->leaving = plan->leaving;
	live->n_leaving = plan->n_leaving;
	plan->leaving = NULL;
	for (size_t i = 0; i < live->n_pools; i++) {
		struct sw_live_pool *p = &live->pools[i];

		p->cap = sw_pool_cap(p->conf);
		for (size_t j = 0; j < p->n_workers; j++) {
			p->workers[j]->id = *id++;
			p->workers[j]->cap = sw_pool_worker_cap(p->conf, j);
		}
		p->row = *id++;
	}
	sw_slots_plan_free(plan);
}

/* The one namespace in which a pool's workers listen, by its cookie; 0: there are several, or it
 * is not known. */
static uint64_t listens_in(const struct sw_steering *s, const struct sw_live_pool *p)
{
	uint64_t cookie = 0;

	for (size_t i = 0; i < s->overflows.n; i++) {
		const struct sw_overflow *o = s->overflows.list[i];

		if (strcmp(o->pool, p->conf->name))
			continue;
		if (cookie && cookie != o->id.cookie)
			return 0;
		cookie = o->id.cookie;
	}
	return cookie;
}

static struct sw_worker_row worker_row(const struct sw_steering *s, const struct sw_live_worker *w)
{
	const struct sw_live_pool *p = w->pool;
	struct sw_worker_row row = {
		.port = w->conf->at.port,
		.pool = (uint16_t)(p - p->live->pools),
		.cap = w->cap,
		.engine = (uint32_t)(w->conf->engine_limit < SW_NO_CAP ? w->conf->engine_limit : 0),
	};

	memcpy(row.addr, w->conf->at.addr, sizeof(row.addr));
	if (p->conf->steer.by == SW_STEER_LOCAL)
		row.tag = listens_in(s, p);
	return row;
}

/* A worker in two pools may hold what both of them allow. */
static void gather(const struct sw_steering *s, const struct sw_live_worker *w,
		   struct sw_worker_row *rows, bool *given)
{
	struct sw_worker_row row = worker_row(s, w), *r = &rows[w->id];

	if (!given[w->id]) {
		*r = row;
		given[w->id] = true;
		return;
	}
	if (row.cap < r->cap)
		r->cap = row.cap;
	if (w->pool->conf->steer.by == SW_STEER_LOCAL) { /* who listens here is told by the pool */
		r->pool = row.pool;
		r->tag = row.tag;
	}
}

static void write_pool_row(struct sw_steering *s, struct sw_live_pool *p)
{
	struct sw_id_key key =
		sw_id_of_pool(p->conf->name, p->conf->steer.count == SW_COUNT_REPORTS);
	struct sw_worker_row row = {.pool = (uint16_t)(p - p->live->pools),
				    .flags = key.flags,
				    .tag = key.tag,
				    .cap = (uint32_t)(p->cap < SW_NO_CAP ? p->cap : SW_NO_CAP)};

	for (size_t i = 0; i < p->n_workers; i++)
		row.engine += (uint32_t)p->conf->workers[i].engine_limit;
	if (p->uncapped)
		row.cap = SW_NO_CAP;
	if (key.flags & SW_WF_CREDIT)
		row.cap = s->rows[p->row].cap; /* until the next report */
	write_row(s, p->row, &row);
}

void sw_slots_write(struct sw_steering *s)
{
	struct sw_worker_row rows[SW_MAX_WORKERS];
	bool given[SW_MAX_WORKERS] = {false};
	struct sw_live *live = s->live;

	for (size_t i = 0; i < live->n_pools; i++) {
		struct sw_live_pool *p = &live->pools[i];

		for (size_t j = 0; j < p->n_workers; j++)
			if (p->workers[j]->id >= 0)
				gather(s, p->workers[j], rows, given);
		if (p->row >= 0)
			write_pool_row(s, p);
	}
	for (int id = 0; id < SW_MAX_WORKERS; id++)
		if (given[id])
			write_row(s, id, &rows[id]);
}

/* ---- credits ------------------------------------------------------------------------------ */

static uint64_t in_flight(const struct sw_live_worker *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < sw_worker_ranks(&w->load); i++)
		n += w->load.rank[i].value[SW_SIG_RUNNING] + w->load.rank[i].value[SW_SIG_WAITING];
	return n;
}

/* Moves a worker's part in its pool's sums to what it is now. */
static void count_in(struct sw_live_pool *p, struct sw_live_worker *w)
{
	bool counts = !w->load.busy && !w->drain;

	p->counted_cap -= w->counted_cap;
	p->counted_load -= w->counted_load;
	w->counted_cap = counts ? w->cap : 0;
	w->counted_load = counts ? in_flight(w) : 0;
	p->counted_cap += w->counted_cap;
	p->counted_load += w->counted_load;
}

static void write_credit(struct sw_steering *s, struct sw_live_pool *p, uint64_t now_ms)
{
	uint64_t cap = p->counted_cap;
	struct sw_worker_row row;
	struct sw_slot slot;

	sw_steer_slot(s->live->steer, (unsigned)p->row, &slot);
	if (p->uncapped && !p->passing)
		cap = SW_NO_CAP;
	sw_credit_note(&p->credit, slot.inuse, now_ms);
	row = s->rows[p->row];
	row.cap = sw_credit_grant(&p->credit, slot.inuse, cap, p->counted_load,
				  p->conf->steer.report_lag_ms, now_ms);
	write_row(s, p->row, &row);
}

static bool has_credit(const struct sw_live_pool *p)
{
	return p->row >= 0 && p->conf->steer.count == SW_COUNT_REPORTS;
}

void sw_slots_credit(struct sw_steering *s, struct sw_live_pool *p, uint64_t now_ms)
{
	if (!has_credit(p))
		return;
	p->counted_cap = p->counted_load = 0;
	for (size_t i = 0; i < p->n_workers; i++) {
		p->workers[i]->counted_cap = p->workers[i]->counted_load = 0;
		count_in(p, p->workers[i]);
	}
	p->counted = true;
	write_credit(s, p, now_ms);
}

void sw_slots_credit_worker(struct sw_steering *s, struct sw_live_worker *w, uint64_t now_ms)
{
	if (!has_credit(w->pool))
		return;
	if (!w->pool->counted) {
		sw_slots_credit(s, w->pool, now_ms);
		return;
	}
	count_in(w->pool, w);
	write_credit(s, w->pool, now_ms);
}

/* ---- leaving ------------------------------------------------------------------------------ */

/* True: the row is nobody's any more. */
static bool let_go(struct sw_steering *s, const struct sw_live_leaving *l, uint64_t now_ms)
{
	const struct sw_worker_row nobody = {0};
	struct sw_slot slot;

	sw_steer_slot(s->live->steer, (unsigned)l->id, &slot);
	if (now_ms - l->since_ms < LEAVE_MS || slot.inuse ||
	    sw_steer_renew(s->live->steer, (unsigned)l->id))
		return false;
	write_row(s, l->id, &nobody);
	sw_log(SW_INFO, "%s has left: its last connection ended after %.1f s", l->name,
	       (double)(now_ms - l->since_ms) / 1e3);
	return true;
}

static void say_drained(const struct sw_steering *s, struct sw_live_worker *w, uint64_t now_ms)
{
	struct sw_slot slot;

	if (!w->drain || w->drained || w->id < 0)
		return;
	sw_steer_slot(s->live->steer, (unsigned)w->id, &slot);
	if (slot.inuse)
		return;
	w->drained = true;
	sw_log(SW_INFO, "pool %s: worker %s is drained: it has no connection left after %.1f s",
	       w->pool->conf->name, w->conf->name, (double)(now_ms - w->drain_since_ms) / 1e3);
}

void sw_slots_beat(struct sw_steering *s, uint64_t now_ms)
{
	struct sw_live *live = s->live;
	size_t left = 0;

	for (size_t i = 0; i < live->n_leaving; i++)
		if (!let_go(s, &live->leaving[i], now_ms))
			live->leaving[left++] = live->leaving[i];
	live->n_leaving = left;
	for (size_t i = 0; i < live->n_pools; i++)
		for (size_t j = 0; j < live->pools[i].n_workers; j++) {
			struct sw_live_worker *w = live->pools[i].workers[j];

			w->drained &= w->drain;
			say_drained(s, w, now_ms);
		}
}
