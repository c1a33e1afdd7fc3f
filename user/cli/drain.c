// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `spillway drain`: a pool or a worker is to run empty, and --wait watches it do so. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/clock.h"

#define POLL_MS 200

struct target {
	const char *pool, *worker; /* both NULL: all pools; a worker's pool is always known */
	bool on;
	char name[300]; /* as it reads in a sentence */
};

/* ---- which ------------------------------------------------------------------------------- */

static int read_arguments(const struct cli_options *o, int argc, char **argv, struct target *t)
{
	const bool said = argc > 0 && (!strcmp(argv[0], "on") || !strcmp(argv[0], "off"));

	t->on = !o->off && !(said && !strcmp(argv[0], "off"));
	if (said && o->off && !strcmp(argv[0], "on"))
		return cli_fail(CLI_USAGE, "on and --off exclude each other");
	argc -= said;
	argv += said;
	if (o->timeout_ms && !o->wait)
		return cli_fail(CLI_USAGE, "--timeout goes with --wait");
	if (o->wait && !t->on)
		return cli_fail(CLI_USAGE, "what is not drained need not be waited for");
	if (argc > (o->pool ? 1 : 2) || (argc == 0 && !said))
		return cli_fail(CLI_USAGE, "drain wants a pool, a worker, a pool and a worker, or "
					   "on or off; see 'spillway drain --help'");
	t->pool = o->pool;
	if (argc == 2)
		t->pool = argv[0];
	if (argc > 0)
		t->worker = argv[argc - 1];
	return CLI_OK;
}

static const json_t *find(const json_t *list, const char *name)
{
	size_t i;
	json_t *e;

	json_array_foreach (list, i, e)
		if (!strcmp(cli_text(e, "name"), name))
			return e;
	return NULL;
}

static const json_t *find_pool(const json_t *status, const struct target *t)
{
	return find(cli_list(status, "pools"), t->pool);
}

/* One name without a pool: is it a pool's, or that of one worker? */
static int resolve(const json_t *status, struct target *t)
{
	const char *name = t->worker, *in = NULL;
	size_t i;
	json_t *p;

	json_array_foreach (cli_list(status, "pools"), i, p) {
		if (!find(cli_list(p, "workers"), name))
			continue;
		if (in)
			return cli_fail(CLI_FAILED,
					"worker '%s' is in pool '%s' and in pool '%s'; write "
					"'spillway drain POOL %s'",
					name, in, cli_text(p, "name"), name);
		in = cli_text(p, "name");
	}
	t->pool = in;
	if (!find(cli_list(status, "pools"), name))
		return in ? CLI_OK
			  : cli_fail(CLI_FAILED,
				     "no pool and no worker is named '%s'; 'spillway status' "
				     "lists them",
				     name);
	if (in)
		return cli_fail(CLI_FAILED,
				"'%s' is a pool and a worker; write 'spillway drain on --pool %s' "
				"or 'spillway drain %s %s'",
				name, name, in, name);
	t->pool = name;
	t->worker = NULL;
	return CLI_OK;
}

/* ---- what is left ------------------------------------------------------------------------ */

/* Is this one of what is drained? It goes by POOL/WORKER, or by POOL where that was counted as a
 * whole, cut to 79 bytes. */
static bool is_of(const char *name, const struct target *t)
{
	char want[80] = "";

	if (!t->pool)
		return true;
	snprintf(want, sizeof(want), "%s/%s", t->pool, t->worker ? t->worker : "");
	if (t->worker)
		return !strcmp(name, want);
	return !strncmp(name, want, strlen(want)) || !strcmp(name, t->pool);
}

/* Connections of what the configuration has no more. */
static json_int_t left_leaving(const json_t *status, const struct target *t)
{
	json_int_t left = 0;
	size_t i;
	json_t *l;

	json_array_foreach (cli_list(status, "leaving"), i, l)
		if (is_of(cli_text(l, "name"), t))
			left += cli_int(l, "inuse");
	return left;
}

/* False: nothing there is counted. */
static bool count_left(const json_t *status, const struct target *t, json_int_t *left)
{
	bool counted = false;
	size_t i;
	json_t *p;

	*left = left_leaving(status, t);
	json_array_foreach (cli_list(status, "pools"), i, p) {
		const json_t *of = p, *slots;

		if (t->pool && strcmp(cli_text(p, "name"), t->pool))
			continue;
		if (t->worker)
			of = find(cli_list(p, "workers"), t->worker);
		slots = json_object_get(of, "slots");
		counted |= json_is_object(slots);
		*left += cli_int(slots, "inuse");
	}
	return counted;
}

/* Did somebody end the drain, or the daemon start anew without it? What the configuration has no
 * more gets no new connections either. */
static bool is_undone(const json_t *status, const struct target *t)
{
	const json_t *of;

	if (!t->pool)
		return false;
	of = find_pool(status, t);
	if (t->worker)
		of = find(cli_list(of, "workers"), t->worker);
	return of && !cli_true(of, "drain");
}

/* What connections may be there for a long time, and what helps. */
static const char *about_idle(const json_t *status, const struct target *t)
{
	const json_t *p = t->pool ? find_pool(status, t) : NULL;

	if (!p || strcmp(cli_text(p, "steer"), "connect"))
		return "idle keep-alive connections stay until their client closes them";
	if (cli_true(json_object_get(p, "slots"), "close_idle"))
		return "idle keep-alive connections are closed, others when their request ends";
	return "idle keep-alive connections stay until the router closes them; "
	       "'pooled_upstreams: close_idle' would close them";
}

/* ---- doing it ---------------------------------------------------------------------------- */

static void name_target(struct target *t)
{
	if (t->worker)
		snprintf(t->name, sizeof(t->name), "worker %s of pool %s", t->worker, t->pool);
	else if (t->pool)
		snprintf(t->name, sizeof(t->name), "pool %s", t->pool);
	else
		snprintf(t->name, sizeof(t->name), "all pools");
}

static void print_change(const json_t *answer, const struct target *t)
{
	size_t i;
	json_t *p;

	if (t->worker) {
		printf("%s %s\n", t->name, t->on ? "is draining" : "takes new connections again");
		return;
	}
	json_array_foreach (cli_list(answer, "pools"), i, p)
		printf("pool %s is %s\n", cli_text(p, "name"), cli_text(p, "state"));
}

static int change(const struct cli_options *o, const struct target *t)
{
	json_t *body = json_pack("{s:b}", "on", t->on), *answer = NULL;
	int code;

	if (t->pool)
		json_object_set_new(body, "pool", json_string(t->pool));
	if (t->worker)
		json_object_set_new(body, "worker", json_string(t->worker));
	code = cli_ask(o, "/v1/drain", body, &answer);
	json_decref(body);
	if (code)
		return code;
	if (o->json)
		cli_print_json(answer);
	else
		print_change(answer, t);
	fflush(stdout);
	json_decref(answer);
	return CLI_OK;
}

/* ---- waiting ----------------------------------------------------------------------------- */

struct wait {
	bool terminal;
	uint64_t start_ms, shown_ms;
	json_int_t first, left;
};

/* On a terminal one line that is written anew, else a line a second. */
static void show(struct wait *w, const struct target *t, uint64_t now_ms)
{
	double seconds = (double)(now_ms - w->start_ms) / 1e3;

	if (!w->terminal && w->shown_ms && now_ms - w->shown_ms < 1000)
		return;
	w->shown_ms = now_ms;
	printf("%s%s: %" JSON_INTEGER_FORMAT " connections left, %.1f/s, %.0f s%s",
	       w->terminal ? "\r\033[K" : "", t->name, w->left,
	       seconds > 0 ? (double)(w->first - w->left) / seconds : 0.0, seconds,
	       w->terminal ? "" : "\n");
	fflush(stdout);
}

static int settle(const struct cli_options *o, const struct wait *w, const struct target *t,
		  const json_t *status, bool *done)
{
	char text[32];
	json_t *ms = json_integer((json_int_t)(sw_now_ms() - w->start_ms));
	int code = CLI_OK;

	cli_time(ms, text);
	json_decref(ms);
	*done = true;
	if (w->left <= 0) {
		if (!o->json)
			printf("%s%s is empty after %s\n", w->terminal ? "\r\033[K" : "", t->name,
			       text);
	} else if (is_undone(status, t)) {
		code = cli_fail(CLI_FAILED, "%s is not draining any more", t->name);
	} else if (o->timeout_ms && sw_now_ms() - w->start_ms >= o->timeout_ms) {
		code = cli_fail(CLI_TIMED_OUT,
				"%s has %" JSON_INTEGER_FORMAT " connections left after %s; %s",
				t->name, w->left, text, about_idle(status, t));
	} else {
		*done = false;
	}
	return code;
}

static int wait_until_empty(const struct cli_options *o, const struct target *t)
{
	struct wait w = {.terminal = isatty(STDOUT_FILENO), .start_ms = sw_now_ms()};
	bool done = false, first = true;
	int code = CLI_OK;

	while (!done) {
		json_t *status = NULL;

		if (!first)
			usleep(POLL_MS * 1000);
		code = cli_ask(o, "/v1/status", NULL, &status);
		if (code)
			return code;
		count_left(status, t, &w.left);
		if (first)
			w.first = w.left;
		if (first && w.left && !o->json)
			printf("%s\n", about_idle(status, t));
		if (w.left && !o->json)
			show(&w, t, sw_now_ms());
		code = settle(o, &w, t, status, &done);
		first = false;
		json_decref(status);
	}
	return code;
}

int cli_drain(const struct cli_options *o, int argc, char **argv)
{
	struct target t = {0};
	json_t *status = NULL;
	json_int_t left;
	int code = read_arguments(o, argc, argv, &t);

	if (!code && (t.worker || o->wait))
		code = cli_ask(o, "/v1/status", NULL, &status);
	if (!code && t.worker && !t.pool)
		code = resolve(status, &t);
	name_target(&t);
	if (!code && o->wait && (!t.pool || find_pool(status, &t)) &&
	    !count_left(status, &t, &left))
		code = cli_fail(CLI_FAILED,
				"%s: connections are neither steered nor counted there, so nothing "
				"tells when the last one ends",
				t.name);
	if (!code)
		code = change(o, &t);
	if (!code && o->wait)
		code = wait_until_empty(o, &t);
	json_decref(status);
	return code;
}
