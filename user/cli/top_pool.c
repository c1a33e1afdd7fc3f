// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A pool as `spillway top` lists it: its state, what is shed and admitted, and why. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/top_rows.h"

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

static int draw_rate(struct canvas *c, const struct top_layout *l, int x, int y,
		     enum cv_style style, const struct top_series *s)
{
	char text[32];

	cv_right(c, x, y, l->rate, top_rate(s) > 0 ? style : CV_DIM, top_number(top_rate(s), text));
	cv_spark(c, x + l->rate + 1, y, l->spark, style, s->value, s->n, l->per);
	return x + l->rate + l->spark + 2;
}

void top_draw_pool_head(struct canvas *c, const struct top_layout *l, int y)
{
	char span[48], seconds[32];
	json_t *ms = json_integer((json_int_t)l->per * l->spark * 1000);
	int x = TOP_INDENT;

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

void top_draw_marks(struct canvas *c, int x, int y, bool can_unfold, struct top_look look)
{
	if (look.selected)
		cv_text(c, x - 2, y, 1, CV_NOTE, c->ascii ? ">" : "▶");
	if (can_unfold)
		cv_text(c, x - 1, y, 1, CV_DIM, look.unfolded ? "-" : "+");
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

int top_draw_pool(struct canvas *c, const struct top_layout *l, const struct top_model *m,
		  const struct top_pool *p, int y, struct top_look look)
{
	char text[64], since[32];
	int x = TOP_INDENT;

	top_draw_marks(c, TOP_INDENT, y, p->n_workers > 0, look);
	cv_text(c, x, y, l->name, look.selected ? CV_CHOSEN : CV_BOLD, p->name);
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
		draw_reason(c, m, p, TOP_INDENT + 2, y + 1);
	return l->wide ? 1 : 2;
}
