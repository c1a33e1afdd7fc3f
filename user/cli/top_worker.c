// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A worker as `spillway top` lists it: its state, and a bar for each threshold and for its slots.
 */
#include <math.h>
#include <stdio.h>

#include "cli/top_rows.h"

#define CELL_MIN  20 /* of a bar with its numbers */
#define CELL_MAX  40
#define NUMBERS	  12
#define LABEL	  15 /* of a threshold, in a word or two */
#define WHERE_MIN 18 /* columns that have to be left for addresses */

/* ---- bars -------------------------------------------------------------------------------- */

static bool have_slots(const struct top_pool *p)
{
	for (size_t i = 0; i < p->n_workers; i++)
		if (p->workers[i].slots.counted)
			return true;
	return false;
}

struct top_grid top_grid_of(const struct canvas *c, const struct top_layout *l,
			    const struct top_pool *p)
{
	const int room = c->w - l->cells;
	const bool slots = have_slots(p);
	struct top_grid g = {p->limits, slots, __builtin_popcount(p->limits) + slots, 1, room};

	if (g.n > 0) {
		g.per_line = room / CELL_MIN < 1 ? 1 : room / CELL_MIN;
		if (g.per_line > g.n)
			g.per_line = g.n;
		g.cell = room / g.per_line > CELL_MAX ? CELL_MAX : room / g.per_line;
	}
	return g;
}

/* In the flat list, where each worker may have other thresholds, there is one bar: of what is
 * highest, with its name. */
struct top_grid top_flat_grid(const struct canvas *c, const struct top_layout *l)
{
	const int room = c->w - l->cells - LABEL;

	return (struct top_grid){.n = 1, .per_line = 1, .cell = room > CELL_MAX ? CELL_MAX : room};
}

int top_grid_lines(const struct top_grid *g)
{
	return g->n ? (g->n + g->per_line - 1) / g->per_line : 1;
}

static int cell_x(const struct top_layout *l, const struct top_grid *g, int i)
{
	return l->cells + i % g->per_line * g->cell;
}

/* Behind all bars. */
static int where_x(const struct top_layout *l, const struct top_grid *g)
{
	return l->cells + g->per_line * g->cell + (l->flat ? LABEL : 0);
}

static enum cv_style load_style(double load)
{
	return load >= 1 ? CV_BAD : load >= 0.8 ? CV_WARN : CV_GOOD;
}

static void draw_cell(struct canvas *c, const struct top_grid *g, int x, int y, enum cv_style style,
		      double load, const char *numbers)
{
	const int bar = g->cell - NUMBERS - 2;

	if (load >= 0)
		cv_bar(c, x, y, bar, style, load);
	else
		cv_rule(c, x, y, bar, CV_DIM);
	cv_text(c, x + bar + 1, y, NUMBERS, load >= 1 ? CV_BAD : CV_PLAIN, numbers);
}

static void draw_check(struct canvas *c, const struct top_grid *g, int x, int y,
		       const struct top_check *check)
{
	char measured[32], limit[32], numbers[80];

	top_number(check->measured, measured);
	top_number(check->threshold, limit);
	snprintf(numbers, sizeof(numbers), "%s/%s", measured, limit);
	if (check->verdict == TOP_INERT)
		snprintf(numbers, sizeof(numbers), "inert");
	else if (check->verdict == TOP_STALE)
		snprintf(numbers, sizeof(numbers), "stale %s", measured);
	draw_cell(c, g, x, y, load_style(check->load), check->load, numbers);
}

/* "6/4+2": in use, N and Q; "6/6" when the cap comes from elsewhere. */
static void draw_slots(struct canvas *c, const struct top_grid *g, int x, int y,
		       const struct top_worker *w)
{
	const struct top_slots *s = &w->slots;
	const double load = w->slots_load;
	char inuse[32], cap[32], n[32], q[32], numbers[140];

	top_number(s->inuse, inuse);
	if (isnan(s->cap))
		snprintf(numbers, sizeof(numbers), "%s, no cap", inuse);
	else if (s->engine > 0 && s->engine + s->queued == s->cap)
		snprintf(numbers, sizeof(numbers), "%s/%s+%s", inuse, top_number(s->engine, n),
			 top_number(s->queued, q));
	else
		snprintf(numbers, sizeof(numbers), "%s/%s", inuse, top_number(s->cap, cap));
	draw_cell(c, g, x, y, load_style(load), load, numbers);
}

/* ---- workers ----------------------------------------------------------------------------- */

void top_draw_worker_head(struct canvas *c, const struct top_layout *l, const struct top_model *m,
			  const struct top_grid *g, const char *of, int y)
{
	const int where = where_x(l, g), age = l->cells - l->age - 1;
	int i = 0;

	cv_text(c, l->worker_x, y, l->worker, of ? CV_BOLD : CV_DIM, of ? of : "WORKER");
	if (l->flat)
		cv_text(c, l->worker_x + l->worker + 1, y, l->pool, CV_DIM, "POOL");
	cv_text(c, age - l->flags - 1, y, l->flags, CV_DIM, "STATE");
	cv_right(c, age, y, l->age, CV_DIM, "AGE");
	if (c->w - where >= WHERE_MIN)
		cv_text(c, where, y, c->w - where, CV_DIM, "TAKES REQUESTS AT");
	for (size_t limit = 0; limit < m->n_limits; limit++)
		if (g->limits & 1U << limit) {
			cv_text(c, cell_x(l, g, i), y + i / g->per_line, g->cell - 1, CV_DIM,
				top_limit_name(m->limits[limit]));
			i++;
		}
	if (l->flat)
		cv_text(c, l->cells, y, c->w - l->cells, CV_DIM, "HIGHEST");
	if (g->slots)
		cv_text(c, cell_x(l, g, i), y + i / g->per_line, g->cell - 1, CV_DIM,
			"slots of N+Q");
}

/* Returns the lines that its bars took, 1 at least. */
static int draw_grid(struct canvas *c, const struct top_layout *l, const struct top_grid *g,
		     const struct top_worker *w, int y)
{
	int i = 0, line = 0;

	for (size_t limit = 0; limit < TOP_LIMITS; limit++) {
		if (!(g->limits & 1U << limit))
			continue;
		if (w->shown[limit]) {
			line = i / g->per_line;
			draw_check(c, g, cell_x(l, g, i), y + line, w->shown[limit]);
		}
		i++;
	}
	if (w->slots.counted) {
		line = i / g->per_line;
		draw_slots(c, g, cell_x(l, g, i), y + line, w);
	}
	return line + 1;
}

/* The threshold, or the slots, of which a worker has most. */
static void draw_highest(struct canvas *c, const struct top_layout *l, const struct top_model *m,
			 const struct top_grid *g, const struct top_worker *w, int y)
{
	const struct top_check *highest = NULL;
	const bool slots = w->slots_load >= 0 && w->slots_load >= w->load;

	for (size_t i = 0; i < TOP_LIMITS; i++)
		if (w->shown[i] && (!highest || w->shown[i]->load > highest->load))
			highest = w->shown[i];
	if (slots)
		draw_slots(c, g, l->cells, y, w);
	else if (highest)
		draw_check(c, g, l->cells, y, highest);
	if (slots || highest)
		cv_text(c, l->cells + g->cell, y, LABEL, CV_DIM,
			slots ? "slots of N+Q" : top_limit_name(m->limits[highest->limit]));
}

/* One threshold of one rank, with its whole name if there is room. */
static void draw_full_check(struct canvas *c, const struct top_layout *l, const struct top_model *m,
			    const struct top_check *check, int y)
{
	const struct top_grid g = {.cell = c->w - l->cells > CELL_MAX ? CELL_MAX : c->w - l->cells};
	const int x = l->worker_x + 2;
	const char *limit = m->limits[check->limit];
	char name[300];

	if (!l->wide)
		limit = top_limit_name(limit);
	if (check->rank < 0)
		snprintf(name, sizeof(name), "%s", limit);
	else
		snprintf(name, sizeof(name), "rank %d %s", check->rank, limit);
	cv_text(c, x, y, l->cells - x - 1, CV_DIM, name);
	draw_check(c, &g, l->cells, y, check);
}

/* All that is measured, where it is, and who tells its load. */
static int draw_details(struct canvas *c, const struct top_layout *l, const struct top_model *m,
			const struct top_worker *w, int y)
{
	const int x = l->worker_x + 2, first = y;
	char line[700], age[32];
	size_t i;
	json_t *j;

	for (i = 0; i < w->n_checks; i++)
		draw_full_check(c, l, m, &w->checks[i], y++);
	snprintf(line, sizeof(line), "takes requests at %s, load from %s",
		 cli_text(w->json, "at")[0] ? cli_text(w->json, "at") : "(not known)",
		 cli_text(w->json, "url")[0] ? cli_text(w->json, "url") : "others");
	cv_text(c, x, y++, c->w - x, CV_DIM, line);
	json_array_foreach (cli_list(w->json, "sources"), i, j) {
		snprintf(line, sizeof(line),
			 "%s %s: %" JSON_INTEGER_FORMAT " told, %" JSON_INTEGER_FORMAT
			 " of them no load, the last %s ago",
			 cli_text(j, "kind"), cli_text(j, "publisher"), cli_int(j, "told"),
			 cli_int(j, "failures"), cli_time(json_object_get(j, "age_ms"), age));
		cv_text(c, x, y++, c->w - x, CV_DIM, line);
	}
	return y - first;
}

int top_draw_worker(struct canvas *c, const struct top_layout *l, const struct top_model *m,
		    const struct top_grid *g, const struct top_worker *w, int y,
		    struct top_look look)
{
	const int where = where_x(l, g), age_x = l->cells - l->age - 1;
	const int first = y;
	enum cv_style style;
	char flags[64], age[32];

	style = top_flags(w, (size_t)l->flags, flags);
	top_draw_marks(c, l->worker_x, y, look.selected || look.unfolded, look);
	cv_text(c, l->worker_x, y, l->worker, look.selected ? CV_CHOSEN : CV_PLAIN, w->name);
	if (l->flat)
		cv_text(c, l->worker_x + l->worker + 1, y, l->pool, CV_DIM, w->pool->name);
	cv_text(c, age_x - l->flags - 1, y, l->flags, style, flags);
	cv_right(c, age_x, y, l->age, w->stale ? CV_WARN : CV_PLAIN,
		 cli_time(json_object_get(w->json, "age_ms"), age));
	if (c->w - where >= WHERE_MIN)
		cv_text(c, where, y, c->w - where, CV_DIM, cli_text(w->json, "at"));
	if (l->flat)
		draw_highest(c, l, m, g, w, y++);
	else
		y += draw_grid(c, l, g, w, y);
	if (w->error[0]) {
		cv_text(c, l->worker_x + 2, y, 2, CV_BAD, "!");
		cv_text(c, l->worker_x + 4, y++, c->w - l->worker_x - 4, CV_BAD, w->error);
	}
	if (look.unfolded)
		y += draw_details(c, l, m, w, y);
	return y - first;
}
