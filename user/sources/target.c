// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How the page of a target is fetched, see target.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sources/target.h"

/* False: no memory. */
static bool copy_text(const char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

/* All texts are to->'s own afterwards, or NULL. */
int sw_target_copy(struct sw_target *to, const struct sw_target *from)
{
	bool all;

	*to = *from;
	to->engine = SW_ENGINE_AUTO;
	to->hints = (struct sw_engine_hints){};
	all = copy_text(&to->url, from->url);
	all = copy_text(&to->bearer_token_file, from->bearer_token_file) && all;
	all = copy_text(&to->ca_file, from->ca_file) && all;
	return copy_text(&to->netns, from->netns) && all ? 0 : -ENOMEM;
}

void sw_target_free(struct sw_target *t)
{
	free((char *)t->url);
	free((char *)t->bearer_token_file);
	free((char *)t->ca_file);
	free((char *)t->netns);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool sw_target_same_page(const struct sw_target *a, const struct sw_target *b)
{
	return same_text(a->url, b->url) && a->period_ms == b->period_ms &&
	       a->timeout_ms == b->timeout_ms && a->insecure == b->insecure && a->once == b->once &&
	       same_text(a->bearer_token_file, b->bearer_token_file) &&
	       same_text(a->ca_file, b->ca_file) && same_text(a->netns, b->netns);
}
