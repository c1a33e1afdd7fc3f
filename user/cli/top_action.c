// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an operator confirmed in `spillway top`, as a request, and what its answer says. */
#include <stdio.h>
#include <string.h>

#include "cli/top.h"

const char *top_request(const struct top_action *a, json_t **body)
{
	if (a->drain) {
		*body = json_pack("{s:s, s:b}", "pool", a->pool, "on", a->on);
		if (a->worker[0])
			json_object_set_new(*body, "worker", json_string(a->worker));
		return "/v1/drain";
	}
	*body = json_pack("{s:s, s:s}", "pool", a->pool, "state", a->state);
	if (a->for_ms)
		json_object_set_new(*body, "for_ms", json_integer((json_int_t)a->for_ms));
	return "/v1/force";
}

void top_outcome(const struct top_action *a, const json_t *answer, char out[512])
{
	const json_t *pool = json_array_get(cli_list(answer, "pools"), 0);
	char left[32], forced[64] = "";

	if (a->drain && a->worker[0]) {
		snprintf(out, 512, "Worker %.200s of pool %.200s %s.", a->worker, a->pool,
			 a->on ? "is draining" : "takes new connections again");
		return;
	}
	if (cli_text(pool, "forced")[0])
		snprintf(forced, sizeof(forced), ", forced for %s",
			 cli_time(json_object_get(pool, "forced_left_ms"), left));
	snprintf(out, 512, "Pool %.200s is %s%s.", a->pool, cli_text(pool, "state"), forced);
}
