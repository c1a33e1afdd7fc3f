// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The last ten minutes of pools: what is sampled, what a full ring shows, and pools that come and
 * go. The pools are guarded by nothing; what is counted in the kernel is for tests/e2e/test_api. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/buffer.h>
#include <jansson.h>

#include "common/clock.h"
#include "control/history.h"

static struct sw_pool_conf pool_confs[2] = {{.name = (char *)"a \"q\""}, {.name = (char *)"b"}};
static struct sw_config conf = {.pools = pool_confs, .n_pools = 2};
static struct sw_live_worker workers[3];
static struct sw_live_worker *list[3] = {&workers[0], &workers[1], &workers[2]};
static struct sw_live_pool pools[2];
static struct sw_live live = {.conf = &conf, .pools = pools};
static struct sw_history *history;

static int start(void **state)
{
	(void)state;
	pools[0] = (struct sw_live_pool){
		.conf = &pool_confs[0], .live = &live, .workers = list, .n_workers = 3, .row = -1};
	pools[1] = (struct sw_live_pool){.conf = &pool_confs[1], .live = &live, .row = -1};
	for (size_t i = 0; i < 3; i++)
		workers[i].pool = &pools[0];
	live.n_pools = 2;
	history = sw_history_new();
	return history ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	sw_history_free(history);
	return 0;
}

static json_t *written(void)
{
	struct evbuffer *out = evbuffer_new();
	json_t *j;

	sw_history_write(history, out);
	j = json_loadb((const char *)evbuffer_pullup(out, -1), evbuffer_get_length(out), 0, NULL);
	assert_non_null(j);
	evbuffer_free(out);
	return j;
}

static const json_t *series(const json_t *j, size_t pool, const char *name)
{
	return json_object_get(json_array_get(json_object_get(j, "pools"), pool), name);
}

static json_int_t entry(const json_t *j, size_t pool, const char *name, size_t i)
{
	return json_integer_value(json_array_get(series(j, pool, name), i));
}

static void a_second_is_an_entry(void **state)
{
	json_t *j = written();

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(j, "period_ms")), 1000);
	assert_int_equal(json_array_size(json_object_get(j, "pools")), 0);
	json_decref(j);
	sw_history_second(history, &live);
	workers[1].load.busy = true;
	pools[0].state = SW_POOL_DRAINING;
	sw_history_second(history, &live);
	workers[1].load.busy = false;
	j = written();
	assert_true(json_integer_value(json_object_get(j, "now_ms")) + 60000 >
		    (json_int_t)sw_unix_ms());
	assert_string_equal(json_string_value(series(j, 0, "name")), "a \"q\"");
	assert_int_equal(json_array_size(series(j, 0, "busy")), 2);
	assert_int_equal(entry(j, 0, "busy", 0), 0);
	assert_int_equal(entry(j, 0, "busy", 1), 1);
	assert_int_equal(entry(j, 0, "workers", 1), 3);
	assert_int_equal(entry(j, 0, "state", 0), 0);
	assert_int_equal(entry(j, 0, "state", 1), 2);
	assert_int_equal(entry(j, 0, "shed", 1), 0);
	assert_int_equal(entry(j, 0, "admitted", 1), 0);
	assert_int_equal(entry(j, 1, "workers", 1), 0);
	json_decref(j);
}

static void the_oldest_give_way(void **state)
{
	json_t *j;

	(void)state;
	for (size_t i = 0; i < SW_HISTORY_SECONDS + 10; i++) {
		pools[0].n_workers = i % 3;
		sw_history_second(history, &live);
	}
	pools[0].n_workers = 3;
	j = written();
	assert_int_equal(json_array_size(series(j, 0, "workers")), SW_HISTORY_SECONDS);
	for (size_t i = 0; i < SW_HISTORY_SECONDS; i++)
		assert_int_equal(entry(j, 0, "workers", i), (i + 10) % 3);
	json_decref(j);
}

static void pools_go_by_name(void **state)
{
	struct sw_live_pool was = pools[0];
	json_t *j;

	(void)state;
	sw_history_second(history, &live);
	pools[0] = pools[1]; /* a reload, after which b is the only one and then the second */
	live.n_pools = 1;
	sw_history_second(history, &live);
	j = written();
	assert_int_equal(json_array_size(json_object_get(j, "pools")), 1);
	assert_string_equal(json_string_value(series(j, 0, "name")), "b");
	assert_int_equal(json_array_size(series(j, 0, "shed")), 2);
	json_decref(j);
	pools[1] = pools[0];
	pools[0] = was;
	live.n_pools = 2;
	sw_history_second(history, &live);
	j = written();
	assert_int_equal(json_array_size(series(j, 0, "shed")), 3);
	assert_string_equal(json_string_value(series(j, 1, "name")), "a \"q\"");
	assert_int_equal(json_array_size(series(j, 1, "shed")), 1);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_second_is_an_entry, start, stop),
		cmocka_unit_test_setup_teardown(the_oldest_give_way, start, stop),
		cmocka_unit_test_setup_teardown(pools_go_by_name, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
