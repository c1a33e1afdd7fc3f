// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the command lines of the tools have in common: numbers, complaints, the limit on files.

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "args.h"

void args_wrong(const char *what, const char *value)
{
	fprintf(stderr, "%s: %s: '%s'; see %s --help\n", program_invocation_short_name, what, value,
		program_invocation_short_name);
	exit(2);
}

uint64_t args_number(const char *text, uint64_t min, uint64_t max)
{
	char what[80], *end;
	uint64_t n = strtoull(text, &end, 10);

	snprintf(what, sizeof(what), "not a number from %" PRIu64 " to %" PRIu64, min, max);
	if (*text < '0' || *text > '9' || *end || n < min || n > max)
		args_wrong(what, text);
	return n;
}

void args_many_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}
