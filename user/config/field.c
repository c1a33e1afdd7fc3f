// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Single fields of a document; see field.h. Which fields there are is build.c's matter. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/field.h"

#define NAME_BYTES 128

struct sw_place sw_part(const struct sw_place *at, const char *fmt, ...)
{
	struct sw_place part = {.build = at->build};
	int n = snprintf(part.path, sizeof(part.path), "%s%s", at->path, at->path[0] ? "." : "");
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(part.path + n, sizeof(part.path) - (size_t)n, fmt, ap);
	va_end(ap);
	return part;
}

/* "FILE:LINE: PATH" or "--flag". */
static void format_place(const struct sw_place *at, const char *key, char *out, size_t size)
{
	const struct sw_origin *origin = at->build->origin;
	char path[160];

	snprintf(path, sizeof(path), "%s%s%s", at->path, at->path[0] && key ? "." : "",
		 key ? key : "");
	if (origin->file)
		snprintf(out, size, "%s:%u: %s", origin->file, sw_yaml_line(origin->yaml, path),
			 path);
	else
		sw_flag_of(path, out, size);
}

void sw_bad(const struct sw_place *at, const char *key, const char *fmt, ...)
{
	struct sw_build *b = at->build;
	char place[320], message[320];
	va_list ap;

	if (b->err)
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	format_place(at, key, place, sizeof(place));
	b->err = sw_fail(b->error, -EINVAL, "%s: %s", place, message);
}

void sw_warn(const struct sw_place *at, const char *key, const char *fmt, ...)
{
	char place[320], message[320];
	va_list ap;

	if (at->build->err || at->build->origin->again)
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	format_place(at, key, place, sizeof(place));
	sw_log(SW_WARN, "%s: %s", place, message);
}

uint64_t sw_take_uint(const struct sw_place *at, const char *key, const char *text, uint64_t min,
		      uint64_t max, uint64_t absent)
{
	unsigned long long value;

	if (!text)
		return absent;
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (!text[0] || text[strspn(text, "0123456789")])
		sw_bad(at, key, "'%.100s' is not a whole number; allowed: %llu to %llu", text,
		       (unsigned long long)min, (unsigned long long)max);
	else if (errno || value < min || value > max)
		sw_bad(at, key, "'%.100s' is out of range; allowed: %llu to %llu", text,
		       (unsigned long long)min, (unsigned long long)max);
	return value;
}

double sw_take_real(const struct sw_place *at, const char *key, const char *text, double absent)
{
	double value;
	char *end;

	if (!text)
		return absent;
	value = strtod(text, &end);
	if (text[0] == ' ' || end == text || *end)
		sw_bad(at, key, "'%.100s' is not a number; allowed: a decimal number such as 0.85",
		       text);
	return value;
}

bool sw_take_bool(const struct sw_place *at, const char *key, const char *text)
{
	static const char *const names[] = {"false", "true", NULL};

	return sw_take_choice(at, key, text, names, 0);
}

int sw_take_choice(const struct sw_place *at, const char *key, const char *text,
		   const char *const *names, int absent)
{
	char allowed[200] = "";
	size_t used = 0;

	if (!text && absent != SW_MUST)
		return absent;
	for (int i = 0; names[i]; i++) {
		if (text && !strcmp(names[i], text))
			return i;
		used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s",
					 i ? ", " : "", names[i]);
	}
	if (text)
		sw_bad(at, key, "'%.100s' is not known; allowed: %s", text, allowed);
	else
		sw_bad(at, key, "missing; allowed: %s", allowed);
	return 0;
}

char *sw_take_text(const struct sw_place *at, const char *key, const char *text)
{
	char *copy;

	if (!text)
		return NULL;
	copy = strdup(text);
	if (!copy && !at->build->err) {
		sw_bad(at, key, "out of memory");
		at->build->err = -ENOMEM;
	}
	return copy;
}

char *sw_take_path(const struct sw_place *at, const char *key, const char *text, size_t size)
{
	if (text && (text[0] != '/' || strlen(text) >= size))
		sw_bad(at, key,
		       "'%.100s' will not do; allowed: an absolute path of up to %zu bytes", text,
		       size - 1);
	return sw_take_text(at, key, text);
}

char *sw_take_netns(const struct sw_place *at, const char *text)
{
	const char *pid = text && !strncmp(text, "pid:", 4) ? text + 4 : NULL;

	if (text && text[0] != '/' &&
	    !(pid && pid[0] >= '1' && pid[0] <= '9' && !pid[strspn(pid, "0123456789")]))
		sw_bad(at, "netns", "'%.100s' is not a network namespace; allowed: /PATH or pid:N",
		       text);
	return sw_take_text(at, "netns", text);
}

char *sw_take_name(const struct sw_place *at, const char *key, const char *text)
{
	size_t length = text ? strlen(text) : 0, good = 0;

	while (good < length && isgraph((unsigned char)text[good]) && !strchr("\"\\", text[good]))
		good++;
	if (text && (!length || length > NAME_BYTES || good < length))
		sw_bad(at, key,
		       "'%.100s' is not a name; allowed: 1 to %d characters, no blanks, quotes, "
		       "backslashes",
		       text, NAME_BYTES);
	return sw_take_text(at, key, text);
}

void *sw_take_array(const struct sw_place *at, size_t n, size_t size)
{
	void *array = n ? calloc(n, size) : NULL;

	if (n && !array && !at->build->err) {
		sw_bad(at, NULL, "out of memory");
		at->build->err = -ENOMEM;
	}
	return array;
}

unsigned sw_distance(const char *a, const char *b)
{
	unsigned row[64], width = (unsigned)strnlen(b, 63);

	for (unsigned j = 0; j <= width; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= width; j++) {
			unsigned change = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			if (row[j] > row[j - 1])
				row[j] = row[j - 1];
			row[j] = row[j] + 1 < change ? row[j] + 1 : change;
		}
	}
	return row[width];
}
