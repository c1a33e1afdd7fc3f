// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `spillway force`: a pool's state set by hand. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static void print_pools(const json_t *answer)
{
	size_t i;
	json_t *p;

	json_array_foreach (cli_list(answer, "pools"), i, p) {
		char left[32];

		printf("pool %s is %s", cli_text(p, "name"), cli_text(p, "state"));
		if (cli_text(p, "forced")[0])
			printf(", forced for %s",
			       cli_time(json_object_get(p, "forced_left_ms"), left));
		printf("\n");
	}
}

int cli_force(const struct cli_options *o, int argc, char **argv)
{
	json_t *body, *answer = NULL;
	int code;

	if (argc != 1 ||
	    (strcmp(argv[0], "saturated") && strcmp(argv[0], "open") && strcmp(argv[0], "auto")))
		return cli_fail(CLI_USAGE, "force wants one of saturated, open, auto");
	body = json_pack("{s:s}", "state", argv[0]);
	if (o->for_ms)
		json_object_set_new(body, "for_ms", json_integer((json_int_t)o->for_ms));
	if (o->pool)
		json_object_set_new(body, "pool", json_string(o->pool));
	code = cli_ask(o, "/v1/force", body, &answer);
	json_decref(body);
	if (code)
		return code;
	if (o->json)
		cli_print_json(answer);
	else
		print_pools(answer);
	json_decref(answer);
	return CLI_OK;
}
