// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `spillway threshold`: what workers are held against, shown, and set over /busy_threshold. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* Those that can be set while the daemon runs; others are the configuration's alone. */
static const char *const names[] = {
	"active_decode_blocks_threshold",
	"active_prefill_tokens_threshold",
	"active_prefill_tokens_threshold_frac",
};

#define N_NAMES (sizeof(names) / sizeof(names[0]))

/* ---- arguments --------------------------------------------------------------------------- */

/* The name that a text of `n` bytes is, with its "_threshold" or without; NULL: none. */
static const char *find_name(const char *text, size_t n)
{
	static const char word[] = "_threshold";

	for (size_t i = 0; i < N_NAMES; i++) {
		const char *at = strstr(names[i], word);
		char brief[64];

		snprintf(brief, sizeof(brief), "%.*s%s", (int)(at - names[i]), names[i],
			 at + strlen(word));
		if ((n == strlen(names[i]) && !strncmp(text, names[i], n)) ||
		    (n == strlen(brief) && !strncmp(text, brief, n)))
			return names[i];
	}
	return NULL;
}

static int unknown_name(const char *text, size_t n)
{
	return cli_fail(CLI_USAGE, "threshold: '%.*s' cannot be set here; what can: %s, %s, %s",
			(int)n, text, names[0], names[1], names[2]);
}

/* NAME=VALUE into the values to set. */
static int read_value(const char *text, json_t *values)
{
	size_t n = strcspn(text, "=");
	const char *name = find_name(text, n);
	json_t *value;

	if (!text[n])
		return cli_fail(CLI_USAGE, "threshold: '%s' is not NAME=VALUE", text);
	if (!name)
		return unknown_name(text, n);
	if (json_object_get(values, name))
		return cli_fail(CLI_USAGE, "threshold: %s is given twice", name);
	value = json_loads(text + n + 1, JSON_DECODE_ANY, NULL);
	if (!json_is_number(value)) {
		json_decref(value);
		return cli_fail(CLI_USAGE,
				"threshold: %s: '%s' is not a number below 2^63; write 0.85 or "
				"10000",
				name, text + n + 1);
	}
	json_object_set_new(values, name, value);
	return CLI_OK;
}

/* What is to change: values to set, or one name to clear; that is NULL for all. */
struct change {
	json_t *values;
	const char *name;
};

static int read_change(const struct cli_options *o, int argc, char **argv, struct change *c)
{
	int code = CLI_OK;

	if (o->clear && (argc < 1 || argc > 2))
		return cli_fail(CLI_USAGE, "threshold --clear wants a pool, and one name or none");
	if (o->clear && argc == 2) {
		c->name = find_name(argv[1], strlen(argv[1]));
		return c->name ? CLI_OK : unknown_name(argv[1], strlen(argv[1]));
	}
	for (int i = 1; !code && i < argc; i++)
		code = read_value(argv[i], c->values);
	return code;
}

/* ---- the daemon -------------------------------------------------------------------------- */

/* The model of a pool; NULL: there is no such pool. */
static const char *model_of(const json_t *pools, const char *name)
{
	size_t i;
	json_t *p;

	json_array_foreach (cli_list(pools, "pools"), i, p)
		if (!strcmp(cli_text(p, "name"), name))
			return cli_text(p, "model");
	return NULL;
}

static int set(const struct cli_options *o, const char *model, json_t *values)
{
	json_t *answer = NULL;
	int code;

	json_object_set_new(values, "model", json_string(model));
	code = cli_ask(o, "/busy_threshold", values, &answer);
	json_decref(answer);
	return code;
}

static int clear(const struct cli_options *o, const char *model, const char *name)
{
	char *escaped = curl_easy_escape(NULL, model, 0), path[900];
	json_t *answer = NULL;
	int code;

	/* the model comes last: of one that is too long nothing is cleared */
	snprintf(path, sizeof(path), "/busy_threshold?%s%s%smodel=%s", name ? "threshold=" : "",
		 name ? name : "", name ? "&" : "", escaped ? escaped : "");
	curl_free(escaped);
	code = cli_delete(o, path, &answer);
	json_decref(answer);
	return code;
}

/* ---- what is shown ----------------------------------------------------------------------- */

static void add_pool(struct cli_table *t, const json_t *p)
{
	size_t i;
	json_t *one;

	json_array_foreach (cli_list(p, "thresholds"), i, one) {
		char value[32];

		CLI_ROW(t, cli_text(p, "name"), cli_text(p, "model"), cli_text(one, "name"),
			cli_number(json_object_get(one, "value"), value), cli_text(one, "from"));
	}
	if (!i)
		CLI_ROW(t, cli_text(p, "name"), cli_text(p, "model"), "", "", "");
}

/* The pool of that name, those of that model, or all. */
static void show(const struct cli_options *o, const json_t *pools, const char *name,
		 const char *model)
{
	json_t *list = json_array(), *out = json_pack("{s:o}", "pools", list), *p;
	struct cli_table t = {0};
	size_t i;

	CLI_ROW(&t, "POOL", "MODEL", "THRESHOLD", "VALUE", "FROM");
	json_array_foreach (cli_list(pools, "pools"), i, p) {
		if ((name && strcmp(cli_text(p, "name"), name)) ||
		    (model && strcmp(cli_text(p, "model"), model)))
			continue;
		json_array_append_new(list, json_pack("{s:O, s:O, s:O}", "name",
						      json_object_get(p, "name"), "model",
						      json_object_get(p, "model"), "thresholds",
						      json_object_get(p, "thresholds")));
		add_pool(&t, p);
	}
	if (o->json)
		cli_print_json(out);
	else
		cli_table_print(&t);
	json_decref(out);
}

/* ---- doing it ---------------------------------------------------------------------------- */

/* Asks for the pools, and finds the one of that name, if one is given. */
static int ask(const struct cli_options *o, const char *name, json_t **pools, const char **model)
{
	int code = cli_ask(o, "/v1/pools", NULL, pools);

	*model = !code && name ? model_of(*pools, name) : NULL;
	if (!code && name && !*model)
		code = cli_fail(CLI_FAILED, "no pool is named '%s'", name);
	return code;
}

/* All pools of the model change, so all are shown. */
static int change(const struct cli_options *o, const char *model, const struct change *c)
{
	json_t *pools = NULL;
	int code = o->clear ? clear(o, model, c->name) : set(o, model, c->values);

	if (!code)
		code = cli_ask(o, "/v1/pools", NULL, &pools);
	if (!code)
		show(o, pools, NULL, model);
	json_decref(pools);
	return code;
}

int cli_threshold(const struct cli_options *o, int argc, char **argv)
{
	struct change c = {.values = json_object()};
	const char *name = argc > 0 ? argv[0] : NULL, *model;
	json_t *pools = NULL;
	int code = read_change(o, argc, argv, &c);

	if (!code)
		code = ask(o, name, &pools, &model);
	if (!code && (o->clear || argc > 1))
		code = change(o, model, &c);
	else if (!code)
		show(o, pools, name, NULL);
	json_decref(c.values);
	json_decref(pools);
	return code;
}
