// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What time does to busy: the decode latch, staleness, min_hold and release_ratio. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/rig.h"

/* ---- latch and staleness ---- */

static void latch_needs_both_clear(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.6);
	TELL(&r, 0, TOTAL(100), USED(90));
	assert_true(r.w.rank[0].latched && r.w.rank[0].engine_over && !r.w.rank[0].router_over);
	TELL(&r, 0, DECODE(10));
	assert_true(rig_busy(&r));
	TELL(&r, 0, USED(10));
	assert_false(r.w.rank[0].latched);
	assert_false(rig_busy(&r));
	TELL(&r, 0, DECODE(90));
	assert_true(rig_busy(&r));
	TELL(&r, 0, USED(10));
	assert_true(rig_busy(&r));
	TELL(&r, 0, DECODE(10));
	assert_false(rig_busy(&r));
}

/* The signal that set the latch stops while the other goes on: it is let go after stale_after. */
static void latch_of_a_signal_that_stops(void **state)
{
	static const struct {
		enum sw_on_stale on_stale;
		enum sw_signal stops, goes_on;
	} rows[] = {
		{SW_STALE_OPEN, SW_SIG_KV_USED, SW_SIG_DECODE_BLOCKS},
		{SW_STALE_OPEN, SW_SIG_DECODE_BLOCKS, SW_SIG_KV_USED},
		{SW_STALE_HOLD, SW_SIG_KV_USED, SW_SIG_DECODE_BLOCKS},
		{SW_STALE_HOLD, SW_SIG_DECODE_BLOCKS, SW_SIG_KV_USED},
	};
	struct rig r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rig_init(&r, 0, 1);
		rig_decode(&r, 0.6);
		r.a.on_stale = rows[i].on_stale;
		r.a.hold_for_ms = 60000;
		TELL(&r, 0, TOTAL(100), {rows[i].stops, 90});
		for (int s = 0; s < 5; s++) {
			r.now += 1000;
			TELL(&r, 0, {rows[i].goes_on, 10});
			assert_true(rig_busy(&r));
		}
		assert_false(rig_busy_after(&r, 1));
		assert_false(r.w.stale);
		assert_false(r.w.rank[0].latched);
		assert_false(rig_busy_after(&r, 8000)); /* held now, and still not back */
		r.now += 1000;
		TELL(&r, 0, {rows[i].stops, 61});
		assert_true(rig_busy(&r));
	}
}

static void stale_opens(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.6);
	rig_count(&r, SW_LIM_PREFILL, 10);
	rig_count(&r, SW_LIM_QUEUED_REQUESTS, 1);
	assert_false(rig_busy(&r));
	assert_false(r.w.stale); /* nothing known yet is not stale */
	TELL(&r, 0, TOTAL(100), USED(90), PREFILL(11), WAITING(1));
	assert_true(rig_busy_after(&r, 5000));
	assert_false(r.w.stale);
	assert_false(rig_busy_after(&r, 1));
	assert_true(r.w.stale);
	assert_int_equal(r.w.rank[0].over, 0);
	assert_int_equal(r.w.worker_over, 0);
	TELL(&r, 0, USED(90));
	assert_true(rig_busy(&r));
	assert_false(r.w.stale);
}

/* Totals come from an engine's configuration: they neither age nor make load younger. An empty
 * report tells nothing. */
static void only_load_ages(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.6);
	rig_frac(&r, 1.0);
	TELL(&r, 0, TOTAL(100), BATCHED(10));
	r.now += 60000;
	TELL(&r, 0, USED(61));
	assert_true(rig_busy(&r));
	TELL(&r, 0, USED(0), PREFILL(11));
	assert_true(rig_busy(&r));
	r.now += 5001;
	TELL(&r, 0, TOTAL(100), BATCHED(10));
	rig_tell(&r, 0, NULL, 0);
	assert_false(rig_busy(&r));
	assert_true(r.w.stale);
}

/* A series that goes missing from otherwise good reports is unknown after stale_after, not kept. */
static void one_signal_goes_stale(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_count(&r, SW_LIM_PREFILL, 10);
	TELL(&r, 0, PREFILL(11), RUNNING(1));
	r.now += 5000;
	TELL(&r, 0, RUNNING(1));
	assert_true(rig_busy(&r));
	assert_false(rig_busy_after(&r, 1));
	assert_false(r.w.stale);
}

static void one_rank_goes_stale(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 2);
	rig_count(&r, SW_LIM_PREFILL, 10);
	TELL(&r, 0, PREFILL(11));
	TELL(&r, 1, PREFILL(11));
	r.now += 5000;
	TELL(&r, 0, PREFILL(11));
	assert_true(rig_busy(&r));
	assert_false(rig_busy_after(&r, 1));
	assert_true(r.w.rank[0].busy);
	assert_false(r.w.rank[1].busy);
	assert_false(r.w.stale);
}

static void stale_holds(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 2);
	rig_decode(&r, 0.6);
	r.a.on_stale = SW_STALE_HOLD;
	r.a.hold_for_ms = 30000;
	TELL(&r, 0, TOTAL(100), USED(90));
	TELL(&r, 1, TOTAL(100), USED(90));
	assert_true(rig_busy_after(&r, 5001));
	assert_true(r.w.stale);
	TELL(&r, 0, TOTAL(100)); /* no load in it */
	TELL(&r, 1, TOTAL(100));
	assert_true(rig_busy_after(&r, 29999));
	assert_false(rig_busy_after(&r, 1));
	assert_true(r.w.stale);

	rig_init(&r, 0, 1); /* worker-level limits, and a free worker stays free */
	rig_count(&r, SW_LIM_QUEUED_REQUESTS, 5);
	r.a.on_stale = SW_STALE_HOLD;
	r.a.hold_for_ms = 1000;
	TELL(&r, 0, WAITING(5));
	assert_true(rig_busy_after(&r, 6000));
	assert_false(rig_busy_after(&r, 1));
	TELL(&r, 0, WAITING(4));
	assert_false(rig_busy_after(&r, 6000));
}

/* Limits of 0 reject all, but not on the word of a worker that has said nothing. */
static void silence_is_free(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.0);
	rig_count(&r, SW_LIM_QUEUED_REQS, 0);
	rig_count(&r, SW_LIM_QUEUED_TOKENS, 0);
	rig_count(&r, SW_LIM_QUEUED_REQUESTS, 0);
	rig_count(&r, SW_LIM_CONCURRENT_REQUESTS, 0);
	assert_false(rig_busy(&r));
	TELL(&r, 0, TOTAL(100));
	assert_false(rig_busy(&r));
	TELL(&r, 0, WAITING(0));
	assert_true(rig_busy(&r));
}

static void clock_that_stands_or_steps_back(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_count(&r, SW_LIM_PREFILL, 10);
	r.now = 0;
	TELL(&r, 0, PREFILL(11));
	assert_true(rig_busy(&r));
	assert_false(r.w.stale);
	assert_false(rig_busy_after(&r, 5001));
	assert_true(r.w.stale);
	TELL(&r, 0, PREFILL(11));
	r.now -= 5000;
	assert_true(rig_busy(&r));
}

/* ---- anti-flap ---- */

static void min_hold(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.6);
	rig_count(&r, SW_LIM_PREFILL, 10);
	rig_count(&r, SW_LIM_QUEUED_REQUESTS, 3);
	r.l.min_hold_ms = 2000;
	TELL(&r, 0, TOTAL(100), USED(61), PREFILL(11), WAITING(3));
	assert_true(rig_busy(&r));
	r.now += 500;
	TELL(&r, 0, USED(0), PREFILL(0), WAITING(0));
	assert_true(rig_busy_after(&r, 1499));
	assert_true(r.w.rank[0].busy);
	assert_int_equal(r.w.worker_over, 1u << SW_LIM_QUEUED_REQUESTS);
	assert_false(rig_busy_after(&r, 1));

	TELL(&r, 0, USED(61)); /* counts from when it went over, not from the last report over */
	assert_true(rig_busy(&r));
	r.now += 1900;
	TELL(&r, 0, USED(61));
	assert_true(rig_busy(&r));
	TELL(&r, 0, USED(0));
	assert_true(rig_busy_after(&r, 99));
	assert_false(rig_busy_after(&r, 1));
}

static void min_hold_yields(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_count(&r, SW_LIM_PREFILL, 10);
	r.l.min_hold_ms = 60000;
	TELL(&r, 0, PREFILL(11));
	assert_true(rig_busy(&r));
	assert_false(rig_busy_after(&r, 5001)); /* to staleness */
	TELL(&r, 0, PREFILL(11));
	assert_true(rig_busy(&r));
	r.l.set = 0;
	assert_false(rig_busy(&r)); /* to a threshold that was taken away */
}

static void release_ratio(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_count(&r, SW_LIM_PREFILL, 100);
	r.l.release_ratio = 0.8;
	TELL(&r, 0, PREFILL(90));
	assert_false(rig_busy(&r)); /* the band alone makes nothing busy */
	TELL(&r, 0, PREFILL(101));
	assert_true(rig_busy(&r));
	TELL(&r, 0, PREFILL(80));
	assert_true(rig_busy(&r));
	TELL(&r, 0, PREFILL(79));
	assert_false(rig_busy(&r));
	TELL(&r, 0, PREFILL(90));
	assert_false(rig_busy(&r));

	rig_init(&r, 0, 1);
	rig_count(&r, SW_LIM_CONCURRENT_REQUESTS, 10);
	r.l.release_ratio = 0.5;
	TELL(&r, 0, RUNNING(10));
	assert_true(rig_busy(&r));
	TELL(&r, 0, RUNNING(5));
	assert_true(rig_busy(&r));
	TELL(&r, 0, RUNNING(4));
	assert_false(rig_busy(&r));

	rig_init(&r, 0, 1);
	rig_frac(&r, 0.5);
	r.l.release_ratio = 0.5;
	TELL(&r, 0, BATCHED(100), PREFILL(51));
	assert_true(rig_busy(&r));
	TELL(&r, 0, PREFILL(25));
	assert_true(rig_busy(&r));
	TELL(&r, 0, PREFILL(24));
	assert_false(rig_busy(&r));
}

/* The decode check clears when both signals are under the band, and moves with every report. */
static void release_ratio_of_decode(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.8);
	r.l.release_ratio = 0.5;
	TELL(&r, 0, TOTAL(100), USED(81));
	TELL(&r, 0, USED(60)); /* no evaluation in between */
	assert_true(rig_busy(&r));
	TELL(&r, 0, DECODE(60), USED(10));
	assert_true(rig_busy(&r));
	TELL(&r, 0, DECODE(39));
	assert_false(rig_busy(&r));
	TELL(&r, 0, DECODE(60));
	assert_false(rig_busy(&r));
}

/* Nothing is under 0, so a threshold of 0 ignores the ratio. A ratio of 0 or 1 is none. */
static void release_ratio_off(void **state)
{
	static const double off[] = {0.0, 1.0, NAN};
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.0);
	r.l.release_ratio = 0.8;
	TELL(&r, 0, TOTAL(100), USED(1));
	assert_true(rig_busy(&r));
	TELL(&r, 0, USED(0));
	assert_false(rig_busy(&r));

	for (size_t i = 0; i < ARRAY_SIZE(off); i++) {
		rig_init(&r, 0, 1);
		rig_decode(&r, 0.6);
		r.l.release_ratio = off[i];
		TELL(&r, 0, TOTAL(100), USED(61));
		assert_true(rig_busy(&r));
		TELL(&r, 0, USED(60));
		assert_false(rig_busy(&r));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latch_needs_both_clear),
		cmocka_unit_test(latch_of_a_signal_that_stops),
		cmocka_unit_test(stale_opens),
		cmocka_unit_test(only_load_ages),
		cmocka_unit_test(one_signal_goes_stale),
		cmocka_unit_test(one_rank_goes_stale),
		cmocka_unit_test(stale_holds),
		cmocka_unit_test(silence_is_free),
		cmocka_unit_test(clock_that_stands_or_steps_back),
		cmocka_unit_test(min_hold),
		cmocka_unit_test(min_hold_yields),
		cmocka_unit_test(release_ratio),
		cmocka_unit_test(release_ratio_of_decode),
		cmocka_unit_test(release_ratio_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
