/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of `spillway top`. The model is what the daemon answered, the view what the operator
 * chose to see of it; both are drawn on a canvas, without a terminal. top.c and screen.c bring
 * daemon and terminal.
 */
#ifndef SPILLWAY_TOP_H
#define SPILLWAY_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "cli/canvas.h"
#include "cli/cli.h"

#define TOP_LIMITS  16	/* kinds of thresholds that are told apart */
#define TOP_SECONDS 600 /* of history */

/* ---- top_model.c: an answer, as far as it is shown ---------------------------------------- */

enum top_verdict { TOP_CLEAR, TOP_OVER, TOP_INERT, TOP_STALE };

/* A threshold held against a rank, or (rank -1) against a worker. */
struct top_check {
	size_t limit; /* index in the model's limits */
	int rank;
	double measured;  /* NAN: never told */
	double threshold; /* in the unit of `measured` */
	double load;	  /* measured by threshold; at least 1 when over, -1: not to be judged */
	enum top_verdict verdict;
};

struct top_slots {
	bool counted;
	double inuse, cap;     /* cap NAN: no limit */
	double engine, queued; /* N and Q; 0: not set */
};

struct top_worker {
	const json_t *json;
	const struct top_pool *pool;
	const char *name, *error;
	bool busy, suspect, drain, stale, inert, unknown; /* unknown: no load has come yet */
	struct top_check *checks;
	size_t n_checks;
	int ranks, ranks_busy;
	/* By limit, what decides over the worker: the rank that is least loaded, since a worker is
	 * busy when all its ranks are. NULL: no such threshold. */
	const struct top_check *shown[TOP_LIMITS];
	struct top_slots slots;
	double slots_load; /* -1: there is no cap */
	double load;	   /* the highest of all; -1: none */
};

/* A second each, oldest first. */
struct top_series {
	size_t n;
	double value[TOP_SECONDS];
};

struct top_pool {
	const json_t *json;
	const char *name, *state;
	struct top_worker *workers;
	size_t n_workers, n_busy, n_stale, n_drained;
	uint32_t limits; /* those that its workers have, a bit each */
	double load;	 /* of the most loaded worker */
	struct top_slots slots;
	struct top_series shed, admitted;
};

struct top_model {
	json_t *status, *history; /* what all texts point into */
	const char *limits[TOP_LIMITS];
	size_t n_limits;
	struct top_pool *pools;
	size_t n_pools, n_workers, n_busy, n_stale;
	struct top_series shed, admitted; /* of all pools */

	/* Of the moment, from the caller: */
	char host[256], clock[32];
	const char *gone; /* why the daemon does not answer; NULL: it does */
	double gone_s;	  /* since when */
};

/* Takes both answers over and shows them from now on; `history` may be NULL. -ENOMEM. */
int top_model_read(struct top_model *m, json_t *status, json_t *history);
void top_model_free(struct top_model *m);
/* Seconds to a column when the last minutes are drawn into as many. */
size_t top_per_column(int columns);
/* The last second. NAN: nothing is known. */
double top_rate(const struct top_series *s);

/* ---- top_words.c: what is said of it ------------------------------------------------------ */

/* A limit of the configuration, in a word or two. */
const char *top_limit_name(const char *limit);
/* At most five columns, or six when it is negative: "9850", "123k", "0.85"; "-" for NAN. */
const char *top_number(double v, char out[32]);
/* Busy, suspect and so on, what is worst first, or "free"; and of many ranks how many are busy. The
 * first one and how many more when that has not `room`. */
enum cv_style top_flags(const struct top_worker *w, size_t room, char out[64]);
/* Why a pool is in its state, or how far it is from another. */
enum cv_style top_reason(const struct top_model *m, const struct top_pool *p, char out[512]);
/* What has to be known besides: a namespace that is not guarded, a source that fails. Returns how
 * many of these there are; at most `max` are written. */
size_t top_alarms(const struct top_model *m, char (*out)[512], size_t max);

/* ---- top_view.c: which rows there are, and which is selected ------------------------------ */

enum top_sort { TOP_BY_LOAD, TOP_BY_NAME, TOP_BY_SHED, TOP_BY_SLOTS, TOP_SORTS };

enum top_mode {
	TOP_BROWSE,
	TOP_HELP,
	TOP_FILTER,	 /* a text is being typed */
	TOP_FORCE_STATE, /* which state? */
	TOP_FORCE_TIME,	 /* for how long? */
	TOP_CONFIRM,
};

/* What the operator wants of the daemon. */
struct top_action {
	bool drain; /* else force */
	char pool[256], worker[256];
	const char *state; /* of a force */
	uint64_t for_ms;
	bool on; /* of a drain */
};

/* A pool, or one of its workers. */
struct top_row {
	const struct top_pool *pool;
	const struct top_worker *worker; /* NULL: the pool itself */
};

struct top_view {
	enum top_sort sort;
	bool flat; /* all workers in one list, without pools */
	bool paused;
	bool once; /* nobody presses keys: none are offered, nothing is selected */
	char filter[64];
	char (*toggled)[512]; /* pools that are folded, workers that are unfolded */
	size_t n_toggled;

	struct top_row *rows;
	size_t n_rows, selected;
	char chosen[512]; /* the name of the selected one: it stays selected */
	int scroll;	  /* lines above the first one that is shown */
	int page;	  /* lines of the list */

	enum top_mode mode;
	struct top_action action; /* being asked for, or to be sent */
	char input[64];
	char message[512]; /* the last answer */
	enum cv_style message_style;
};

/* Makes the rows anew from the model, and finds the selected one again. -ENOMEM. */
int top_view_update(struct top_view *v, const struct top_model *m);
void top_view_free(struct top_view *v);
const struct top_row *top_selected(const struct top_view *v); /* NULL: there is no row */
void top_select(struct top_view *v, size_t index);
bool top_unfolded(const struct top_view *v, const struct top_row *r);
void top_toggle(struct top_view *v, const struct top_row *r);
const char *top_sort_name(enum top_sort sort);

/* ---- top_table.c: pools and workers ------------------------------------------------------- */

/* Draws the list into rows y up to the canvas' row `end`, scrolled so that the selected one is
 * seen. */
void top_draw_list(struct canvas *c, const struct top_model *m, struct top_view *v, int y, int end);

/* ---- top_draw.c: the whole frame ----------------------------------------------------------- */

#define TOP_MIN_WIDTH  60
#define TOP_MIN_HEIGHT 12

void top_draw(struct canvas *c, const struct top_model *m, struct top_view *v);

/* ---- top_keys.c: what a key does ----------------------------------------------------------- */

enum top_key { /* besides characters, out of their range */
	       TOP_KEY_UP = 0x200000,
	       TOP_KEY_DOWN,
	       TOP_KEY_PAGE_UP,
	       TOP_KEY_PAGE_DOWN,
	       TOP_KEY_HOME,
	       TOP_KEY_END,
	       TOP_KEY_ENTER,
	       TOP_KEY_ERASE,
	       TOP_KEY_ESCAPE,
};

enum top_do { TOP_GO_ON, TOP_ACT /* send view->action */, TOP_QUIT };

enum top_do top_press(struct top_view *v, const struct top_model *m, uint32_t key);
/* The request that `a` is: its path, and a body that is the caller's. */
const char *top_request(const struct top_action *a, json_t **body);
/* What the daemon's answer to it says. */
void top_outcome(const struct top_action *a, const json_t *answer, char out[512]);
/* The question that a mode asks, with what was typed so far; "" when none is asked. */
void top_question(const struct top_view *v, char out[512]);

#endif
