// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* libbpf's messages; see bpflog.h. */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "kernel/bpflog.h"

#define LAST_LINES 20
#define DRIVER	   "Kernel error message: "

static char reason[160];

/* Lines of a verifier log that give no reason. */
static bool is_summary(const char *line)
{
	static const char *const starts[] = {"processed ", "verification time", "stack depth",
					     "max_states", "-- "};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (!strncmp(line, starts[i], strlen(starts[i])))
			return true;
	return strstr(line, "END PROG LOAD LOG");
}

static void take(char *text)
{
	bool verifier = strstr(text, "BEGIN PROG LOAD LOG");
	char *lines[LAST_LINES], *line, *said;
	unsigned n = 0;

	while ((line = strsep(&text, "\n"))) {
		if (!*line)
			continue;
		lines[n++ % LAST_LINES] = line;
		said = strstr(line, DRIVER);
		if (said)
			said += strlen(DRIVER);
		else if (verifier && !is_summary(line))
			said = line;
		if (said)
			snprintf(reason, sizeof(reason), "%s", said);
	}
	for (unsigned i = n > LAST_LINES ? n - LAST_LINES : 0; i < n; i++)
		sw_log(SW_DEBUG, "%s", lines[i % LAST_LINES]);
}

static int print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char *text = NULL;
	int n;

	if (level == LIBBPF_DEBUG)
		return 0;
	n = vasprintf(&text, fmt, ap);
	if (n < 0)
		return n;
	take(text);
	free(text);
	return n;
}

void sw_bpflog_start(void)
{
	reason[0] = 0;
	libbpf_set_print(print);
}

const char *sw_bpflog_reason(void)
{
	return reason;
}
