// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prometheus text exposition, see promtext.h. The page comes from the network: each step is bounded
 * by the end of its line. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sources/promtext.h"

struct label {
	const char *name, *value; /* the value is still escaped */
	size_t name_length, value_length;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

enum { NAME_FIRST = 1, NAME = 2, COLON = 4 };

/* Where a character may stand in a name. Not isalpha(), which depends on the locale. */
static const unsigned char class_of[256] = {
	['a' ... 'z'] = NAME_FIRST | NAME,
	['A' ... 'Z'] = NAME_FIRST | NAME,
	['_'] = NAME_FIRST | NAME,
	['0' ... '9'] = NAME,
	[':'] = COLON,
};

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && is_blank(*p))
		p++;
	return p;
}

/* The colon is for names of series only. */
static const char *skip_name(const char *p, const char *end, bool colon)
{
	unsigned also = colon ? COLON : 0;

	if (p == end || !(class_of[(unsigned char)*p] & (NAME_FIRST | also)))
		return p;
	do
		p++;
	while (p < end && class_of[(unsigned char)*p] & (NAME | also));
	return p;
}

static const char *skip_word(const char *p, const char *end)
{
	while (p < end && !is_blank(*p))
		p++;
	return p;
}

/* Most numbers are short and plain. A point and up to 15 digits, or no point: the digits and the
 * power of ten are exact then, and their quotient is what strtod() gives, which takes ten times as
 * long. */
static bool plain_number(const char *text, size_t length, double *out)
{
	static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,	 1e6,  1e7,
				       1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	size_t digits = 0, point = length;
	uint64_t n = 0;

	if (length > 16)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			n = 10 * n + (text[i] - '0');
			digits++;
		} else if (text[i] == '.' && point == length) {
			point = i;
		} else {
			return false;
		}
	}
	*out = n / power[point < length ? length - point - 1 : 0];
	return digits;
}

bool sw_prom_number(const char *text, size_t length, double *out)
{
	char copy[64];
	char *stop;

	if (plain_number(text, length, out))
		return true;
	if (!length || length >= sizeof(copy) || strchr(" \t\r\n\v\f", *text))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*out = strtod(copy, &stop);
	return stop == copy + length;
}

/* Reads `name="value"` and the comma behind it. NULL: malformed. */
static const char *next_label(const char *p, const char *end, struct label *l)
{
	l->name = p;
	p = skip_name(p, end, false);
	l->name_length = p - l->name;
	p = skip_blanks(p, end);
	if (!l->name_length || p == end || *p++ != '=')
		return NULL;
	p = skip_blanks(p, end);
	if (p == end || *p++ != '"')
		return NULL;
	l->value = p;
	while (p < end && *p != '"')
		p += *p == '\\' ? 2 : 1;
	if (p >= end)
		return NULL;
	l->value_length = p - l->value;
	p = skip_blanks(p + 1, end);
	if (p < end && *p == ',')
		return skip_blanks(p + 1, end);
	return p == end || *p == '}' ? p : NULL;
}

/* `p` is behind the opening brace; the result is behind the closing one. */
static const char *parse_labels(const char *p, const char *end, struct sw_sample *s)
{
	struct label l;

	p = skip_blanks(p, end);
	s->labels = p;
	while (p && p < end && *p != '}')
		p = next_label(p, end, &l);
	if (!p || p == end)
		return NULL;
	s->labels_length = p - s->labels;
	return p + 1;
}

/* NULL: fine, else what is wrong. */
static const char *parse_sample(const char *p, const char *end, struct sw_sample *s)
{
	const char *word;
	double timestamp;

	s->name = p;
	p = skip_name(p, end, true);
	s->name_length = p - s->name;
	if (!s->name_length)
		return "it does not begin with the name of a series";
	s->labels = p;
	s->labels_length = 0;
	word = skip_blanks(p, end);
	if (word < end && *word == '{') {
		word = parse_labels(word + 1, end, s);
		if (!word)
			return "its labels are malformed";
		word = skip_blanks(word, end);
	} else if (word == p && p < end) {
		return "the name of the series holds a character that is not allowed";
	}
	s->value_at = word;
	p = skip_word(word, end);
	if (!sw_prom_number(word, p - word, &s->value))
		return "its value is not a number";
	/* A time may follow and, in OpenMetrics, an exemplar behind a '#'. Neither is needed. */
	word = skip_blanks(p, end);
	p = skip_word(word, end);
	if (word == end || *word == '#')
		return NULL;
	if (!sw_prom_number(word, p - word, &timestamp))
		return "its time is not a number";
	p = skip_blanks(p, end);
	return p == end || *p == '#' ? NULL : "something follows its time";
}

void sw_prom_init(struct sw_prom *p, const char *text, size_t length)
{
	*p = (struct sw_prom){.at = text, .end = text + length};
}

int sw_prom_next(struct sw_prom *p, struct sw_sample *out)
{
	while (p->at < p->end) {
		const char *line = p->at;
		const char *end = memchr(line, '\n', p->end - line);

		p->line++;
		if (!end) {
			p->reason = "it has no end";
			p->cut = true;
			return -EBADMSG;
		}
		p->at = end + 1;
		if (end > line && end[-1] == '\r')
			end--;
		line = skip_blanks(line, end);
		if (line == end || *line == '#')
			continue;
		p->reason = parse_sample(line, end, out);
		return p->reason ? -EBADMSG : 1;
	}
	return 0;
}

bool sw_sample_is(const struct sw_sample *s, const char *name)
{
	return !strncmp(name, s->name, s->name_length) && !name[s->name_length];
}

/* \\, \" and \n are the format's escapes; a backslash before anything else stands for itself. */
static int unescape(const struct label *l, char *out, size_t size)
{
	const char *p = l->value, *end = p + l->value_length;
	size_t n = 0;

	for (; p < end; p++) {
		char c = *p;

		if (c == '\\' && (p[1] == '\\' || p[1] == '"' || p[1] == 'n'))
			c = *++p == 'n' ? '\n' : *p;
		if (n + 1 >= size) {
			*out = '\0';
			return -ENOSPC;
		}
		out[n++] = c;
	}
	out[n] = '\0';
	return 0;
}

int sw_sample_label(const struct sw_sample *s, const char *label, char *out, size_t size)
{
	const char *p = s->labels, *end = p + s->labels_length;
	size_t length = strlen(label);
	struct label l;

	*out = '\0';
	while (p && p < end) {
		p = next_label(p, end, &l);
		if (p && l.name_length == length && !memcmp(l.name, label, length))
			return unescape(&l, out, size);
	}
	return 0;
}

int sw_sample_next_label(const struct sw_sample *s, const char **at, char *name, char *value,
			 size_t size)
{
	const char *end = s->labels + s->labels_length;
	struct label l;

	if (*at >= end)
		return 0;
	*at = next_label(*at, end, &l);
	if (l.name_length >= size)
		return -ENOSPC;
	memcpy(name, l.name, l.name_length);
	name[l.name_length] = '\0';
	return unescape(&l, value, size) ? -ENOSPC : 1;
}
