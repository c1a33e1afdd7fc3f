// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of engines and the reader of their pages, see engine.h. What a page holds is tallied
 * rank by rank first and turned into reports at the end, since series come in any order. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sources/engine.h"
#include "sources/promtext.h"

#define KV_SCALE 10000 /* blocks that a KV ratio is spread over when the total is not known */

struct engine {
	const char *name;
	const char *page; /* where its metrics usually are */
	const char *rank; /* label that holds the data-parallel rank */
	/* One model cut over several processes, each of which publishes the same count: the largest
	 * is right, a sum would count requests twice. */
	bool replicated;
	const char *part; /* series where this label is set are parts of one where it is not */
};

static const struct engine engines[SW_ENGINES] = {
	[SW_ENGINE_VLLM] = {.name = "vllm", .page = "/metrics", .rank = "engine"},
	[SW_ENGINE_SGLANG] =
		{
			.name = "sglang",
			.page = "/v1/loads?format=prometheus, or /metrics with --enable-metrics",
			.rank = "dp_rank",
			.replicated = true,
			.part = "priority",
		},
	[SW_ENGINE_TGI] = {.name = "tgi", .page = "/metrics"},
	[SW_ENGINE_LLAMACPP] = {.name = "llamacpp", .page = "/metrics with --metrics"},
	[SW_ENGINE_TRITON] = {.name = "triton", .page = "/metrics on port 8002"},
	[SW_ENGINE_TRTLLM] = {.name = "trtllm-serve", .page = "/prometheus/metrics"},
	[SW_ENGINE_LMDEPLOY] = {.name = "lmdeploy", .page = "/metrics", .rank = "engine"},
};

enum field { RUNNING, WAITING, PREFILL, RATIO, USED, TOTAL, PAGE, BATCHED, FIELDS };

struct series {
	enum sw_engine engine;
	enum field field;
	const char *name;
	const char *label, *value; /* only with this label; no value: the label holds the number */
};

static const struct series table[] = {
	{SW_ENGINE_VLLM, RUNNING, .name = "vllm:num_requests_running"},
	{SW_ENGINE_VLLM, WAITING, .name = "vllm:num_requests_waiting"},
	{SW_ENGINE_VLLM, RATIO, .name = "vllm:kv_cache_usage_perc"},
	{SW_ENGINE_VLLM, RATIO, .name = "vllm:gpu_cache_usage_perc"}, /* its older name */
	{SW_ENGINE_VLLM, TOTAL, .name = "vllm:cache_config_info", .label = "num_gpu_blocks"},
	/* the same behind Ray Serve */
	{SW_ENGINE_VLLM, RUNNING, .name = "ray_vllm_num_requests_running"},
	{SW_ENGINE_VLLM, WAITING, .name = "ray_vllm_num_requests_waiting"},
	{SW_ENGINE_VLLM, RATIO, .name = "ray_vllm_kv_cache_usage_perc"},
	{SW_ENGINE_VLLM, RATIO, .name = "ray_vllm_gpu_cache_usage_perc"},
	{SW_ENGINE_VLLM, TOTAL, .name = "ray_vllm_cache_config_info", .label = "num_gpu_blocks"},

	{SW_ENGINE_SGLANG, RUNNING, .name = "sglang_num_running_reqs"},
	{SW_ENGINE_SGLANG, WAITING, .name = "sglang_num_waiting_reqs"},
	{SW_ENGINE_SGLANG, PREFILL, .name = "sglang_num_waiting_uncached_tokens"},
	{SW_ENGINE_SGLANG, RATIO, .name = "sglang_token_usage"},
	{SW_ENGINE_SGLANG, TOTAL, .name = "sglang_max_total_num_tokens"},
	/* the same on /metrics */
	{SW_ENGINE_SGLANG, RUNNING, .name = "sglang:num_running_reqs"},
	{SW_ENGINE_SGLANG, WAITING, .name = "sglang:num_queue_reqs"},
	{SW_ENGINE_SGLANG, RATIO, .name = "sglang:token_usage"},
	{SW_ENGINE_SGLANG, TOTAL, .name = "sglang:max_total_num_tokens"},
	{SW_ENGINE_SGLANG, PAGE, .name = "sglang:page_size"}, /* tokens in a block */

	{SW_ENGINE_TGI, RUNNING, .name = "tgi_batch_current_size"},
	{SW_ENGINE_TGI, WAITING, .name = "tgi_queue_size"},
	{SW_ENGINE_TGI, USED, .name = "tgi_batch_current_max_tokens"},
	{SW_ENGINE_TGI, TOTAL, .name = "tgi_batch_max_total_tokens"},

	{SW_ENGINE_LLAMACPP, RUNNING, .name = "llamacpp:requests_processing"},
	{SW_ENGINE_LLAMACPP, WAITING, .name = "llamacpp:requests_deferred"},
	{SW_ENGINE_LLAMACPP, RATIO, .name = "llamacpp:kv_cache_usage_ratio"}, /* older ones */

#define REQUESTS .name = "nv_trt_llm_request_metrics", .label = "request_type"
#define BLOCKS	 .name = "nv_trt_llm_kv_cache_block_metrics", .label = "kv_cache_block_type"
	{SW_ENGINE_TRITON, RUNNING, REQUESTS, .value = "active"},
	{SW_ENGINE_TRITON, WAITING, REQUESTS, .value = "waiting"},
	{SW_ENGINE_TRITON, RATIO, BLOCKS, .value = "fraction"},
	{SW_ENGINE_TRITON, USED, BLOCKS, .value = "used"}, /* older ones lack "fraction" */
	{SW_ENGINE_TRITON, TOTAL, BLOCKS, .value = "max"},

	{SW_ENGINE_TRTLLM, RUNNING, .name = "trtllm_num_requests_running"},
	{SW_ENGINE_TRTLLM, WAITING, .name = "trtllm_num_requests_waiting"},
	{SW_ENGINE_TRTLLM, RATIO, .name = "trtllm_kv_cache_utilization"},
	{SW_ENGINE_TRTLLM, TOTAL, .name = "trtllm_kv_cache_max_blocks"},
	{SW_ENGINE_TRTLLM, BATCHED, .name = "trtllm_max_num_tokens_runtime"},

	{SW_ENGINE_LMDEPLOY, RUNNING, .name = "lmdeploy:num_requests_running"},
	{SW_ENGINE_LMDEPLOY, WAITING, .name = "lmdeploy:num_requests_waiting"},
	{SW_ENGINE_LMDEPLOY, RATIO, .name = "lmdeploy:gpu_cache_usage_perc"},
};

struct tally { /* what the page says of one rank */
	uint32_t rank;
	uint32_t have; /* bit (1 << enum field) */
	double field[FIELDS];
};

struct page {
	struct tally ranks[SW_MAX_RANKS];
	size_t n;
	struct tally unlabelled; /* series without a rank */
	unsigned samples;
};

const char *sw_engine_name(enum sw_engine e)
{
	return engines[e].name;
}

int sw_engine_parse(const char *name, enum sw_engine *out)
{
	for (int e = 0; e < SW_ENGINES; e++) {
		if (!strcmp(name, engines[e].name)) {
			*out = e;
			return 0;
		}
	}
	return -EINVAL;
}

/* The row of an engine that this sample is for, and the number in it. */
static const struct series *find_series(const struct sw_sample *s, enum sw_engine e, double *number)
{
	const struct series *row;
	char text[64];

	for (row = table; row < table + sizeof(table) / sizeof(*table); row++) {
		if (row->engine != e || !sw_sample_is(s, row->name))
			continue;
		*number = s->value;
		if (!row->label)
			return row;
		sw_sample_label(s, row->label, text, sizeof(text));
		if (row->value && strcmp(text, row->value))
			continue;
		if (!row->value && !sw_prom_number(text, strlen(text), number))
			*number = NAN; /* vLLM writes "None" before it has measured */
		return row;
	}
	return NULL;
}

/* The tally of the sample's rank. NULL: the page holds more ranks than a worker may have. */
static struct tally *find_rank(struct page *p, const char *label, const struct sw_sample *s)
{
	char text[16], *stop;
	unsigned long rank;

	if (!label || sw_sample_label(s, label, text, sizeof(text)) || *text < '0' || *text > '9')
		return &p->unlabelled;
	rank = strtoul(text, &stop, 10);
	if (*stop || rank > UINT32_MAX)
		return &p->unlabelled;
	for (size_t i = 0; i < p->n; i++)
		if (p->ranks[i].rank == rank)
			return &p->ranks[i];
	if (p->n == SW_MAX_RANKS)
		return NULL;
	p->ranks[p->n] = (struct tally){.rank = rank};
	return &p->ranks[p->n++];
}

static bool is_count(enum field f)
{
	return f == RUNNING || f == WAITING || f == PREFILL;
}

/* Counts of several series add up, and NaN among them makes the sum NaN: a sum with an unknown part
 * is unknown. Of ratios and sizes the largest counts, and fmax() passes over NaN. */
static void add(struct tally *t, enum field f, double number, bool sum)
{
	if (!(t->have & (1u << f)))
		t->field[f] = number;
	else if (sum)
		t->field[f] += number;
	else
		t->field[f] = fmax(t->field[f], number);
	t->have |= 1u << f;
}

static void tally_sample(struct page *p, enum sw_engine e, const struct sw_sample *s)
{
	const struct engine *engine = &engines[e];
	const struct series *row;
	struct tally *t;
	double number;
	char part[2];

	p->samples++;
	row = find_series(s, e, &number);
	if (!row)
		return;
	if (engine->part && (sw_sample_label(s, engine->part, part, sizeof(part)) || *part))
		return;
	t = find_rank(p, engine->rank, s);
	if (t)
		add(t, row->field, number, is_count(row->field) && !engine->replicated);
}

static double get(const struct tally *t, enum field f)
{
	return t->have & (1u << f) ? t->field[f] : NAN;
}

/* Takes a number over as a whole one. What cannot be one (NaN, infinite, negative, beyond 2^53)
 * stays absent. */
static void set(struct sw_report *r, enum sw_signal signal, double number)
{
	if (!(number >= 0 && number <= 0x1p53))
		return;
	r->have |= 1u << signal;
	r->value[signal] = llround(number);
}

static double known(double first, uint64_t hint)
{
	if (first >= 1)
		return round(first);
	return hint ? (double)hint : NAN;
}

/* False: nothing in it is load. */
static bool fill_report(struct sw_report *r, const struct tally *t,
			const struct sw_engine_hints *hints)
{
	double page_size = get(t, PAGE), ratio = get(t, RATIO);
	double total = known(get(t, TOTAL) / (page_size >= 1 ? page_size : 1), hints->kv_total);

	*r = (struct sw_report){.rank = t->rank};
	set(r, SW_SIG_RUNNING, get(t, RUNNING));
	set(r, SW_SIG_WAITING, get(t, WAITING));
	set(r, SW_SIG_PREFILL_TOKENS, get(t, PREFILL));
	if (ratio >= 0 && isnan(total))
		total = KV_SCALE;
	set(r, SW_SIG_KV_USED, isnan(ratio) ? get(t, USED) : ratio * total);
	if (!r->have)
		return false;
	set(r, SW_SIG_KV_TOTAL, total);
	set(r, SW_SIG_MAX_BATCHED, known(get(t, BATCHED), hints->max_batched));
	return true;
}

/* Where ranks have labels, what a series without one says holds for each of them, except counts,
 * which nobody can split. */
static void spread_unlabelled(struct page *p)
{
	if (!p->n) {
		p->ranks[p->n++] = p->unlabelled;
		return;
	}
	for (size_t i = 0; i < p->n; i++)
		for (int f = 0; f < FIELDS; f++)
			if (!is_count(f) && p->unlabelled.have & ~p->ranks[i].have & (1u << f))
				add(&p->ranks[i], f, p->unlabelled.field[f], false);
}

/* What a page is that is not metrics text, in a word that an operator knows. */
static const char *kind_of(const char *text, size_t length)
{
	size_t n = length < 256 ? length : 256;

	for (size_t i = 0; i < n; i++)
		if (!text[i] || ((unsigned char)text[i] < ' ' && !strchr("\t\r\n", text[i])))
			return "binary data";
	for (; n && strchr(" \t\r\n", *text); n--)
		text++;
	if (!n || !strchr("<{[", *text))
		return "text";
	return *text == '<' ? "HTML" : "JSON";
}

static int fail_format(const struct engine *e, const struct sw_prom *p, const char *text,
		       size_t length, struct sw_error *err)
{
	const char *kind = kind_of(text, length);
	char begin[49];
	size_t n = 0;

	if (p->cut && !strcmp(kind, "text"))
		return sw_fail(err, -EBADMSG, "the page was cut short: line %u has no end",
			       p->line);
	for (; n < length && n < sizeof(begin) - 1 && text[n] != '\n' && text[n] != '\r'; n++)
		begin[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '.';
	begin[n] = '\0';
	return sw_fail(err, -EBADMSG,
		       "got %s instead of Prometheus metrics (it begins '%s'; line %u: %s). Point "
		       "url at the metrics of %s, usually %s",
		       kind, begin, p->line, p->reason, e->name, e->page);
}

/* The engine whose series are on the page, SW_ENGINES: none. */
static enum sw_engine guess_engine(const char *text, size_t length)
{
	struct sw_sample s;
	struct sw_prom p;
	double number;

	sw_prom_init(&p, text, length);
	while (sw_prom_next(&p, &s) > 0)
		for (int e = 0; e < SW_ENGINES; e++)
			if (find_series(&s, e, &number))
				return e;
	return SW_ENGINES;
}

static int fail_no_load(enum sw_engine e, const char *text, size_t length, unsigned samples,
			struct sw_error *err)
{
	enum sw_engine other = guess_engine(text, length);
	const char *name = engines[e].name;

	if (other == e)
		return sw_fail(err, -ENODATA,
			       "the page holds series of %s, but no load in them (NaN, or only "
			       "constants): is the engine still starting?",
			       name);
	if (other != SW_ENGINES)
		return sw_fail(err, -ENODATA,
			       "the page holds series of %s, none of %s: set engine: %s",
			       engines[other].name, name, engines[other].name);
	return sw_fail(
		err, -ENODATA,
		"no series of %s among the %u on the page. Point url at its metrics, usually "
		"%s, or set engine: to what runs there",
		name, samples, engines[e].page);
}

int sw_engine_read(enum sw_engine e, const struct sw_engine_hints *hints, const char *text,
		   size_t length, struct sw_report *out, size_t max, struct sw_error *err)
{
	struct page page = {};
	struct sw_sample sample;
	struct sw_prom prom;
	size_t n = 0;
	int more;

	sw_prom_init(&prom, text, length);
	while ((more = sw_prom_next(&prom, &sample)) > 0)
		tally_sample(&page, e, &sample);
	if (more < 0)
		return fail_format(&engines[e], &prom, text, length, err);
	spread_unlabelled(&page);
	for (size_t i = 0; i < page.n && n < max; i++)
		n += fill_report(&out[n], &page.ranks[i], hints);
	return n ? (int)n : fail_no_load(e, text, length, page.samples, err);
}
