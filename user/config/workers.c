// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Workers of a pool: where their load is read, where they take requests, how many they may hold.
 * Whether they can be reached is for scraper and steering to find out. */
#include <curl/curl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"
#include "policy/slots.h"
#include "sources/custom.h"

#define QUEUE_KEY "request_queue_limit"
#define QUEUE_ENV "DYN_DYNAMO_REQUEST_QUEUE_LIMIT"
#define LIMIT_MAX 1000000 /* of N and of Q */

/* ---- where load is read -----------------------------------------------------------------------
 */

/* The address in the host and port of a URL, if there is one: requests go to where metrics are.
 * "localhost" is the one name that means the same everywhere. */
static void take_url_address(const char *host, const char *port, struct sw_worker_conf *w)
{
	char text[300];

	snprintf(text, sizeof(text), "%s:%s", strcmp(host, "localhost") ? host : "127.0.0.1", port);
	if (sw_parse_endpoint(text, &w->at, NULL))
		memset(&w->at, 0, sizeof(w->at));
}

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
		take_url_address(host, port, w);
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

/* What is said about scraping means nothing without it; about ranks, also where Dynamo's events
 * tell of them. */
static void check_unused(const struct sw_place *at, const struct sw_doc_worker *d)
{
	const struct {
		const char *key, *text;
		bool of_ranks;
	} fields[] = {
		{"kv_total", d->kv_total, true},
		{"max_num_batched_tokens", d->max_num_batched_tokens, true},
		{"period_ms", d->period_ms, false},
		{"timeout_ms", d->timeout_ms, false},
		{"bearer_token_file", d->bearer_token_file, false},
		{"ca_file", d->ca_file, false},
		{"insecure", d->insecure, false},
		{"data_parallel_start_rank", d->data_parallel_start_rank, true},
		{"data_parallel_size", d->data_parallel_size, true},
		{"netns", d->netns, false},
		{"rank_label", d->rank_label, false},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].text && !(fields[i].of_ranks && (d->worker_id || d->name)))
			sw_bad(at, fields[i].key, "never used; allowed: with scrape");
	if (d->series)
		sw_bad(at, "series", "never used; allowed: with scrape");
}

static void build_source(const struct sw_place *at, const struct sw_doc_worker *d, int engine,
			 struct sw_worker_conf *w)
{
	struct sw_source_conf *s = &w->source;

	if (engine < 0 && d->scrape)
		engine = SW_MUST;
	engine = sw_take_engine(at, d->engine, engine);
	s->engine = engine < 0 ? SW_ENGINE_VLLM : (enum sw_engine)engine;
	if (s->engine == SW_ENGINE_DYNAMO && d->scrape && !w->name)
		w->name = sw_take_name(at, "worker_id", d->worker_id);
	if (d->scrape)
		build_url(at, d->scrape, w);
	else
		check_unused(at, d);
	if (s->engine == SW_ENGINE_DYNAMO) /* the URL is the front end's */
		memset(&w->at, 0, sizeof(w->at));
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

/* ---- how many it may hold ---------------------------------------------------------------------
 */

static uint64_t take_engine_limit(const struct sw_place *at, const char *text, uint64_t absent)
{
	return sw_take_uint(at, "engine_request_limit", text, 1, LIMIT_MAX, absent);
}

/* Q, of `text` or else of the environment. */
static uint64_t take_queue_limit(const struct sw_place *at, const char *text)
{
	const char *env = getenv(QUEUE_ENV), *key = QUEUE_KEY;

	if (!text && env && *env) {
		text = env;
		key = QUEUE_KEY " (from " QUEUE_ENV ")";
	}
	if (text && (!strcmp(text, "0") || !strcmp(text, "1")))
		sw_bad(at, key,
		       "'%s' is too small: one request may always be on its way from the queue to "
		       "the engine, so that N + Q is an exact cap from %d on only; allowed: %d to %d",
		       text, SW_LEAST_QUEUE, SW_LEAST_QUEUE, LIMIT_MAX);
	return sw_take_uint(at, key, text, SW_LEAST_QUEUE, LIMIT_MAX, SW_DEFAULT_QUEUE);
}

struct owner { /* the pool that workers inherit from */
	const struct sw_place *at;
	const struct sw_doc_pool *doc;
	const struct sw_limits *limits;
	struct sw_custom *custom; /* NULL: it describes no engine */
	const char *model;
	uint64_t engine_limit;
	bool steered;
};

static void build_limits(const struct sw_place *at, const struct sw_doc_worker *d,
			 const struct owner *pool, struct sw_worker_conf *w)
{
	w->engine_limit = take_engine_limit(at, d->engine_request_limit, pool->engine_limit);
	if (w->engine_limit && d->request_queue_limit)
		w->queue_limit = take_queue_limit(at, d->request_queue_limit);
	else if (w->engine_limit)
		w->queue_limit = take_queue_limit(pool->at, pool->doc->request_queue_limit);
	else if (d->request_queue_limit)
		sw_warn(at, QUEUE_KEY, "does nothing without engine_request_limit");
	w->share = sw_take_real(at, "share", d->share, 1.0);
	if (!(w->share > 0 && w->share <= 1))
		sw_bad(at, "share", "'%.100s' is out of range; allowed: over 0.0, to 1.0",
		       d->share);
	if (d->share &&
	    sw_slots_cap(pool->limits, w->engine_limit, w->queue_limit, 1.0) == SW_NO_CAP)
		sw_warn(at, "share", "a share of no limit is no limit");
	w->drain = sw_take_bool(at, "drain", d->drain);
	if (w->drain && !pool->steered)
		sw_bad(at, "drain",
		       "nothing that is only guarded can be kept from a worker; allowed: in a pool "
		       "with steer");
}

/* ---- workers ----------------------------------------------------------------------------------
 */

static void build_address(const struct sw_place *at, const char *text, struct sw_worker_conf *w)
{
	struct sw_error error;

	if (sw_parse_endpoint(text, &w->at, &error))
		sw_bad(at, "address", "%s", error.text);
	else if (!w->name)
		w->name = sw_take_name(at, "address", text);
}

static void build_worker(const struct sw_place *at, const struct sw_doc_worker *d, int engine,
			 const struct owner *pool, struct sw_worker_conf *w)
{
	if (!d->scrape && !d->address && !d->worker_id && !d->name)
		sw_bad(at, "scrape",
		       "missing; it has to be given, or worker_id, or address in a pool that is "
		       "steered or counts connections, or name alone where the load is pushed");
	w->name = sw_take_name(at, "name", d->name);
	build_source(at, d, engine, w);
	w->has_worker_id = d->worker_id != NULL;
	w->worker_id = sw_take_uint(at, "worker_id", d->worker_id, 0, UINT64_MAX, 0);
	sw_build_hints(at, d, pool->custom, pool->model, w);
	if (d->address)
		build_address(at, d->address, w);
	if (!w->name)
		w->name = sw_take_name(at, "worker_id", d->worker_id);
}

static void check_name(const struct sw_place *at, const struct sw_doc_worker *d,
		       const struct sw_pool_conf *p, size_t i)
{
	for (size_t j = 0; j < i && !at->build->err; j++)
		if (!strcmp(p->workers[i].name, p->workers[j].name))
			sw_bad(at,
			       d->name	    ? "name"
			       : d->scrape  ? "scrape"
			       : d->address ? "address"
					    : "worker_id",
			       "'%.100s' is workers[%zu] already; allowed: a name that is not taken",
			       p->workers[i].name, j);
}

void sw_build_workers(const struct sw_place *pool, const struct sw_doc_pool *d, int engine,
		      struct sw_pool_conf *p)
{
	const struct owner owner = {
		.at = pool,
		.doc = d,
		.limits = &p->limits,
		.custom = sw_build_custom(pool, d->series, d->rank_label),
		.model = p->model,
		.engine_limit = take_engine_limit(pool, d->engine_request_limit, 0),
		.steered = p->steer.by != SW_STEER_NONE,
	};
	bool limited = owner.engine_limit, custom = engine == SW_ENGINE_CUSTOM;

	p->workers = sw_take_array(pool, d->workers_count, sizeof(*p->workers));
	p->n_workers = p->workers ? d->workers_count : 0;
	for (size_t i = 0; i < p->n_workers && !pool->build->err; i++) {
		struct sw_place at = sw_part(pool, "workers[%zu]", i);
		struct sw_worker_conf *w = &p->workers[i];

		build_worker(&at, &d->workers[i], engine, &owner, w);
		build_limits(&at, &d->workers[i], &owner, w);
		check_name(&at, &d->workers[i], p, i);
		limited |= w->engine_limit != 0;
		custom |= w->source.hints.custom == owner.custom;
		if (w->source.url && w->source.period_ms >= p->ageing.stale_after_ms)
			sw_warn(&at, "period_ms",
				"%u ms is not under stale_after_ms, so this worker keeps going stale",
				w->source.period_ms);
	}
	if (owner.custom && !custom)
		sw_bad(pool, "series", "never used; allowed: with engine: custom");
	sw_custom_drop(owner.custom);
	if (d->request_queue_limit && !limited)
		sw_warn(pool, QUEUE_KEY, "does nothing without engine_request_limit");
	if (!d->workers_count && !p->discover)
		sw_warn(pool, "workers", "none, so '%s' is unavailable and answered with 503",
			p->name);
}
