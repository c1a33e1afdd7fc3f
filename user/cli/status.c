// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `spillway status`: where the daemon is attached, what each pool and listener is at. What it says
 * about slots is in slots.c. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

static void print_flows(const json_t *flows)
{
	if (json_is_null(flows))
		return;
	if (cli_true(flows, "can"))
		printf("; established %lld of %lld", (long long)cli_int(flows, "flows"),
		       (long long)cli_int(flows, "room"));
	else
		printf("; established no: %s", cli_text(flows, "why"));
}

static void print_plane(const json_t *plane)
{
	const char *netns = cli_text(plane, "netns");
	size_t i;
	json_t *at;

	printf("%s%s: ", netns[0] ? "namespace " : "host", netns);
	if (!cli_true(plane, "guarded")) {
		printf("NOT GUARDED: %s\n", cli_text(plane, "error"));
		return;
	}
	json_array_foreach (cli_list(plane, "interfaces"), i, at)
		printf("%s%s (xdp %s, %s)", i ? ", " : "", cli_text(at, "name"),
		       cli_text(at, "xdp"), cli_text(at, "tc"));
	printf("; hand-over %s",
	       cli_true(plane, "hand_over") ? "yes" : cli_text(plane, "hand_over_why"));
	print_flows(json_object_get(plane, "established"));
	printf("\n");
	json_array_foreach (cli_list(plane, "interfaces"), i, at)
		if (cli_text(at, "note")[0])
			printf("  %s: %s\n", cli_text(at, "name"), cli_text(at, "note"));
}

static void count_workers(const json_t *pool, char out[64])
{
	const json_t *workers = cli_list(pool, "workers");
	size_t i, busy = 0, stale = 0;
	json_t *w;

	json_array_foreach (workers, i, w) {
		busy += cli_true(w, "busy");
		stale += cli_true(w, "stale");
	}
	snprintf(out, 64, "%zu of %zu busy%s", busy, json_array_size(workers),
		 stale ? ", some stale" : "");
}

static void print_pools(const json_t *status)
{
	struct cli_table t = {0};
	size_t i;
	json_t *p;

	CLI_ROW(&t, "POOL", "STATE", "SINCE", "KERNEL", "WORKERS", "BY HAND");
	json_array_foreach (cli_list(status, "pools"), i, p) {
		char since[32], left[32], workers[64], hand[128] = "";

		count_workers(p, workers);
		if (cli_true(p, "drain"))
			snprintf(hand, sizeof(hand), "drain");
		else if (cli_text(p, "forced")[0])
			snprintf(hand, sizeof(hand), "forced %s, %s left", cli_text(p, "forced"),
				 cli_time(json_object_get(p, "forced_left_ms"), left));
		CLI_ROW(&t, cli_text(p, "name"), cli_text(p, "state"),
			cli_time(json_object_get(p, "state_ms"), since),
			cli_true(p, "observe") ? "observe" : cli_text(p, "mode"), workers, hand);
	}
	cli_table_print(&t);
}

static void print_listeners(const json_t *status, const json_t *before, double seconds)
{
	struct cli_table t = {0};
	size_t i;
	json_t *l;

	CLI_ROW(&t, "LISTENER", "NAMESPACE", "POOL", "SHED", "KEPT", "WOULD SHED", "HANDED OVER",
		"NOTE");
	json_array_foreach (cli_list(status, "listeners"), i, l) {
		const json_t *old = json_array_get(cli_list(before, "listeners"), i);
		const json_t *kept = json_object_get(l, "established");
		const json_t *old_kept = json_object_get(old, "established");
		char shed[64], keep[64], would[64], over[64];

		CLI_ROW(&t, cli_text(l, "address"), cli_text(l, "netns"), cli_text(l, "pool"),
			cli_rate(l, old, "shed", seconds, shed),
			cli_rate(kept, old_kept, "shed", seconds, keep),
			cli_rate(l, old, "would_shed", seconds, would),
			cli_rate(l, old, "handed_over", seconds, over),
			!cli_true(l, "guarded")			      ? "not guarded, see above"
			: !cli_true(l, "intercept")		      ? "never closed: no hand-over"
			: !cli_true(l, "served")		      ? "no server listens"
			: !strcmp(cli_text(l, "ways"), "established") ? "new connections are let in"
								      : "");
	}
	cli_table_print(&t);
}

static void print_unknown(const json_t *unknown)
{
	if (cli_int(unknown, "events"))
		printf("%lld events were about workers that no pool has, the last one about %s\n",
		       (long long)cli_int(unknown, "events"), cli_text(unknown, "worker_id"));
}

/* What is wrong, or was in the last hour. */
static const char *last_error(const json_t *source, char out[640])
{
	const char *now = cli_text(source, "error"), *last = cli_text(source, "last_error");
	bool over = !now[0] || !strcmp(cli_text(source, "state"), "ok");
	char ago[32];

	if (!over || !last[0])
		return now;
	snprintf(out, 640, "%s ago: %s", cli_time(json_object_get(source, "last_error_ms"), ago),
		 last);
	return out;
}

/* Where workers, or their load, are told for the whole fleet. */
static void print_sources(const json_t *status, const json_t *before, double seconds)
{
	struct cli_table t = {0};
	size_t i;
	json_t *s;

	if (!json_array_size(cli_list(status, "sources")))
		return;
	printf("\n");
	CLI_ROW(&t, "SOURCE", "AT", "STATE", "HEARD", "MESSAGES", "DROPPED", "BAD", "ERRORS",
		"LAST ERROR");
	json_array_foreach (cli_list(status, "sources"), i, s) {
		const json_t *old = json_array_get(cli_list(before, "sources"), i);
		char age[32], messages[64], dropped[64], bad[64], errors[64], error[640];

		CLI_ROW(&t, cli_text(s, "kind"), cli_text(s, "name"), cli_text(s, "state"),
			cli_time(json_object_get(s, "age_ms"), age),
			cli_rate(s, old, "messages", seconds, messages),
			cli_rate(s, old, "dropped", seconds, dropped),
			cli_rate(s, NULL, "bad", seconds, bad),
			cli_rate(s, NULL, "errors", seconds, errors), last_error(s, error));
	}
	cli_table_print(&t);
	print_unknown(json_object_get(status, "unknown_workers"));
}

static void add_feeds(struct cli_table *t, const json_t *pool, const json_t *worker)
{
	size_t i;
	json_t *f;

	json_array_foreach (cli_list(worker, "sources"), i, f) {
		char of[512], by[64], age[32], told[32], failures[32], error[640];

		if (!t->rows)
			CLI_ROW(t, "LOAD OF", "BY", "AGE", "TOLD", "NO LOAD", "LAST ERROR");
		snprintf(of, sizeof(of), "%s/%s", cli_text(pool, "name"), cli_text(worker, "name"));
		snprintf(by, sizeof(by), "%s%s%s", cli_text(f, "kind"),
			 cli_text(f, "publisher")[0] ? " " : "", cli_text(f, "publisher"));
		CLI_ROW(t, of, by, cli_time(json_object_get(f, "age_ms"), age),
			cli_number(json_object_get(f, "told"), told),
			cli_number(json_object_get(f, "failures"), failures), last_error(f, error));
	}
}

/* Who tells the load of each worker, and why it is none. */
static void print_feeds(const json_t *status)
{
	struct cli_table t = {0};
	size_t i, j;
	json_t *p, *w;

	json_array_foreach (cli_list(status, "pools"), i, p)
		json_array_foreach (cli_list(p, "workers"), j, w)
			add_feeds(&t, p, w);
	if (t.rows)
		printf("\n");
	cli_table_print(&t);
}

static void print_status(const json_t *status, const json_t *before, double seconds)
{
	char up[32];
	size_t i;
	json_t *plane;

	printf("spillwayd %s, up %s\n", cli_text(status, "version"),
	       cli_time(json_object_get(status, "uptime_ms"), up));
	json_array_foreach (cli_list(status, "planes"), i, plane)
		print_plane(plane);
	printf("\n");
	print_pools(status);
	printf("\n");
	print_listeners(status, before, seconds);
	cli_print_slots(status, before, seconds);
	print_sources(status, before, seconds);
	print_feeds(status);
	fflush(stdout);
}

static int watch(const struct cli_options *o)
{
	json_t *before = NULL;
	bool terminal = isatty(STDOUT_FILENO);

	for (;;) {
		json_t *status = NULL;
		int code = cli_ask(o, "/v1/status", NULL, &status);

		if (code) {
			json_decref(before);
			return code;
		}
		if (terminal)
			printf("\033[H\033[2J");
		print_status(status, before,
			     (double)(cli_int(status, "uptime_ms") - cli_int(before, "uptime_ms")) /
				     1e3);
		if (!terminal)
			printf("\n");
		json_decref(before);
		before = status;
		sleep(1);
	}
}

int cli_status(const struct cli_options *o, int argc, char **argv)
{
	json_t *status = NULL;
	int code;

	(void)argv;
	if (argc > 0)
		return cli_fail(CLI_USAGE, "status takes no argument");
	if (o->watch && o->json)
		return cli_fail(CLI_USAGE, "--watch and --json exclude each other");
	if (o->watch)
		return watch(o);
	code = cli_ask(o, "/v1/status", NULL, &status);
	if (code)
		return code;
	if (o->json)
		cli_print_json(status);
	else
		print_status(status, NULL, 0);
	json_decref(status);
	return CLI_OK;
}
