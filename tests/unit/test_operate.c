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

static struct sw_pool_conf confs[2] = {{.name = (char *)"qwen"}, {.name = (char *)"glm"}};
static struct sw_live_pool pools[2];
static struct sw_live live = {.pools = pools, .n_pools = 2};
static struct sw_live_pool *first;
static struct sw_error err;
static size_t n;

static int setup(void **state)
{
	(void)state;
	sw_log_level(SW_ERROR);
	memset(pools, 0, sizeof(pools));
	for (int i = 0; i < 2; i++) {
		pools[i].conf = &confs[i];
		pools[i].live = &live;
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
	int status = sw_operate_drain(&live, body, &first, &n, &err);

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
	assert_int_equal(n, 2);
	for (int i = 0; i < 2; i++) {
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
		cmocka_unit_test_setup(wrong_requests_change_nothing, setup),
	};

	return cmocka_run_group_tests_name("operate", tests, NULL, NULL);
}
