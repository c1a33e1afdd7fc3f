// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* An engine as an operator describes it, see custom.h. Workers share it, as do a configuration and
 * what runs by it, hence the count of users; all are on one thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sources/custom.h"

#define LOAD                                                                                       \
	(1u << SW_FIELD_RUNNING | 1u << SW_FIELD_WAITING | 1u << SW_FIELD_PREFILL |                \
	 1u << SW_FIELD_QUEUED | 1u << SW_FIELD_RATIO | 1u << SW_FIELD_USED)

struct sw_custom {
	unsigned users;
	struct sw_engine_kind kind;
	struct sw_series series[SW_FIELDS];
};

static const char *const keys[SW_FIELDS] = {
	[SW_FIELD_RUNNING] = "running",	       [SW_FIELD_WAITING] = "waiting",
	[SW_FIELD_PREFILL] = "prefill_tokens", [SW_FIELD_QUEUED] = "queued_tokens",
	[SW_FIELD_RATIO] = "kv_ratio",	       [SW_FIELD_USED] = "kv_used",
	[SW_FIELD_TOTAL] = "kv_total",	       [SW_FIELD_BATCHED] = "max_batched",
};

const char *sw_custom_key(enum sw_field field)
{
	return keys[field];
}

int sw_custom_new(struct sw_custom **out, const char *rank_label)
{
	struct sw_custom *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->users = 1;
	c->kind = sw_engine_kinds[SW_ENGINE_CUSTOM];
	c->kind.series = c->series;
	c->kind.rank = rank_label ? strdup(rank_label) : NULL;
	if (rank_label && !c->kind.rank) {
		free(c);
		return -ENOMEM;
	}
	*out = c;
	return 0;
}

int sw_custom_add(struct sw_custom *c, enum sw_field field, const char *text, struct sw_error *err)
{
	struct sw_series *series = &c->series[c->kind.n];
	int ret = sw_selector_parse(&series->at, text, err);

	if (ret)
		return ret;
	series->field = field;
	c->kind.n++;
	return 0;
}

bool sw_custom_tells_load(const struct sw_custom *c)
{
	for (size_t i = 0; i < c->kind.n; i++)
		if (1u << c->series[i].field & LOAD)
			return true;
	return false;
}

struct sw_custom *sw_custom_hold(struct sw_custom *c)
{
	if (c)
		c->users++;
	return c;
}

void sw_custom_drop(struct sw_custom *c)
{
	if (!c || --c->users)
		return;
	for (size_t i = 0; i < c->kind.n; i++)
		sw_selector_free(&c->series[i].at);
	free((char *)c->kind.rank);
	free(c);
}

bool sw_custom_same(const struct sw_custom *a, const struct sw_custom *b)
{
	if (!a || !b)
		return a == b;
	if (a->kind.n != b->kind.n || !a->kind.rank != !b->kind.rank ||
	    (a->kind.rank && strcmp(a->kind.rank, b->kind.rank)))
		return false;
	for (size_t i = 0; i < a->kind.n; i++)
		if (a->series[i].field != b->series[i].field ||
		    !sw_selector_same(&a->series[i].at, &b->series[i].at))
			return false;
	return true;
}

const struct sw_engine_kind *sw_custom_kind(const struct sw_custom *c)
{
	return &c->kind;
}
