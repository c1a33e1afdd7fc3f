// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What explain shows: for each rank and threshold the value, the limit, the age and the state. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/rig.h"

/* Evaluates and explains; there are `n` checks. */
static void explain(struct rig *r, struct sw_check *out, size_t n)
{
	rig_busy(r);
	assert_int_equal(sw_worker_explain(&r->w, &r->l, &r->a, r->now, out, n), n);
}

static void assert_check(const struct sw_check *c, enum sw_signal signal, double measured,
			 double threshold, uint64_t age_ms, enum sw_state state)
{
	assert_string_equal(sw_signal_name(c->signal), sw_signal_name(signal));
	if (isnan(measured))
		assert_true(isnan(c->measured));
	else
		assert_float_equal(c->measured, measured, 0);
	assert_float_equal(c->threshold, threshold, 0);
	assert_int_equal(c->age_ms, age_ms);
	assert_string_equal(sw_state_name(c->state), sw_state_name(state));
}

static void each_threshold_and_rank(void **state)
{
	struct sw_check c[8];
	struct rig r;

	(void)state;
	rig_init(&r, 4, 2);
	explain(&r, c, 0);
	rig_decode(&r, 0.29);
	rig_count(&r, SW_LIM_PREFILL, 500);
	rig_frac(&r, 0.9);
	rig_count(&r, SW_LIM_QUEUED_REQS, 10);
	rig_count(&r, SW_LIM_QUEUED_TOKENS, 77);
	TELL(&r, 4, TOTAL(100), USED(29), BATCHED(1001), PREFILL(900), RUNNING(3), QUEUED(70));
	r.now += 40;
	TELL(&r, 5, TOTAL(200), USED(1), BATCHED(1001), PREFILL(1), RUNNING(4), WAITING(2));
	r.now += 2;
	explain(&r, c, 8);

	assert_check(&c[0], SW_SIG_KV_USED, 29, 0.29 * 100, 42, SW_OVER);
	assert_check(&c[1], SW_SIG_PREFILL_TOKENS, 900, 500, 42, SW_OVER);
	assert_check(&c[2], SW_SIG_PREFILL_TOKENS, 900, 900, 42, SW_CLEAR);
	assert_check(&c[3], SW_SIG_KV_USED, 1, 0.29 * 200, 2, SW_CLEAR);
	assert_check(&c[4], SW_SIG_PREFILL_TOKENS, 1, 500, 2, SW_CLEAR);
	assert_check(&c[5], SW_SIG_PREFILL_TOKENS, 1, 900, 2, SW_CLEAR);
	assert_check(&c[6], SW_SIG_RUNNING, 9, 10, 42, SW_CLEAR); /* as old as its oldest part */
	assert_check(&c[7], SW_SIG_QUEUED_TOKENS, 70, 77, 42, SW_CLEAR);
	for (int i = 0; i < 8; i++)
		assert_int_equal(c[i].rank, i < 3 ? 4 : i < 6 ? 5 : -1);
	assert_string_equal(sw_limit_name(c[2].limit), "active_prefill_tokens_threshold_frac");
	assert_string_equal(sw_limit_name(c[6].limit), "max_num_queued_reqs");
}

static void stores_at_most_max(void **state)
{
	struct sw_check c[3] = {{0}, {0}, {.rank = 99}};
	struct rig r;

	(void)state;
	rig_init(&r, 0, 2);
	rig_decode(&r, 0.5);
	rig_count(&r, SW_LIM_QUEUED_REQS, 1);
	assert_int_equal(sw_worker_explain(&r.w, &r.l, &r.a, r.now, c, 2), 3);
	assert_int_equal(c[1].rank, 1);
	assert_int_equal(c[2].rank, 99);
	assert_int_equal(sw_worker_explain(&r.w, &r.l, &r.a, r.now, NULL, 0), 3);
}

/* Of the two decode signals: the one that is over, else the live one, else the larger. */
static void which_decode_signal(void **state)
{
	struct sw_check c;
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.5);
	TELL(&r, 0, TOTAL(100), DECODE(10), USED(20));
	explain(&r, &c, 1);
	assert_check(&c, SW_SIG_KV_USED, 20, 50, 0, SW_CLEAR);
	TELL(&r, 0, DECODE(51));
	explain(&r, &c, 1);
	assert_check(&c, SW_SIG_DECODE_BLOCKS, 51, 50, 0, SW_OVER);
	TELL(&r, 0, USED(60));
	explain(&r, &c, 1);
	assert_check(&c, SW_SIG_KV_USED, 60, 50, 0, SW_OVER);
	r.now += 5001;
	TELL(&r, 0, DECODE(5));
	explain(&r, &c, 1);
	assert_check(&c, SW_SIG_DECODE_BLOCKS, 5, 50, 0, SW_CLEAR);

	rig_init(&r, 0, 1);
	rig_decode(&r, 0.5);
	TELL(&r, 0, TOTAL(100), DECODE(0));
	r.now += 6000;
	explain(&r, &c, 1);
	assert_check(&c, SW_SIG_DECODE_BLOCKS, 0, 50, 6000, SW_STALE);
}

static void inert(void **state)
{
	struct sw_check c[4];
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.5);
	rig_count(&r, SW_LIM_PREFILL, 100);
	rig_frac(&r, 0.5);
	rig_count(&r, SW_LIM_QUEUED_REQUESTS, 4);
	explain(&r, c, 4); /* nothing ever arrived */
	assert_check(&c[0], SW_SIG_KV_TOTAL, NAN, 0.5, UINT64_MAX, SW_INERT);
	assert_check(&c[1], SW_SIG_PREFILL_TOKENS, NAN, 100, UINT64_MAX, SW_INERT);
	assert_check(&c[2], SW_SIG_PREFILL_TOKENS, NAN, 5e6, UINT64_MAX, SW_INERT);
	assert_check(&c[3], SW_SIG_WAITING, NAN, 4, UINT64_MAX, SW_INERT);

	TELL(&r, 0, USED(50), PREFILL(50), WAITING(0)); /* the totals are missing */
	explain(&r, c, 4);
	assert_check(&c[0], SW_SIG_KV_TOTAL, NAN, 0.5, UINT64_MAX, SW_INERT);
	assert_check(&c[1], SW_SIG_PREFILL_TOKENS, 50, 100, 0, SW_CLEAR);
	assert_check(&c[2], SW_SIG_PREFILL_TOKENS, 50, 5e6, 0, SW_INERT);
	assert_check(&c[3], SW_SIG_WAITING, 0, 4, 0, SW_CLEAR);

	TELL(&r, 0, TOTAL(0), PREFILL(5000001)); /* ten million is what frac counts with */
	explain(&r, c, 4);
	assert_check(&c[0], SW_SIG_KV_TOTAL, 0, 0.5, 0, SW_INERT);
	assert_check(&c[2], SW_SIG_PREFILL_TOKENS, 5000001, 5e6, 0, SW_OVER);

	TELL(&r, 0, TOTAL(100), BATCHED(200), PREFILL(0));
	explain(&r, c, 4);
	assert_check(&c[0], SW_SIG_KV_USED, 50, 50, 0, SW_CLEAR);
	assert_check(&c[2], SW_SIG_PREFILL_TOKENS, 0, 100, 0, SW_CLEAR);

	rig_init(&r, 0, 1); /* a total, and nothing to hold against it */
	rig_decode(&r, 0.5);
	TELL(&r, 0, TOTAL(100), RUNNING(0));
	explain(&r, c, 1);
	assert_check(&c[0], SW_SIG_KV_USED, NAN, 50, UINT64_MAX, SW_INERT);
}

/* A signal that reads 0 however much the rank works is published but never filled. */
static void always_zero_is_inert(void **state)
{
	struct sw_check c[2];
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.5);
	rig_count(&r, SW_LIM_PREFILL, 100);
	TELL(&r, 0, TOTAL(100), USED(0), PREFILL(0), RUNNING(0));
	explain(&r, c, 2);
	assert_int_equal(c[0].state, SW_CLEAR); /* idle so far */
	assert_int_equal(c[1].state, SW_CLEAR);
	TELL(&r, 0, USED(0), PREFILL(0), RUNNING(7));
	explain(&r, c, 2);
	assert_check(&c[0], SW_SIG_KV_USED, 0, 50, 0, SW_INERT);
	assert_check(&c[1], SW_SIG_PREFILL_TOKENS, 0, 100, 0, SW_INERT);
	TELL(&r, 0, USED(1), PREFILL(1), RUNNING(7));
	TELL(&r, 0, USED(0), PREFILL(0), RUNNING(7));
	explain(&r, c, 2);
	assert_int_equal(c[0].state, SW_CLEAR);
	assert_int_equal(c[1].state, SW_CLEAR);
}

static void stale(void **state)
{
	struct sw_check c[3];
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.5);
	rig_count(&r, SW_LIM_PREFILL, 100);
	rig_count(&r, SW_LIM_CONCURRENT_REQUESTS, 8);
	TELL(&r, 0, TOTAL(100), USED(60), PREFILL(9), RUNNING(8), WAITING(1));
	r.now += 5001;
	explain(&r, c, 3);
	assert_check(&c[0], SW_SIG_KV_USED, 60, 50, 5001, SW_STALE);
	assert_check(&c[1], SW_SIG_PREFILL_TOKENS, 9, 100, 5001, SW_STALE);
	assert_check(&c[2], SW_SIG_RUNNING, 9, 8, 5001, SW_STALE);

	TELL(&r, 0, USED(60), PREFILL(9), RUNNING(8), WAITING(1));
	r.a.on_stale = SW_STALE_HOLD; /* what is held over is over, what is not is stale */
	r.a.hold_for_ms = 1000;
	r.now += 5001;
	explain(&r, c, 3);
	assert_check(&c[0], SW_SIG_KV_USED, 60, 50, 5001, SW_OVER);
	assert_check(&c[1], SW_SIG_PREFILL_TOKENS, 9, 100, 5001, SW_STALE);
	assert_check(&c[2], SW_SIG_RUNNING, 9, 8, 5001, SW_OVER);
}

static bool is_near(struct rig *r)
{
	rig_busy(r);
	return sw_worker_near(&r->w, &r->l, &r->a, 0.8, r->now);
}

/* Of one rank, or of the worker; what is stale or cannot fire tells nothing. */
static void near(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 2);
	assert_false(is_near(&r));
	rig_decode(&r, 0.5);
	rig_count(&r, SW_LIM_QUEUED_REQS, 10);
	assert_false(is_near(&r));
	TELL(&r, 0, TOTAL(100), USED(39), RUNNING(4));
	TELL(&r, 1, TOTAL(100), USED(10), RUNNING(3));
	assert_false(is_near(&r));
	TELL(&r, 0, USED(40));
	assert_true(is_near(&r));
	TELL(&r, 0, USED(60));
	assert_true(is_near(&r));
	r.now += 5001;
	assert_false(is_near(&r));
	TELL(&r, 0, USED(39), RUNNING(4));
	TELL(&r, 1, RUNNING(3));
	assert_false(is_near(&r));
	TELL(&r, 1, RUNNING(4));
	assert_true(is_near(&r));
}

static void held_is_over(void **state)
{
	struct sw_check c[1];
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_count(&r, SW_LIM_PREFILL, 100);
	r.l.min_hold_ms = 1000;
	TELL(&r, 0, PREFILL(101));
	rig_busy(&r);
	TELL(&r, 0, PREFILL(1));
	r.now += 999;
	explain(&r, c, 1);
	assert_check(&c[0], SW_SIG_PREFILL_TOKENS, 1, 100, 999, SW_OVER);
	r.now += 1;
	explain(&r, c, 1);
	assert_check(&c[0], SW_SIG_PREFILL_TOKENS, 1, 100, 1000, SW_CLEAR);
}

static void names(void **state)
{
	static const char *const limits[] = {
		"active_decode_blocks_threshold",
		"active_prefill_tokens_threshold",
		"active_prefill_tokens_threshold_frac",
		"max_num_queued_reqs",
		"max_num_queued_tokens",
		"max_queued_requests",
		"max_concurrent_requests",
	};
	static const char *const signals[] = {
		"active_decode_blocks",
		"kv_used_blocks",
		"kv_total_blocks",
		"active_prefill_tokens",
		"max_num_batched_tokens",
		"running",
		"waiting",
		"queued_tokens",
	};

	(void)state;
	assert_int_equal(ARRAY_SIZE(limits), SW_LIMITS);
	assert_int_equal(ARRAY_SIZE(signals), SW_SIGNALS);
	for (int i = 0; i < SW_LIMITS; i++)
		assert_string_equal(sw_limit_name(i), limits[i]);
	for (int i = 0; i < SW_SIGNALS; i++)
		assert_string_equal(sw_signal_name(i), signals[i]);
	assert_string_equal(sw_state_name(SW_CLEAR), "clear");
	assert_string_equal(sw_state_name(SW_OVER), "over");
	assert_string_equal(sw_state_name(SW_INERT), "inert");
	assert_string_equal(sw_state_name(SW_STALE), "stale");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_threshold_and_rank),
		cmocka_unit_test(stores_at_most_max),
		cmocka_unit_test(which_decode_signal),
		cmocka_unit_test(inert),
		cmocka_unit_test(always_zero_is_inert),
		cmocka_unit_test(stale),
		cmocka_unit_test(near),
		cmocka_unit_test(held_is_over),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
