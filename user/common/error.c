// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Errors and logs; see error.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/error.h"

static enum sw_level max_level = SW_INFO;

int sw_fail(struct sw_error *e, int err, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return err;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return err;
}

void sw_log_level(enum sw_level level)
{
	max_level = level;
}

void sw_log(enum sw_level level, const char *fmt, ...)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	static const char *const journal[] = {"<3>", "<4>", "<6>", "<7>"};
	char line[1024];
	va_list ap;

	if (level > max_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (getenv("JOURNAL_STREAM")) {
		fprintf(stderr, "%s%s\n", journal[level], line);
	} else {
		char when[32];
		struct timespec ts;
		struct tm tm;

		clock_gettime(CLOCK_REALTIME, &ts);
		gmtime_r(&ts.tv_sec, &tm);
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
		fprintf(stderr, "%s.%03ldZ %s: %s\n", when, ts.tv_nsec / 1000000, names[level],
			line);
	}
}
