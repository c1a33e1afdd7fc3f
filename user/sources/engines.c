// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of engines, see engines.h. */
#include "sources/engines.h"

static const struct sw_series vllm[] = {
	{SW_FIELD_RUNNING, .at.name = "vllm:num_requests_running"},
	{SW_FIELD_WAITING, .at.name = "vllm:num_requests_waiting"},
	{SW_FIELD_RATIO, .at.name = "vllm:kv_cache_usage_perc"},
	{SW_FIELD_RATIO, .at.name = "vllm:gpu_cache_usage_perc"}, /* its older name */
	{SW_FIELD_TOTAL, .at.name = "vllm:cache_config_info", .number = "num_gpu_blocks"},
	/* the same behind Ray Serve */
	{SW_FIELD_RUNNING, .at.name = "ray_vllm_num_requests_running"},
	{SW_FIELD_WAITING, .at.name = "ray_vllm_num_requests_waiting"},
	{SW_FIELD_RATIO, .at.name = "ray_vllm_kv_cache_usage_perc"},
	{SW_FIELD_RATIO, .at.name = "ray_vllm_gpu_cache_usage_perc"},
	{SW_FIELD_TOTAL, .at.name = "ray_vllm_cache_config_info", .number = "num_gpu_blocks"},
};

static const struct sw_series sglang[] = {
	{SW_FIELD_RUNNING, .at.name = "sglang_num_running_reqs"},
	{SW_FIELD_WAITING, .at.name = "sglang_num_waiting_reqs"},
	{SW_FIELD_PREFILL, .at.name = "sglang_num_waiting_uncached_tokens"},
	{SW_FIELD_RATIO, .at.name = "sglang_token_usage"},
	{SW_FIELD_TOTAL, .at.name = "sglang_max_total_num_tokens"},
	/* the same on /metrics */
	{SW_FIELD_RUNNING, .at.name = "sglang:num_running_reqs"},
	{SW_FIELD_WAITING, .at.name = "sglang:num_queue_reqs"},
	{SW_FIELD_RATIO, .at.name = "sglang:token_usage"},
	{SW_FIELD_TOTAL, .at.name = "sglang:max_total_num_tokens"},
	{SW_FIELD_PAGE, .at.name = "sglang:page_size"},
};

static const struct sw_series tgi[] = {
	{SW_FIELD_RUNNING, .at.name = "tgi_batch_current_size"},
	{SW_FIELD_WAITING, .at.name = "tgi_queue_size"},
	{SW_FIELD_USED, .at.name = "tgi_batch_current_max_tokens"},
	{SW_FIELD_TOTAL, .at.name = "tgi_batch_max_total_tokens"},
};

static const struct sw_series llamacpp[] = {
	{SW_FIELD_RUNNING, .at.name = "llamacpp:requests_processing"},
	{SW_FIELD_WAITING, .at.name = "llamacpp:requests_deferred"},
	{SW_FIELD_RATIO, .at.name = "llamacpp:kv_cache_usage_ratio"}, /* older ones */
};

#define REQUESTS(type) .at = {"nv_trt_llm_request_metrics", {{"request_type", type}}}
#define BLOCKS(type)   .at = {"nv_trt_llm_kv_cache_block_metrics", {{"kv_cache_block_type", type}}}
static const struct sw_series triton[] = {
	{SW_FIELD_RUNNING, REQUESTS("active")},
	{SW_FIELD_WAITING, REQUESTS("waiting")},
	{SW_FIELD_RATIO, BLOCKS("fraction")},
	{SW_FIELD_USED, BLOCKS("used")}, /* older ones lack "fraction" */
	{SW_FIELD_TOTAL, BLOCKS("max")},
};

static const struct sw_series trtllm[] = {
	{SW_FIELD_RUNNING, .at.name = "trtllm_num_requests_running"},
	{SW_FIELD_WAITING, .at.name = "trtllm_num_requests_waiting"},
	{SW_FIELD_RATIO, .at.name = "trtllm_kv_cache_utilization"},
	{SW_FIELD_TOTAL, .at.name = "trtllm_kv_cache_max_blocks"},
	{SW_FIELD_BATCHED, .at.name = "trtllm_max_num_tokens_runtime"},
};

static const struct sw_series lmdeploy[] = {
	{SW_FIELD_RUNNING, .at.name = "lmdeploy:num_requests_running"},
	{SW_FIELD_WAITING, .at.name = "lmdeploy:num_requests_waiting"},
	{SW_FIELD_RATIO, .at.name = "lmdeploy:gpu_cache_usage_perc"},
};

/* One page for all workers behind a front end. */
static const struct sw_series dynamo[] = {
	{SW_FIELD_DECODE, .at.name = "dynamo_frontend_worker_active_decode_blocks",
	 .of = SW_OF_WORKER},
	{SW_FIELD_PREFILL, .at.name = "dynamo_frontend_worker_active_prefill_tokens",
	 .of = SW_OF_WORKER},
	{SW_FIELD_TOTAL, .at.name = "dynamo_frontend_model_total_kv_blocks", .of = SW_OF_MODEL},
	{SW_FIELD_BATCHED, .at.name = "dynamo_frontend_model_max_num_batched_tokens",
	 .of = SW_OF_MODEL},
};

#define SERIES(s) .series = (s), .n = sizeof(s) / sizeof(*(s))

const struct sw_engine_kind sw_engine_kinds[SW_ENGINES] = {
	[SW_ENGINE_VLLM] = {.name = "vllm", .page = "/metrics", .rank = "engine", SERIES(vllm)},
	[SW_ENGINE_SGLANG] =
		{
			.name = "sglang",
			.page = "/v1/loads?format=prometheus, or /metrics with --enable-metrics",
			.rank = "dp_rank",
			.replicated = true,
			.part = "priority",
			SERIES(sglang),
		},
	[SW_ENGINE_TGI] = {.name = "tgi", .page = "/metrics", SERIES(tgi)},
	[SW_ENGINE_LLAMACPP] = {.name = "llamacpp",
				.page = "/metrics with --metrics",
				SERIES(llamacpp)},
	[SW_ENGINE_TRITON] = {.name = "triton", .page = "/metrics on port 8002", SERIES(triton)},
	[SW_ENGINE_TRTLLM] = {.name = "trtllm-serve",
			      .page = "/prometheus/metrics",
			      SERIES(trtllm)},
	[SW_ENGINE_LMDEPLOY] = {.name = "lmdeploy",
				.page = "/metrics",
				.rank = "engine",
				SERIES(lmdeploy)},
	[SW_ENGINE_DYNAMO] = {.name = "dynamo-frontend",
			      .page = "/metrics",
			      .rank = "dp_rank",
			      SERIES(dynamo)},
	/* Their series are told by the configuration, and by the page. */
	[SW_ENGINE_CUSTOM] = {.name = "custom", .page = "/metrics"},
	[SW_ENGINE_AUTO] = {.name = "auto", .page = "/metrics"},
};

enum sw_engine sw_engine_recognise(const char *text, size_t length)
{
	struct sw_sample s;
	struct sw_prom p;

	sw_prom_init(&p, text, length);
	while (sw_prom_next(&p, &s) > 0)
		for (int e = 0; e < SW_ENGINES; e++)
			for (size_t i = 0; i < sw_engine_kinds[e].n; i++)
				if (sw_selector_takes(&sw_engine_kinds[e].series[i].at, &s))
					return e;
	return SW_ENGINES;
}
