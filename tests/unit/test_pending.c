// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What waits to be handed on, and what has been here before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sources/pending.h"
#include "sources/repeats.h"

/* ---- pending ---- */

static struct sw_load_event event_of(uint64_t publisher, uint64_t worker, uint32_t rank,
				     enum sw_signal signal, uint64_t value)
{
	struct sw_load_event e = {.worker_id = worker, .publisher = publisher};

	e.report.rank = rank;
	e.report.have = 1u << signal;
	e.report.value[signal] = value;
	return e;
}

static enum sw_pended put(struct sw_pending *p, struct sw_load_event e)
{
	return sw_pending_put(p, &e);
}

static void events_wait_in_order(void **state)
{
	struct sw_pending *p = sw_pending_new();
	struct sw_load_event e;

	(void)state;
	assert_false(sw_pending_take(p, &e));
	assert_int_equal(put(p, event_of(1, 1, 0, SW_SIG_KV_USED, 10)), SW_PENDED);
	assert_int_equal(put(p, event_of(2, 1, 0, SW_SIG_KV_USED, 20)), SW_PENDED);
	assert_int_equal(put(p, event_of(1, 2, 0, SW_SIG_KV_USED, 30)), SW_PENDED);
	assert_int_equal(put(p, event_of(1, 1, 1, SW_SIG_KV_USED, 40)), SW_PENDED);
	for (uint64_t value = 10; value <= 40; value += 10) {
		assert_true(sw_pending_take(p, &e));
		assert_int_equal(e.report.value[SW_SIG_KV_USED], value);
	}
	assert_false(sw_pending_take(p, &e));
	sw_pending_free(p);
}

static void the_last_value_of_each_signal_counts(void **state)
{
	struct sw_pending *p = sw_pending_new();
	struct sw_load_event e;

	(void)state;
	put(p, event_of(1, 1, 0, SW_SIG_KV_USED, 10));
	assert_int_equal(put(p, event_of(1, 1, 0, SW_SIG_WAITING, 5)), SW_PENDED_REPLACED);
	assert_int_equal(put(p, event_of(1, 1, 0, SW_SIG_KV_USED, 11)), SW_PENDED_REPLACED);
	assert_true(sw_pending_take(p, &e));
	assert_int_equal(e.report.have, 1u << SW_SIG_KV_USED | 1u << SW_SIG_WAITING);
	assert_int_equal(e.report.value[SW_SIG_KV_USED], 11);
	assert_int_equal(e.report.value[SW_SIG_WAITING], 5);
	assert_false(sw_pending_take(p, &e));
	sw_pending_free(p);
}

static void there_is_an_end_to_it(void **state)
{
	struct sw_pending *p = sw_pending_new();
	struct sw_load_event e;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < SW_PENDING; i++)
			assert_int_equal(put(p, event_of(i, i, 0, SW_SIG_KV_USED, i)), SW_PENDED);
		assert_int_equal(put(p, event_of(1, 0, 0, SW_SIG_KV_USED, 1)), SW_PENDED_FULL);
		assert_int_equal(put(p, event_of(7, 7, 0, SW_SIG_KV_USED, 1)), SW_PENDED_REPLACED);
		for (uint64_t i = 0; i < SW_PENDING; i++) {
			assert_true(sw_pending_take(p, &e));
			assert_int_equal(e.worker_id, i);
		}
	}
	sw_pending_free(p);
}

/* ---- repeats ---- */

static void what_was_seen_is_known(void **state)
{
	struct sw_repeats *r = sw_repeats_new();

	(void)state;
	assert_false(sw_repeats_knows(r, 1, 5, 1000, 0));
	assert_true(sw_repeats_knows(r, 1, 5, 1000, 1));
	assert_true(sw_repeats_knows(r, 1, 4, 999, 1));
	assert_false(sw_repeats_knows(r, 2, 5, 1000, 1)); /* another publisher */
	assert_false(sw_repeats_knows(r, 1, 6, 1000, 2));
	assert_false(sw_repeats_knows(r, 1, 7, 900, 3)); /* its clock was put back */
	assert_true(sw_repeats_knows(r, 1, 7, 900, 4));
	sw_repeats_free(r);
}

static void who_begins_anew_is_heard(void **state)
{
	struct sw_repeats *r = sw_repeats_new();

	(void)state;
	assert_false(sw_repeats_knows(r, 1, UINT64_MAX, 1000, 0));
	assert_false(sw_repeats_knows(r, 1, 1, 1001, 1));
	assert_false(sw_repeats_knows(r, 1, 2, 1002, 2));
	assert_true(sw_repeats_knows(r, 1, 1, 1001, 3));
	/* even when it says nothing that is believed */
	assert_false(sw_repeats_knows(r, 1, UINT64_MAX, UINT64_MAX, 4));
	assert_true(sw_repeats_knows(r, 1, 5, 0, 3 + SW_REPEATS_QUIET_MS));
	assert_false(sw_repeats_knows(r, 1, 6, 0, 4 + SW_REPEATS_QUIET_MS));
	assert_false(sw_repeats_knows(r, 1, 7, 0, 5 + SW_REPEATS_QUIET_MS));
	sw_repeats_free(r);
}

static void those_last_heard_are_remembered(void **state)
{
	struct sw_repeats *r = sw_repeats_new();

	(void)state;
	assert_false(sw_repeats_knows(r, 0, 1, 1, 0));
	for (uint64_t i = 1; i < SW_REPEATS; i++)
		assert_false(sw_repeats_knows(r, i, 1, 1, 0));
	assert_false(sw_repeats_knows(r, 0, 2, 2, 0));
	assert_false(sw_repeats_knows(r, SW_REPEATS, 1, 1, 0)); /* pushes 1 out */
	assert_true(sw_repeats_knows(r, 0, 2, 2, 0));
	assert_true(sw_repeats_knows(r, 2, 1, 1, 0));
	assert_false(sw_repeats_knows(r, 1, 1, 1, 0));
	sw_repeats_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_wait_in_order),
		cmocka_unit_test(the_last_value_of_each_signal_counts),
		cmocka_unit_test(there_is_an_end_to_it),
		cmocka_unit_test(what_was_seen_is_known),
		cmocka_unit_test(who_begins_anew_is_heard),
		cmocka_unit_test(those_last_heard_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
