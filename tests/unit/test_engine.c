// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The engines' pages: one realistic page for each engine. The traps in them are in
 * test_engine_traps.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/load.h"

/* ---- a page of each engine ---- */

static const char vllm_page[] =
	"# HELP python_gc_objects_collected_total Objects collected during gc\n"
	"# TYPE python_gc_objects_collected_total counter\n"
	"python_gc_objects_collected_total{generation=\"0\"} 11253.0\n"
	"# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
	"# TYPE vllm:num_requests_running gauge\n"
	"vllm:num_requests_running{engine=\"0\",model_name=\"qwen3.8-27b\"} 2.0\n"
	"# TYPE vllm:num_requests_waiting gauge\n"
	"vllm:num_requests_waiting{engine=\"0\",model_name=\"qwen3.8-27b\"} 3.0\n"
	"# TYPE vllm:num_requests_waiting_by_reason gauge\n"
	"vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"qwen3.8-27b\",reason="
	"\"capacity\"} 3.0\n"
	"vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"qwen3.8-27b\",reason="
	"\"deferred\"} 9.0\n"
	"# TYPE vllm:engine_sleep_state gauge\n"
	"vllm:engine_sleep_state{engine=\"0\",model_name=\"qwen3.8-27b\",sleep_state=\"awake\"} 1.0\n"
	"# TYPE vllm:kv_cache_usage_perc gauge\n"
	"vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"qwen3.8-27b\"} 0.4567\n"
	"# TYPE vllm:prompt_tokens_total counter\n"
	"vllm:prompt_tokens_total{engine=\"0\",model_name=\"qwen3.8-27b\"} 8.128902e+06\n"
	"vllm:prompt_tokens_created{engine=\"0\",model_name=\"qwen3.8-27b\"} 1.7903473e+09\n"
	"# TYPE vllm:time_to_first_token_seconds histogram\n"
	"vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.001\",model_name=\"qwen3.8-27b\"} "
	"0.0\n"
	"vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"qwen3.8-27b\"} "
	"5.0\n"
	"vllm:time_to_first_token_seconds_sum{engine=\"0\",model_name=\"qwen3.8-27b\"} 1.25\n"
	"vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"qwen3.8-27b\"} 5.0\n"
	"# TYPE vllm:cache_config_info gauge\n"
	"vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",engine=\"0\",num_cpu_blocks="
	"\"None\",num_gpu_blocks=\"164000\",num_gpu_blocks_override=\"None\"} 1.0\n";

static void reads_vllm(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_VLLM, vllm_page), 1);
	assert_load(0, 0, 2, 3, 74899, 164000); /* 0.4567 x 164000 = 74898.8 */
	assert_int_equal(load_value(0, SW_SIG_PREFILL_TOKENS), ABSENT);
	assert_int_equal(load_value(0, SW_SIG_MAX_BATCHED), ABSENT);
}

static const char sglang_loads_page[] = "# TYPE sglang_timestamp gauge\n"
					"sglang_timestamp{dp_rank=\"0\"} 1790347303.12\n"
					"sglang_timestamp{dp_rank=\"1\"} 1790347303.13\n"
					"# TYPE sglang_num_running_reqs gauge\n"
					"sglang_num_running_reqs{dp_rank=\"0\"} 24\n"
					"sglang_num_running_reqs{dp_rank=\"1\"} 19\n"
					"# TYPE sglang_num_waiting_reqs gauge\n"
					"sglang_num_waiting_reqs{dp_rank=\"0\"} 3\n"
					"sglang_num_waiting_reqs{dp_rank=\"1\"} 0\n"
					"# TYPE sglang_num_waiting_uncached_tokens gauge\n"
					"sglang_num_waiting_uncached_tokens{dp_rank=\"0\"} 6144\n"
					"sglang_num_waiting_uncached_tokens{dp_rank=\"1\"} 0\n"
					"# TYPE sglang_max_total_num_tokens gauge\n"
					"sglang_max_total_num_tokens{dp_rank=\"0\"} 524288\n"
					"sglang_max_total_num_tokens{dp_rank=\"1\"} 524288\n"
					"# TYPE sglang_token_usage gauge\n"
					"sglang_token_usage{dp_rank=\"0\"} 0.75\n"
					"sglang_token_usage{dp_rank=\"1\"} 0.5\n"
					"# TYPE sglang_queues_waiting gauge\n"
					"sglang_queues_waiting{dp_rank=\"0\"} 3\n";

static void reads_sglang_loads(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_SGLANG, sglang_loads_page), 2);
	assert_load(0, 0, 24, 3, 393216, 524288);
	assert_load(1, 1, 19, 0, 262144, 524288);
	assert_int_equal(load_value(0, SW_SIG_PREFILL_TOKENS), 6144);
	assert_int_equal(load_value(1, SW_SIG_PREFILL_TOKENS), 0);
}

/* Two tensor-parallel processes publish the same load, and priorities split it up. */
static const char sglang_metrics_page[] =
	"# HELP sglang:num_running_reqs The number of running requests.\n"
	"# TYPE sglang:num_running_reqs gauge\n"
	"sglang:num_running_reqs{engine_type=\"unified\",model_name=\"glm-5.3\",priority=\"\","
	"tp_rank=\"0\"} 7.0\n"
	"sglang:num_running_reqs{engine_type=\"unified\",model_name=\"glm-5.3\",priority=\"5\","
	"tp_rank=\"0\"} 100.0\n"
	"sglang:num_running_reqs{engine_type=\"unified\",model_name=\"glm-5.3\",priority=\"\","
	"tp_rank=\"1\"} 6.0\n"
	"# TYPE sglang:num_queue_reqs gauge\n"
	"sglang:num_queue_reqs{engine_type=\"unified\",model_name=\"glm-5.3\",tp_rank=\"0\"} 2.0\n"
	"sglang:num_queue_reqs{engine_type=\"unified\",model_name=\"glm-5.3\",tp_rank=\"1\"} 4.0\n"
	"# TYPE sglang:num_grammar_queue_reqs gauge\n"
	"sglang:num_grammar_queue_reqs{engine_type=\"unified\",model_name=\"glm-5.3\"} 50.0\n"
	"# TYPE sglang:token_usage gauge\n"
	"sglang:token_usage{engine_type=\"unified\",model_name=\"glm-5.3\",tp_rank=\"0\"} 0.42 "
	"1790347303000\n"
	"sglang:token_usage{engine_type=\"unified\",model_name=\"glm-5.3\",tp_rank=\"1\"} 0.40 "
	"1790347303000\n"
	"# TYPE sglang:max_total_num_tokens gauge\n"
	"sglang:max_total_num_tokens{engine_type=\"unified\",model_name=\"glm-5.3\"} 160000.0\n"
	"sglang:page_size{engine_type=\"unified\",model_name=\"glm-5.3\"} 64.0\n";

static void reads_sglang_metrics(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_SGLANG, sglang_metrics_page), 1);
	assert_load(0, 0, 7, 4, 1050, 2500);
	assert_int_equal(load_value(0, SW_SIG_PREFILL_TOKENS), ABSENT);
}

static void reads_tgi(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_TGI,
				   "# TYPE tgi_queue_size gauge\ntgi_queue_size 12\n\n"
				   "# TYPE tgi_batch_current_size gauge\n"
				   "tgi_batch_current_size 5\n\n"
				   "# TYPE tgi_batch_current_max_tokens gauge\n"
				   "tgi_batch_current_max_tokens 6000\n\n"
				   "# TYPE tgi_batch_max_total_tokens gauge\n"
				   "tgi_batch_max_total_tokens 16000\n\n"
				   "# TYPE tgi_request_count counter\ntgi_request_count 99\n\n"
				   "# TYPE tgi_request_queue_duration summary\n"
				   "tgi_request_queue_duration{quantile=\"0.5\"} 3.2e-05\n"
				   "tgi_request_queue_duration_sum 0.1\n"
				   "tgi_request_queue_duration_count 99\n\n"),
			 1);
	assert_load(0, 0, 5, 12, 6000, 16000);
}

static void reads_llamacpp(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_LLAMACPP,
				   "# HELP llamacpp:prompt_tokens_total Prompt tokens processed.\n"
				   "# TYPE llamacpp:prompt_tokens_total counter\n"
				   "llamacpp:prompt_tokens_total 1000\n"
				   "# HELP llamacpp:requests_processing Requests processing.\n"
				   "# TYPE llamacpp:requests_processing gauge\n"
				   "llamacpp:requests_processing 3\n"
				   "# TYPE llamacpp:requests_deferred gauge\n"
				   "llamacpp:requests_deferred 4\n"),
			 1);
	assert_load(0, 0, 3, 4, ABSENT, ABSENT);
	assert_int_equal(read_page(SW_ENGINE_LLAMACPP, "llamacpp:kv_cache_usage_ratio 0.12345\n"),
			 1);
	assert_load(0, 0, ABSENT, ABSENT, 1235, 10000);
}

static const char triton_page[] =
	"# HELP nv_inference_count Number of inferences performed\n"
	"# TYPE nv_inference_count counter\n"
	"nv_inference_count{model=\"tensorrt_llm\",version=\"1\"} 12\n"
	"# HELP nv_trt_llm_request_metrics TRT LLM request metrics\n"
	"# TYPE nv_trt_llm_request_metrics gauge\n"
	"nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"waiting\",version=\"1\"} 1\n"
	"nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"context\",version=\"1\"} 9\n"
	"nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"scheduled\",version=\"1\"} "
	"8\n"
	"nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"max\",version=\"1\"} 512\n"
	"nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"active\",version=\"1\"} 6\n"
	"# TYPE nv_trt_llm_kv_cache_block_metrics gauge\n"
	"nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"tokens_per\",model=\"tensorrt_llm\","
	"version=\"1\"} 64\n"
	"nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"free\",model=\"tensorrt_llm\","
	"version=\"1\"} 3280\n"
	"nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\",model=\"tensorrt_llm\","
	"version=\"1\"} 6400\n";

static void reads_triton(void **state)
{
	char page[4096];

	(void)state;
	snprintf(page, sizeof(page), "%s%s", triton_page,
		 "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"used\",model="
		 "\"tensorrt_llm\",version=\"1\"} 3119\n"
		 "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\",model="
		 "\"tensorrt_llm\",version=\"1\"} 0.4875\n");
	assert_int_equal(read_page(SW_ENGINE_TRITON, page), 1);
	assert_load(0, 0, 6, 1, 3120, 6400);

	/* releases without "fraction" */
	snprintf(page, sizeof(page), "%s%s", triton_page,
		 "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"used\",model="
		 "\"tensorrt_llm\",version=\"1\"} 3119\n");
	assert_int_equal(read_page(SW_ENGINE_TRITON, page), 1);
	assert_load(0, 0, 6, 1, 3119, 6400);
}

static void reads_trtllm_serve(void **state)
{
	(void)state;
	assert_int_equal(
		read_page(
			SW_ENGINE_TRTLLM,
			"# TYPE trtllm_num_requests_running gauge\n"
			"trtllm_num_requests_running{engine_type=\"trtllm\",model_name=\"m\"} 4.0\n"
			"trtllm_num_requests_waiting{engine_type=\"trtllm\",model_name=\"m\"} 1.0\n"
			"trtllm_kv_cache_utilization{engine_type=\"trtllm\",model_name=\"m\"} 0.5\n"
			"trtllm_kv_cache_max_blocks{engine_type=\"trtllm\",model_name=\"m\"} 300.0\n"
			"trtllm_kv_cache_hit_rate{engine_type=\"trtllm\",model_name=\"m\"} 0.9\n"
			"trtllm_max_batch_size_runtime{model_name=\"m\"} 64.0\n"
			"trtllm_max_num_tokens_runtime{model_name=\"m\"} 8192.0\n"
			"trtllm_request_success_total{finished_reason=\"stop\"} 5.0\n"),
		1);
	assert_load(0, 0, 4, 1, 150, 300);
	assert_int_equal(load_value(0, SW_SIG_MAX_BATCHED), 8192);
}

static void reads_lmdeploy(void **state)
{
	(void)state;
	assert_int_equal(
		read_page(SW_ENGINE_LMDEPLOY,
			  "# TYPE lmdeploy:num_requests_running gauge\n"
			  "lmdeploy:num_requests_running{engine=\"0\",model_name=\"m\"} 1.0\n"
			  "lmdeploy:num_requests_running{engine=\"1\",model_name=\"m\"} 2.0\n"
			  "lmdeploy:num_requests_waiting{engine=\"0\",model_name=\"m\"} 3.0\n"
			  "lmdeploy:num_requests_waiting{engine=\"1\",model_name=\"m\"} 4.0\n"
			  "lmdeploy:gpu_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n"
			  "lmdeploy:gpu_cache_usage_perc{engine=\"1\",model_name=\"m\"} 1.0\n"),
		2);
	assert_load(0, 0, 1, 3, 2500, 10000);
	assert_load(1, 1, 2, 4, 10000, 10000);
}

/* ---- names ---- */

static void names_go_both_ways(void **state)
{
	static const char *const names[] = {"vllm",   "sglang",	      "tgi",	  "llamacpp",
					    "triton", "trtllm-serve", "lmdeploy", "dynamo-frontend",
					    "custom", "auto"};
	enum sw_engine e;

	(void)state;
	for (int i = 0; i < SW_ENGINES; i++) {
		assert_string_equal(sw_engine_name(i), names[i]);
		assert_int_equal(sw_engine_parse(names[i], &e), 0);
		assert_int_equal(e, i);
	}
	assert_int_equal(sw_engine_parse("VLLM", &e), -EINVAL);
	assert_int_equal(sw_engine_parse("", &e), -EINVAL);
	assert_int_equal(sw_engine_parse("vllm ", &e), -EINVAL);
}

/* A page cut inside a line gives nothing, for "27" cut to "2" is a number too. */
static void a_page_cut_inside_a_line_gives_nothing(void **state)
{
	static const struct {
		enum sw_engine engine;
		const char *page;
	} pages[] = {{SW_ENGINE_VLLM, vllm_page},
		     {SW_ENGINE_SGLANG, sglang_metrics_page},
		     {SW_ENGINE_TRITON, triton_page}};
	struct sw_engine_hints hints = {};

	(void)state;
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
		size_t length = strlen(pages[i].page);

		for (size_t n = 1; n < length; n++) {
			char *cut = malloc(n);
			int got;

			memcpy(cut, pages[i].page, n);
			got = sw_engine_read(pages[i].engine, &hints, cut, n, load_reports,
					     SW_MAX_RANKS, &load_error);
			if (cut[n - 1] != '\n')
				assert_error(got, -EBADMSG, "cut short");
			free(cut);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_vllm),
		cmocka_unit_test(reads_sglang_loads),
		cmocka_unit_test(reads_sglang_metrics),
		cmocka_unit_test(reads_tgi),
		cmocka_unit_test(reads_llamacpp),
		cmocka_unit_test(reads_triton),
		cmocka_unit_test(reads_trtllm_serve),
		cmocka_unit_test(reads_lmdeploy),
		cmocka_unit_test(names_go_both_ways),
		cmocka_unit_test(a_page_cut_inside_a_line_gives_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
