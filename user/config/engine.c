// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Engines in a configuration: which one a worker runs, and what its page tells where that is not
 * known beforehand. */
#include <errno.h>
#include <string.h>

#include "config/build.h"
#include "sources/custom.h"

int sw_take_engine(const struct sw_place *at, const char *text, int absent)
{
	const char *names[SW_ENGINES + 1] = {NULL};

	for (int e = 0; e < SW_ENGINES; e++)
		names[e] = sw_engine_name((enum sw_engine)e);
	return sw_take_choice(at, "engine", text, names, absent);
}

static void check_rank_label(const struct sw_place *at, const char *text, bool used)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	static const char rest[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

	if (!text)
		return;
	if (!used)
		sw_bad(at, "rank_label", "never used; allowed: with series");
	else if (!strspn(text, letters) || text[strspn(text, rest)])
		sw_bad(at, "rank_label",
		       "'%.100s' is no name of a label; allowed: letters, digits and _", text);
}

struct sw_custom *sw_build_custom(const struct sw_place *at, const struct sw_doc_series *doc,
				  const char *rank_label)
{
	struct sw_place place = sw_part(at, "series");
	struct sw_custom *c = NULL;

	check_rank_label(at, rank_label, doc);
	if (!doc || at->build->err)
		return NULL;
	if (sw_custom_new(&c, rank_label)) {
		sw_bad(at, "series", "out of memory");
		at->build->err = -ENOMEM;
		return NULL;
	}
	for (int f = 0; f < SW_FIELDS; f++) {
		struct sw_error why;

		if (doc->field[f] && sw_custom_add(c, (enum sw_field)f, doc->field[f], &why))
			sw_bad(&place, sw_custom_key((enum sw_field)f),
			       "'%.100s' selects no series: %s; allowed: NAME or "
			       "NAME{LABEL=\"VALUE\", ...}",
			       doc->field[f], why.text);
	}
	if (!sw_custom_tells_load(c))
		sw_bad(at, "series",
		       "nothing in it is load; allowed: with running, waiting, kv_ratio, kv_used, "
		       "prefill_tokens or queued_tokens");
	return c;
}

void sw_build_hints(const struct sw_place *at, const struct sw_doc_worker *d,
		    struct sw_custom *pool_custom, const char *model, struct sw_worker_conf *w)
{
	enum sw_engine engine = w->source.engine;
	struct sw_engine_hints *h = &w->source.hints;
	struct sw_custom *own = sw_build_custom(at, d->series, d->rank_label);

	if (own && engine != SW_ENGINE_CUSTOM)
		sw_bad(at, "series", "never used; allowed: with engine: custom");
	h->kv_total = sw_take_uint(at, "kv_total", d->kv_total, 1, UINT64_MAX, 0);
	h->max_batched = sw_take_uint(at, "max_num_batched_tokens", d->max_num_batched_tokens, 1,
				      UINT64_MAX, 0);
	h->custom = own ? own : sw_custom_hold(engine == SW_ENGINE_CUSTOM ? pool_custom : NULL);
	h->has_worker_id = w->has_worker_id;
	h->worker_id = w->worker_id;
	h->model = model;
	if (engine == SW_ENGINE_CUSTOM && w->source.url && !h->custom)
		sw_bad(at, "series", "missing; it has to be given with engine: custom");
	if (engine == SW_ENGINE_DYNAMO && w->source.url && !h->has_worker_id)
		sw_bad(at, "worker_id",
		       "missing; it has to be given with engine: dynamo-frontend, as one page "
		       "names many workers");
}
