// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The list of `spillway top`: pools with their workers below them, or workers alone, scrolled to
 * what is selected. A row is measured by drawing it where nothing is seen. */
#include "cli/top_rows.h"

#define WIDE 140 /* columns */

static struct top_layout lay_out(const struct canvas *c, bool flat)
{
	const bool wide = c->w >= WIDE;
	struct top_layout l = {.wide = wide,
			       .flat = flat,
			       .name = wide ? c->w / 7 : c->w / 6,
			       .pool = wide ? c->w / 7 : 10,
			       .state = 11,
			       .since = 6,
			       .busy = 9,
			       .rate = 6,
			       .flags = wide ? 22 : 10,
			       .age = 6};
	int rest = c->w - TOP_INDENT - l.name - l.state - l.since - l.busy - 5;

	l.spark = wide ? 28 : rest / 2 - l.rate - 2;
	l.per = top_per_column(l.spark);
	l.worker_x = flat ? TOP_INDENT : TOP_INDENT + 2;
	l.worker = TOP_INDENT + l.name - l.worker_x;
	l.cells = TOP_INDENT + l.name + (flat ? l.pool + 1 : 0) + l.flags + l.age + 3;
	return l;
}

struct list {
	struct canvas *c;
	const struct top_model *m;
	const struct top_view *v;
	struct top_layout l;
};

/* The bars of a row; in the flat list all have the same. */
static struct top_grid grid_for(const struct list *t, const struct top_pool *p)
{
	return t->v->flat ? top_flat_grid(t->c, &t->l) : top_grid_of(t->c, &t->l, p);
}

static int draw_row(const struct list *t, size_t index, int y)
{
	const struct top_row *r = &t->v->rows[index];
	const struct top_grid g = grid_for(t, r->pool);
	const struct top_look look = {.selected = index == t->v->selected && !t->v->once,
				      .unfolded = top_unfolded(t->v, r)};
	int n;

	if (r->worker)
		return top_draw_worker(t->c, &t->l, t->m, &g, r->worker, y, look);
	n = top_draw_pool(t->c, &t->l, t->m, r->pool, y, look);
	if (!look.unfolded || !r->pool->n_workers)
		return n;
	top_draw_worker_head(t->c, &t->l, t->m, &g, NULL, y + n);
	return n + top_grid_lines(&g);
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

/* Lines that the heading of a pool's workers hides of the rows above a selected worker. */
static int hidden_above(const struct list *t, const struct top_row *r)
{
	const struct top_grid g = grid_for(t, r->pool);

	return r->worker && !t->v->flat ? top_grid_lines(&g) : 0;
}

/* From where on to show the list, so that the selected row is seen. */
static int scroll_to(const struct list *t)
{
	const int page = t->v->page;
	int scroll = t->v->scroll, above = 0, lines = 0, hidden = 0, total = 0;

	for (size_t i = 0; i < t->v->n_rows; i++) {
		const int n = measure_row(t, i);

		if (i == t->v->selected) {
			above = total;
			lines = n;
			hidden = hidden_above(t, &t->v->rows[i]);
		}
		total += n;
	}
	if (scroll > total - page)
		scroll = total - page;
	if (scroll < above + lines - page)
		scroll = above + lines - page;
	if (scroll > above - hidden)
		scroll = above - hidden;
	return scroll < 0 ? 0 : scroll;
}

static void draw_rows(const struct list *t, int y)
{
	const struct top_row *first = NULL;
	int at = -t->v->scroll;

	for (size_t i = 0; i < t->v->n_rows && at < t->v->page; i++) {
		const int n = measure_row(t, i);

		if (at + n > 0) {
			draw_row(t, i, y + at);
			first = first ? first : &t->v->rows[i];
		}
		at += n;
	}
	if (first && first->worker && !t->v->flat) {
		const struct top_grid g = grid_for(t, first->pool);

		cv_clear(t->c, 0, y, t->c->w, top_grid_lines(&g));
		top_draw_worker_head(t->c, &t->l, t->m, &g, first->pool->name, y);
	}
}

void top_draw_list(struct canvas *c, const struct top_model *m, struct top_view *v, int y, int end)
{
	struct list t = {.c = c, .m = m, .v = v, .l = lay_out(c, v->flat)};
	const struct top_grid g = top_flat_grid(c, &t.l);

	if (v->flat)
		top_draw_worker_head(c, &t.l, m, &g, NULL, y);
	else
		top_draw_pool_head(c, &t.l, y);
	y++;
	v->page = end > y ? end - y : 0;
	v->scroll = scroll_to(&t);
	c->top = y;
	c->bottom = end;
	draw_rows(&t, y);
	c->top = 0;
	c->bottom = c->h;
}
