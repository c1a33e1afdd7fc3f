// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Busy evaluation at one moment: each threshold at its boundary, ranks, recomputation. The shared
 * conformance vectors are in test_busy_vectors.c, what time does is in test_busy_time.c, what
 * explain shows in test_explain.c.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/rig.h"

/* ---- thresholds ---- */

static void rank_limits_are_strict(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.29); /* 0.29 x 100 is below 29 in floating point, 29 / 100 is not over */
	TELL(&r, 0, TOTAL(100), USED(28));
	assert_false(rig_busy(&r));
	TELL(&r, 0, USED(29));
	assert_true(rig_busy(&r));

	rig_init(&r, 0, 1);
	rig_count(&r, SW_LIM_PREFILL, UINT64_MAX - 1); /* exact where a double is not */
	TELL(&r, 0, PREFILL(UINT64_MAX - 1));
	assert_false(rig_busy(&r));
	TELL(&r, 0, PREFILL(UINT64_MAX));
	assert_true(rig_busy(&r));

	rig_init(&r, 0, 1);
	rig_frac(&r, 0.9); /* 900.9, truncated */
	TELL(&r, 0, BATCHED(1001), PREFILL(900));
	assert_false(rig_busy(&r));
	TELL(&r, 0, PREFILL(901));
	assert_true(rig_busy(&r));
	r.l.prefill_frac = 1e300; /* more than any count */
	assert_false(rig_busy(&r));
}

static void worker_limits(void **state)
{
	static const struct {
		const char *what;
		enum sw_limit limit;
		uint64_t max, running, waiting, queued;
		bool busy;
	} rows[] = {
		{"vLLM, one place left", SW_LIM_QUEUED_REQS, 8, 5, 2, 0, false},
		{"vLLM, no place left", SW_LIM_QUEUED_REQS, 8, 5, 3, 0, true},
		{"vLLM, 0 rejects all", SW_LIM_QUEUED_REQS, 0, 0, 0, 0, true},
		{"vLLM, unreachable", SW_LIM_QUEUED_REQS, UINT64_MAX, 1, 1, 0, false},
		{"vLLM, sum past 64 bits", SW_LIM_QUEUED_REQS, 9, UINT64_MAX, 2, 0, true},
		{"vLLM tokens, below", SW_LIM_QUEUED_TOKENS, 4096, 99, 99, 4095, false},
		{"vLLM tokens, at it", SW_LIM_QUEUED_TOKENS, 4096, 0, 0, 4096, true},
		{"vLLM tokens, 0", SW_LIM_QUEUED_TOKENS, 0, 0, 0, 0, true},
		{"SGLang, running do not count", SW_LIM_QUEUED_REQUESTS, 4, 99, 3, 0, false},
		{"SGLang, queue full", SW_LIM_QUEUED_REQUESTS, 4, 0, 4, 0, true},
		{"SGLang, 0", SW_LIM_QUEUED_REQUESTS, 0, 0, 0, 0, true},
		{"TGI, one permit left", SW_LIM_CONCURRENT_REQUESTS, 128, 100, 27, 0, false},
		{"TGI, none left", SW_LIM_CONCURRENT_REQUESTS, 128, 100, 28, 0, true},
	};
	struct rig r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rig_init(&r, 0, 1);
		rig_count(&r, rows[i].limit, rows[i].max);
		TELL(&r, 0, RUNNING(rows[i].running), WAITING(rows[i].waiting),
		     QUEUED(rows[i].queued));
		if (rig_busy(&r) != rows[i].busy)
			fail_msg("%s: busy should be %d", rows[i].what, rows[i].busy);
		assert_false(r.w.rank[0].busy);
	}
}

/* Counts of one worker add up over its ranks, and what is not known adds nothing. */
static void worker_limits_sum_ranks(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 2, 3);
	rig_count(&r, SW_LIM_CONCURRENT_REQUESTS, 10);
	TELL(&r, 2, RUNNING(3), WAITING(1));
	TELL(&r, 3, RUNNING(3), WAITING(2));
	assert_false(rig_busy(&r));
	TELL(&r, 4, WAITING(1)); /* 4 + 5 + 1 */
	assert_true(rig_busy(&r));
	r.now += 3000;
	TELL(&r, 2, RUNNING(3), WAITING(1));
	TELL(&r, 3, RUNNING(3), WAITING(2));
	assert_true(rig_busy(&r));
	assert_false(rig_busy_after(&r, 2001)); /* rank 4 is stale, 9 are left */
}

static void any_check_makes_busy(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.5);
	rig_count(&r, SW_LIM_PREFILL, 100);
	rig_count(&r, SW_LIM_QUEUED_REQUESTS, 10);
	TELL(&r, 0, TOTAL(100), USED(10), PREFILL(10), WAITING(1));
	assert_false(rig_busy(&r));
	TELL(&r, 0, PREFILL(101));
	assert_true(rig_busy(&r));
	TELL(&r, 0, PREFILL(0), USED(51));
	assert_true(rig_busy(&r));
	TELL(&r, 0, USED(0), WAITING(10));
	assert_true(rig_busy(&r));
	TELL(&r, 0, WAITING(9));
	assert_false(rig_busy(&r));
}

static void validity(void **state)
{
	(void)state;
	assert_true(sw_limit_valid(SW_LIM_DECODE, 0.0));
	assert_true(sw_limit_valid(SW_LIM_DECODE, 1.0));
	assert_false(sw_limit_valid(SW_LIM_DECODE, 1.0000001));
	assert_false(sw_limit_valid(SW_LIM_DECODE, NAN));
	assert_true(sw_limit_valid(SW_LIM_PREFILL_FRAC, 64.0));
	assert_false(sw_limit_valid(SW_LIM_PREFILL_FRAC, INFINITY));
	assert_false(sw_limit_valid(SW_LIM_PREFILL_FRAC, -0.1));
	assert_true(sw_limit_valid(SW_LIM_PREFILL, 0.0));
	assert_true(sw_limit_valid(SW_LIM_QUEUED_REQS, 128.0));
	assert_false(sw_limit_valid(SW_LIM_QUEUED_REQS, 1.5));
	assert_false(sw_limit_valid(SW_LIM_QUEUED_REQS, -1.0));
	assert_false(sw_limit_valid(SW_LIM_QUEUED_REQS, 0x1p64));
	assert_false(sw_limit_valid(SW_LIM_QUEUED_REQS, NAN));
}

static void overload_status(void **state)
{
	static const struct {
		const char *text;
		unsigned want;
	} rows[] = {
		{"503", 503},	{"\t503\n", 503},    {"+503", 503},  {"0503", 503},
		{"200", 200},	{"999", 999},	     {"199", 529},   {"1000", 529},
		{"50 3", 529},	{"503x", 529},	     {"0x1f7", 529}, {"-503", 529},
		{"66039", 529}, {"4294967799", 529}, {"+", 529},     {" ", 529},
	};

	(void)state;
	assert_int_equal(sw_overload_status(NULL), 529);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (sw_overload_status(rows[i].text) != rows[i].want)
			fail_msg("\"%s\" gives %u", rows[i].text, sw_overload_status(rows[i].text));
	}
}

/* ---- ranks ---- */

static void ranks_declared_or_seen(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 2); /* a declared rank that never reported is free */
	rig_count(&r, SW_LIM_PREFILL, 0);
	TELL(&r, 1, PREFILL(1));
	assert_false(rig_busy(&r));
	TELL(&r, 0, PREFILL(1));
	assert_true(rig_busy(&r));

	rig_init(&r, 4, -1); /* not declared: the ranks seen so far */
	rig_count(&r, SW_LIM_PREFILL, 0);
	assert_false(rig_busy(&r));
	TELL(&r, 6, PREFILL(1));
	assert_true(rig_busy(&r));
	rig_tell(&r, 4, NULL, 0); /* it exists, and nothing is known of it */
	assert_false(rig_busy(&r));

	rig_init(&r, 0, SW_MAX_RANKS + 1); /* one more than can report */
	rig_count(&r, SW_LIM_PREFILL, 0);
	for (uint32_t i = 0; i < SW_MAX_RANKS; i++)
		TELL(&r, i, PREFILL(1));
	assert_false(rig_busy(&r));
}

static void other_ranks_are_dropped(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 3, 2);
	rig_count(&r, SW_LIM_CONCURRENT_REQUESTS, 1);
	assert_int_equal(TELL(&r, 2, RUNNING(9)), -ERANGE);
	assert_int_equal(TELL(&r, 5, RUNNING(9)), -ERANGE);
	assert_int_equal(TELL(&r, UINT32_MAX, RUNNING(9)), -ERANGE);
	assert_int_equal(r.w.dropped, 3);
	assert_int_equal(r.w.reported_ms, 0);
	assert_false(rig_busy(&r));
	assert_int_equal(TELL(&r, 3, RUNNING(1)), 0);
	assert_int_equal(TELL(&r, 4, RUNNING(0)), 0);
	assert_int_equal(r.w.dropped, 3);
	assert_true(rig_busy(&r));

	rig_init(&r, UINT32_MAX - 1, -1);
	assert_int_equal(TELL(&r, 0, RUNNING(1)), -ERANGE);
	rig_init(&r, 3, -1);
	assert_int_equal(TELL(&r, 3 + SW_MAX_RANKS - 1, RUNNING(1)), 0);
	assert_int_equal(TELL(&r, 3 + SW_MAX_RANKS, RUNNING(1)), -ERANGE);
	assert_int_equal(r.w.dropped, 1);
}

/* ---- recomputation ---- */

static void changes_count_without_a_report(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	TELL(&r, 0, TOTAL(100), USED(70), PREFILL(50), WAITING(5));
	assert_false(rig_busy(&r)); /* no threshold at all */
	rig_decode(&r, 0.6);
	assert_true(rig_busy(&r));
	r.l.decode = 0.8;
	assert_false(rig_busy(&r));
	assert_false(r.w.rank[0].latched);
	r.l.decode = 0.6;
	assert_true(rig_busy(&r));
	r.l.set = 0;
	assert_false(rig_busy(&r));
	rig_count(&r, SW_LIM_PREFILL, 49);
	assert_true(rig_busy(&r));
	r.l.set = 0;
	rig_count(&r, SW_LIM_QUEUED_REQUESTS, 5);
	assert_true(rig_busy(&r));
	r.l.set = 0;
	assert_false(rig_busy(&r));
}

static void total_comes_late_or_goes(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.6);
	TELL(&r, 0, DECODE(90));
	assert_false(rig_busy(&r));
	TELL(&r, 0, TOTAL(100));
	assert_true(rig_busy(&r));
	TELL(&r, 0, TOTAL(0));
	assert_false(rig_busy(&r));
	TELL(&r, 0, TOTAL(1000));
	assert_false(rig_busy(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rank_limits_are_strict),
		cmocka_unit_test(worker_limits),
		cmocka_unit_test(worker_limits_sum_ranks),
		cmocka_unit_test(any_check_makes_busy),
		cmocka_unit_test(validity),
		cmocka_unit_test(overload_status),
		cmocka_unit_test(ranks_declared_or_seen),
		cmocka_unit_test(other_ranks_are_dropped),
		cmocka_unit_test(changes_count_without_a_report),
		cmocka_unit_test(total_comes_late_or_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
