/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of each engine's metrics page: which series tell what, and which labels split them.
 * Reading a page by that is engine.c's matter; how an operator describes a page of his own is in
 * custom.h. */
#ifndef SPILLWAY_ENGINES_H
#define SPILLWAY_ENGINES_H

#include "sources/engine.h"
#include "sources/selector.h"

enum sw_series_of {
	SW_OF_PAGE,   /* the whole page is about one worker */
	SW_OF_WORKER, /* the label worker_id names the worker */
	SW_OF_MODEL,  /* the label model names what the worker serves */
};

struct sw_series {
	enum sw_field field;
	struct sw_selector at;
	const char *number; /* the label that holds the number; NULL: its value is it */
	enum sw_series_of of;
};

struct sw_engine_kind {
	const char *name;
	const char *page; /* where its metrics usually are */
	const char *rank; /* label that holds the data-parallel rank; NULL: none */
	/* One model cut over several processes, each of which publishes the same count: the largest
	 * is right, a sum would count requests twice. */
	bool replicated;
	const char *part; /* series where this label is set are parts of one where it is not */
	const struct sw_series *series;
	size_t n;
};

extern const struct sw_engine_kind sw_engine_kinds[SW_ENGINES];

#endif
