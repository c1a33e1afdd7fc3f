// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Force and drain by hand: what a request changes, and that a wrong one changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/operate.h"

#define NOW 1000

/* w0 is in both pools, w1 and w2 in one each; the third pool is not steered. */
static struct sw_worker_conf worker_confs[] = {
	{.name = (char *)"w0"}, {.name = (char *)"w1"}, {.name = (char *)"w2"}};
static struct sw_pool_conf confs[3] = {
	{.name = (char *)"qwen", .steer.by = SW_STEER_CONNECT},
	{.name = (char *)"glm", .steer.by = SW_STEER_LOCAL},
	{.name = (char *)"plain"},
};
static struct sw_live_worker workers[5];
static struct sw_live_worker *lists[3][2] = {
	{&workers[0], &workers[1]}, {&workers[2], &workers[3]}, {&workers[4]}};
static struct sw_live_pool pools[3];
static struct sw_live live = {.pools = pools, .n_pools = 3};
static struct sw_live_pool *first;
static struct sw_error err;
static size_t n;

static int setup(void **state)
{
	static const int named[5] = {0, 1, 0, 2, 2};

	(void)state;
	sw_log_level(SW_ERROR);
	memset(workers, 0, sizeof(workers));
	for (int i = 0; i < 3; i++)
		pools[i] = (struct sw_live_pool){.conf = &confs[i],
						 .limits = confs[i].limits,
						 .live = &live,
						 .workers = lists[i],
						 .n_workers = i < 2 ? 2 : 1};
	for (int i = 0; i < 5; i++) {
		workers[i].conf = &worker_confs[named[i]];
		workers[i].pool = &pools[i / 2];
	}
	return 0;
}

static int force(const char *text)
{
	json_t *body = json_loads(text, JSON_DECODE_ANY, NULL);
	int status = sw_operate_force(&live, body, NOW, &first, &n, &err);

	json_decref(body);
	return status;
}

static int drain(const char *text)
{
	json_t *body = json_loads(text, JSON_DECODE_ANY, NULL);
	int status = sw_operate_drain(&live, body, NOW, &first, &n, &err);

	json_decref(body);
	return status;
}

static void one_pool_is_forced(void **state)
{
	(void)state;
	assert_int_equal(force("{\"pool\":\"glm\",\"state\":\"saturated\",\"for_ms\":500}"), 0);
	assert_ptr_equal(first, &pools[1]);
	assert_int_equal(n, 1);
	assert_int_equal(pools[1].force, SW_FORCE_SATURATED);
	assert_int_equal(pools[1].force_until_ms, NOW + 500);
	assert_int_equal(pools[0].force, SW_FORCE_AUTO);
	assert_true(sw_live_forced(&pools[1], NOW + 499));
	assert_false(sw_live_forced(&pools[1], NOW + 500));
}

static void all_pools_are_forced(void **state)
{
	(void)state;
	assert_int_equal(force("{\"state\":\"open\"}"), 0);
	assert_int_equal(n, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pools[i].force, SW_FORCE_OPEN);
		/* one that is forgotten ends by itself */
		assert_int_equal(pools[i].force_until_ms, NOW + SW_FORCE_DEFAULT_MS);
	}
	assert_int_equal(force("{\"state\":\"auto\"}"), 0);
	assert_int_equal(pools[0].force, SW_FORCE_AUTO);
	assert_false(sw_live_forced(&pools[0], 0));
}

static void drain_goes_on_and_off(void **state)
{
	(void)state;
	assert_int_equal(drain("{\"pool\":\"qwen\",\"on\":true}"), 0);
	assert_true(pools[0].drain);
	assert_false(pools[1].drain);
	assert_int_equal(drain("{\"on\":false}"), 0);
	assert_false(pools[0].drain);
}

static void one_worker_is_drained(void **state)
{
	(void)state;
	assert_int_equal(drain("{\"pool\":\"glm\",\"worker\":\"w0\",\"on\":true}"), 0);
	assert_ptr_equal(first, &pools[1]);
	assert_int_equal(n, 1);
	assert_true(workers[2].drain);
	assert_int_equal(workers[2].drain_since_ms, NOW);
	assert_false(workers[0].drain || workers[3].drain || pools[1].drain);

	/* once more: it began when it began */
	workers[2].drain_since_ms = 5;
	assert_int_equal(drain("{\"pool\":\"glm\",\"worker\":\"w0\",\"on\":true}"), 0);
	assert_int_equal(workers[2].drain_since_ms, 5);
	assert_int_equal(drain("{\"pool\":\"glm\",\"worker\":\"w0\",\"on\":false}"), 0);
	assert_false(workers[2].drain);
}

static void a_name_that_one_worker_has_is_enough(void **state)
{
	(void)state;
	assert_int_equal(drain("{\"worker\":\"w1\",\"on\":true}"), 0);
	assert_ptr_equal(first, &pools[0]);
	assert_int_equal(n, 1);
	assert_true(workers[1].drain);
	assert_false(workers[0].drain || workers[2].drain || pools[0].drain);
}

static void wrong_workers_change_nothing(void **state)
{
	static const struct {
		const char *body, *error;
		int status;
	} rows[] = {
		{"{\"worker\":3,\"on\":true}", "\"worker\" must be the name of a worker", 422},
		{"{\"worker\":\"w1\"}", "\"on\" must be true or false", 422},
		{"{\"worker\":\"w0\",\"on\":true}",
		 "worker 'w0' is in pool 'qwen' and in pool 'glm'; name the pool too", 422},
		{"{\"pool\":\"qwen\",\"worker\":\"w2\",\"on\":true}",
		 "no worker is named 'w2'; there are w0, w1", 404},
		{"{\"worker\":\"w9\",\"on\":true}",
		 "no worker is named 'w9'; there are w0, w1, w0, w2, w2", 404},
		{"{\"pool\":\"none\",\"worker\":\"w1\",\"on\":true}", "no pool is named 'none'",
		 404},
		{"{\"pool\":\"plain\",\"worker\":\"w2\",\"on\":true}",
		 "pool 'plain' is not steered, so nothing can be kept from one of its workers; "
		 "drain the pool",
		 422},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(drain(rows[i].body), rows[i].status);
		assert_string_equal(err.text, rows[i].error);
		for (int w = 0; w < 5; w++)
			assert_false(workers[w].drain);
	}
}

static void many_names_are_cut(void **state)
{
	static char name[121];
	struct sw_worker_conf conf = {.name = name};

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	for (int i = 0; i < 5; i++)
		workers[i].conf = &conf;
	assert_int_equal(drain("{\"worker\":\"w9\",\"on\":true}"), 404);
	assert_string_equal(err.text + strlen(err.text) - 4, " ...");
}

static void wrong_requests_change_nothing(void **state)
{
	static const struct {
		const char *body, *error;
		int status;
	} rows[] = {
		{"[]", "the request is not a JSON object", 400},
		{"3", "the request is not a JSON object", 400},
		{"{}", "\"state\" must be saturated, open or auto", 422},
		{"{\"state\":1}", "\"state\" must be saturated, open or auto", 422},
		{"{\"state\":\"closed\"}", "\"state\" must be saturated, open or auto", 422},
		{"{\"state\":\"open\",\"pool\":3}", "\"pool\" must be the name of a pool", 422},
		{"{\"state\":\"open\",\"pool\":\"x\"}", "no pool is named 'x'", 404},
		{"{\"state\":\"open\",\"for_ms\":0}",
		 "\"for_ms\" must be a whole number from 1 to 604800000", 422},
		{"{\"state\":\"open\",\"for_ms\":-5}",
		 "\"for_ms\" must be a whole number from 1 to 604800000", 422},
		{"{\"state\":\"open\",\"for_ms\":604800001}",
		 "\"for_ms\" must be a whole number from 1 to 604800000", 422},
		{"{\"state\":\"open\",\"for_ms\":1.5}",
		 "\"for_ms\" must be a whole number from 1 to 604800000", 422},
		{"{\"state\":\"open\",\"for_ms\":\"5s\"}",
		 "\"for_ms\" must be a whole number from 1 to 604800000", 422},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(force(rows[i].body), rows[i].status);
		assert_string_equal(err.text, rows[i].error);
		assert_int_equal(pools[0].force, SW_FORCE_AUTO);
		assert_int_equal(pools[1].force, SW_FORCE_AUTO);
	}
	assert_int_equal(drain("{\"on\":1}"), 422);
	assert_string_equal(err.text, "\"on\" must be true or false");
	assert_int_equal(drain("{\"pool\":\"x\",\"on\":true}"), 404);
	assert_false(pools[0].drain || pools[1].drain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_pool_is_forced, setup),
		cmocka_unit_test_setup(all_pools_are_forced, setup),
		cmocka_unit_test_setup(drain_goes_on_and_off, setup),
		cmocka_unit_test_setup(one_worker_is_drained, setup),
		cmocka_unit_test_setup(a_name_that_one_worker_has_is_enough, setup),
		cmocka_unit_test_setup(wrong_workers_change_nothing, setup),
		cmocka_unit_test_setup(many_names_are_cut, setup),
		cmocka_unit_test_setup(wrong_requests_change_nothing, setup),
	};

	return cmocka_run_group_tests_name("operate", tests, NULL, NULL);
}
