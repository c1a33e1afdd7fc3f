// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `spillway top`: one picture of all pools and workers, drawn again every second, and keys to act
 * on it. Ties daemon, model, view and terminal together; each has its own file. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/feed.h"
#include "cli/screen.h"
#include "cli/top.h"
#include "common/clock.h"

#define DEFAULT_WIDTH  80
#define DEFAULT_HEIGHT 24
#define HISTORY	       "/v1/history"

struct top {
	const struct cli_options *o;
	struct top_model model;
	struct top_view view;
	struct canvas canvas;
	bool ascii;

	struct feed *feed;
	json_t *history;     /* the last one, until the next status is shown with it */
	uint64_t next_ms;    /* when to ask again */
	uint64_t heard_ms;   /* the last answer */
	struct sw_error err; /* why the daemon does not answer; empty: it does */
};

static int no_memory(void)
{
	return cli_fail(CLI_FAILED, "no memory");
}

/* Takes over the status, and the history that came before it. -ENOMEM. */
static int take_status(struct top *t, json_t *status)
{
	const time_t now = time(NULL);
	struct tm tm;
	int err = top_model_read(&t->model, status, t->history);

	t->history = NULL;
	t->heard_ms = sw_now_ms();
	localtime_r(&now, &tm);
	strftime(t->model.clock, sizeof(t->model.clock), "%F %T %Z", &tm);
	return err ? err : top_view_update(&t->view, &t->model);
}

/* Of the first picture, whose absence is an error. */
static int ask_first(struct top *t)
{
	json_t *status = NULL;
	int code = cli_ask(t->o, "/v1/status", NULL, &status);

	if (code)
		return code;
	cli_try(t->o, HISTORY, NULL, &t->history, NULL); /* rates stay unknown without it */
	return take_status(t, status) ? no_memory() : CLI_OK;
}

static bool draw(struct top *t, int w, int h)
{
	t->model.gone = t->err.text[0] ? t->err.text : NULL;
	t->model.gone_s = (double)(sw_now_ms() - t->heard_ms) / 1e3;
	if (!cv_start(&t->canvas, w, h, t->ascii))
		return false;
	top_draw(&t->canvas, &t->model, &t->view);
	return true;
}

/* ---- once -------------------------------------------------------------------------------- */

static int print_once(struct top *t)
{
	struct winsize size = {.ws_col = DEFAULT_WIDTH, .ws_row = DEFAULT_HEIGHT};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); /* fails, and changes nothing, on no terminal */
	t->view.once = true;
	if (!draw(t, t->o->width ? (int)t->o->width : size.ws_col,
		  t->o->height ? (int)t->o->height : size.ws_row))
		return no_memory();
	cv_print(&t->canvas, stdout);
	return CLI_OK;
}

static int print_json(const struct cli_options *o)
{
	json_t *status = NULL;
	int code = cli_ask(o, "/v1/status", NULL, &status);

	if (!code)
		cli_print_json(status);
	json_decref(status);
	return code;
}

/* ---- on a terminal ----------------------------------------------------------------------- */

static void send_action(struct top *t)
{
	json_t *body = NULL;
	const char *path = top_request(&t->view.action, &body);

	if (!body || !feed_ask(t->feed, FEED_ACTION, path, body)) {
		t->view.message_style = CV_BAD;
		snprintf(t->view.message, sizeof(t->view.message),
			 "Not sent: the daemon has not answered the last one yet.");
	}
	json_decref(body);
}

static void take_outcome(struct top *t, const struct feed_answer *a)
{
	t->view.message_style = a->code ? CV_BAD : CV_GOOD;
	if (a->code)
		snprintf(t->view.message, sizeof(t->view.message), "Failed: %.480s", a->err.text);
	else
		top_outcome(&t->view.action, a->json, t->view.message);
	t->next_ms = 0; /* show what it did */
}

static int take_answer(struct top *t, enum feed_kind kind, struct feed_answer *a)
{
	switch (kind) {
	case FEED_HISTORY:
		json_decref(t->history);
		t->history = a->json;
		return 0;
	case FEED_ACTION:
		take_outcome(t, a);
		json_decref(a->json);
		return 0;
	default: t->err = a->err; return a->code ? 0 : take_status(t, a->json);
	}
}

/* The history first, so that it is there when the status comes. */
static void ask(struct top *t)
{
	if (t->view.paused || sw_now_ms() < t->next_ms || feed_waits(t->feed, FEED_STATUS))
		return;
	feed_ask(t->feed, FEED_HISTORY, HISTORY, NULL);
	feed_ask(t->feed, FEED_STATUS, "/v1/status", NULL);
	t->next_ms = sw_now_ms() + t->o->interval_ms;
}

/* Until there may be something to do: at most a second, which is what "gone for" counts in. */
static int pause_ms(const struct top *t)
{
	const uint64_t now_ms = sw_now_ms();

	if (t->view.paused || feed_waits(t->feed, FEED_STATUS) || t->next_ms > now_ms + 1000)
		return 1000;
	return t->next_ms > now_ms ? (int)(t->next_ms - now_ms) : 0;
}

static int step(struct top *t, bool *quit)
{
	struct feed_answer answer;
	enum feed_kind kind;
	uint32_t key;
	int w, h;

	screen_size(&w, &h);
	if (!draw(t, w, h))
		return -ENOMEM;
	screen_show(&t->canvas);
	ask(t);
	feed_wait(t->feed, STDIN_FILENO, pause_ms(t));
	while (feed_take(t->feed, &kind, &answer))
		if (take_answer(t, kind, &answer))
			return -ENOMEM;
	while (screen_key(&key)) {
		enum top_do todo = top_press(&t->view, &t->model, key);

		if (todo == TOP_ACT)
			send_action(t);
		*quit |= todo == TOP_QUIT;
	}
	return 0;
}

static int run(struct top *t)
{
	bool quit = false;
	int err = 0;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return cli_fail(CLI_USAGE, "top needs a terminal; 'spillway top --once' prints one "
					   "picture without");
	t->feed = feed_new(t->o);
	if (!t->feed)
		return no_memory();
	if (!screen_open())
		return cli_fail(CLI_FAILED, "ncurses cannot use this terminal; is TERM right? "
					    "'spillway top --once' prints one picture without");
	t->next_ms = sw_now_ms() + t->o->interval_ms;
	while (!quit && !err)
		err = step(t, &quit);
	screen_close();
	return err ? no_memory() : CLI_OK;
}

int cli_top(const struct cli_options *o, int argc, char **argv)
{
	struct cli_options own = *o;
	struct top t = {.o = &own};
	int code;

	(void)argv;
	if (argc > 0)
		return cli_fail(CLI_USAGE, "top takes no argument");
	if (!o->once && (o->width || o->height))
		return cli_fail(CLI_USAGE, "--width and --height go with --once");
	if (o->json)
		return print_json(o);
	own.interval_ms = o->interval_ms ? o->interval_ms : 1000;
	setlocale(LC_CTYPE, "");
	t.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	gethostname(t.model.host, sizeof(t.model.host) - 1);
	code = ask_first(&t);
	if (!code)
		code = o->once ? print_once(&t) : run(&t);
	feed_free(t.feed);
	json_decref(t.history);
	top_view_free(&t.view);
	top_model_free(&t.model);
	cv_free(&t.canvas);
	return code;
}
