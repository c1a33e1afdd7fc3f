// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `spillway force` and `spillway drain`: what an operator sets by hand. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* Sends a change, takes `body` over, and says what the pools are now. */
static int change(const struct cli_options *o, const char *path, json_t *body)
{
	json_t *answer = NULL, *p;
	int code;
	size_t i;

	if (o->pool)
		json_object_set_new(body, "pool", json_string(o->pool));
	code = cli_ask(o, path, body, &answer);
	json_decref(body);
	if (code)
		return code;
	if (o->json)
		cli_print_json(answer);
	else
		json_array_foreach (cli_list(answer, "pools"), i, p) {
			char left[32];

			printf("pool %s is %s", cli_text(p, "name"), cli_text(p, "state"));
			if (cli_text(p, "forced")[0])
				printf(", forced for %s",
				       cli_time(json_object_get(p, "forced_left_ms"), left));
			printf("\n");
		}
	json_decref(answer);
	return CLI_OK;
}

int cli_force(const struct cli_options *o, int argc, char **argv)
{
	json_t *body;

	if (argc != 1 ||
	    (strcmp(argv[0], "saturated") && strcmp(argv[0], "open") && strcmp(argv[0], "auto")))
		return cli_fail(CLI_USAGE, "force wants one of saturated, open, auto");
	body = json_pack("{s:s}", "state", argv[0]);
	if (o->for_ms)
		json_object_set_new(body, "for_ms", json_integer((json_int_t)o->for_ms));
	return change(o, "/v1/force", body);
}

int cli_drain(const struct cli_options *o, int argc, char **argv)
{
	if (argc != 1 || (strcmp(argv[0], "on") && strcmp(argv[0], "off")))
		return cli_fail(CLI_USAGE, "drain wants on or off");
	return change(o, "/v1/drain", json_pack("{s:b}", "on", !strcmp(argv[0], "on")));
}
