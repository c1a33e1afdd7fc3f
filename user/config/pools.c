// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools and workers of a configuration: thresholds, answers, where load is read. Whether an engine
 * can be reached is for the scraper to find out. */
#include <curl/curl.h>
#include <limits.h>
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

static int take_engine(const struct sw_place *at, const char *text, int absent)
{
	const char *names[SW_ENGINES + 1] = {NULL};

	for (int e = 0; e < SW_ENGINES; e++)
		names[e] = sw_engine_name((enum sw_engine)e);
	return sw_take_choice(at, "engine", text, names, absent);
}

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
		       struct sw_traits *traits, struct sw_answer_spec *spec)
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
			 struct sw_traits *traits, struct sw_answer_spec *spec)
{
	int preset = sw_take_choice(at, "preset", d->preset, preset_names, -1);

	build_status(at, d, preset, spec);
	build_body(at, d, preset, traits, spec);
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
	if (!l->set && d->workers_count)
		sw_warn(at, "thresholds", "none is set, so no worker of '%s' is ever busy",
			p->name);
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

/* ---- workers -------------------------------------------------------------------------------- */

/* Checks the URL and names the worker HOST:PORT when it has no name yet. */
static void build_url(const struct sw_place *at, const char *text, struct sw_worker_conf *w)
{
	CURLU *url = curl_url();
	char *scheme = NULL, *host = NULL, *port = NULL;
	char name[300];
	CURLUcode bad;

	bad = curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME);
	bad = bad ? bad : curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
	bad = bad ? bad : curl_url_get(url, CURLUPART_HOST, &host, 0);
	bad = bad ? bad : curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
	if (bad || (strcmp(scheme, "http") && strcmp(scheme, "https"))) {
		sw_bad(at, "scrape",
		       "'%.100s' cannot be scraped; allowed: an http:// or https:// URL", text);
	} else {
		snprintf(name, sizeof(name), "%s:%s", host, port);
		w->source.url = sw_take_text(at, "scrape", text);
		if (!w->name)
			w->name = sw_take_name(at, "scrape", name);
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(url);
}

/* The scraper takes a path only. */
static char *take_source_netns(const struct sw_place *at, const char *text)
{
	char *netns = sw_take_netns(at, text), path[32];

	if (!netns || strncmp(netns, "pid:", 4))
		return netns;
	snprintf(path, sizeof(path), "/proc/%.10s/ns/net", netns + 4);
	free(netns);
	return sw_take_text(at, "netns", path);
}

static void build_worker(const struct sw_place *at, const struct sw_doc_worker *d, int engine,
			 struct sw_worker_conf *w)
{
	struct sw_source_conf *s = &w->source;

	s->engine = (enum sw_engine)take_engine(at, d->engine, engine < 0 ? SW_MUST : engine);
	w->name = sw_take_name(at, "name", d->name);
	build_url(at, d->scrape, w);
	s->hints.kv_total = sw_take_uint(at, "kv_total", d->kv_total, 1, UINT64_MAX, 0);
	s->hints.max_batched = sw_take_uint(at, "max_num_batched_tokens", d->max_num_batched_tokens,
					    1, UINT64_MAX, 0);
	s->period_ms = (unsigned)sw_take_uint(at, "period_ms", d->period_ms, 10, 60000, 250);
	s->timeout_ms = (unsigned)sw_take_uint(at, "timeout_ms", d->timeout_ms, 10, 60000, 1000);
	s->bearer_token_file =
		sw_take_path(at, "bearer_token_file", d->bearer_token_file, PATH_MAX);
	s->ca_file = sw_take_path(at, "ca_file", d->ca_file, PATH_MAX);
	s->insecure = sw_take_bool(at, "insecure", d->insecure);
	s->netns = take_source_netns(at, d->netns);
	w->start_rank = (uint32_t)sw_take_uint(at, "data_parallel_start_rank",
					       d->data_parallel_start_rank, 0, INT32_MAX, 0);
	w->dp_size = (int32_t)(int64_t)sw_take_uint(at, "data_parallel_size", d->data_parallel_size,
						    1, SW_MAX_RANKS, (uint64_t)-1);
}

static void build_workers(const struct sw_place *at, const struct sw_doc_pool *d, int engine,
			  struct sw_pool_conf *p)
{
	p->workers = sw_take_array(at, d->workers_count, sizeof(*p->workers));
	p->n_workers = p->workers ? d->workers_count : 0;
	for (size_t i = 0; i < p->n_workers && !at->build->err; i++) {
		const struct sw_doc_worker *w = &d->workers[i];
		struct sw_place place = sw_part(at, "workers[%zu]", i);

		build_worker(&place, w, engine, &p->workers[i]);
		for (size_t j = 0; j < i && !at->build->err; j++)
			if (!strcmp(p->workers[i].name, p->workers[j].name))
				sw_bad(&place, w->name ? "name" : "scrape",
				       "'%.100s' is workers[%zu] already; allowed: a name that is "
				       "not taken",
				       p->workers[i].name, j);
		if (p->workers[i].source.period_ms >= p->ageing.stale_after_ms)
			sw_warn(&place, "period_ms",
				"%u ms is not under stale_after_ms, so this worker keeps going stale",
				p->workers[i].source.period_ms);
	}
	if (!d->workers_count)
		sw_warn(at, "workers", "none, so '%s' is unavailable and answered with 503",
			p->name);
}

static void build_pool(const struct sw_place *at, const struct sw_doc_pool *d,
		       struct sw_traits *traits, struct sw_pool_conf *p)
{
	int engine = take_engine(at, d->engine, -1);

	p->name = sw_take_name(at, "name", d->name);
	p->observe = sw_take_bool(at, "observe", d->observe);
	build_limits(at, d, p);
	build_ageing(at, d, &p->ageing);
	build_workers(at, d, engine, p);
	traits->engine = engine < 0 && p->n_workers ? (int)p->workers[0].source.engine : engine;
	build_answer(at, d, traits, &p->answer);
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
