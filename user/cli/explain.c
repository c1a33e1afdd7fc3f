// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `spillway explain`: each worker and rank, each threshold, measured value beside limit. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const char *verdict(const json_t *check)
{
	const char *state = cli_text(check, "state");

	return !strcmp(state, "over") ? "BUSY" : !strcmp(state, "clear") ? "free" : state;
}

static void add_checks(struct cli_table *t, const json_t *worker, const char *rank,
		       const json_t *checks)
{
	size_t i;
	json_t *c;

	json_array_foreach (checks, i, c) {
		char measured[32], limit[32], age[32];

		CLI_ROW(t, cli_text(worker, "name"), rank, cli_text(c, "limit"),
			cli_text(c, "signal"), cli_number(json_object_get(c, "measured"), measured),
			cli_number(json_object_get(c, "threshold"), limit),
			cli_time(json_object_get(c, "age_ms"), age), verdict(c));
	}
}

/* The cap, which is a check of its own: in use, held against the slots that there are. */
static void add_cap(struct cli_table *t, const char *worker, const json_t *slots)
{
	const json_t *cap = json_object_get(slots, "cap");
	char inuse[32], limit[32];

	if (!json_is_integer(cap))
		return;
	CLI_ROW(t, worker, "all", "slots", "in_use",
		cli_number(json_object_get(slots, "inuse"), inuse), cli_number(cap, limit), "",
		cli_int(slots, "inuse") >= cli_int(slots, "cap") ? "FULL" : "free");
}

static void add_worker(struct cli_table *t, const json_t *worker)
{
	size_t i, before = t->rows;
	json_t *r;

	json_array_foreach (cli_list(worker, "ranks"), i, r) {
		char rank[32];

		snprintf(rank, sizeof(rank), "%" JSON_INTEGER_FORMAT, cli_int(r, "rank"));
		add_checks(t, worker, rank, cli_list(r, "checks"));
	}
	add_checks(t, worker, "all", cli_list(worker, "checks"));
	add_cap(t, cli_text(worker, "name"), json_object_get(worker, "slots"));
	if (t->rows == before)
		CLI_ROW(t, cli_text(worker, "name"), "", "no load was told yet", "", "", "", "",
			"");
}

static void print_worker_notes(const json_t *worker)
{
	char age[32];

	if (cli_true(worker, "drain"))
		printf("%s is draining for %s: it gets no new connections\n",
		       cli_text(worker, "name"),
		       cli_time(json_object_get(worker, "drain_ms"), age));
	if (cli_true(worker, "suspect"))
		printf("%s is suspect for %s: a connection to it could not be made\n",
		       cli_text(worker, "name"),
		       cli_time(json_object_get(worker, "suspect_ms"), age));
	if (cli_true(worker, "stale"))
		printf("%s is stale: last load %s ago\n", cli_text(worker, "name"),
		       cli_time(json_object_get(worker, "age_ms"), age));
	if (cli_text(worker, "error")[0])
		printf("%s gives no load: %s\n", cli_text(worker, "name"),
		       cli_text(worker, "error"));
}

static void print_pool(const json_t *pool)
{
	struct cli_table t = {0};
	char since[32];
	size_t i;
	json_t *w;

	printf("pool %s is %s for %s%s%s%s\n", cli_text(pool, "name"), cli_text(pool, "state"),
	       cli_time(json_object_get(pool, "state_ms"), since),
	       cli_text(pool, "forced")[0] ? ", forced " : "", cli_text(pool, "forced"),
	       cli_true(pool, "observe") ? " (observe: nothing is shed)" : "");
	if (json_array_size(cli_list(pool, "workers")) == 0) {
		printf("  it has no worker\n");
		return;
	}
	CLI_ROW(&t, "WORKER", "RANK", "THRESHOLD", "SIGNAL", "MEASURED", "LIMIT", "AGE", "VERDICT");
	json_array_foreach (cli_list(pool, "workers"), i, w)
		add_worker(&t, w);
	if (json_is_object(json_object_get(json_object_get(pool, "slots"), "row")))
		add_cap(&t, "(all)", json_object_get(pool, "slots"));
	cli_table_print(&t);
	json_array_foreach (cli_list(pool, "workers"), i, w)
		print_worker_notes(w);
}

int cli_explain(const struct cli_options *o, int argc, char **argv)
{
	const char *pool = argc > 0 ? argv[0] : o->pool;
	char path[512] = "/v1/explain";
	json_t *answer = NULL, *p;
	size_t i;
	int code;

	if (argc > 1)
		return cli_fail(CLI_USAGE, "explain takes one pool at most");
	if (pool) {
		char *escaped = curl_easy_escape(NULL, pool, 0);

		snprintf(path, sizeof(path), "/v1/explain?pool=%s", escaped ? escaped : "");
		curl_free(escaped);
	}
	code = cli_ask(o, path, NULL, &answer);
	if (code)
		return code;
	if (o->json) {
		cli_print_json(answer);
	} else {
		json_array_foreach (cli_list(answer, "pools"), i, p) {
			if (i)
				printf("\n");
			print_pool(p);
		}
	}
	json_decref(answer);
	return CLI_OK;
}
