/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A rectangle of character cells to draw a frame on: texts that are cut where they do not fit, bars
 * and sparklines. Knows nothing of terminals; who shows it reads the cells. */
#ifndef SPILLWAY_CANVAS_H
#define SPILLWAY_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cv_style {
	CV_PLAIN,
	CV_DIM,
	CV_BOLD,
	CV_GOOD,
	CV_NOTE,  /* something an operator did, or has to know */
	CV_WARN,  /* near a limit, or not to be relied on */
	CV_BAD,	  /* over a limit, broken */
	CV_ALARM, /* the same, and nothing on the screen is more important */
	CV_TITLE,
	CV_CHOSEN, /* the name of what is selected */
	CV_STYLES
};

struct cv_cell {
	char text[7];  /* one character as UTF-8; empty: the right half of a wide one */
	uint8_t style; /* enum cv_style */
};

struct canvas {
	int w, h;
	int top,
		bottom; /* what is drawn outside of these rows is lost; bottom is the first below */
	bool ascii;	/* the locale has no UTF-8: every cell is ASCII */
	struct cv_cell *cells;
};

/* Blank, of that size. False: no memory, and it is empty. */
bool cv_start(struct canvas *c, int w, int h, bool ascii);
void cv_free(struct canvas *c);

/* Draws `text` into `room` columns from (x, y) on, cut with an ellipsis if it is longer. Control
 * characters become "?". Returns the columns that it took. */
int cv_text(struct canvas *c, int x, int y, int room, enum cv_style style, const char *text);
/* The same, at the right end of the room. */
void cv_right(struct canvas *c, int x, int y, int room, enum cv_style style, const char *text);
/* Columns that a text takes. */
int cv_width(const struct canvas *c, const char *text);
/* A bar of `share` (0 to 1) of the room. */
void cv_bar(struct canvas *c, int x, int y, int room, enum cv_style style, double share);
/* The last `room` * `per` of n values, oldest first, `per` of them (their mean) to a column; the
 * largest is as high as the line. What is not known yet is left blank. */
void cv_spark(struct canvas *c, int x, int y, int room, enum cv_style style, const double *values,
	      size_t n, size_t per);
/* A line of the whole room. */
void cv_rule(struct canvas *c, int x, int y, int room, enum cv_style style);
/* Blanks a rectangle. */
void cv_clear(struct canvas *c, int x, int y, int w, int h);

/* All rows as text, without what is blank at their ends. */
void cv_print(const struct canvas *c, FILE *out);

#endif
