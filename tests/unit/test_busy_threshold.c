// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* /busy_threshold over HTTP, byte for byte: the exchanges that NVIDIA Dynamo documents, what is
 * refused and how, and that a change is felt before it is answered. */
#include "lib/asking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "control/serve.h"
#include "control/thresholds.h"

#define MODEL "llama-3-70b"
#define JSON  "application/json"

/* ---- the daemon: two pools serve one model, a third another ------------------------------------
 */

static struct sw_worker_conf worker_conf = {.name = (char *)"w1"};
static struct sw_pool_conf pool_confs[3] = {
	{.name = (char *)"a", .model = (char *)MODEL, .ageing = {.stale_after_ms = 60000}},
	{.name = (char *)"b",
	 .model = (char *)MODEL,
	 .limits = {.set = 1U << SW_LIM_PREFILL_FRAC, .prefill_frac = 2},
	 .ageing = {.stale_after_ms = 60000}},
	{.name = (char *)"c",
	 .model = (char *)"qwen \"2\"",
	 .limits = {.set = 1U << SW_LIM_DECODE | 1U << SW_LIM_QUEUED_REQS, .decode = 0.85},
	 .ageing = {.stale_after_ms = 60000}},
};
static struct sw_config conf = {.pools = pool_confs, .n_pools = 3};
static struct sw_live_worker worker = {.conf = &worker_conf};
static struct sw_live_worker *workers[] = {&worker};
static struct sw_live_pool pools[3];
static struct sw_live live = {.conf = &conf, .pools = pools, .n_pools = 3};

/* The worker of pool a uses 80 of 100 blocks. */
static void make_live(void)
{
	const struct sw_report r = {.have = 1U << SW_SIG_KV_USED | 1U << SW_SIG_KV_TOTAL,
				    .value = {[SW_SIG_KV_USED] = 80, [SW_SIG_KV_TOTAL] = 100}};
	struct sw_error err;

	if (sw_thresholds_new(&live.thresholds, NULL, &err))
		abort();
	for (int i = 0; i < 3; i++)
		pools[i] = (struct sw_live_pool){.conf = &pool_confs[i],
						 .limits = pool_confs[i].limits,
						 .live = &live,
						 .workers = workers,
						 .n_workers = i ? 0 : 1};
	worker.pool = &pools[0];
	sw_worker_init(&worker.load, 0, 1);
	sw_worker_report(&worker.load, &pools[0].limits, &r, sw_now_ms());
}

static void on_change(struct sw_live_pool *pool)
{
	for (size_t i = 0; i < pool->n_workers; i++)
		sw_worker_eval(&pool->workers[i]->load, &pool->limits, &pool->conf->ageing,
			       sw_now_ms());
}

static int start(void **state)
{
	(void)state;
	return asking_start(&live, make_live, on_change);
}

static int stop(void **state)
{
	(void)state;
	return asking_stop();
}

/* ---- exchanges ---------------------------------------------------------------------------- */

struct exchange {
	const char *method, *query, *type, *body;
	long status;
	const char *answer; /* NULL: {"error": something} */
};

static void exchange(const struct exchange *x)
{
	struct curl_slist *headers = NULL;
	char target[200], type[100];
	CURL *curl;

	snprintf(target, sizeof(target), "/busy_threshold%s", x->query ? x->query : "");
	curl = asking_curl(target);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, x->method);
	snprintf(type, sizeof(type), "Content-Type:%s%s", x->type ? " " : "",
		 x->type ? x->type : "");
	headers = curl_slist_append(headers, type);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	if (x->body)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, x->body);
	assert_int_equal(curl_easy_perform(curl), CURLE_OK);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &asking_reply.status);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	if (asking_reply.status != x->status)
		fail_msg("%s %s: %ld %s", x->method, x->body ? x->body : x->query,
			 asking_reply.status, asking_reply.text);
	if (x->answer)
		assert_string_equal(asking_reply.text, x->answer);
	else
		assert_memory_equal(asking_reply.text, "{\"error\":\"", 10);
}

#define EXCHANGES(...)                                                                             \
	do {                                                                                       \
		const struct exchange list[] = {__VA_ARGS__};                                      \
                                                                                                   \
		for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)                        \
			exchange(&list[i]);                                                        \
	} while (0)

#define POST(body, ...) {"POST", NULL, JSON, body, __VA_ARGS__}
#define STATE(model, decode, prefill, frac)                                                        \
	"{\"model\":\"" model "\",\"active_decode_blocks_threshold\":" decode                      \
	",\"active_prefill_tokens_threshold\":" prefill                                            \
	",\"active_prefill_tokens_threshold_frac\":" frac "}"

static void what_dynamo_documents(void **state)
{
	(void)state;
	EXCHANGES(POST("{\"model\":\"" MODEL "\"}", 200, STATE(MODEL, "null", "null", "null")),
		  POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":0.9,"
		       "\"active_prefill_tokens_threshold\":1000}",
		       200, STATE(MODEL, "0.9", "1000", "null")),
		  POST("{\"model\":\"" MODEL "\"}", 200, STATE(MODEL, "0.9", "1000", "null")),
		  POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":0.75}", 200,
		       STATE(MODEL, "0.75", "1000", "null")),
		  POST("{\"model\":\"" MODEL "\",\"active_prefill_tokens_threshold\":2000}", 200,
		       STATE(MODEL, "0.75", "2000", "null")),
		  POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":0.5,"
		       "\"active_prefill_tokens_threshold\":1200,"
		       "\"active_prefill_tokens_threshold_frac\":null}",
		       200, STATE(MODEL, "0.5", "1200", "null")),
		  {"GET", NULL, NULL, NULL, 200,
		   "{\"thresholds\":[" STATE(MODEL, "0.5", "1200", "null") "," STATE(
			   "qwen \\\"2\\\"", "0.85", "null", "null") "]}"},
		  POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":1.5}", 400,
		       "{\"error\":\"active_decode_blocks_threshold must be between 0.0 and 1.0, "
		       "got 1.5\"}"),
		  POST("{\"model\":\"" MODEL "\",\"active_prefill_tokens_threshold\":5000}", 200,
		       STATE(MODEL, "0.5", "5000", "null")),
		  POST("{\"model\":\"" MODEL "\",\"active_prefill_tokens_threshold\":-1.0}", 422,
		       NULL),
		  POST("{\"model\":\"" MODEL "\",\"active_prefill_tokens_threshold_frac\":-0.5}",
		       400,
		       "{\"error\":\"active_prefill_tokens_threshold_frac must be a finite value "
		       "greater than or equal to 0.0, got -0.5\"}"),
		  POST("{\"model\":\"gone\",\"active_decode_blocks_threshold\":0.5}", 404,
		       "{\"error\":\"Model 'gone' not found. Thresholds can only be set for "
		       "discovered models.\"}"),
		  POST("{\"model\":\"gone\"}", 200, STATE("gone", "null", "null", "null")),
		  /* nothing of what was refused is left */
		  POST("{\"model\":\"" MODEL "\"}", 200, STATE(MODEL, "0.5", "5000", "null")));
}

static void what_is_refused(void **state)
{
	static char large[SW_BODY_LIMIT + 2];

	(void)state;
	memset(large, ' ', sizeof(large) - 1);
	EXCHANGES(
		{"POST", NULL, "text/plain", "{\"model\":\"" MODEL "\"}", 415, NULL},
		{"POST", NULL, NULL, "{\"model\":\"" MODEL "\"}", 415, NULL},
		{"POST", NULL, "application/jsonp", "{\"model\":\"" MODEL "\"}", 415, NULL},
		{"POST", NULL, "Application/JSON; charset=utf-8", "{\"model\":\"gone\"}", 200,
		 STATE("gone", "null", "null", "null")},
		{"POST", NULL, "application/vnd.x+json", "{\"model\":\"gone\"}", 200,
		 STATE("gone", "null", "null", "null")},
		POST(large, 413, NULL), POST("", 400, NULL), POST("{", 400, NULL),
		POST("{\"model\":\"m\"} x", 400, NULL), POST("\xff", 400, NULL),
		POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":NaN}", 400, NULL),
		POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":1e999}", 400,
		     NULL),
		POST("{\"model\":\"" MODEL
		     "\",\"active_prefill_tokens_threshold\":9223372036854775808}",
		     400, NULL),
		POST("[]", 422, NULL), POST("{}", 422, NULL), POST("{\"model\":null}", 422, NULL),
		POST("{\"model\":1}", 422, NULL),
		POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":\"0.5\"}", 422,
		     NULL),
		POST("{\"model\":\"" MODEL "\",\"active_prefill_tokens_threshold\":7.0}", 422,
		     NULL),
		POST("{\"model\":\"" MODEL "\",\"active_prefill_tokens_threshold\":-1}", 422, NULL),
		/* a wrong type before a wrong value, and both before an unknown model */
		POST("{\"model\":\"gone\",\"active_decode_blocks_threshold\":2,"
		     "\"active_prefill_tokens_threshold_frac\":true}",
		     422, NULL),
		POST("{\"model\":\"gone\",\"active_decode_blocks_threshold\":2}", 400,
		     "{\"error\":\"active_decode_blocks_threshold must be between 0.0 and 1.0, "
		     "got 2\"}"),
		{"PUT", NULL, JSON, "{}", 405, NULL}, {"PATCH", NULL, JSON, "{}", 405, NULL},
		{"OPTIONS", NULL, NULL, NULL, 405, NULL});
	json_decref(asking_json("/health", NULL, 200));
}

static void numbers_come_back_as_they_were_sent(void **state)
{
	(void)state;
	EXCHANGES(POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":0,"
		       "\"active_prefill_tokens_threshold\":0,"
		       "\"active_prefill_tokens_threshold_frac\":0.1,\"unknown\":{\"x\":[]}}",
		       200, STATE(MODEL, "0.0", "0", "0.1")),
		  POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":1,"
		       "\"active_prefill_tokens_threshold\":9223372036854775807,"
		       "\"active_prefill_tokens_threshold_frac\":0.30000000000000004}",
		       200, STATE(MODEL, "1.0", "9223372036854775807", "0.30000000000000004")));
}

static bool is_busy(void)
{
	json_t *j = asking_json("/v1/explain?pool=a", NULL, 200);
	const json_t *pool = json_array_get(json_object_get(j, "pools"), 0);
	const json_t *w = json_array_get(json_object_get(pool, "workers"), 0);
	bool busy = json_is_true(json_object_get(w, "busy"));

	json_decref(j);
	return busy;
}

static void a_change_is_felt_before_it_is_answered(void **state)
{
	(void)state;
	assert_false(is_busy());
	EXCHANGES(POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":0.79}", 200,
		       STATE(MODEL, "0.79", "null", "null")));
	assert_true(is_busy());
	EXCHANGES(POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":0.8}", 200,
		       STATE(MODEL, "0.8", "null", "null")));
	assert_false(is_busy());
}

/* NAME:VALUE:FROM of all thresholds of a pool */
static const char *thresholds_of(const char *pool)
{
	static char out[500];
	char target[64];
	json_t *j, *list, *t;
	size_t i, n = 0;

	snprintf(target, sizeof(target), "/v1/explain?pool=%s", pool);
	j = asking_json(target, NULL, 200);
	list = json_object_get(json_array_get(json_object_get(j, "pools"), 0), "thresholds");
	out[0] = '\0';
	json_array_foreach (list, i, t)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s:%g:%s", n ? " " : "",
				      asking_text(t, "name"),
				      json_number_value(json_object_get(t, "value")),
				      asking_text(t, "from"));
	json_decref(j);
	return out;
}

static void all_pools_of_a_model_are_set_and_cleared(void **state)
{
	(void)state;
	assert_string_equal(thresholds_of("a"), "");
	assert_string_equal(thresholds_of("b"), "active_prefill_tokens_threshold_frac:2:file");
	EXCHANGES(POST("{\"model\":\"" MODEL "\",\"active_decode_blocks_threshold\":0.5,"
		       "\"active_prefill_tokens_threshold_frac\":1}",
		       200, STATE(MODEL, "0.5", "null", "1.0")),
		  POST("{\"model\":\"qwen \\\"2\\\"\",\"active_decode_blocks_threshold\":0.25}",
		       200, STATE("qwen \\\"2\\\"", "0.25", "null", "null")));
	assert_string_equal(thresholds_of("b"), "active_decode_blocks_threshold:0.5:api "
						"active_prefill_tokens_threshold_frac:1:api");
	/* the engine's own limits are not the API's to set */
	assert_string_equal(thresholds_of("c"),
			    "active_decode_blocks_threshold:0.25:api max_num_queued_reqs:0:file");
	EXCHANGES({"DELETE", "?model=" MODEL "&threshold=active_prefill_tokens_threshold_frac",
		   NULL, NULL, 200, STATE(MODEL, "0.5", "null", "null")});
	assert_string_equal(thresholds_of("b"), "active_decode_blocks_threshold:0.5:api "
						"active_prefill_tokens_threshold_frac:2:file");
	EXCHANGES(
		{"DELETE", "?model=qwen%20%222%22", NULL, NULL, 200,
		 STATE("qwen \\\"2\\\"", "0.85", "null", "null")},
		{"DELETE", "?model=" MODEL, NULL, NULL, 200, STATE(MODEL, "null", "null", "null")},
		{"DELETE", "?model=" MODEL, NULL, NULL, 200, STATE(MODEL, "null", "null", "null")},
		{"DELETE", "?model=gone", NULL, NULL, 404,
		 "{\"error\":\"Model 'gone' not found. Thresholds can only be set for "
		 "discovered models.\"}"},
		{"DELETE", "", NULL, NULL, 422, NULL},
		{"DELETE", "?model=" MODEL "&threshold=max_num_queued_reqs", NULL, NULL, 422,
		 NULL});
	assert_string_equal(thresholds_of("b"), "active_prefill_tokens_threshold_frac:2:file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_dynamo_documents, start, stop),
		cmocka_unit_test_setup_teardown(what_is_refused, start, stop),
		cmocka_unit_test_setup_teardown(numbers_come_back_as_they_were_sent, start, stop),
		cmocka_unit_test_setup_teardown(a_change_is_felt_before_it_is_answered, start,
						stop),
		cmocka_unit_test_setup_teardown(all_pools_of_a_model_are_set_and_cleared, start,
						stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
