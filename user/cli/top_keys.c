// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What keys do in `spillway top`: they change the view, and at the end of a question that was
 * confirmed there is an action to send. */
#include <stdio.h>
#include <string.h>

#include "cli/top.h"

#define DEFAULT_TIME "10m"

/* ---- questions --------------------------------------------------------------------------- */

static const char *effect_of(const struct top_action *a)
{
	if (a->drain && a->worker[0])
		return a->on ? "New connections go to other workers."
			     : "It takes new connections again.";
	if (a->drain)
		return a->on ? "New requests get 503." : "It takes new requests again.";
	if (!strcmp(a->state, "saturated"))
		return "New requests get the overload answer.";
	return strcmp(a->state, "open") ? "It goes by what is measured."
					: "All is admitted, however busy.";
}

static void confirm_text(const struct top_view *v, char out[512])
{
	const struct top_action *a = &v->action;
	char time[80] = "", what[300];

	if (!a->drain && strcmp(a->state, "auto"))
		snprintf(time, sizeof(time), " for %s", v->input);
	if (a->worker[0])
		snprintf(what, sizeof(what), "worker %.120s of pool %.120s", a->worker, a->pool);
	else
		snprintf(what, sizeof(what), "pool %.250s", a->pool);
	if (a->drain)
		snprintf(out, 512, "[y/n] %s %s? %s", a->on ? "Drain" : "End the drain of", what,
			 effect_of(a));
	else
		snprintf(out, 512, "[y/n] Force %s %s%s? %s", what, a->state, time, effect_of(a));
}

void top_question(const struct top_view *v, char out[512])
{
	out[0] = '\0';
	switch (v->mode) {
	case TOP_FILTER: snprintf(out, 512, "Filter: %s_", v->filter); break;
	case TOP_FORCE_STATE:
		snprintf(out, 512, "Force pool %.200s: s saturated, o open, a auto; Esc: no",
			 v->action.pool);
		break;
	case TOP_FORCE_TIME:
		snprintf(out, 512, "Force pool %.200s %s for how long (30s, 5m, 1h)? %s_",
			 v->action.pool, v->action.state, v->input);
		break;
	case TOP_CONFIRM: confirm_text(v, out); break;
	default: break;
	}
}

static void say(struct top_view *v, enum cv_style style, const char *text)
{
	v->message_style = style;
	snprintf(v->message, sizeof(v->message), "%s", text);
}

/* Back to browsing, with nothing done. */
static void leave(struct top_view *v)
{
	v->mode = TOP_BROWSE;
	say(v, CV_DIM, "Nothing was changed.");
}

/* An action on what is selected; false: nothing is. */
static bool begin(struct top_view *v, bool drain)
{
	const struct top_row *r = top_selected(v);

	if (!r)
		return false;
	v->action = (struct top_action){.drain = drain};
	snprintf(v->action.pool, sizeof(v->action.pool), "%s", r->pool->name);
	if (!drain)
		return true;
	if (r->worker)
		snprintf(v->action.worker, sizeof(v->action.worker), "%s", r->worker->name);
	v->action.on = !(r->worker ? r->worker->drain : cli_true(r->pool->json, "drain"));
	return true;
}

static void choose_state(struct top_view *v, uint32_t key)
{
	v->action.state = key == 's'   ? "saturated"
			  : key == 'o' ? "open"
			  : key == 'a' ? "auto"
				       : NULL;
	if (!v->action.state) {
		leave(v);
		return;
	}
	snprintf(v->input, sizeof(v->input), DEFAULT_TIME);
	v->mode = key == 'a' ? TOP_CONFIRM : TOP_FORCE_TIME;
}

/* ---- typing ------------------------------------------------------------------------------ */

/* Adds a character as UTF-8, or takes one away. */
static void type(char *text, size_t size, uint32_t key)
{
	size_t n = strlen(text);
	char c[5] = "";

	if (key == TOP_KEY_ERASE) {
		while (n > 0 && ((unsigned char)text[--n] & 0xc0) == 0x80)
			;
		text[n] = '\0';
		return;
	}
	if (key < ' ' || key == 0x7f || key >= TOP_KEY_UP)
		return;
	if (key < 0x80)
		snprintf(c, sizeof(c), "%c", (char)key);
	else if (key < 0x800)
		snprintf(c, sizeof(c), "%c%c", 0xc0 | key >> 6, 0x80 | (key & 0x3f));
	else if (key < 0x10000)
		snprintf(c, sizeof(c), "%c%c%c", 0xe0 | key >> 12, 0x80 | (key >> 6 & 0x3f),
			 0x80 | (key & 0x3f));
	else
		snprintf(c, sizeof(c), "%c%c%c%c", 0xf0 | key >> 18, 0x80 | (key >> 12 & 0x3f),
			 0x80 | (key >> 6 & 0x3f), 0x80 | (key & 0x3f));
	if (n + strlen(c) < size)
		strcat(text, c);
}

static void type_filter(struct top_view *v, const struct top_model *m, uint32_t key)
{
	if (key == TOP_KEY_ESCAPE)
		v->filter[0] = '\0';
	if (key == TOP_KEY_ESCAPE || key == TOP_KEY_ENTER)
		v->mode = TOP_BROWSE;
	else
		type(v->filter, sizeof(v->filter), key);
	top_view_update(v, m);
}

static void type_time(struct top_view *v, uint32_t key)
{
	if (key == TOP_KEY_ESCAPE) {
		leave(v);
	} else if (key != TOP_KEY_ENTER) {
		type(v->input, sizeof(v->input), key);
	} else if (cli_parse_duration(v->input, &v->action.for_ms)) {
		v->mode = TOP_BROWSE;
		say(v, CV_BAD, "Not a duration; write 30s, 5m or 1h. Nothing was changed.");
	} else {
		v->mode = TOP_CONFIRM;
	}
}

/* ---- browsing ---------------------------------------------------------------------------- */

static void move(struct top_view *v, long by)
{
	long to = (long)v->selected + by;

	top_select(v, to < 0 ? 0 : (size_t)to);
}

static bool navigate(struct top_view *v, uint32_t key)
{
	const int page = v->page > 2 ? v->page - 2 : 1;

	switch (key) {
	case 'k':
	case TOP_KEY_UP: move(v, -1); return true;
	case 'j':
	case TOP_KEY_DOWN: move(v, 1); return true;
	case TOP_KEY_PAGE_UP: move(v, -page); return true;
	case TOP_KEY_PAGE_DOWN: move(v, page); return true;
	case 'g':
	case TOP_KEY_HOME: top_select(v, 0); return true;
	case 'G':
	case TOP_KEY_END: top_select(v, v->n_rows); return true;
	default: return false;
	}
}

static enum top_do browse(struct top_view *v, const struct top_model *m, uint32_t key)
{
	if (navigate(v, key))
		return TOP_GO_ON;
	switch (key) {
	case 'q': return TOP_QUIT;
	case 's': v->sort = (v->sort + 1) % TOP_SORTS; break;
	case 'w': v->flat = !v->flat; break;
	case 'p': v->paused = !v->paused; return TOP_GO_ON;
	case '?':
	case 'h': v->mode = TOP_HELP; return TOP_GO_ON;
	case '/': v->mode = TOP_FILTER; return TOP_GO_ON;
	case TOP_KEY_ESCAPE: v->filter[0] = '\0'; break;
	case 'f': v->mode = begin(v, false) ? TOP_FORCE_STATE : TOP_BROWSE; return TOP_GO_ON;
	case 'd': v->mode = begin(v, true) ? TOP_CONFIRM : TOP_BROWSE; return TOP_GO_ON;
	case TOP_KEY_ENTER:
		if (top_selected(v))
			top_toggle(v, top_selected(v));
		break;
	default: return TOP_GO_ON;
	}
	top_view_update(v, m);
	return TOP_GO_ON;
}

enum top_do top_press(struct top_view *v, const struct top_model *m, uint32_t key)
{
	switch (v->mode) {
	case TOP_HELP: v->mode = TOP_BROWSE; return TOP_GO_ON;
	case TOP_FILTER: type_filter(v, m, key); return TOP_GO_ON;
	case TOP_FORCE_STATE: choose_state(v, key); return TOP_GO_ON;
	case TOP_FORCE_TIME: type_time(v, key); return TOP_GO_ON;
	case TOP_CONFIRM:
		if (key != 'y' && key != 'Y') {
			leave(v);
			return TOP_GO_ON;
		}
		v->mode = TOP_BROWSE;
		say(v, CV_DIM, "Asking the daemon ...");
		return TOP_ACT;
	default: return browse(v, m, key);
	}
}
