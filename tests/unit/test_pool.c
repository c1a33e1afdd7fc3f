// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The decision over a pool and the way of a gate through shed, finish and open. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/pool.h"

#define SECOND 1000000000ULL

static void decision_table(void **state)
{
	static const struct {
		const char *what;
		struct sw_pool_inputs in;
		enum sw_pool_state want;
	} rows[] = {
		{"no worker", {.workers = 0}, SW_POOL_UNAVAILABLE},
		{"not told of any yet", {.workers = 0, .awaited = true}, SW_POOL_OPEN},
		{"one free worker", {.workers = 1, .busy = 0}, SW_POOL_OPEN},
		{"one busy worker", {.workers = 1, .busy = 1}, SW_POOL_SATURATED},
		{"one of three is free", {.workers = 3, .busy = 2}, SW_POOL_OPEN},
		{"three of three are busy", {.workers = 3, .busy = 3}, SW_POOL_SATURATED},
		{"the only worker drains", {.workers = 1, .draining = 1}, SW_POOL_SATURATED},
		{"one drains, the other is busy",
		 {.workers = 2, .busy = 1, .draining = 1},
		 SW_POOL_SATURATED},
		{"one drains, one is busy, one is free",
		 {.workers = 3, .busy = 1, .draining = 1},
		 SW_POOL_OPEN},
		{"forced saturated",
		 {.workers = 1, .force = SW_FORCE_SATURATED, .force_until_ms = 1001},
		 SW_POOL_SATURATED},
		{"forced open",
		 {.workers = 1, .busy = 1, .force = SW_FORCE_OPEN, .force_until_ms = 1001},
		 SW_POOL_OPEN},
		{"forced open without workers",
		 {.force = SW_FORCE_OPEN, .force_until_ms = 1001},
		 SW_POOL_OPEN},
		{"force saturated has run out",
		 {.workers = 1, .force = SW_FORCE_SATURATED, .force_until_ms = 1000},
		 SW_POOL_OPEN},
		{"force open has run out",
		 {.workers = 1, .busy = 1, .force = SW_FORCE_OPEN, .force_until_ms = 1000},
		 SW_POOL_SATURATED},
		{"drained while free", {.workers = 1, .drain = true}, SW_POOL_DRAINING},
		{"drained while busy", {.workers = 1, .busy = 1, .drain = true}, SW_POOL_DRAINING},
		{"drain goes before force",
		 {.workers = 1, .drain = true, .force = SW_FORCE_OPEN, .force_until_ms = 1001},
		 SW_POOL_DRAINING},
		{"drained without workers", {.drain = true}, SW_POOL_DRAINING},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (sw_pool_decide(&rows[i].in, 1000) != rows[i].want)
			fail_msg("%s: %s", rows[i].what,
				 sw_pool_state_name(sw_pool_decide(&rows[i].in, 1000)));
}

/* Armed while it sheds and a minute after, and as long as it is near a limit. */
static void gate_arms(void **state)
{
	struct sw_gate g = {0};
	uint64_t t = 5 * SECOND;

	(void)state;
	assert_false(sw_gate_arm(&g, false, false, t));
	assert_false(g.armed);
	assert_true(sw_gate_arm(&g, false, true, t));
	assert_true(g.armed);
	assert_true(sw_gate_arm(&g, false, false, t)); /* near is not held on to */
	assert_false(g.armed);

	sw_gate_step(&g, SW_POOL_SATURATED, true, false, t);
	assert_true(sw_gate_arm(&g, false, false, t));
	sw_gate_step(&g, SW_POOL_OPEN, true, false, t + SECOND);
	assert_false(sw_gate_arm(&g, false, false, t + SW_ARMED_NS - 1));
	assert_true(g.armed);
	assert_true(sw_gate_arm(&g, false, false, t + SW_ARMED_NS));
	assert_false(g.armed);

	/* never closed, never shedding */
	sw_gate_step(&g, SW_POOL_SATURATED, false, false, t + 2 * SW_LIFETIME_NS);
	assert_false(sw_gate_arm(&g, false, false, t + 2 * SW_LIFETIME_NS));
	/* without a slot */
	assert_true(sw_gate_arm(&g, true, false, t + 2 * SW_LIFETIME_NS));
	assert_false(sw_gate_arm(&g, false, false, t + 2 * SW_LIFETIME_NS + SECOND));
	assert_true(g.armed);
}

/* Opening leaves time for conversations under way: FINISH for one lifetime after the last SHED. */
static void gate_finishes(void **state)
{
	struct sw_gate g = {0};
	uint64_t t = 5 * SECOND;

	(void)state;
	assert_false(sw_gate_step(&g, SW_POOL_OPEN, true, false, t));
	assert_int_equal(g.mode, SW_MODE_OPEN);

	assert_true(sw_gate_step(&g, SW_POOL_SATURATED, true, false, t));
	assert_int_equal(g.mode, SW_MODE_SHED);
	t += 1000 * SECOND; /* far longer than a lifetime */
	assert_false(sw_gate_step(&g, SW_POOL_SATURATED, true, false, t));

	assert_true(sw_gate_step(&g, SW_POOL_OPEN, true, false, t));
	assert_int_equal(g.mode, SW_MODE_FINISH);
	assert_false(sw_gate_step(&g, SW_POOL_OPEN, true, false, t + SW_LIFETIME_NS - 1));
	assert_int_equal(g.mode, SW_MODE_FINISH);
	assert_true(sw_gate_step(&g, SW_POOL_OPEN, true, false, t + SW_LIFETIME_NS));
	assert_int_equal(g.mode, SW_MODE_OPEN);
}

static void gate_closes_again_while_finishing(void **state)
{
	struct sw_gate g = {0};

	(void)state;
	sw_gate_step(&g, SW_POOL_SATURATED, true, false, SECOND);
	sw_gate_step(&g, SW_POOL_OPEN, true, false, 2 * SECOND);
	assert_true(sw_gate_step(&g, SW_POOL_SATURATED, true, false, 3 * SECOND));
	assert_int_equal(g.mode, SW_MODE_SHED);
	sw_gate_step(&g, SW_POOL_OPEN, true, false, 4 * SECOND);
	/* the lifetime counts from the last SHED, not from the first */
	sw_gate_step(&g, SW_POOL_OPEN, true, false, 3 * SECOND + SW_LIFETIME_NS - 1);
	assert_int_equal(g.mode, SW_MODE_FINISH);
}

static void gate_tells_the_cause(void **state)
{
	struct sw_gate g = {0};

	(void)state;
	sw_gate_step(&g, SW_POOL_SATURATED, true, false, SECOND);
	assert_int_equal(g.cause, SW_CAUSE_SATURATED);
	assert_true(sw_gate_step(&g, SW_POOL_DRAINING, true, false, SECOND));
	assert_int_equal(g.mode, SW_MODE_SHED);
	assert_int_equal(g.cause, SW_CAUSE_DRAINING);
	assert_true(sw_gate_step(&g, SW_POOL_UNAVAILABLE, true, false, SECOND));
	assert_int_equal(g.cause, SW_CAUSE_UNAVAILABLE);
	sw_gate_step(&g, SW_POOL_OPEN, true, false, SECOND);
	assert_int_equal(g.cause, SW_CAUSE_UNAVAILABLE);
}

/* Without hand-over a closed listener would swallow requests that must pass. */
static void gate_that_may_not_close_stays_open(void **state)
{
	struct sw_gate g = {0};

	(void)state;
	assert_false(sw_gate_step(&g, SW_POOL_SATURATED, false, false, SECOND));
	assert_int_equal(g.mode, SW_MODE_OPEN);
	assert_false(sw_gate_step(&g, SW_POOL_UNAVAILABLE, false, false, SECOND));
	assert_int_equal(g.mode, SW_MODE_OPEN);

	/* and one that loses the permission while it sheds comes to an end properly */
	sw_gate_step(&g, SW_POOL_SATURATED, true, false, SECOND);
	assert_true(sw_gate_step(&g, SW_POOL_SATURATED, false, false, 2 * SECOND));
	assert_int_equal(g.mode, SW_MODE_FINISH);
}

/* An open pool with a cap is metered; closing goes before, and leads back without FINISH. */
static void gate_of_a_pool_with_a_cap(void **state)
{
	struct sw_gate g = {0};

	(void)state;
	assert_true(sw_gate_step(&g, SW_POOL_OPEN, true, true, SECOND));
	assert_int_equal(g.mode, SW_MODE_METERED);
	assert_int_equal(g.cause, SW_CAUSE_NO_SLOTS);
	assert_false(sw_gate_step(&g, SW_POOL_OPEN, true, true, 2 * SECOND));

	assert_true(sw_gate_step(&g, SW_POOL_DRAINING, true, true, 3 * SECOND));
	assert_int_equal(g.mode, SW_MODE_SHED);
	assert_int_equal(g.cause, SW_CAUSE_DRAINING);
	assert_true(sw_gate_step(&g, SW_POOL_OPEN, true, true, 4 * SECOND));
	assert_int_equal(g.mode, SW_MODE_METERED);
	assert_int_equal(g.cause, SW_CAUSE_NO_SLOTS);
}

/* What it answered last may be under way when the cap goes, long after it began to meter. */
static void metered_gate_finishes(void **state)
{
	struct sw_gate g = {0};
	uint64_t t = 1000 * SECOND;

	(void)state;
	sw_gate_step(&g, SW_POOL_OPEN, true, true, SECOND);
	sw_gate_step(&g, SW_POOL_OPEN, true, true, t);
	assert_true(sw_gate_step(&g, SW_POOL_OPEN, true, false, t + SECOND));
	assert_int_equal(g.mode, SW_MODE_FINISH);
	assert_int_equal(g.cause, SW_CAUSE_NO_SLOTS);
	assert_false(sw_gate_step(&g, SW_POOL_OPEN, true, false, t + SW_LIFETIME_NS - 1));
	assert_true(sw_gate_step(&g, SW_POOL_OPEN, true, false, t + SW_LIFETIME_NS));
	assert_int_equal(g.mode, SW_MODE_OPEN);
}

/* A request that must pass needs hand-over on a metered listener as well. */
static void gate_that_may_not_close_is_not_metered(void **state)
{
	struct sw_gate g = {0};

	(void)state;
	assert_false(sw_gate_step(&g, SW_POOL_OPEN, false, true, SECOND));
	assert_int_equal(g.mode, SW_MODE_OPEN);
	sw_gate_step(&g, SW_POOL_OPEN, true, true, SECOND);
	assert_true(sw_gate_step(&g, SW_POOL_OPEN, false, true, 2 * SECOND));
	assert_int_equal(g.mode, SW_MODE_FINISH);
}

static void adopted_gate_finishes_first(void **state)
{
	struct sw_gate g = {0};

	(void)state;
	sw_gate_adopt(&g, SECOND);
	assert_int_equal(g.mode, SW_MODE_FINISH);
	assert_false(sw_gate_step(&g, SW_POOL_OPEN, true, false, 2 * SECOND));
	assert_int_equal(g.mode, SW_MODE_FINISH);
	assert_true(sw_gate_step(&g, SW_POOL_OPEN, true, false, SECOND + SW_LIFETIME_NS));
	assert_int_equal(g.mode, SW_MODE_OPEN);

	/* a metered one brings what a former daemon began to an end by itself */
	sw_gate_adopt(&g, 0);
	assert_true(sw_gate_step(&g, SW_POOL_OPEN, true, true, SECOND));
	assert_int_equal(g.mode, SW_MODE_METERED);
}

static void names(void **state)
{
	enum sw_force f = SW_FORCE_AUTO;

	(void)state;
	assert_int_equal(sw_force_parse("open", &f), 0);
	assert_int_equal(f, SW_FORCE_OPEN);
	assert_int_equal(sw_force_parse("closed", &f), -EINVAL);
	assert_int_equal(f, SW_FORCE_OPEN);
	assert_string_equal(sw_force_name(SW_FORCE_SATURATED), "saturated");
	assert_string_equal(sw_pool_state_name(SW_POOL_UNAVAILABLE), "unavailable");
	assert_string_equal(sw_mode_name(SW_MODE_FINISH), "finish");
	assert_string_equal(sw_mode_name(SW_MODE_METERED), "metered");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decision_table),
		cmocka_unit_test(gate_finishes),
		cmocka_unit_test(gate_arms),
		cmocka_unit_test(gate_closes_again_while_finishing),
		cmocka_unit_test(gate_tells_the_cause),
		cmocka_unit_test(gate_that_may_not_close_stays_open),
		cmocka_unit_test(gate_of_a_pool_with_a_cap),
		cmocka_unit_test(metered_gate_finishes),
		cmocka_unit_test(gate_that_may_not_close_is_not_metered),
		cmocka_unit_test(adopted_gate_finishes_first),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
