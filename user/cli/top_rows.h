/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows of the list of `spillway top`: pools, and workers with their bars. Each function that draws
 * a row returns the lines that it took, also where nothing of it is seen. */
#ifndef SPILLWAY_TOP_ROWS_H
#define SPILLWAY_TOP_ROWS_H

#include "cli/top.h"

#define TOP_INDENT 2

/* Where things are; all widths are without the blank that follows. */
struct top_layout {
	bool wide; /* there is room for more than what is needed */
	bool flat; /* workers without pools above them */
	int name, pool, state, since, busy, rate, spark, flags, age;
	size_t per;	      /* seconds to a column of a sparkline */
	int worker_x, worker; /* where a worker's name begins, and its width */
	int cells;	      /* where bars begin */
};

/* Bars stand in a grid, slots after the thresholds. */
struct top_grid {
	uint32_t limits;
	bool slots;
	int n, per_line, cell;
};

/* How a row is to be drawn. */
struct top_look {
	bool selected, unfolded;
};

/* ---- top_pool.c -------------------------------------------------------------------------- */

void top_draw_pool_head(struct canvas *c, const struct top_layout *l, int y);
int top_draw_pool(struct canvas *c, const struct top_layout *l, const struct top_model *m,
		  const struct top_pool *p, int y, struct top_look look);
/* Before the name at x: the marker of the selected row, and whether there is more below. */
void top_draw_marks(struct canvas *c, int x, int y, bool can_unfold, struct top_look look);

/* ---- top_worker.c ------------------------------------------------------------------------ */

struct top_grid top_grid_of(const struct canvas *c, const struct top_layout *l,
			    const struct top_pool *p);
int top_grid_lines(const struct top_grid *g);
struct top_grid top_flat_grid(const struct canvas *c, const struct top_layout *l);
/* Takes top_grid_lines(). `of`: the pool's name where that is not seen above, else NULL. */
void top_draw_worker_head(struct canvas *c, const struct top_layout *l, const struct top_model *m,
			  const struct top_grid *g, const char *of, int y);
int top_draw_worker(struct canvas *c, const struct top_layout *l, const struct top_model *m,
		    const struct top_grid *g, const struct top_worker *w, int y,
		    struct top_look look);

#endif
