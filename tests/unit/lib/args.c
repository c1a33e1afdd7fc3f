// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Command lines; see args.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "args.h"

#define MAX_ARGS 64

enum sw_args_result args_run(const char *line, struct sw_config **out, struct sw_error *err)
{
	char copy[1024], *argv[MAX_ARGS + 1] = {"spillwayd"}, *rest = copy;
	enum sw_args_result result;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	while ((argv[argc] = strsep(&rest, " ")) && argc < MAX_ARGS)
		argc += argv[argc][0] != '\0';
	argv[argc] = NULL;
	result = sw_config_from_args(argc, argv, out, err);
	memset(copy, '#', sizeof(copy)); /* nothing may point into it */
	return result;
}

struct sw_config *args_good(const char *line)
{
	struct sw_config *c = NULL;
	struct sw_error err = {""};

	if (args_run(line, &c, &err) != SW_ARGS_RUN)
		fail_msg("%s: %s", line, err.text);
	return c;
}
