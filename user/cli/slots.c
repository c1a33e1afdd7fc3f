// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What `spillway status` says about slots: a line for each pool that is steered or counted, a table
 * of its workers where each has a row of its own, and what is leaving. */
#include <stdio.h>

#include "cli/cli.h"

#define D "%" JSON_INTEGER_FORMAT

/* "12 / 8 + 16": in use, and N + Q; "12 / 6 (8 + 16)" where this host may use only a share or
 * another limit is lower; "12 / 64" without an N; "12" without any limit. */
static const char *of_cap(const json_t *slots, char out[96])
{
	const json_int_t n = cli_int(slots, "engine_limit"), q = cli_int(slots, "queue_limit");
	const json_int_t inuse = cli_int(slots, "inuse"), cap = cli_int(slots, "cap");

	if (!json_is_integer(json_object_get(slots, "cap")))
		snprintf(out, 96, D, inuse);
	else if (!n)
		snprintf(out, 96, D " / " D, inuse, cap);
	else if (n + q == cap)
		snprintf(out, 96, D " / " D " + " D, inuse, n, q);
	else
		snprintf(out, 96, D " / " D " (" D " + " D ")", inuse, cap, n, q);
	return out;
}

static void add_worker(struct cli_table *t, const json_t *worker, const json_t *before,
		       double seconds)
{
	const json_t *slots = json_object_get(worker, "slots"),
		     *old = json_object_get(before, "slots");
	char busy[32], suspect[32], drain[32], use[96], engine[32], queue[32], picks[64],
		refusals[64];

	if (!json_is_object(slots))
		return;
	CLI_ROW(t, cli_text(worker, "name"), cli_time(json_object_get(worker, "busy_ms"), busy),
		cli_time(json_object_get(worker, "suspect_ms"), suspect),
		cli_time(json_object_get(worker, "drain_ms"), drain), of_cap(slots, use),
		cli_number(json_object_get(slots, "engine"), engine),
		cli_number(json_object_get(slots, "queue"), queue),
		cli_rate(slots, old, "picks", seconds, picks),
		cli_rate(slots, old, "refusals", seconds, refusals));
}

static void print_workers(const json_t *pool, const json_t *before, double seconds)
{
	struct cli_table t = {0};
	size_t i;
	json_t *w;

	CLI_ROW(&t, "WORKER", "BUSY", "SUSPECT", "DRAINING", "IN USE / N + Q", "ENGINE", "QUEUE",
		"PICKS", "REFUSALS");
	json_array_foreach (cli_list(pool, "workers"), i, w)
		add_worker(&t, w, json_array_get(cli_list(before, "workers"), i), seconds);
	cli_table_print(&t);
}

/* "steered by connect at 10.0.0.1:80, [fd00::1]:80" */
static void print_how(const json_t *pool, const json_t *slots)
{
	size_t i;
	json_t *at;

	printf("\npool %s, ", cli_text(pool, "name"));
	if (cli_text(pool, "steer")[0])
		printf("steered by %s", cli_text(pool, "steer"));
	else
		printf("counted by %s", cli_text(slots, "count"));
	json_array_foreach (cli_list(slots, "virtuals"), i, at)
		printf("%s%s", i ? ", " : " at ", json_string_value(at));
}

static void print_use(const json_t *slots)
{
	char cap[32], free[32];

	printf(": " D, cli_int(slots, "inuse"));
	if (json_is_integer(json_object_get(slots, "cap")))
		printf(" of %s slots in use, %s free%s",
		       cli_number(json_object_get(slots, "cap"), cap),
		       cli_number(json_object_get(slots, "free"), free),
		       cli_true(slots, "full") ? ", FULL" : "");
	else
		printf(" slots in use");
}

/* What became of new connections, those that there were. */
static void print_counts(const json_t *slots)
{
	const char *name, *before = "  ";
	json_t *n;

	json_object_foreach (json_object_get(slots, "counts"), name, n) {
		printf("%s%s " D, before, name, json_integer_value(n));
		before = ", ";
	}
	if (*before == ',')
		printf("\n");
}

static void print_pool(const json_t *pool, const json_t *before, double seconds)
{
	const json_t *slots = json_object_get(pool, "slots"), *row = json_object_get(slots, "row");
	const json_t *old = json_object_get(json_object_get(before, "slots"), "row");
	char picks[64], refusals[64];

	print_how(pool, slots);
	print_use(slots);
	if (json_is_object(row))
		printf(" (engine " D ", queue " D "), %s picks, %s refusals",
		       cli_int(slots, "engine"), cli_int(slots, "queue"),
		       cli_rate(row, old, "picks", seconds, picks),
		       cli_rate(row, old, "refusals", seconds, refusals));
	printf("\n");
	print_counts(slots);
	if (!json_is_object(row) && json_array_size(cli_list(pool, "workers")))
		print_workers(pool, before, seconds);
}

static void print_leaving(const json_t *status)
{
	size_t i;
	json_t *l;

	json_array_foreach (cli_list(status, "leaving"), i, l) {
		char since[32];

		printf("%s%s is gone from the configuration for %s, " D " connections left\n",
		       i ? "" : "\n", cli_text(l, "name"),
		       cli_time(json_object_get(l, "leaving_ms"), since), cli_int(l, "inuse"));
	}
}

void cli_print_slots(const json_t *status, const json_t *before, double seconds)
{
	const json_t *recount = json_object_get(status, "recount");
	size_t i;
	json_t *p;

	json_array_foreach (cli_list(status, "pools"), i, p)
		if (json_is_object(json_object_get(p, "slots")))
			print_pool(p, json_array_get(cli_list(before, "pools"), i), seconds);
	print_leaving(status);
	if (cli_int(recount, "corrected"))
		printf("\nthe last recount that found something wrong put " D " slots of " D
		       " rows right\n",
		       cli_int(recount, "corrected"), cli_int(recount, "rows"));
}
