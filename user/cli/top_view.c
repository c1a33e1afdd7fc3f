// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which pools and workers `spillway top` lists, in which order, and which one is selected. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top.h"

/* What a row goes by from one answer to the next. */
static void name_row(const struct top_row *r, char out[512])
{
	snprintf(out, 512, "%s%s%s", r->pool->name, r->worker ? "\n" : "",
		 r->worker ? r->worker->name : "");
}

/* ---- folding ----------------------------------------------------------------------------- */

static size_t find_toggled(const struct top_view *v, const char *name)
{
	size_t i = 0;

	while (i < v->n_toggled && strcmp(v->toggled[i], name))
		i++;
	return i;
}

/* Pools are unfolded and workers folded until somebody says otherwise. */
bool top_unfolded(const struct top_view *v, const struct top_row *r)
{
	char name[512];

	name_row(r, name);
	return (find_toggled(v, name) < v->n_toggled) == (r->worker != NULL);
}

void top_toggle(struct top_view *v, const struct top_row *r)
{
	char name[512], (*grown)[512];
	size_t i;

	name_row(r, name);
	i = find_toggled(v, name);
	if (i < v->n_toggled) {
		memmove(v->toggled[i], v->toggled[i + 1], (--v->n_toggled - i) * sizeof(name));
		return;
	}
	grown = realloc(v->toggled, (v->n_toggled + 1) * sizeof(name));
	if (!grown)
		return;
	v->toggled = grown;
	memcpy(v->toggled[v->n_toggled++], name, sizeof(name));
}

/* ---- which ------------------------------------------------------------------------------- */

/* The filter is looked for in names, states and flags. */
static bool worker_fits(const struct top_view *v, const struct top_worker *w)
{
	char flags[64];

	top_flags(w, sizeof(flags), flags);
	return strcasestr(w->name, v->filter) || strcasestr(flags, v->filter);
}

static bool pool_fits(const struct top_view *v, const struct top_pool *p)
{
	return strcasestr(p->name, v->filter) || strcasestr(p->state, v->filter);
}

static void add_row(struct top_view *v, const struct top_pool *p, const struct top_worker *w)
{
	v->rows[v->n_rows++] = (struct top_row){p, w};
}

/* A pool is there when it fits or one of its workers does; all its workers if none does. */
static void add_pool(struct top_view *v, const struct top_pool *p)
{
	bool all = pool_fits(v, p), any = all;

	for (size_t i = 0; i < p->n_workers && !any; i++)
		any = worker_fits(v, &p->workers[i]);
	if (!any)
		return;
	if (!v->flat)
		add_row(v, p, NULL);
	if (!v->flat && !top_unfolded(v, &(struct top_row){p, NULL}))
		return;
	for (size_t i = 0; i < p->n_workers; i++)
		if (all || worker_fits(v, &p->workers[i]))
			add_row(v, p, &p->workers[i]);
}

/* ---- order ------------------------------------------------------------------------------- */

const char *top_sort_name(enum top_sort sort)
{
	static const char *const names[] = {"load", "name", "shed", "slots"};

	return names[sort];
}

static double slots_share(const struct top_slots *s)
{
	if (!s->counted)
		return -1;
	return s->cap > 0 ? s->inuse / s->cap : 0;
}

/* Whoever is in trouble comes first, whatever is measured. */
static double pool_load(const struct top_pool *p)
{
	return (strcmp(p->state, "open") ? 1e6 : 0) + p->load;
}

static double pool_rank(const struct top_pool *p, enum top_sort sort)
{
	double shed = top_rate(&p->shed);

	switch (sort) {
	case TOP_BY_LOAD: return pool_load(p);
	case TOP_BY_SHED: return isnan(shed) ? -1 : shed;
	case TOP_BY_SLOTS: return slots_share(&p->slots);
	default: return 0;
	}
}

/* Of a worker, what is shed for it is how often it was full when it was to be picked. */
static double worker_rank(const struct top_worker *w, enum top_sort sort)
{
	switch (sort) {
	case TOP_BY_LOAD: return w->load;
	case TOP_BY_SHED: return (double)cli_int(json_object_get(w->json, "slots"), "refusals");
	case TOP_BY_SLOTS: return slots_share(&w->slots);
	default: return 0;
	}
}

static int compare(double a, double b)
{
	return (a < b) - (a > b);
}

static int by_pool(const struct top_row *a, const struct top_row *b, enum top_sort sort)
{
	int d = a->pool == b->pool ? 0
				   : compare(pool_rank(a->pool, sort), pool_rank(b->pool, sort));

	return d ? d : strverscmp(a->pool->name, b->pool->name);
}

static int by_worker(const struct top_row *a, const struct top_row *b, enum top_sort sort)
{
	int d;

	if (!a->worker || !b->worker)
		return (a->worker != NULL) - (b->worker != NULL);
	d = compare(worker_rank(a->worker, sort), worker_rank(b->worker, sort));
	return d ? d : strverscmp(a->worker->name, b->worker->name);
}

/* Pools with their workers below them; or workers, whatever their pool. */
static int order(const void *x, const void *y, void *arg)
{
	const struct top_view *v = arg;
	int d = v->flat ? by_worker(x, y, v->sort) : by_pool(x, y, v->sort);

	if (d)
		return d;
	return v->flat ? by_pool(x, y, v->sort) : by_worker(x, y, v->sort);
}

/* ---- selection --------------------------------------------------------------------------- */

const struct top_row *top_selected(const struct top_view *v)
{
	return v->selected < v->n_rows ? &v->rows[v->selected] : NULL;
}

void top_select(struct top_view *v, size_t index)
{
	v->selected = index < v->n_rows ? index : v->n_rows ? v->n_rows - 1 : 0;
	v->chosen[0] = '\0';
	if (v->n_rows)
		name_row(&v->rows[v->selected], v->chosen);
}

/* Where the selected one is now; where it was, if it is gone. */
static void select_again(struct top_view *v)
{
	char name[512];
	size_t i = 0;

	for (; i < v->n_rows; i++) {
		name_row(&v->rows[i], name);
		if (!strcmp(name, v->chosen))
			break;
	}
	top_select(v, i < v->n_rows ? i : v->selected);
}

int top_view_update(struct top_view *v, const struct top_model *m)
{
	struct top_row *rows = realloc(v->rows, (m->n_pools + m->n_workers + 1) * sizeof(*rows));

	v->n_rows = 0;
	if (!rows)
		return -ENOMEM;
	v->rows = rows;
	for (size_t i = 0; i < m->n_pools; i++)
		add_pool(v, &m->pools[i]);
	qsort_r(v->rows, v->n_rows, sizeof(*v->rows), order, v);
	select_again(v);
	return 0;
}

void top_view_free(struct top_view *v)
{
	free(v->rows);
	free(v->toggled);
	*v = (struct top_view){0};
}
