// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Several sources that tell one worker's load: the worst live one counts, and those that are gone
 * do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/daemon.h"
#include "policy/worst.h"

#define BIT(s) (1u << (s))

/* ---- pure ---- */

struct value {
	enum sw_signal signal;
	uint64_t value;
};

static struct sw_report report_of(size_t n, const struct value *values)
{
	struct sw_report r = {};

	for (size_t i = 0; i < n; i++) {
		r.have |= BIT(values[i].signal);
		r.value[values[i].signal] = values[i].value;
	}
	return r;
}

#define REPORT(...)                                                                                \
	report_of(sizeof((struct value[]){__VA_ARGS__}) / sizeof(struct value),                    \
		  (struct value[]){__VA_ARGS__})

static struct sw_told sources[4];

/* Source `i` tells; what is to be taken then. */
static struct sw_report tell(size_t i, struct sw_report r, uint64_t now_ms)
{
	const struct sw_told *told[4];

	for (size_t j = 0; j < 4; j++)
		told[j] = j == i || sources[j].have ? &sources[j] : NULL;
	sw_told_note(&sources[i], &r, now_ms);
	return sw_worst(told, 4, &r, 5000, now_ms);
}

static int clear(void **state)
{
	(void)state;
	memset(sources, 0, sizeof(sources));
	return 0;
}

static void one_source_is_left_as_it_is(void **state)
{
	struct sw_report r = REPORT({SW_SIG_KV_USED, 7}, {SW_SIG_RUNNING, 0}), out;

	(void)state;
	tell(0, REPORT({SW_SIG_KV_TOTAL, 100}, {SW_SIG_KV_USED, 90}), 0);
	out = tell(0, r, 1);
	assert_memory_equal(&out, &r, sizeof(r));
}

static void the_largest_live_value_counts(void **state)
{
	struct sw_report out;

	(void)state;
	tell(0, REPORT({SW_SIG_KV_USED, 99}, {SW_SIG_WAITING, 3}), 1000);
	out = tell(1, REPORT({SW_SIG_KV_USED, 1}), 2000);
	assert_int_equal(out.have, BIT(SW_SIG_KV_USED)); /* nothing that did not come now */
	assert_int_equal(out.value[SW_SIG_KV_USED], 99);
	out = tell(2, REPORT({SW_SIG_WAITING, 4}, {SW_SIG_RUNNING, 5}), 2000);
	assert_int_equal(out.value[SW_SIG_WAITING], 4);
	assert_int_equal(out.value[SW_SIG_RUNNING], 5);
	/* the one that was full says so no more */
	assert_int_equal(tell(0, REPORT({SW_SIG_KV_USED, 2}), 3000).value[SW_SIG_KV_USED], 2);
}

static void who_is_silent_counts_no_more(void **state)
{
	(void)state;
	tell(0, REPORT({SW_SIG_KV_USED, 99}), 1000);
	assert_int_equal(tell(1, REPORT({SW_SIG_KV_USED, 1}), 6000).value[SW_SIG_KV_USED], 99);
	/* another signal of it does not keep this one alive */
	tell(0, REPORT({SW_SIG_RUNNING, 1}), 6000);
	assert_int_equal(tell(1, REPORT({SW_SIG_KV_USED, 1}), 6001).value[SW_SIG_KV_USED], 1);
}

static void blocks_are_measured_by_the_largest_total(void **state)
{
	struct sw_report out;

	(void)state;
	/* a page that tells a ratio of 10000 parts, and a publisher that tells blocks */
	tell(0, REPORT({SW_SIG_KV_TOTAL, 10000}, {SW_SIG_KV_USED, 9900}), 0);
	out = tell(1, REPORT({SW_SIG_KV_TOTAL, 164000}, {SW_SIG_KV_USED, 2132}), 0);
	assert_int_equal(out.value[SW_SIG_KV_TOTAL], 164000);
	assert_int_equal(out.value[SW_SIG_KV_USED], 162360);
	out = tell(0, REPORT({SW_SIG_KV_USED, 9901}), 0);
	assert_int_equal(out.have, BIT(SW_SIG_KV_USED) | BIT(SW_SIG_KV_TOTAL));
	assert_int_equal(out.value[SW_SIG_KV_USED], 162377); /* 162376.4 */
	assert_int_equal(out.value[SW_SIG_KV_TOTAL], 164000);
	/* one without a total means the same blocks as the largest */
	out = tell(2, REPORT({SW_SIG_KV_USED, 163000}), 0);
	assert_int_equal(out.value[SW_SIG_KV_USED], 163000);
	/* nothing wraps */
	tell(0, REPORT({SW_SIG_KV_TOTAL, 1}, {SW_SIG_KV_USED, UINT64_MAX}), 0);
	assert_true(tell(2, REPORT({SW_SIG_KV_USED, 1}), 0).value[SW_SIG_KV_USED] == UINT64_MAX);
}

static void the_smallest_batch_counts(void **state)
{
	(void)state;
	tell(0, REPORT({SW_SIG_MAX_BATCHED, 8192}), 0);
	assert_int_equal(tell(1, REPORT({SW_SIG_MAX_BATCHED, 16384}), 0).value[SW_SIG_MAX_BATCHED],
			 8192);
}

/* ---- feeds of a worker ---- */

static struct sw_pool_conf pool_conf = {.name = "p", .ageing = {.stale_after_ms = 500}};
static struct sw_config conf = {.pools = &pool_conf, .n_pools = 1};
static struct sw_live live = {.conf = &conf};
static struct sw_worker_conf worker_conf = {.name = "w"};
static struct sw_live_worker worker;
static struct sw_live_worker *workers[] = {&worker};
static struct sw_live_pool pool = {
	.live = &live, .conf = &pool_conf, .workers = workers, .n_workers = 1};

static int begin(void **state)
{
	(void)state;
	pool.limits = (struct sw_limits){.set = BIT(SW_LIM_DECODE), .decode = 0.9};
	pool.row = -1;
	live.pools = &pool;
	live.n_pools = 1;
	worker = (struct sw_live_worker){.conf = &worker_conf, .pool = &pool, .id = -1};
	sw_worker_init(&worker.load, 0, -1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	sw_feeds_free(&worker);
	return 0;
}

static void publish(uint64_t publisher, uint32_t rank, uint64_t used)
{
	struct sw_report r = REPORT({SW_SIG_KV_USED, used}, {SW_SIG_KV_TOTAL, 100});

	r.rank = rank;
	sw_worker_told(&worker, SW_FEED_EVENTS, publisher, 1, &r, NULL);
}

static void a_full_worker_is_not_hidden_by_who_sees_little(void **state)
{
	(void)state;
	publish(1, 0, 99);
	assert_true(worker.load.busy);
	publish(2, 0, 1);
	assert_true(worker.load.busy);
	assert_int_equal(worker.load.rank[0].value[SW_SIG_KV_USED], 99);
	publish(1, 0, 50);
	assert_false(worker.load.busy);
	publish(2, 0, 95);
	publish(1, 0, 50);
	assert_true(worker.load.busy);
	usleep(600000); /* 2 is gone */
	publish(1, 0, 50);
	assert_false(worker.load.busy);
	assert_int_equal(worker.n_feeds, 2);
}

static void ranks_are_apart(void **state)
{
	(void)state;
	publish(1, 5, 99);
	publish(2, 0, 1);
	assert_int_equal(worker.load.rank[0].value[SW_SIG_KV_USED], 1);
	assert_int_equal(worker.load.rank[5].value[SW_SIG_KV_USED], 99);
	assert_false(worker.load.busy);
	publish(3, 0, 99);
	assert_true(worker.load.busy);
	publish(1, 64, 1);
	assert_int_equal(worker.load.dropped, 1);
	assert_int_equal(worker.feeds[0].n_ranks, 6);
}

static void publishers_without_end_are_not_kept(void **state)
{
	(void)state;
	sw_log_level(SW_ERROR);
	for (uint64_t i = 0; i < SW_MAX_FEEDS; i++)
		publish(i, 0, 1);
	publish(1000, 0, 99); /* there is no room for it */
	assert_int_equal(worker.n_feeds, SW_MAX_FEEDS);
	assert_true(worker.crowded);
	assert_false(worker.load.busy);
	usleep(600000);
	publish(7, 0, 1);
	publish(1000, 0, 99); /* those that are gone make room */
	assert_int_equal(worker.n_feeds, 2);
	assert_true(worker.load.busy);
}

static void the_page_and_who_pushes_are_not_forgotten(void **state)
{
	struct sw_error err = {"unreachable"};
	struct sw_report r = REPORT({SW_SIG_KV_USED, 1});
	uint64_t later_ms;

	(void)state;
	sw_worker_scraped(&worker, -ECONNREFUSED, NULL, &err);
	sw_worker_told(&worker, SW_FEED_PUSH, 0, 1, &r, NULL);
	publish(1, 0, 1);
	later_ms = sw_now_ms() + 59000;
	sw_feeds_tick(&worker, later_ms);
	assert_int_equal(worker.n_feeds, 3);
	sw_feeds_tick(&worker, later_ms + 2000);
	assert_int_equal(worker.n_feeds, 2);
	assert_int_equal(worker.feeds[0].kind, SW_FEED_SCRAPE);
	assert_string_equal(worker.feeds[0].error.text, "unreachable");
	assert_int_equal(worker.feeds[1].kind, SW_FEED_PUSH);
}

static void the_last_error_stays_when_load_comes_again(void **state)
{
	struct sw_error err = {"unreachable"};
	struct sw_report r = REPORT({SW_SIG_KV_USED, 1});
	uint64_t before_ms = sw_now_ms();

	(void)state;
	sw_worker_scraped(&worker, -ECONNREFUSED, NULL, &err);
	assert_string_equal(sw_live_worker_error(&worker), "unreachable");
	sw_worker_scraped(&worker, 1, &r, NULL);
	assert_string_equal(sw_live_worker_error(&worker), "");
	assert_string_equal(worker.feeds[0].error.text, "unreachable");
	assert_in_range(worker.feeds[0].error_ms, before_ms, sw_now_ms());
}

#define PURE_TEST(f) cmocka_unit_test_setup(f, clear)
#define FEED_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PURE_TEST(one_source_is_left_as_it_is),
		PURE_TEST(the_largest_live_value_counts),
		PURE_TEST(who_is_silent_counts_no_more),
		PURE_TEST(blocks_are_measured_by_the_largest_total),
		PURE_TEST(the_smallest_batch_counts),
		FEED_TEST(a_full_worker_is_not_hidden_by_who_sees_little),
		FEED_TEST(ranks_are_apart),
		FEED_TEST(publishers_without_end_are_not_kept),
		FEED_TEST(the_page_and_who_pushes_are_not_forgotten),
		FEED_TEST(the_last_error_stays_when_load_comes_again),
	};

	sw_log_level(SW_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
