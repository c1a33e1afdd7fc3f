// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Selectors, see selector.h. A selector is a sample without a number, so promtext.c reads it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sources/selector.h"

#define SELECTOR_BYTES 1024

static int add_label(struct sw_selector *s, size_t n, const char *label, const char *value,
		     struct sw_error *err)
{
	if (n == SW_SELECTOR_LABELS)
		return sw_fail(err, -EINVAL, "it has over %d labels", SW_SELECTOR_LABELS);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s->match[i].label, label))
			return sw_fail(err, -EINVAL, "it has the label %s twice", label);
	s->match[n].label = strdup(label);
	s->match[n].value = strdup(value);
	if (!s->match[n].label || !s->match[n].value)
		return sw_fail(err, -ENOMEM, "out of memory");
	return 0;
}

static int take_labels(struct sw_selector *s, const struct sw_sample *sample, struct sw_error *err)
{
	char label[SW_LABEL_BYTES], value[SW_LABEL_BYTES];
	const char *at = sample->labels;
	size_t n = 0;
	int ret;

	while ((ret = sw_sample_next_label(sample, &at, label, value, SW_LABEL_BYTES)) > 0) {
		ret = add_label(s, n++, label, value, err);
		if (ret)
			return ret;
	}
	if (ret)
		return sw_fail(err, -EINVAL, "a label or its value is over %d bytes",
			       SW_LABEL_BYTES - 1);
	return 0;
}

int sw_selector_parse(struct sw_selector *out, const char *text, struct sw_error *err)
{
	char line[SELECTOR_BYTES + 4];
	struct sw_selector s = {};
	struct sw_sample sample;
	size_t length = strlen(text);
	struct sw_prom prom;
	int ret;

	if (length > SELECTOR_BYTES)
		return sw_fail(err, -EINVAL, "it is over %d bytes", SELECTOR_BYTES);
	sw_prom_init(&prom, line, (size_t)snprintf(line, sizeof(line), "%s 0\n", text));
	ret = sw_prom_next(&prom, &sample);
	if (ret < 0)
		return sw_fail(err, -EINVAL, "%s", prom.reason);
	if (!ret || sample.value != 0 || prom.at != prom.end ||
	    sample.value_at != line + length + 1)
		return sw_fail(err, -EINVAL, "it is not one series");
	s.name = strndup(sample.name, sample.name_length);
	ret = s.name ? take_labels(&s, &sample, err) : sw_fail(err, -ENOMEM, "out of memory");
	if (ret)
		sw_selector_free(&s);
	else
		*out = s;
	return ret;
}

void sw_selector_free(struct sw_selector *s)
{
	for (int i = 0; i < SW_SELECTOR_LABELS; i++) {
		free((char *)s->match[i].label);
		free((char *)s->match[i].value);
	}
	free((char *)s->name);
}

bool sw_selector_takes(const struct sw_selector *s, const struct sw_sample *sample)
{
	char value[SW_LABEL_BYTES];

	if (!sw_sample_is(sample, s->name))
		return false;
	for (int i = 0; i < SW_SELECTOR_LABELS && s->match[i].label; i++)
		if (sw_sample_label(sample, s->match[i].label, value, sizeof(value)) ||
		    strcmp(value, s->match[i].value))
			return false;
	return true;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool sw_selector_same(const struct sw_selector *a, const struct sw_selector *b)
{
	for (int i = 0; i < SW_SELECTOR_LABELS; i++)
		if (!same_text(a->match[i].label, b->match[i].label) ||
		    !same_text(a->match[i].value, b->match[i].value))
			return false;
	return same_text(a->name, b->name);
}
