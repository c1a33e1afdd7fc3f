// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part of the metrics page that has NVIDIA Dynamo's names, types and labels, so that what was
 * built to look at its frontend works unchanged; see page.h. dynamo_engine_request and
 * dynamo_request_queue are in metrics_slots.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/page.h"
#include "policy/paths.h"

/* ---- workers ----------------------------------------------------------------------------- */

struct dynamo_worker {
	const struct sw_live_worker *w;
	const char *type;
	char id[132]; /* of Dynamo, or the worker's name */
};

static const char *type_of(const struct sw_live_worker *w)
{
	const struct sw_discover_conf *d = w->pool->conf->discover;

	return d && d->component && strstr(d->component, "prefill") ? "prefill" : "decode";
}

static int by_id(const void *a, const void *b)
{
	const struct dynamo_worker *x = a, *y = b;
	int order = strcmp(x->id, y->id);

	return order ? order : strcmp(x->type, y->type);
}

/* All workers, each that is in several pools once: the labels tell no pools apart. */
static size_t list_workers(const struct sw_live *live, struct dynamo_worker *list)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < live->n_pools; i++) {
		for (size_t j = 0; j < live->pools[i].n_workers; j++) {
			const struct sw_live_worker *w = live->pools[i].workers[j];

			list[n].w = w;
			list[n].type = type_of(w);
			if (w->conf->has_worker_id)
				snprintf(list[n].id, sizeof(list[n].id), "%" PRIu64,
					 w->conf->worker_id);
			else
				snprintf(list[n].id, sizeof(list[n].id), "%s", w->conf->name);
			n++;
		}
	}
	qsort(list, n, sizeof(*list), by_id);
	for (size_t i = 0; i < n; i++)
		if (!kept || by_id(&list[kept - 1], &list[i]))
			list[kept++] = list[i];
	return kept;
}

/* Was the signal told, and lately enough to be believed? */
static bool knows(const struct sw_live_worker *w, const struct sw_rank *r, enum sw_signal signal,
		  uint64_t now_ms)
{
	return r->have & 1U << signal &&
	       now_ms - r->at_ms[signal] <= w->pool->conf->ageing.stale_after_ms;
}

/* The larger of what the router and the engine tell, as the threshold takes it. */
static bool decode_blocks(const struct sw_live_worker *w, const struct sw_rank *r, uint64_t now_ms,
			  uint64_t *out)
{
	bool router = knows(w, r, SW_SIG_DECODE_BLOCKS, now_ms);
	bool engine = knows(w, r, SW_SIG_KV_USED, now_ms);

	*out = router ? r->value[SW_SIG_DECODE_BLOCKS] : 0;
	if (engine && r->value[SW_SIG_KV_USED] > *out)
		*out = r->value[SW_SIG_KV_USED];
	return router || engine;
}

static bool prefill_tokens(const struct sw_live_worker *w, const struct sw_rank *r, uint64_t now_ms,
			   uint64_t *out)
{
	*out = r->value[SW_SIG_PREFILL_TOKENS];
	return knows(w, r, SW_SIG_PREFILL_TOKENS, now_ms);
}

static void rank_series(struct sw_page *p, const struct dynamo_worker *list, size_t n,
			const char *name, const char *help,
			bool (*value)(const struct sw_live_worker *w, const struct sw_rank *r,
				      uint64_t now_ms, uint64_t *out))
{
	sw_page_series(p, name, "gauge", help);
	for (size_t i = 0; i < n; i++) {
		const struct sw_worker *load = &list[i].w->load;

		for (unsigned r = 0; r < SW_MAX_RANKS; r++) {
			char rank[16];
			uint64_t v;

			if (!load->rank[r].seen || !value(list[i].w, &load->rank[r], p->now_ms, &v))
				continue;
			snprintf(rank, sizeof(rank), "%u", load->start_rank + r);
			sw_page_sample(p, (double)v, "dp_rank", rank, "worker_id", list[i].id,
				       "worker_type", list[i].type, NULL);
		}
	}
}

static void worker_series(struct sw_page *p)
{
	struct dynamo_worker *list;
	size_t n = 0;

	for (size_t i = 0; i < p->live->n_pools; i++)
		n += p->live->pools[i].n_workers;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return;
	n = list_workers(p->live, list);
	rank_series(p, list, n, "dynamo_frontend_worker_active_decode_blocks",
		    "KV cache blocks in use of a rank.", decode_blocks);
	rank_series(p, list, n, "dynamo_frontend_worker_active_prefill_tokens",
		    "Prompt tokens of a rank that wait or are being worked on.", prefill_tokens);
	free(list);
}

/* ---- models ------------------------------------------------------------------------------ */

struct model {
	const char *name;
	uint64_t kv_total, max_batched; /* of a rank, the least that one tells; 0: none does */
	uint64_t rejections[SW_API_ENDPOINTS];
};

struct models {
	struct model list[SW_MAX_POOLS];
	size_t n;
	size_t of[SW_MAX_POOLS]; /* index of a pool's */
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void add_ranks(struct model *m, const struct sw_live_pool *pool)
{
	for (size_t i = 0; i < pool->n_workers; i++) {
		for (unsigned r = 0; r < SW_MAX_RANKS; r++) {
			const struct sw_rank *rank = &pool->workers[i]->load.rank[r];

			if (!rank->seen)
				continue;
			m->kv_total = least(m->kv_total, rank->value[SW_SIG_KV_TOTAL]);
			m->max_batched = least(m->max_batched, rank->value[SW_SIG_MAX_BATCHED]);
		}
	}
}

static void add_rejections(struct model *m, const uint64_t endpoints[SW_API_ENDPOINTS])
{
	for (int e = 0; e < SW_API_ENDPOINTS; e++)
		m->rejections[e] += endpoints[e];
}

/* The models of all pools, each once; there are few, as there are few pools. */
static void list_models(const struct sw_live *live, struct models *models)
{
	for (size_t i = 0; i < live->n_pools; i++) {
		const char *name = live->pools[i].conf->model;
		size_t m = 0;

		while (m < models->n && strcmp(models->list[m].name, name))
			m++;
		if (m == models->n)
			models->list[models->n++].name = name;
		models->of[i] = m;
		add_ranks(&models->list[m], &live->pools[i]);
		add_rejections(&models->list[m], live->pools[i].answered);
	}
}

static void total_series(struct sw_page *p, const struct models *models)
{
	sw_page_series(p, "dynamo_frontend_model_total_kv_blocks", "gauge",
		       "KV cache blocks of a rank of the model, the least that one tells.");
	for (size_t i = 0; i < models->n; i++)
		if (models->list[i].kv_total)
			sw_page_sample(p, (double)models->list[i].kv_total, "model",
				       models->list[i].name, NULL);
	sw_page_series(
		p, "dynamo_frontend_model_max_num_batched_tokens", "gauge",
		"Tokens that a rank of the model batches at most, the least that one tells.");
	for (size_t i = 0; i < models->n; i++)
		if (models->list[i].max_batched)
			sw_page_sample(p, (double)models->list[i].max_batched, "model",
				       models->list[i].name, NULL);
}

static void model_series(struct sw_page *p, const struct sw_listener_row *rows, size_t n)
{
	struct models *models = calloc(1, sizeof(*models));

	if (!models)
		return;
	list_models(p->live, models);
	for (size_t i = 0; i < n; i++)
		add_rejections(&models->list[models->of[rows[i].pool - p->live->conf->pools]],
			       rows[i].totals.endpoints);
	total_series(p, models);
	sw_page_series(
		p, "dynamo_frontend_model_rejection_total", "counter",
		"Requests of a model that were given the overload answer, by kind of endpoint.");
	for (size_t i = 0; i < models->n; i++)
		for (int e = 0; e < SW_API_ENDPOINTS; e++)
			sw_page_sample(p, (double)models->list[i].rejections[e], "model",
				       models->list[i].name, "endpoint", sw_endpoint_name(e), NULL);
	free(models);
}

/* ---- what was turned away ---------------------------------------------------------------- */

static void rejections(struct sw_page *p, const struct sw_listener_row *rows, size_t n)
{
	const struct sw_live *l = p->live;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += rows[i].totals.shed;
	for (size_t i = 0; l->steer && i < l->n_pools; i++) {
		struct sw_steer_counts c = {0};

		sw_steer_counts(l->steer, (unsigned)i, &c);
		sum += c.answered + c.refused;
	}
	sw_page_series(p, "dynamo_rejection_request_total", "counter",
		       "Requests and connections turned away, for whatever cause.");
	sw_page_sample(p, (double)sum, NULL);
}

void sw_metrics_write_dynamo(struct sw_page *p, const struct sw_listener_row *rows, size_t n)
{
	worker_series(p);
	model_series(p, rows, n);
	rejections(p, rows, n);
}
