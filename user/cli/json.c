// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Values of the daemon's answers, as people read them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

const char *cli_text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

bool cli_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

json_int_t cli_int(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

const json_t *cli_list(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

const char *cli_number(const json_t *value, char out[32])
{
	if (json_is_number(value))
		snprintf(out, 32, "%.10g", json_number_value(value));
	else
		snprintf(out, 32, "-");
	return out;
}

const char *cli_time(const json_t *value, char out[32])
{
	double ms = json_number_value(value);
	unsigned long s = (unsigned long)(ms / 1000);

	if (!json_is_number(value))
		snprintf(out, 32, "-");
	else if (ms < 1000)
		snprintf(out, 32, "%.0fms", ms);
	else if (s < 60)
		snprintf(out, 32, "%.1fs", ms / 1000);
	else if (s < 3600)
		snprintf(out, 32, "%lum%02lus", s / 60, s % 60);
	else
		snprintf(out, 32, "%luh%02lum", s / 3600, s / 60 % 60);
	return out;
}

const char *cli_rate(const json_t *object, const json_t *old, const char *key, double seconds,
		     char out[64])
{
	json_int_t now = cli_int(object, key), then = cli_int(old, key);

	if (old && seconds > 0 && now >= then)
		snprintf(out, 64, "%" JSON_INTEGER_FORMAT " (%.0f/s)", now,
			 (double)(now - then) / seconds);
	else
		snprintf(out, 64, "%" JSON_INTEGER_FORMAT, now);
	return out;
}

int cli_parse_duration(const char *text, uint64_t *ms)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = {{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"", 1e3}};
	char *end;
	double v = strtod(text, &end);

	/* strtod() alone would take "0x1p3", "inf" and "  5" */
	if (end == text || strspn(text, "0123456789.") != (size_t)(end - text))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		v *= units[i].ms;
		if (!(v >= 1 && v <= 1e12))
			return -EINVAL;
		*ms = (uint64_t)llround(v);
		return 0;
	}
	return -EINVAL;
}
