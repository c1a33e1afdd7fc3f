// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The list of `spillway top`: pools, and below them or alone their workers, with a bar for each
 * threshold. A row is measured by drawing it where nothing is seen. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/top.h"

#define WIDE	 140 /* columns from which on there is room for more than what is needed */
#define CELL_MIN 20  /* of a bar with its numbers */
#define CELL_MAX 40
#define NUMBERS	 12
#define INDENT	 2

/* Where things are; all widths are without the blank that follows. */
struct layout {
	bool wide;
	int name, state, since, busy, rate, spark, flags, age;
	size_t per; /* seconds to a column of a sparkline */
	int cells;  /* where bars begin */
};

static struct layout lay_out(const struct canvas *c, bool flat)
{
	const bool wide = c->w >= WIDE;
	struct layout l = {.wide = wide,
			   .name = wide ? c->w / 7 : c->w / 6,
			   .state = 11,
			   .since = 6,
			   .busy = 9,
			   .rate = 6,
			   .flags = wide ? 22 : 10,
			   .age = 6,
			   .per = wide ? 10 : 15};
	int rest = c->w - INDENT - l.name - l.state - l.since - l.busy - 5;

	l.spark = wide ? 28 : rest / 2 - l.rate - 2;
	l.cells = INDENT + l.name + (flat ? l.name + 1 : 0) + l.flags + l.age + 3;
	return l;
}

/* ---- pools ------------------------------------------------------------------------------- */

static enum cv_style state_style(const char *state)
{
	if (!strcmp(state, "open"))
		return CV_GOOD;
	return strcmp(state, "draining") ? CV_BAD : CV_NOTE;
}

/* What is wrong is in capitals, for who sees no colours. */
static void state_text(const char *state, char out[32])
{
	snprintf(out, 32, "%s", state);
	if (state_style(state) == CV_BAD)
		for (char *s = out; *s; s++)
			*s = (char)(*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
}

static int draw_rate(struct canvas *c, const struct layout *l, int x, int y, enum cv_style style,
		     const struct top_series *s)
{
	char text[32];

	cv_right(c, x, y, l->rate, top_rate(s) > 0 ? style : CV_DIM, top_number(top_rate(s), text));
	cv_spark(c, x + l->rate + 1, y, l->spark, style, s->value, s->n, l->per);
	return x + l->rate + l->spark + 2;
}

static void draw_pool_head(struct canvas *c, const struct layout *l, int y)
{
	char span[48], seconds[32];
	json_t *ms = json_integer((json_int_t)l->per * l->spark * 1000);
	int x = INDENT;

	snprintf(span, sizeof(span), "%s%s", l->wide ? "last " : "", cli_time(ms, seconds));
	json_decref(ms);
	cv_text(c, x, y, l->name, CV_TITLE, "POOL");
	cv_text(c, x += l->name + 1, y, l->state, CV_TITLE, "STATE");
	cv_right(c, x += l->state + 1, y, l->since, CV_TITLE, "SINCE");
	cv_right(c, x += l->since + 1, y, l->busy, CV_TITLE, "BUSY");
	x += l->busy + 1;
	for (int i = 0; i < 2; i++) {
		cv_right(c, x, y, l->rate, CV_TITLE, i ? "ADM/s" : "SHED/s");
		cv_text(c, x + l->rate + 1, y, l->spark, CV_DIM, span);
		x += l->rate + l->spark + 2;
	}
	if (l->wide)
		cv_text(c, x, y, c->w - x, CV_TITLE, "WHY");
}

/* The marker of the selected row, and whether there is more below. */
static void draw_marks(struct canvas *c, int y, bool selected, bool can_unfold, bool unfolded)
{
	if (selected)
		cv_text(c, 0, y, 1, CV_NOTE, c->ascii ? ">" : "▶");
	if (can_unfold)
		cv_text(c, 1, y, 1, CV_DIM, unfolded ? "-" : "+");
}

static void draw_reason(struct canvas *c, const struct top_model *m, const struct top_pool *p,
			int x, int y)
{
	char why[512], slots[80] = "", a[32], b[32];
	enum cv_style style = top_reason(m, p, why);
	int room;

	if (p->slots.counted && isnan(p->slots.cap))
		snprintf(slots, sizeof(slots), "%s slots in use", top_number(p->slots.inuse, a));
	else if (p->slots.counted)
		snprintf(slots, sizeof(slots), "slots %s/%s", top_number(p->slots.inuse, a),
			 top_number(p->slots.cap, b));
	room = c->w - x - (int)strlen(slots) - 2;
	cv_text(c, x, y, room, style, why);
	cv_right(c, c->w - (int)strlen(slots) - 1, y, (int)strlen(slots), CV_PLAIN, slots);
}

/* Returns the lines that it took. */
static int draw_pool(struct canvas *c, const struct layout *l, const struct top_model *m,
		     const struct top_pool *p, int y, bool selected, bool unfolded)
{
	char text[64], since[32];
	int x = INDENT;

	draw_marks(c, y, selected, p->n_workers > 0, unfolded);
	cv_text(c, x, y, l->name, selected ? CV_CHOSEN : CV_BOLD, p->name);
	state_text(p->state, text);
	cv_text(c, x += l->name + 1, y, l->state, state_style(p->state), text);
	cv_right(c, x += l->state + 1, y, l->since, CV_PLAIN,
		 cli_time(json_object_get(p->json, "state_ms"), since));
	snprintf(text, sizeof(text), "%zu/%zu", p->n_busy, p->n_workers);
	cv_right(c, x += l->since + 1, y, l->busy, p->n_busy ? CV_BAD : CV_PLAIN, text);
	x = draw_rate(c, l, x + l->busy + 1, y, CV_BAD, &p->shed);
	x = draw_rate(c, l, x, y, CV_GOOD, &p->admitted);
	if (l->wide)
		draw_reason(c, m, p, x, y);
	else
		draw_reason(c, m, p, INDENT + 2, y + 1);
	return l->wide ? 1 : 2;
}

/* ---- bars -------------------------------------------------------------------------------- */

/* Bars stand in a grid, slots after the thresholds. */
struct grid {
	uint32_t limits;
	bool slots;
	int n, per_line, cell;
};

static struct grid grid_of(const struct canvas *c, const struct layout *l, uint32_t limits,
			   bool slots)
{
	const int room = c->w - l->cells;
	struct grid g = {limits, slots, __builtin_popcount(limits) + slots, 1, room};

	if (g.n > 0) {
		g.per_line = room / CELL_MIN < 1 ? 1 : room / CELL_MIN;
		if (g.per_line > g.n)
			g.per_line = g.n;
		g.cell = room / g.per_line > CELL_MAX ? CELL_MAX : room / g.per_line;
	}
	return g;
}

static bool have_slots(const struct top_pool *p)
{
	for (size_t i = 0; i < p->n_workers; i++)
		if (p->workers[i].slots.counted)
			return true;
	return false;
}

static struct grid grid_of_pool(const struct canvas *c, const struct layout *l,
				const struct top_pool *p)
{
	return grid_of(c, l, p->limits, have_slots(p));
}

static struct grid grid_of_all(const struct canvas *c, const struct layout *l,
			       const struct top_model *m)
{
	uint32_t limits = 0;
	bool slots = false;

	for (size_t i = 0; i < m->n_pools; i++) {
		limits |= m->pools[i].limits;
		slots |= have_slots(&m->pools[i]);
	}
	return grid_of(c, l, limits, slots);
}

static int grid_lines(const struct grid *g)
{
	return g->n ? (g->n + g->per_line - 1) / g->per_line : 1;
}

static int cell_x(const struct layout *l, const struct grid *g, int i)
{
	return l->cells + i % g->per_line * g->cell;
}

static enum cv_style load_style(double load)
{
	return load >= 1 ? CV_BAD : load >= 0.8 ? CV_WARN : CV_GOOD;
}

static void draw_cell(struct canvas *c, const struct grid *g, int x, int y, enum cv_style style,
		      double load, const char *numbers)
{
	const int bar = g->cell - NUMBERS - 2;

	if (load >= 0)
		cv_bar(c, x, y, bar, style, load);
	else
		cv_rule(c, x, y, bar, CV_DIM);
	cv_text(c, x + bar + 1, y, NUMBERS, load >= 1 ? CV_BAD : CV_PLAIN, numbers);
}

static void draw_check(struct canvas *c, const struct grid *g, int x, int y,
		       const struct top_check *check)
{
	char measured[32], limit[32], numbers[80];

	if (!check)
		return;
	top_number(check->measured, measured);
	top_number(check->threshold, limit);
	snprintf(numbers, sizeof(numbers), "%s/%s", measured, limit);
	if (check->verdict == TOP_INERT)
		snprintf(numbers, sizeof(numbers), "inert /%s", limit);
	else if (check->verdict == TOP_STALE)
		snprintf(numbers, sizeof(numbers), "stale %s/%s", measured, limit);
	draw_cell(c, g, x, y, load_style(check->load), check->load, numbers);
}

/* "6/4+2": in use, N and Q; "6/6" when the cap comes from elsewhere. */
static void draw_slots(struct canvas *c, const struct grid *g, int x, int y,
		       const struct top_slots *s)
{
	const double load = s->cap > 0 ? s->inuse / s->cap : isnan(s->cap) ? -1 : 1;
	char inuse[32], cap[32], n[32], q[32], numbers[140];

	if (!s->counted)
		return;
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

static void draw_worker_head(struct canvas *c, const struct layout *l, const struct top_model *m,
			     const struct grid *g, const struct top_pool *p, int y)
{
	char title[300];
	int x = INDENT, i = 0;

	snprintf(title, sizeof(title), p ? "WORKER of %s" : "WORKER", p ? p->name : "");
	cv_text(c, x, y, l->name, CV_DIM, title);
	if (!p)
		cv_text(c, x += l->name + 1, y, l->name, CV_DIM, "POOL");
	cv_text(c, x += l->name + 1, y, l->flags, CV_DIM, "STATE");
	cv_right(c, x + l->flags + 1, y, l->age, CV_DIM, "AGE");
	for (size_t limit = 0; limit < m->n_limits; limit++)
		if (g->limits & 1U << limit) {
			cv_text(c, cell_x(l, g, i), y + i / g->per_line, g->cell - 1, CV_DIM,
				top_limit_name(m->limits[limit]));
			i++;
		}
	if (g->slots)
		cv_text(c, cell_x(l, g, i), y + i / g->per_line, g->cell - 1, CV_DIM,
			"slots of N+Q");
}

/* Bars of what is shown; with slots, of a worker, else of one rank. */
static void draw_grid(struct canvas *c, const struct layout *l, const struct grid *g, int y,
		      const struct top_check *const shown[TOP_LIMITS],
		      const struct top_slots *slots)
{
	int i = 0;

	for (size_t limit = 0; limit < TOP_LIMITS; limit++)
		if (g->limits & 1U << limit) {
			draw_check(c, g, cell_x(l, g, i), y + i / g->per_line, shown[limit]);
			i++;
		}
	if (g->slots && slots)
		draw_slots(c, g, cell_x(l, g, i), y + i / g->per_line, slots);
}

static int draw_rank(struct canvas *c, const struct layout *l, const struct grid *g,
		     const struct top_worker *w, const json_t *rank, int y)
{
	const struct top_check *shown[TOP_LIMITS] = {NULL};
	const int number = (int)cli_int(rank, "rank");
	const bool busy = cli_true(rank, "busy");
	char name[32];

	for (size_t i = 0; i < w->n_checks; i++)
		if (w->checks[i].rank == number)
			shown[w->checks[i].limit] = &w->checks[i];
	snprintf(name, sizeof(name), "rank %d", number);
	cv_text(c, INDENT + 2, y, l->name - 2, CV_DIM, name);
	cv_text(c, l->cells - l->age - l->flags - 2, y, l->flags, busy ? CV_BAD : CV_GOOD,
		busy ? "BUSY" : "free");
	draw_grid(c, l, g, y, shown, NULL);
	return grid_lines(g);
}

/* Where it is, and who tells its load. */
static int draw_details(struct canvas *c, const struct layout *l, const struct grid *g,
			const struct top_worker *w, int y)
{
	const int x = INDENT + 2, first = y;
	char line[700], age[32];
	size_t i;
	json_t *j;

	if (w->ranks > 1)
		json_array_foreach (cli_list(w->json, "ranks"), i, j)
			y += draw_rank(c, l, g, w, j, y);
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

/* Returns the lines that it took. */
static int draw_worker(struct canvas *c, const struct layout *l, const struct grid *g,
		       const struct top_worker *w, int y, bool with_pool, bool selected,
		       bool unfolded)
{
	const int first = y;
	enum cv_style style;
	char flags[64], age[32];
	int x = INDENT;

	style = top_flags(w, (size_t)l->flags, flags);
	draw_marks(c, y, selected, true, unfolded);
	cv_text(c, x, y, l->name, selected ? CV_CHOSEN : CV_PLAIN, w->name);
	if (with_pool)
		cv_text(c, x += l->name + 1, y, l->name, CV_DIM, w->pool->name);
	cv_text(c, x += l->name + 1, y, l->flags, style, flags);
	cv_right(c, x + l->flags + 1, y, l->age, w->stale ? CV_WARN : CV_PLAIN,
		 cli_time(json_object_get(w->json, "age_ms"), age));
	draw_grid(c, l, g, y, w->shown, &w->slots);
	y += grid_lines(g);
	if (w->error[0]) {
		cv_text(c, INDENT + 2, y, 2, CV_BAD, "!");
		cv_text(c, INDENT + 4, y++, c->w - INDENT - 4, CV_BAD, w->error);
	}
	if (unfolded)
		y += draw_details(c, l, g, w, y);
	return y - first;
}

/* ---- the list ---------------------------------------------------------------------------- */

struct list {
	struct canvas *c;
	const struct top_model *m;
	const struct top_view *v;
	struct layout l;
	struct grid all; /* of the flat list */
};

/* Lines of the heading above the workers of a pool. */
static int head_lines(const struct list *t, const struct top_row *r)
{
	struct grid g = grid_of_pool(t->c, &t->l, r->pool);

	return t->v->flat ? 0 : grid_lines(&g);
}

static int draw_row(const struct list *t, size_t index, int y)
{
	const struct top_row *r = &t->v->rows[index];
	const bool unfolded = top_unfolded(t->v, r),
		   selected = index == t->v->selected && !t->v->once;
	struct grid g = t->v->flat ? t->all : grid_of_pool(t->c, &t->l, r->pool);
	int n;

	if (r->worker)
		return draw_worker(t->c, &t->l, &g, r->worker, y, t->v->flat, selected, unfolded);
	n = draw_pool(t->c, &t->l, t->m, r->pool, y, selected, unfolded);
	if (!unfolded || !r->pool->n_workers)
		return n;
	draw_worker_head(t->c, &t->l, t->m, &g, r->pool, y + n);
	return n + grid_lines(&g);
}

static int measure_row(const struct list *t, size_t index)
{
	const int top = t->c->top, bottom = t->c->bottom;
	int n;

	t->c->top = t->c->bottom = 0;
	n = draw_row(t, index, 0);
	t->c->top = top;
	t->c->bottom = bottom;
	return n;
}

/* The selected row, and of a worker the heading above it, are to be seen. */
static int scroll_to(const struct list *t, int scroll, int page)
{
	int above = 0, lines = 0, head = 0, total = 0;

	for (size_t i = 0; i < t->v->n_rows; i++) {
		const int n = measure_row(t, i);

		if (i == t->v->selected) {
			above = total;
			lines = n;
			head = t->v->rows[i].worker ? head_lines(t, &t->v->rows[i]) : 0;
		}
		total += n;
	}
	if (scroll > total - page)
		scroll = total - page;
	if (scroll < above + lines - page)
		scroll = above + lines - page;
	if (scroll > above - head)
		scroll = above - head;
	return scroll < 0 ? 0 : scroll;
}

static void draw_rows(const struct list *t, int y, int page, int scroll)
{
	const struct top_row *first = NULL;
	int at = -scroll;

	for (size_t i = 0; i < t->v->n_rows && at < page; i++) {
		const int n = measure_row(t, i);

		if (at + n > 0) {
			draw_row(t, i, y + at);
			first = first ? first : &t->v->rows[i];
		}
		at += n;
	}
	if (first && first->worker && !t->v->flat) {
		struct grid g = grid_of_pool(t->c, &t->l, first->pool);

		cv_clear(t->c, 0, y, t->c->w, grid_lines(&g));
		draw_worker_head(t->c, &t->l, t->m, &g, first->pool, y);
	}
}

void top_draw_list(struct canvas *c, const struct top_model *m, struct top_view *v, int y, int end)
{
	struct list t = {.c = c, .m = m, .v = v, .l = lay_out(c, v->flat)};

	t.all = grid_of_all(c, &t.l, m);
	if (v->flat)
		draw_worker_head(c, &t.l, m, &t.all, NULL, y);
	else
		draw_pool_head(c, &t.l, y);
	y += v->flat ? grid_lines(&t.all) : 1;
	v->page = end > y ? end - y : 0;
	v->scroll = scroll_to(&t, v->scroll, v->page);
	c->top = y;
	c->bottom = end;
	draw_rows(&t, y, v->page, v->scroll);
	c->top = 0;
	c->bottom = c->h;
}
