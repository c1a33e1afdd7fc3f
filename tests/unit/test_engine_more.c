// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pages that name many workers, pages that an operator describes, and pages whose engine is found
 * out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/load.h"
#include "sources/custom.h"

/* ---- dynamo-frontend ---- */

static const char front_page[] =
	"# TYPE dynamo_frontend_inflight_requests gauge\n"
	"dynamo_frontend_inflight_requests{model=\"qwen\"} 12\n"
	"dynamo_frontend_worker_active_decode_blocks{dp_rank=\"0\",worker_id=\"758788\",worker_type="
	"\"decode\"} 57\n"
	"dynamo_frontend_worker_active_decode_blocks{dp_rank=\"1\",worker_id=\"758788\",worker_type="
	"\"decode\"} 58\n"
	"dynamo_frontend_worker_active_decode_blocks{dp_rank=\"0\",worker_id=\"75878\",worker_type="
	"\"decode\"} 900\n"
	"dynamo_frontend_worker_active_prefill_tokens{worker_type=\"decode\",worker_id=\"758788\","
	"dp_rank=\"0\"} 4096\n"
	"dynamo_frontend_worker_active_prefill_tokens{worker_type=\"decode\",worker_id=\"7587889\","
	"dp_rank=\"0\"} 1\n"
	"dynamo_frontend_worker_last_time_to_first_token_seconds{dp_rank=\"0\",worker_id=\"758788\"} "
	"0.2\n"
	"dynamo_frontend_model_total_kv_blocks{model=\"qwen\"} 1000\n"
	"dynamo_frontend_model_max_num_batched_tokens{model=\"qwen\"} 8192\n"
	"dynamo_frontend_model_max_num_seqs{model=\"qwen\"} 256\n";

static const char second_model[] =
	"dynamo_frontend_model_total_kv_blocks{model=\"glm\"} 5000\n"
	"dynamo_frontend_model_max_num_batched_tokens{model=\"glm\"} 1\n";

static const struct sw_engine_hints front_hints = {
	.has_worker_id = true, .worker_id = 758788, .model = "Qwen"};

static void a_worker_takes_its_own_series(void **state)
{
	(void)state;
	assert_int_equal(read_hinted(SW_ENGINE_DYNAMO, front_hints, front_page), 2);
	assert_int_equal(load_reports[0].rank, 0);
	assert_int_equal(load_value(0, SW_SIG_DECODE_BLOCKS), 57);
	assert_int_equal(load_value(0, SW_SIG_PREFILL_TOKENS), 4096);
	assert_int_equal(load_reports[1].rank, 1);
	assert_int_equal(load_value(1, SW_SIG_DECODE_BLOCKS), 58);
	assert_int_equal(load_value(1, SW_SIG_PREFILL_TOKENS), ABSENT);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(load_value(i, SW_SIG_KV_TOTAL), 1000);
		assert_int_equal(load_value(i, SW_SIG_MAX_BATCHED), 8192);
		assert_int_equal(load_value(i, SW_SIG_KV_USED), ABSENT);
		assert_int_equal(load_value(i, SW_SIG_RUNNING), ABSENT);
	}
}

static void of_several_models_its_own_counts(void **state)
{
	struct sw_engine_hints hints = front_hints;
	char page[4096];

	(void)state;
	for (int last = 0; last < 2; last++) {
		snprintf(page, sizeof(page), "%s%s", last ? front_page : second_model,
			 last ? second_model : front_page);
		hints.model = "qwen";
		assert_int_equal(read_hinted(SW_ENGINE_DYNAMO, hints, page), 2);
		assert_int_equal(load_value(0, SW_SIG_KV_TOTAL), 1000);
		assert_int_equal(load_value(0, SW_SIG_MAX_BATCHED), 8192);
		hints.model = "glm";
		assert_int_equal(read_hinted(SW_ENGINE_DYNAMO, hints, page), 2);
		assert_int_equal(load_value(0, SW_SIG_KV_TOTAL), 5000);
		hints.model = "another"; /* nobody knows which, so none */
		assert_int_equal(read_hinted(SW_ENGINE_DYNAMO, hints, page), 2);
		assert_int_equal(load_value(0, SW_SIG_DECODE_BLOCKS), 57);
		assert_int_equal(load_value(0, SW_SIG_KV_TOTAL), ABSENT);
		assert_int_equal(load_value(0, SW_SIG_MAX_BATCHED), ABSENT);
	}
	/* the only one counts, whatever it is called */
	assert_int_equal(read_hinted(SW_ENGINE_DYNAMO, hints, front_page), 2);
	assert_int_equal(load_value(0, SW_SIG_KV_TOTAL), 1000);
}

static void a_worker_that_is_not_on_the_page_is_no_data(void **state)
{
	struct sw_engine_hints hints = {.has_worker_id = true, .worker_id = 7};

	(void)state;
	assert_error(read_hinted(SW_ENGINE_DYNAMO, hints, front_page), -ENODATA,
		     "no load of worker_id 7 is on the page");
	hints.has_worker_id = false;
	assert_error(read_hinted(SW_ENGINE_DYNAMO, hints, front_page), -ENODATA, "set worker_id");
	assert_error(read_hinted(SW_ENGINE_DYNAMO, hints,
				 "dynamo_frontend_worker_active_decode_blocks 5\n"),
		     -ENODATA, "set worker_id");
	hints.has_worker_id = true;
	hints.worker_id = UINT64_MAX;
	assert_int_equal(read_hinted(SW_ENGINE_DYNAMO, hints,
				     "dynamo_frontend_worker_active_decode_blocks{worker_id="
				     "\"18446744073709551615\"} 5\n"),
			 1);
	assert_int_equal(load_value(0, SW_SIG_DECODE_BLOCKS), 5);
}

/* ---- custom ---- */

static struct sw_custom *custom(const char *rank, size_t n, const char *const series[][2])
{
	struct sw_custom *c;

	assert_int_equal(sw_custom_new(&c, rank), 0);
	for (size_t i = 0; i < n; i++) {
		int f = 0;

		while (!sw_custom_key(f) || strcmp(sw_custom_key(f), series[i][0]))
			f++;
		assert_int_equal(sw_custom_add(c, f, series[i][1], &load_error), 0);
	}
	return c;
}

static void custom_series_are_selected_by_name_and_labels(void **state)
{
	static const char *const series[][2] = {
		{"running", "my_requests{ state = \"run\\\"ning\", model=\"x\" }"},
		{"waiting", "my_requests{state=\"waiting\"}"},
		{"kv_ratio", "my_kv{pool=\"\"}"},
		{"kv_total", "my:blocks"},
		{"prefill_tokens", "my_tokens"},
		{"queued_tokens", "my_tokens"},
		{"max_batched", "my_max"},
	};
	struct sw_engine_hints hints = {.custom = custom("shard", 7, series)};

	(void)state;
	assert_int_equal(
		read_hinted(
			SW_ENGINE_CUSTOM, hints,
			"my_requests{model=\"x\",state=\"run\\\"ning\",shard=\"3\"} 2\n"
			"my_requests{model=\"x\",state=\"run\\\"ning\",shard=\"3\",half=\"2\"} 5\n"
			"my_requests{model=\"y\",state=\"run\\\"ning\",shard=\"3\"} 100\n"
			"my_requests{model=\"x\",state=\"running\",shard=\"3\"} 100\n"
			"my_requests{state=\"waiting\",shard=\"3\"} 4\n"
			"my_requests_total{state=\"waiting\",shard=\"3\"} 100\n"
			"my_kv{shard=\"3\"} 0.25\nmy_kv{shard=\"3\",half=\"2\"} 0.5\n"
			"my_kv{shard=\"3\",pool=\"spare\"} 0.9\n"
			"my:blocks 2000\nmy_max 4096\nmy_tokens{shard=\"3\"} 77\n"),
		1);
	assert_int_equal(load_reports[0].rank, 3);
	assert_int_equal(load_value(0, SW_SIG_RUNNING), 7); /* counts add up */
	assert_int_equal(load_value(0, SW_SIG_WAITING), 4);
	assert_int_equal(load_value(0, SW_SIG_KV_USED), 1000); /* ratios do not */
	assert_int_equal(load_value(0, SW_SIG_KV_TOTAL), 2000);
	assert_int_equal(load_value(0, SW_SIG_PREFILL_TOKENS), 77); /* one may tell two things */
	assert_int_equal(load_value(0, SW_SIG_QUEUED_TOKENS), 77);
	assert_int_equal(load_value(0, SW_SIG_MAX_BATCHED), 4096);
	assert_error(read_hinted(SW_ENGINE_CUSTOM, hints, "vllm:num_requests_running 1\nx 2\n"),
		     -ENODATA, "none of the 2 samples on the page is load by series");
	assert_error(read_hinted(SW_ENGINE_CUSTOM, hints, "<html>"), -EBADMSG, "got HTML");
	sw_custom_drop(hints.custom);
}

static void used_blocks_need_no_ratio(void **state)
{
	static const char *const series[][2] = {{"kv_used", "used"}, {"kv_total", "total"}};
	struct sw_engine_hints hints = {.custom = custom(NULL, 2, series)};

	(void)state;
	assert_int_equal(read_hinted(SW_ENGINE_CUSTOM, hints, "used 12\ntotal 50\n"), 1);
	assert_load(0, 0, ABSENT, ABSENT, 12, 50);
	sw_custom_drop(hints.custom);
}

static void a_bad_selector_is_refused(void **state)
{
	static const char *const bad[][2] = {
		{"", "does not begin with the name"},
		{"# x", "not one series"},
		{"{a=\"b\"}", "does not begin with the name"},
		{"9x", "does not begin with the name"},
		{"x-y", "not allowed"},
		{"x{", "labels are malformed"},
		{"x{a}", "labels are malformed"},
		{"x{a=b}", "labels are malformed"},
		{"x{a=\"b}", "labels are malformed"},
		{"x{a=\"b\\\"}", "labels are malformed"},
		{"x{a!=\"b\"}", "labels are malformed"},
		{"x{a=~\"b\"}", "labels are malformed"},
		{"x{a=\"1\",a=\"2\"}", "the label a twice"},
		{"x{a=\"1\"} y", "not a number"},
		{"x 5", "not one series"},
		{"x 0", "not one series"},
		{"x 0\ny", "not one series"},
		{"x{a=\"\",b=\"\",c=\"\",d=\"\",e=\"\",f=\"\",g=\"\",h=\"\",i=\"\"}",
		 "over 8 labels"},
	};
	struct sw_selector s;
	char text[1400];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_error(sw_selector_parse(&s, bad[i][0], &load_error), -EINVAL, bad[i][1]);
	snprintf(text, sizeof(text), "x{a=\"%0300d\"}", 1);
	assert_error(sw_selector_parse(&s, text, &load_error), -EINVAL, "over 255 bytes");
	snprintf(text, sizeof(text), "x%01300d", 1);
	assert_error(sw_selector_parse(&s, text, &load_error), -EINVAL, "over 1024 bytes");
}

static void custom_engines_are_compared(void **state)
{
	static const char *const one[][2] = {{"running", "a{x=\"1\"}"}, {"waiting", "b"}};
	static const char *const same[][2] = {{"running", "a{x = \"1\",}"}, {"waiting", "b"}};
	static const char *const other[][2] = {{"running", "a{x=\"2\"}"}, {"waiting", "b"}};
	struct sw_custom *a = custom("r", 2, one),
			 *b[] = {
				 custom("r", 2, same), custom("r", 2, other), custom("s", 2, one),
				 custom(NULL, 2, one), custom("r", 1, one),
			 };

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(sw_custom_same(a, b[i]), i == 0);
		sw_custom_drop(b[i]);
	}
	assert_false(sw_custom_same(a, NULL));
	assert_true(sw_custom_same(NULL, NULL));
	assert_ptr_equal(sw_custom_hold(a), a);
	sw_custom_drop(a);
	assert_true(sw_custom_tells_load(a));
	sw_custom_drop(a);
}

/* ---- auto ---- */

static void an_engine_is_recognised(void **state)
{
	static const struct {
		enum sw_engine engine;
		const char *page;
	} pages[] = {
		{SW_ENGINE_VLLM, "go_gc 1\nvllm:num_requests_waiting 3\n"},
		{SW_ENGINE_VLLM, "ray_vllm_num_requests_waiting{engine=\"0\"} NaN\n"},
		{SW_ENGINE_SGLANG, "sglang_token_usage 0.4\n"},
		{SW_ENGINE_SGLANG, "sglang:num_queue_reqs 1\n"},
		{SW_ENGINE_TGI, "tgi_queue_size 1\n"},
		{SW_ENGINE_LLAMACPP, "llamacpp:requests_deferred 4\n"},
		{SW_ENGINE_TRITON,
		 "nv_trt_llm_request_metrics{model=\"t\",request_type=\"waiting\"} 1\n"},
		{SW_ENGINE_TRTLLM, "trtllm_num_requests_running 1\n"},
		{SW_ENGINE_LMDEPLOY, "lmdeploy:num_requests_running 1\n"},
		{SW_ENGINE_DYNAMO, front_page},
		{SW_ENGINES, "vllm:num_requests_waiting_by_reason 1\ntgi_queue_size_total 1\n"},
		{SW_ENGINES, "<html>"},
		{SW_ENGINES, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		assert_int_equal(sw_engine_recognise(pages[i].page, strlen(pages[i].page)),
				 pages[i].engine);
	assert_error(read_page(SW_ENGINE_AUTO, "go_gc 1\n"), -ENODATA,
		     "no series of a known engine among the 1 on the page");
	assert_error(read_page(SW_ENGINE_AUTO, "<html>"), -EBADMSG, "the metrics of the engine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_takes_its_own_series),
		cmocka_unit_test(of_several_models_its_own_counts),
		cmocka_unit_test(a_worker_that_is_not_on_the_page_is_no_data),
		cmocka_unit_test(custom_series_are_selected_by_name_and_labels),
		cmocka_unit_test(used_blocks_need_no_ratio),
		cmocka_unit_test(a_bad_selector_is_refused),
		cmocka_unit_test(custom_engines_are_compared),
		cmocka_unit_test(an_engine_is_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
