// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Traps in the engines' pages, each on its own: names that only look alike, labels, ranks, numbers
 * that are none, parts and copies that must not be added, pages that are no data. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/load.h"

/* ---- traps ---- */

static void similar_names_are_other_series(void **state)
{
	(void)state;
	assert_error(read_page(SW_ENGINE_VLLM, "vllm:num_requests_running_total 1\n"
					       "vllm:num_requests_running_created 1\n"
					       "vllm:num_requests_waiting_by_reason 1\n"
					       "vllm:num_requests_waiting_bucket{le=\"1\"} 1\n"
					       "vllm:num_requests_waiting_sum 1\n"
					       "vllm:num_requests_waiting_count 1\n"
					       "avllm:num_requests_waiting 1\n"
					       "vllm:kv_cache_usage 1\n"
					       "vllm_num_requests_running 1\n"),
		     -ENODATA, "no series of vllm among the 9 on the page");
}

static void labels_come_in_any_order(void **state)
{
	(void)state;
	assert_int_equal(
		read_page(
			SW_ENGINE_VLLM,
			"vllm:num_requests_running{model_name=\"a\\\",engine=\\\"7\",engine=\"1\"} "
			"5\n"
			"vllm:num_requests_waiting{ engine = \"1\" , model_name=\"\\\\\", } 6\r\n"),
		1);
	assert_load(0, 1, 5, 6, ABSENT, ABSENT);
}

static void vllm_ranks_are_kept_apart(void **state)
{
	(void)state;
	assert_int_equal(
		read_page(SW_ENGINE_VLLM,
			  "vllm:num_requests_running{engine=\"9\"} 1\n"
			  "vllm:num_requests_running{engine=\"10\"} 2\n"
			  "vllm:kv_cache_usage_perc{engine=\"10\"} 0.5\n"
			  "vllm:kv_cache_usage_perc{engine=\"9\"} 0.25\n"
			  "vllm:cache_config_info{engine=\"10\",num_gpu_blocks=\"100\"} 1\n"
			  "vllm:cache_config_info{engine=\"9\",num_gpu_blocks=\"400\"} 1\n"),
		2);
	assert_load(0, 9, 1, ABSENT, 100, 400);
	assert_load(1, 10, 2, ABSENT, 50, 100);
}

static void a_total_without_rank_serves_all(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_VLLM,
				   "vllm:cache_config_info{num_gpu_blocks=\"1000\"} 1\n"
				   "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n"
				   "vllm:kv_cache_usage_perc{engine=\"1\"} 0.1\n"
				   "vllm:num_requests_running 8\n"),
			 2);
	assert_load(0, 0, ABSENT, ABSENT, 500, 1000);
	assert_load(1, 1, ABSENT, ABSENT, 100, 1000);
}

static void older_vllm_has_no_engine_label(void **state)
{
	(void)state;
	assert_int_equal(
		read_page(SW_ENGINE_VLLM,
			  "vllm:num_requests_running{model_name=\"m\"} 1\n"
			  "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.3\n"
			  "vllm:cache_config_info{num_gpu_blocks=\"573\",num_gpu_blocks_override="
			  "\"1000\"} 1\n"),
		1);
	assert_load(0, 0, 1, ABSENT, 172, 573);
}

static void unknown_total_is_ten_thousand(void **state)
{
	static const char *const infos[] = {
		"",
		"vllm:cache_config_info{engine=\"0\",num_gpu_blocks=\"None\"} 1.0\n",
		"vllm:cache_config_info{engine=\"0\",num_gpu_blocks=\"\"} 1.0\n",
		"vllm:cache_config_info{engine=\"0\",num_gpu_blocks=\"0\"} 1.0\n",
		"vllm:cache_config_info{engine=\"0\",num_gpu_blocks=\"-5\"} 1.0\n",
		"vllm:cache_config_info{engine=\"0\",num_gpu_blocks_override=\"77\"} 1.0\n",
	};
	char page[512];

	(void)state;
	for (size_t i = 0; i < sizeof(infos) / sizeof(*infos); i++) {
		snprintf(page, sizeof(page), "vllm:kv_cache_usage_perc{engine=\"0\"} 0.45678\n%s",
			 infos[i]);
		assert_int_equal(read_page(SW_ENGINE_VLLM, page), 1);
		assert_load(0, 0, ABSENT, ABSENT, 4568, 10000);
		/* ... unless the operator knows it */
		assert_int_equal(read_hinted(SW_ENGINE_VLLM,
					     (struct sw_engine_hints){.kv_total = 500}, page),
				 1);
		assert_load(0, 0, ABSENT, ABSENT, 228, 500);
	}
}

static void the_page_wins_over_hints(void **state)
{
	struct sw_engine_hints hints = {.kv_total = 5, .max_batched = 6};

	(void)state;
	assert_int_equal(read_hinted(SW_ENGINE_TRTLLM, hints,
				     "trtllm_kv_cache_utilization 0.5\n"
				     "trtllm_kv_cache_max_blocks 300\n"
				     "trtllm_max_num_tokens_runtime 8192\n"),
			 1);
	assert_load(0, 0, ABSENT, ABSENT, 150, 300);
	assert_int_equal(load_value(0, SW_SIG_MAX_BATCHED), 8192);
	assert_int_equal(read_hinted(SW_ENGINE_TRTLLM, hints, "trtllm_num_requests_running 1\n"),
			 1);
	assert_load(0, 0, 1, ABSENT, ABSENT, 5);
	assert_int_equal(load_value(0, SW_SIG_MAX_BATCHED), 6);
}

static void ray_serve_renames(void **state)
{
	(void)state;
	assert_int_equal(
		read_page(SW_ENGINE_VLLM,
			  "ray_vllm_num_requests_running{ReplicaId=\"a\",engine=\"0\"} 2.0\n"
			  "ray_vllm_num_requests_waiting{ReplicaId=\"a\",engine=\"0\"} 1.0\n"
			  "ray_vllm_kv_cache_usage_perc{ReplicaId=\"a\",engine=\"0\"} 0.5\n"
			  "ray_vllm_num_requests_waiting_by_reason{engine=\"0\"} 9.0\n"
			  "ray_vllm_cache_config_info{engine=\"0\",num_gpu_blocks=\"10\"} 1.0\n"),
		1);
	assert_load(0, 0, 2, 1, 5, 10);
	assert_int_equal(read_page(SW_ENGINE_VLLM, "ray_vllm_gpu_cache_usage_perc 0.5\n"), 1);
	assert_load(0, 0, ABSENT, ABSENT, 5000, 10000);
}

/* Two models in one server: requests add up, ratios must not. */
static void counts_add_up_ratios_do_not(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_VLLM,
				   "vllm:num_requests_running{model_name=\"a\"} 2\n"
				   "vllm:num_requests_running{model_name=\"b\"} 3\n"
				   "vllm:num_requests_waiting{model_name=\"a\"} 4\n"
				   "vllm:num_requests_waiting{model_name=\"b\"} 5\n"
				   "vllm:kv_cache_usage_perc{model_name=\"a\"} 0.6\n"
				   "vllm:kv_cache_usage_perc{model_name=\"b\"} "
				   "0.5\n"),
			 1);
	assert_load(0, 0, 5, 9, 6000, 10000);
	assert_int_equal(
		read_page(SW_ENGINE_TRITON,
			  "nv_trt_llm_request_metrics{model=\"a\",request_type=\"active\"} 1\n"
			  "nv_trt_llm_request_metrics{model=\"b\",request_type=\"active\"} 2\n"),
		1);
	assert_load(0, 0, 3, ABSENT, ABSENT, ABSENT);
}

static void sglang_takes_the_largest_tp_rank(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_SGLANG,
				   "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"0\"} 3\n"
				   "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"1\"} 8\n"
				   "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"2\"} NaN\n"
				   "sglang:token_usage{dp_rank=\"1\",tp_rank=\"1\"} 0.9\n"
				   "sglang:token_usage{dp_rank=\"1\",tp_rank=\"0\"} 0.8\n"),
			 1);
	assert_load(0, 1, 8, ABSENT, 9000, 10000);
}

static void sglang_priorities_are_parts(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_SGLANG, "sglang:num_queue_reqs{priority=\"10\"} 40\n"
						     "sglang:num_queue_reqs{priority=\"\"} 3\n"
						     "sglang:num_queue_reqs{priority=\"0\"} 50\n"),
			 1);
	assert_load(0, 0, ABSENT, 3, ABSENT, ABSENT);
}

static void sglang_page_size_divides(void **state)
{
	(void)state;
	assert_int_equal(read_page(SW_ENGINE_SGLANG, "sglang:page_size 16\n"
						     "sglang:token_usage 0.5\n"
						     "sglang:max_total_num_tokens 1600\n"),
			 1);
	assert_load(0, 0, ABSENT, ABSENT, 50, 100);
	assert_int_equal(read_page(SW_ENGINE_SGLANG, "sglang:page_size 0\n"
						     "sglang:token_usage 0.5\n"
						     "sglang:max_total_num_tokens 1600\n"),
			 1);
	assert_load(0, 0, ABSENT, ABSENT, 800, 1600);
}

static void no_number_is_absent_and_never_zero(void **state)
{
	static const char *const none[] = {"NaN", "+Inf", "-Inf", "-1", "1e300"};
	char page[512];

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		snprintf(page, sizeof(page),
			 "vllm:num_requests_running %s\nvllm:kv_cache_usage_perc %s\n"
			 "vllm:num_requests_waiting 1e3\n",
			 none[i], none[i]);
		assert_int_equal(read_page(SW_ENGINE_VLLM, page), 1);
		assert_int_equal(load_value(0, SW_SIG_RUNNING), ABSENT);
		assert_int_equal(load_value(0, SW_SIG_WAITING), 1000);
		assert_int_equal(load_value(0, SW_SIG_KV_USED), ABSENT);
	}
	/* a sum with an unknown part is unknown */
	assert_int_equal(read_page(SW_ENGINE_VLLM,
				   "vllm:num_requests_running{model_name=\"a\"} 4\n"
				   "vllm:num_requests_running{model_name=\"b\"} NaN\n"
				   "vllm:num_requests_waiting 0\n"),
			 1);
	assert_load(0, 0, ABSENT, 0, ABSENT, ABSENT);
}

/* A report without load would make a silent engine look alive. */
static void constants_alone_are_no_report(void **state)
{
	struct sw_engine_hints hints = {.kv_total = 5, .max_batched = 6};

	(void)state;
	assert_error(read_hinted(SW_ENGINE_VLLM, hints,
				 "vllm:cache_config_info{num_gpu_blocks=\"100\"} 1\n"
				 "vllm:num_requests_running NaN\n"),
		     -ENODATA, "no load in them");
	assert_int_equal(read_page(SW_ENGINE_VLLM, "vllm:num_requests_running{engine=\"0\"} NaN\n"
						   "vllm:num_requests_running{engine=\"1\"} 1\n"),
			 1);
	assert_load(0, 1, 1, ABSENT, ABSENT, ABSENT);
}

static void odd_rank_labels_count_as_none(void **state)
{
	static const char *const odd[] = {"None", "", "-1", "1x", "99999999999", " 1"};
	char page[256];

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		snprintf(page, sizeof(page), "sglang:num_running_reqs{dp_rank=\"%s\"} 4\n", odd[i]);
		assert_int_equal(read_page(SW_ENGINE_SGLANG, page), 1);
		assert_load(0, 0, 4, ABSENT, ABSENT, ABSENT);
	}
}

static void never_more_reports_than_places(void **state)
{
	struct sw_engine_hints hints = {};
	char page[16384];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < SW_MAX_RANKS + 6; i++)
		n += snprintf(page + n, sizeof(page) - n,
			      "vllm:num_requests_running{engine=\"%d\"} %d\n", i, i);
	assert_int_equal(read_page(SW_ENGINE_VLLM, page), SW_MAX_RANKS);
	assert_load(SW_MAX_RANKS - 1, SW_MAX_RANKS - 1, SW_MAX_RANKS - 1, ABSENT, ABSENT, ABSENT);
	memset(load_reports, 0xee, sizeof(load_reports));
	assert_int_equal(sw_engine_read(SW_ENGINE_VLLM, &hints, page, n, load_reports, 3, NULL), 3);
	assert_int_equal(load_reports[3].rank, 0xeeeeeeee);
}

/* ---- pages that are no data ---- */

static void what_is_not_metrics_is_named(void **state)
{
	(void)state;
	assert_error(
		read_page(SW_ENGINE_VLLM, "<!DOCTYPE html>\n<html><body>Sign in</body></html>"),
		-EBADMSG, "got HTML instead of Prometheus metrics (it begins '<!DOCTYPE html>'");
	assert_non_null(
		strstr(load_error.text, "Point url at the metrics of vllm, usually /metrics"));
	assert_error(read_page(SW_ENGINE_VLLM, "\r\n  <html>"), -EBADMSG, "got HTML");
	assert_error(read_page(SW_ENGINE_SGLANG, "{\"detail\":\"Not Found\"}"), -EBADMSG,
		     "got JSON");
	assert_non_null(strstr(load_error.text, "/v1/loads?format=prometheus"));
	assert_error(read_page(SW_ENGINE_VLLM, "[1, 2]\n"), -EBADMSG, "got JSON");
	assert_error(read_page(SW_ENGINE_VLLM, "\x1f\x8b\x08\x01garbage\n"), -EBADMSG,
		     "got binary data instead of Prometheus metrics (it begins '....garbage'");
	assert_error(read_page(SW_ENGINE_VLLM, "Not Found\n"), -EBADMSG, "got text");
	/* metrics up to a point are no metrics */
	assert_error(read_page(SW_ENGINE_VLLM, "vllm:num_requests_running 1\n<html>\n"), -EBADMSG,
		     "line 2");
}

static void a_page_without_our_series_is_no_data(void **state)
{
	(void)state;
	assert_error(read_page(SW_ENGINE_VLLM, ""), -ENODATA, "no series of vllm among the 0");
	assert_error(read_page(SW_ENGINE_VLLM, "# HELP x\n\n"), -ENODATA, "no series of vllm");
	assert_error(read_page(SW_ENGINE_VLLM, "go_goroutines 12\n"), -ENODATA, "among the 1");
	assert_error(read_page(SW_ENGINE_VLLM, "sglang:num_running_reqs 4\n"), -ENODATA,
		     "series of sglang, none of vllm: set engine: sglang");
	/* with Triton, the name alone is not the series */
	assert_error(read_page(SW_ENGINE_TRITON,
			       "nv_trt_llm_request_metrics{request_type=\"max\"} 512\n"),
		     -ENODATA, "no series of triton");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(similar_names_are_other_series),
		cmocka_unit_test(labels_come_in_any_order),
		cmocka_unit_test(vllm_ranks_are_kept_apart),
		cmocka_unit_test(a_total_without_rank_serves_all),
		cmocka_unit_test(older_vllm_has_no_engine_label),
		cmocka_unit_test(unknown_total_is_ten_thousand),
		cmocka_unit_test(the_page_wins_over_hints),
		cmocka_unit_test(ray_serve_renames),
		cmocka_unit_test(counts_add_up_ratios_do_not),
		cmocka_unit_test(sglang_takes_the_largest_tp_rank),
		cmocka_unit_test(sglang_priorities_are_parts),
		cmocka_unit_test(sglang_page_size_divides),
		cmocka_unit_test(no_number_is_absent_and_never_zero),
		cmocka_unit_test(constants_alone_are_no_report),
		cmocka_unit_test(odd_rank_labels_count_as_none),
		cmocka_unit_test(never_more_reports_than_places),
		cmocka_unit_test(what_is_not_metrics_is_named),
		cmocka_unit_test(a_page_without_our_series_is_no_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
