// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools of a configuration: thresholds and answers. Workers are in workers.c, how a pool is steered
 * and counted in steer.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"

#define STATUS_ENV "DYN_HTTP_OVERLOAD_STATUS_CODE"
#define HOUR_MS	   3600000

static const char *const preset_names[] = {"dynamo", "vllm",	  "sglang", "tgi",
					   "smg",    "anthropic", NULL};
static const struct {
	uint16_t status;
	enum sw_api api;
} presets[] = {
	{529, SW_API_DYNAMO}, {503, SW_API_VLLM}, {503, SW_API_SGLANG},
	{429, SW_API_TGI},    {429, SW_API_SMG},  {529, SW_API_ANTHROPIC},
};

/* "auto", then in the order of enum sw_api. */
static const char *const body_names[] = {"auto",   "dynamo", "openai", "anthropic", "vllm",
					 "sglang", "tgi",    "smg",    NULL};

/* ---- answers -------------------------------------------------------------------------------- */

static void build_status(const struct sw_place *at, const struct sw_doc_pool *d, int preset,
			 struct sw_answer_spec *spec)
{
	const char *env = getenv(STATUS_ENV);
	uint16_t absent = preset < 0 ? sw_overload_status(env) : presets[preset].status;

	spec->status =
		(uint16_t)sw_take_uint(at, "overload_status", d->overload_status, 200, 999, absent);
	spec->drain_status = 503;
	if (spec->status < 400 || spec->status > 599)
		sw_warn(at, "overload_status",
			"%u%s will not look like an error to clients; usual: 400 to 599",
			spec->status, d->overload_status ? "" : " (from " STATUS_ENV ")");
}

static void build_body(const struct sw_place *at, const struct sw_doc_pool *d, int preset,
		       struct sw_traits *traits, const struct sw_limits *limits,
		       struct sw_answer_spec *spec)
{
	static const char *const keys[] = {"default", "anthropic", "tgi"};
	struct sw_place templates = sw_part(at, "templates");
	int body = sw_take_choice(at, "body", d->body, body_names, 0);

	if (body > 0)
		spec->api = (enum sw_api)(body - 1);
	else if (preset >= 0)
		spec->api = presets[preset].api;
	else if (traits->engine == SW_ENGINE_VLLM || traits->engine == SW_ENGINE_SGLANG)
		spec->api = SW_API_OPENAI;
	else
		spec->api = SW_API_DYNAMO;
	/* Where it has other limits too, the words are chosen when one of them makes it saturated
	 */
	if (spec->api == SW_API_VLLM && limits->set == 1U << SW_LIM_QUEUED_TOKENS)
		spec->api = SW_API_VLLM_TOKENS;
	/* sgl-router's answer is a bare status, whatever the path */
	traits->one_body = body > 0 || spec->api == SW_API_SMG;

	for (int f = 0; f < SW_FAMILIES; f++) {
		spec->body[f] = sw_take_text(&templates, keys[f], d->templates.family[f]);
		if (f != SW_FAMILY_DEFAULT && spec->body[f] && traits->one_body)
			sw_bad(&templates, keys[f],
			       "never used, since %s: %s gives every path the same body; allowed: "
			       "templates.default",
			       body > 0 ? "body" : "preset", body > 0 ? d->body : d->preset);
	}
}

static void build_retry_after(const struct sw_place *at, const struct sw_doc_pool *d,
			      struct sw_answer_spec *spec)
{
	struct sw_place retry = sw_part(at, "retry_after");
	uint64_t min = sw_take_uint(&retry, "min", d->retry_after.min, 1, 60, 0);

	spec->retry_after_min = (uint16_t)min;
	spec->retry_after_max =
		(uint16_t)sw_take_uint(&retry, "max", d->retry_after.max, min, 60, min);
	spec->retry_after_ms = sw_take_bool(at, "retry_after_ms", d->retry_after_ms);
	if (spec->retry_after_ms && !min)
		sw_bad(at, "retry_after_ms", "there is no time to tell; allowed: with retry_after");
}

/* Renders the answers once, so that one that is too long is found here and not when shedding. */
static void try_answers(const struct sw_place *at, const struct sw_doc_pool *d,
			const struct sw_answer_spec *spec)
{
	struct sw_answer *answers;
	struct sw_error error = {""};
	bool own = d->templates.family[0] || d->templates.family[1] || d->templates.family[2];
	uint8_t variants;

	if (at->build->err)
		return;
	answers = sw_take_array(at, SW_ANSWERS_PER_SET, sizeof(*answers));
	if (!answers)
		return;
	if (sw_answers_render(spec, answers, &variants, &error))
		sw_bad(at, own ? "templates" : "max_answer_bytes", "%s", error.text);
	else if (answers->length > SW_ANSWER_DEFAULT)
		sw_warn(at, "max_answer_bytes",
			"answers of %u bytes, over %d, do not fit the segments of every client",
			answers->length, SW_ANSWER_DEFAULT);
	free(answers);
}

static void build_answer(const struct sw_place *at, const struct sw_doc_pool *d,
			 struct sw_traits *traits, const struct sw_limits *limits,
			 struct sw_answer_spec *spec)
{
	int preset = sw_take_choice(at, "preset", d->preset, preset_names, -1);

	build_status(at, d, preset, spec);
	build_body(at, d, preset, traits, limits, spec);
	build_retry_after(at, d, spec);
	spec->max_bytes = (uint16_t)sw_take_uint(at, "max_answer_bytes", d->max_answer_bytes, 256,
						 SW_ANSWER_MAX, SW_ANSWER_DEFAULT);
	try_answers(at, d, spec);
}

/* ---- when a worker is busy ------------------------------------------------------------------ */

static void build_limit(const struct sw_place *at, enum sw_limit limit, const char *text,
			struct sw_limits *l)
{
	const char *key = sw_limit_name(limit);
	double *real = limit == SW_LIM_DECODE	      ? &l->decode
		       : limit == SW_LIM_PREFILL_FRAC ? &l->prefill_frac
						      : NULL;

	if (!text)
		return;
	l->set |= 1U << limit;
	if (!real) {
		l->count[limit] = sw_take_uint(at, key, text, 0, UINT64_MAX, 0);
		return;
	}
	*real = sw_take_real(at, key, text, 0);
	if (!sw_limit_valid(limit, *real))
		sw_bad(at, key, "'%.100s' is out of range; allowed: %s", text,
		       limit == SW_LIM_DECODE ? "0.0 to 1.0" : "a finite number from 0.0");
}

static void build_limits(const struct sw_place *at, const struct sw_doc_pool *d,
			 struct sw_pool_conf *p)
{
	struct sw_place thresholds = sw_part(at, "thresholds");
	struct sw_limits *l = &p->limits;

	for (int i = 0; i < SW_LIMITS; i++)
		build_limit(&thresholds, (enum sw_limit)i, d->thresholds.limit[i], l);
	l->release_ratio = sw_take_real(at, "release_ratio", d->release_ratio, 1.0);
	if (!(l->release_ratio > 0 && l->release_ratio <= 1))
		sw_bad(at, "release_ratio", "'%.100s' is out of range; allowed: over 0.0, to 1.0",
		       d->release_ratio);
	l->min_hold_ms = (uint32_t)sw_take_uint(at, "min_hold_ms", d->min_hold_ms, 0, HOUR_MS, 0);
}

static void build_ageing(const struct sw_place *at, const struct sw_doc_pool *d,
			 struct sw_ageing *a)
{
	static const char *const on_stale[] = {"open", "hold", NULL};

	a->stale_after_ms =
		(uint32_t)sw_take_uint(at, "stale_after_ms", d->stale_after_ms, 100, HOUR_MS, 5000);
	a->on_stale = sw_take_choice(at, "on_stale", d->on_stale, on_stale, SW_STALE_OPEN);
	a->hold_for_ms = (uint32_t)sw_take_uint(at, "hold_for_ms", d->hold_for_ms, 1, HOUR_MS, 0);
	if (a->on_stale == SW_STALE_HOLD && !d->hold_for_ms)
		sw_bad(at, "hold_for_ms", "missing, on_stale: hold needs it; allowed: 1 to %d",
		       HOUR_MS);
	if (a->on_stale == SW_STALE_OPEN && d->hold_for_ms)
		sw_bad(at, "hold_for_ms", "never used; allowed: with on_stale: hold");
}

/* ---- the whole pool ---------------------------------------------------------------------------
 */

/* The limits that are a cap as well, and so act without a report. */
#define CAPS (1U << SW_LIM_QUEUED_REQS | 1U << SW_LIM_CONCURRENT_REQUESTS)

/* A pool whose workers are never busy is rarely meant, unless they can be full. */
static void check_busy(const struct sw_place *at, const struct sw_pool_conf *p)
{
	bool read = false, capped = p->limits.set & CAPS;

	if (at->build->err || !p->n_workers)
		return;
	for (size_t i = 0; i < p->n_workers; i++) {
		const struct sw_worker_conf *w = &p->workers[i];

		/* one that has nothing but a name is pushed */
		read |= w->source.url || w->has_worker_id || !w->at.port;
		capped |= w->engine_limit != 0;
	}
	if (p->limits.set & ~CAPS && !read)
		sw_warn(at, "thresholds",
			"never reached, since no worker of '%s' has `scrape` or "
			"`worker_id`",
			p->name);
	else if (!p->limits.set && !capped && p->steer.by == SW_STEER_NONE)
		sw_warn(at, "thresholds", "none is set, so no worker of '%s' is ever busy",
			p->name);
}

static void build_pool(const struct sw_place *at, const struct sw_doc_pool *d,
		       struct sw_traits *traits, struct sw_pool_conf *p)
{
	int engine = sw_take_engine(at, d->engine, -1);

	p->name = sw_take_name(at, "name", d->name);
	sw_build_discover(at, d, p);
	p->observe = sw_take_bool(at, "observe", d->observe);
	build_limits(at, d, p);
	build_ageing(at, d, &p->ageing);
	sw_build_steer(at, d, &p->steer);
	sw_build_workers(at, d, engine, p);
	check_busy(at, p);
	traits->engine = engine;
	for (size_t i = 0; traits->engine < 0 && i < p->n_workers; i++)
		if (d->workers[i].engine)
			traits->engine = (int)p->workers[i].source.engine;
	build_answer(at, d, traits, &p->limits, &p->answer);
}

void sw_build_pools(const struct sw_place *top, const struct sw_doc *doc, struct sw_config *c,
		    struct sw_traits *traits)
{
	if (!doc->pools_count || doc->pools_count > SW_MAX_POOLS)
		sw_bad(top, "pools", "%u entries; allowed: 1 to %d", doc->pools_count,
		       SW_MAX_POOLS);
	c->pools = sw_take_array(top, doc->pools_count, sizeof(*c->pools));
	c->n_pools = c->pools ? doc->pools_count : 0;
	for (size_t i = 0; i < c->n_pools && !top->build->err; i++) {
		struct sw_place place = sw_part(top, "pools[%zu]", i);

		build_pool(&place, &doc->pools[i], &traits[i], &c->pools[i]);
		for (size_t j = 0; j < i && !top->build->err; j++)
			if (!strcmp(c->pools[i].name, c->pools[j].name))
				sw_bad(&place, "name",
				       "'%.100s' is pools[%zu] already; allowed: a name that is "
				       "not taken",
				       c->pools[i].name, j);
	}
}
