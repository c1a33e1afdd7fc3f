// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows to figures; see use.h. */
#include <string.h>

#include "control/use.h"

static bool read_row(const struct sw_live *live, int id, struct sw_slot *slot)
{
	memset(slot, 0, sizeof(*slot));
	if (!live->steer || id < 0)
		return false;
	sw_steer_slot(live->steer, (unsigned)id, slot);
	return true;
}

static uint64_t left(uint64_t cap, uint64_t inuse)
{
	if (cap == SW_UNLIMITED)
		return SW_UNLIMITED;
	return cap > inuse ? cap - inuse : 0;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a == SW_UNLIMITED || b == SW_UNLIMITED ? SW_UNLIMITED : a + b;
}

bool sw_use_worker(const struct sw_live_worker *w, struct sw_use *use, struct sw_slot *slot)
{
	uint32_t engine, queue;

	memset(use, 0, sizeof(*use));
	if (!read_row(w->pool->live, w->id, slot))
		return false;
	sw_slots_split(slot->inuse, w->conf->engine_limit, &engine, &queue);
	use->inuse = slot->inuse;
	use->engine = engine;
	use->queue = queue;
	use->cap = w->cap == SW_NO_CAP ? SW_UNLIMITED : w->cap;
	use->free = left(use->cap, use->inuse);
	return true;
}

bool sw_use_row(const struct sw_live_pool *p, struct sw_slot *slot)
{
	return read_row(p->live, p->row, slot);
}

/* What the last reports show. */
static uint64_t reported(const struct sw_live_pool *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < p->n_workers; i++)
		for (unsigned r = 0; r < sw_worker_ranks(&p->workers[i]->load); r++)
			n += p->workers[i]->load.rank[r].value[SW_SIG_RUNNING] +
			     p->workers[i]->load.rank[r].value[SW_SIG_WAITING];
	return n;
}

/* The engines' part of what a whole pool has in flight: N of them all. */
static uint64_t engines(const struct sw_live_pool *p, uint64_t inuse)
{
	uint64_t limit = 0;

	for (size_t i = 0; i < p->n_workers; i++) {
		if (!p->workers[i]->conf->engine_limit)
			return inuse;
		limit += p->workers[i]->conf->engine_limit;
	}
	return inuse < limit ? inuse : limit;
}

/* Where only reports tell what is in flight, the row's `inuse` never falls and its cap goes ahead
 * of it by as many as may be admitted before the next report. */
static uint64_t granted(const struct sw_live_pool *p, const struct sw_slot *slot)
{
	struct sw_worker_row row = {0};
	int32_t ahead;

	sw_steer_get_worker(p->live->steer, (unsigned)p->row, &row);
	ahead = (int32_t)(row.cap - slot->inuse);
	return ahead > 0 ? (uint64_t)ahead : 0;
}

static void read_whole(const struct sw_live_pool *p, const struct sw_slot *slot, struct sw_use *use)
{
	const bool reports = p->conf->steer.count == SW_COUNT_REPORTS;

	use->inuse = reports ? reported(p) : slot->inuse;
	use->engine = engines(p, use->inuse);
	use->queue = use->inuse - use->engine;
	use->cap = p->cap;
	use->free = left(p->cap, use->inuse);
	if (reports && granted(p, slot) < use->free)
		use->free = granted(p, slot);
}

static void add_worker(const struct sw_live_worker *w, const struct sw_use *one, struct sw_use *all)
{
	all->inuse += one->inuse;
	all->engine += one->engine;
	all->queue += one->queue;
	all->cap = sum(all->cap, one->cap);
	if (!w->load.busy && !w->drain)
		all->free = sum(all->free, one->free);
}

bool sw_use_pool(const struct sw_live_pool *p, struct sw_use *use)
{
	struct sw_slot slot;
	bool counted = sw_use_row(p, &slot);

	memset(use, 0, sizeof(*use));
	if (counted)
		read_whole(p, &slot, use);
	for (size_t i = 0; i < p->n_workers; i++) {
		struct sw_use one;

		if (!sw_use_worker(p->workers[i], &one, &slot))
			continue;
		add_worker(p->workers[i], &one, use);
		counted = true;
	}
	if (p->steer.flags & SW_SF_CLOSED)
		use->free = 0;
	return counted;
}
