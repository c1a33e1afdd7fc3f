// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The frame of `spillway top` around its list: what is true of the whole daemon above, the
 * question, the last answer and the keys below. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/top.h"

#define MAX_ALARMS 3
#define SPARK_MAX  40

/* ---- above ------------------------------------------------------------------------------- */

static void draw_title(struct canvas *c, const struct top_model *m, const struct top_view *v)
{
	char title[512], up[32], right[64];

	snprintf(title, sizeof(title), "spillway top  %s  spillwayd %s, up %s", m->host,
		 cli_text(m->status, "version"),
		 cli_time(json_object_get(m->status, "uptime_ms"), up));
	snprintf(right, sizeof(right), "%s%s", v->paused ? "PAUSED  " : "", m->clock);
	cv_text(c, 1, 0, c->w - cv_width(c, right) - 4, CV_TITLE, title);
	cv_right(c, c->w - 30, 0, 29, v->paused ? CV_NOTE : CV_TITLE, right);
}

static int draw_total(struct canvas *c, int x, const char *name, enum cv_style style,
		      const struct top_series *s)
{
	const int room = (c->w - 36) / 2; /* both, with their names and rates */
	const int spark = room > SPARK_MAX ? SPARK_MAX : room;
	const int label = cv_width(c, name);
	char rate[32], text[64];

	snprintf(text, sizeof(text), "%s/s", top_number(top_rate(s), rate));
	cv_text(c, x, 1, label, CV_PLAIN, name);
	cv_right(c, x + label, 1, 8, top_rate(s) > 0 ? style : CV_DIM, text);
	cv_spark(c, x + label + 9, 1, spark, style, s->value, s->n, top_per_column(spark));
	return x + label + 9 + spark + 3;
}

static void draw_counts(struct canvas *c, const struct top_model *m)
{
	const json_t *beat = json_object_get(m->status, "heartbeat");
	const double margin = (double)cli_int(beat, "margin_ms") / 1e3;
	const double deadline = (double)cli_int(beat, "deadline_ms") / 1e3;
	const bool low = margin < deadline / 4;
	char left[128], right[96];

	snprintf(left, sizeof(left), "%zu pool%s, %zu worker%s: %zu busy, %zu stale", m->n_pools,
		 m->n_pools == 1 ? "" : "s", m->n_workers, m->n_workers == 1 ? "" : "s", m->n_busy,
		 m->n_stale);
	snprintf(right, sizeof(right), "%sheartbeat margin %.2f of %.0f s", low ? "LOW " : "",
		 margin, deadline);
	cv_text(c, 1, 2, c->w - 36, m->n_stale ? CV_WARN : CV_PLAIN, left);
	if (beat)
		cv_right(c, c->w - 36, 2, 35, low ? CV_BAD : CV_PLAIN, right);
}

/* Returns the row below. */
static int draw_alarms(struct canvas *c, const struct top_model *m, int y)
{
	char text[MAX_ALARMS][512], gone[512];
	size_t n = top_alarms(m, text, MAX_ALARMS);

	if (m->gone) {
		cv_rule(c, 0, y, c->w, CV_ALARM);
		snprintf(gone, sizeof(gone), " DAEMON GONE for %.0f s, what you see is old: %s ",
			 m->gone_s, m->gone);
		cv_text(c, 0, y++, c->w, CV_ALARM, gone);
	}
	for (size_t i = 0; i < n && i < MAX_ALARMS; i++)
		cv_text(c, 1, y++, c->w - 1, CV_BAD, text[i]);
	return y;
}

/* ---- below ------------------------------------------------------------------------------- */

/* Returns where the next one goes. */
static int draw_key(struct canvas *c, int x, int y, const char *key, const char *what)
{
	x += cv_text(c, x, y, c->w - x, CV_BOLD, key) + 1;
	return x + cv_text(c, x, y, c->w - x, CV_DIM, what) + 2;
}

static void draw_keys(struct canvas *c, const struct top_view *v, int y)
{
	char sort[32], filter[80];
	int x = draw_key(c, 1, y, "?", "help");

	snprintf(sort, sizeof(sort), "by %s", top_sort_name(v->sort));
	snprintf(filter, sizeof(filter), "%s%s", v->filter[0] ? "=" : "find", v->filter);
	x = draw_key(c, x, y, "q", "quit");
	x = draw_key(c, x, y, "Enter", "fold");
	x = draw_key(c, x, y, "s", sort);
	x = draw_key(c, x, y, "f", "force");
	x = draw_key(c, x, y, "d", "drain");
	x = draw_key(c, x, y, "w", v->flat ? "pools" : "flat");
	x = draw_key(c, x, y, "p", v->paused ? "go on" : "pause");
	draw_key(c, x, y, "/", filter);
}

static void draw_message(struct canvas *c, const struct top_view *v, int y)
{
	char question[512];

	top_question(v, question);
	if (question[0])
		cv_text(c, 1, y, c->w - 1, CV_NOTE, question);
	else
		cv_text(c, 1, y, c->w - 1, v->message_style, v->message);
}

static void draw_help(struct canvas *c)
{
	static const char *const lines[] = {
		"up, down, j, k    select; PgUp, PgDn, Home, End",
		"Enter             fold or unfold a pool; a worker's ranks and sources",
		"s                 sort by name, load, shed, slots",
		"w                 all workers in one list, and back to pools",
		"/                 show what has this text in its name or state; Esc: all",
		"f                 force the pool: saturated, open, auto; for a time",
		"d                 drain the pool or worker, or end its drain",
		"p                 stop the picture, and let it go on",
		"q                 quit; nothing that was forced or drained changes",
		"",
		"A bar is full at the limit. A worker with many ranks shows the least",
		"loaded one: it is busy when all are. inert: the engine does not tell",
		"what the threshold needs. stale: the load is too old to count.",
	};
	const int n = sizeof(lines) / sizeof(lines[0]);
	const int w = c->w < 76 ? c->w : 76, x = (c->w - w) / 2;
	int y = c->h > n + 4 ? (c->h - n - 4) / 2 : 0;

	cv_clear(c, x, y, w, n + 4);
	cv_rule(c, x, y, w, CV_TITLE);
	cv_text(c, x + 2, y, w - 4, CV_TITLE, " Keys (any key goes back) ");
	for (int i = 0; i < n; i++)
		cv_text(c, x + 2, y + 2 + i, w - 4, CV_PLAIN, lines[i]);
	cv_rule(c, x, y + n + 3, w, CV_TITLE);
}

/* ---- all of it --------------------------------------------------------------------------- */

void top_draw(struct canvas *c, const struct top_model *m, struct top_view *v)
{
	char text[96];
	int y;

	if (c->w < TOP_MIN_WIDTH || c->h < TOP_MIN_HEIGHT) {
		snprintf(text, sizeof(text), "Too small: %dx%d.", c->w, c->h);
		cv_text(c, 0, 0, c->w, CV_BAD, text);
		snprintf(text, sizeof(text), "At least %dx%d, please.", TOP_MIN_WIDTH,
			 TOP_MIN_HEIGHT);
		cv_text(c, 0, 1, c->w, CV_PLAIN, text);
		return;
	}
	draw_title(c, m, v);
	draw_total(c, draw_total(c, 1, "shed", CV_BAD, &m->shed), "admitted", CV_GOOD,
		   &m->admitted);
	draw_counts(c, m);
	y = draw_alarms(c, m, 3);
	top_draw_list(c, m, v, y, v->once ? c->h : c->h - 2);
	if (!v->n_rows)
		cv_text(c, 2, y + 2, c->w - 2, CV_WARN,
			v->filter[0] ? "Nothing fits the filter; Esc shows all."
				     : "No pool is configured.");
	if (v->once)
		return;
	draw_message(c, v, c->h - 2);
	draw_keys(c, v, c->h - 1);
	if (v->mode == TOP_HELP)
		draw_help(c);
}
