// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Caps from limits, and credits against an engine whose reports lag. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/slots.h"

#define QUEUED	   (1U << SW_LIM_QUEUED_REQS)
#define CONCURRENT (1U << SW_LIM_CONCURRENT_REQUESTS)
#define WAITING	   (1U << SW_LIM_QUEUED_REQUESTS)

static void caps(void **state)
{
	static const struct {
		const char *what;
		uint32_t set;
		uint64_t queued, concurrent, engine, queue;
		double share;
		uint32_t want;
	} rows[] = {
		{"nothing is set", 0, 0, 0, 0, 16, 1.0, SW_NO_CAP},
		{"N + Q", 0, 0, 0, 256, 16, 1.0, 272},
		{"the least N and Q", 0, 0, 0, 1, 2, 1.0, 3},
		{"vLLM's limit alone", QUEUED, 64, 0, 0, 16, 1.0, 64},
		{"TGI's limit alone", CONCURRENT, 0, 128, 0, 16, 1.0, 128},
		{"SGLang's is not one of what is in flight", WAITING, 0, 0, 0, 16, 1.0, SW_NO_CAP},
		{"the least of all: N + Q", QUEUED | CONCURRENT, 20, 30, 8, 2, 1.0, 10},
		{"the least of all: vLLM's", QUEUED | CONCURRENT, 9, 30, 8, 2, 1.0, 9},
		{"the least of all: TGI's", QUEUED | CONCURRENT, 20, 7, 8, 2, 1.0, 7},
		{"0 rejects all", QUEUED, 0, 0, 8, 2, 1.0, 0},
		{"and a share of 0 is 0", CONCURRENT, 0, 0, 8, 2, 0.5, 0},
		{"half", 0, 0, 0, 8, 2, 0.5, 5},
		{"rounded down", 0, 0, 0, 9, 2, 0.5, 5},
		{"what is exact in decimals is so here", 0, 0, 0, 84, 16, 0.29, 29},
		{"at least one", 0, 0, 0, 1, 2, 0.01, 1},
		{"no limit has no share", 0, 0, 0, 0, 16, 0.5, SW_NO_CAP},
		{"no limit to speak of", QUEUED, UINT64_MAX, 0, 0, 16, 1.0, SW_NO_CAP},
		{"nor is one of 33 bits", QUEUED, 1ULL << 32, 0, 0, 16, 1.0, SW_NO_CAP},
		{"nor does a sum wrap", 0, 0, 0, UINT64_MAX, 16, 1.0, SW_NO_CAP},
		{"the largest that is one", QUEUED, SW_NO_CAP - 1, 0, 0, 16, 1.0, SW_NO_CAP - 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sw_limits l = {.set = rows[i].set};
		uint32_t cap;

		l.count[SW_LIM_QUEUED_REQS] = rows[i].queued;
		l.count[SW_LIM_CONCURRENT_REQUESTS] = rows[i].concurrent;
		l.count[SW_LIM_QUEUED_REQUESTS] = 3;
		cap = sw_slots_cap(&l, rows[i].engine, rows[i].queue, rows[i].share);
		if (cap != rows[i].want)
			fail_msg("%s: %u, not %u", rows[i].what, cap, rows[i].want);
	}
}

/* Hosts that share a worker never have more of it together than there is. */
static void shares_add_up(void **state)
{
	const struct sw_limits none = {0};

	(void)state;
	for (unsigned n = 4; n < 400; n++)
		for (unsigned a = 1; a < 100; a++) {
			uint32_t one = sw_slots_cap(&none, n, 2, a / 100.0);
			uint32_t other = sw_slots_cap(&none, n, 2, (100 - a) / 100.0);

			if (one + other > n + 2 && one > 1 && other > 1)
				fail_msg("%u and %u of %u", one, other, n + 2);
		}
}

static void split(void **state)
{
	static const struct {
		uint32_t inuse;
		uint64_t engine_limit;
		uint32_t engine, queue;
	} rows[] = {{0, 8, 0, 0}, {7, 8, 7, 0},	  {8, 8, 8, 0},
		    {9, 8, 8, 1}, {24, 8, 8, 16}, {5, 0, 5, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t engine, queue;

		sw_slots_split(rows[i].inuse, rows[i].engine_limit, &engine, &queue);
		assert_int_equal(engine, rows[i].engine);
		assert_int_equal(queue, rows[i].queue);
	}
}

static void half_open(void **state)
{
	(void)state;
	assert_int_equal(sw_slots_half_open(0), 1);
	assert_int_equal(sw_slots_half_open(1), 1);
	assert_int_equal(sw_slots_half_open(3), 1);
	assert_int_equal(sw_slots_half_open(4), 2);
	assert_int_equal(sw_slots_half_open(8192), 4096);
	assert_int_equal(sw_slots_half_open(8194), 4096);
	assert_int_equal(sw_slots_half_open(UINT64_MAX), 4096);
}

/* ---- single grants --------------------------------------------------------------------------- */

static void grants(void **state)
{
	struct sw_credit c = {0};

	(void)state;
	/* nothing was seen yet: what the report shows */
	assert_int_equal(sw_credit_grant(&c, 7, 10, 4, 1000, 5000), 7 + 6);
	sw_credit_note(&c, 100, 10000);
	sw_credit_note(&c, 103, 10500);
	sw_credit_note(&c, 105, 11000);
	/* 3 of 5 were taken up to a second ago, and 2 after it */
	assert_int_equal(sw_credit_grant(&c, 105, 10, 3, 1000, 11500), 105 + 7 - 2);
	/* 105 was read at 11000, so 2 more count for a lag that reaches in between */
	assert_int_equal(sw_credit_grant(&c, 107, 10, 3, 800, 11500), 107 + 7 - 4);
	assert_int_equal(sw_credit_grant(&c, 107, 10, 3, 5000, 11500), 107);
	/* full, and over full */
	assert_int_equal(sw_credit_grant(&c, 105, 10, 10, 1000, 20000), 105);
	assert_int_equal(sw_credit_grant(&c, 105, 10, 12, 1000, 20000), 105);
	/* more was taken than is free */
	assert_int_equal(sw_credit_grant(&c, 200, 10, 3, 1000, 11500), 200);
	/* no limit: as far ahead as a sequence number can be */
	assert_int_equal(sw_credit_grant(&c, 105, UINT64_MAX, 0, 1000, 20000), 105U + INT32_MAX);
}

/* `inuse` of a credit row only grows, and passes 2^32 one day. */
static void wraps_around(void **state)
{
	struct sw_credit c = {0};
	uint32_t before = UINT32_MAX - 2, now = before + 5, cap;

	(void)state;
	sw_credit_note(&c, before, 1000);
	cap = sw_credit_grant(&c, now, 10, 0, 1000, 1500);
	assert_int_equal(cap, 2 + 5);
	assert_int_equal((int32_t)(cap - now), 5);
	/* granted before it, used up behind it */
	cap = sw_credit_grant(&c, before, 10, 0, 1000, 1500);
	assert_int_equal((int32_t)(cap - before), 10);
	assert_int_equal((int32_t)(cap - (before + 10)), 0);
}

/* Notes come as often as reports do, and the ring has to reach back over the longest lag. */
static void ring_reaches_back(void **state)
{
	struct sw_credit c = {0};
	uint64_t now;

	(void)state;
	for (now = 1000; now < 100000; now++)
		sw_credit_note(&c, (uint32_t)now, now);
	for (unsigned lag = 0; lag <= SW_CREDIT_LAG_MAX; lag += 100) {
		uint32_t taken = (uint32_t)now, cap = 1000000;
		uint32_t lately = taken + cap - sw_credit_grant(&c, taken, cap, 0, lag, now);

		assert_in_range(lately, lag, lag + 320);
	}
}

/* ---- an engine whose reports lag ------------------------------------------------------------- */

#define CAP	  100
#define SERVICE	  3000 /* ms that a request takes */
#define PERIOD	  250  /* ms between two reports */
#define HEARTBEAT 200
#define RUN	  20000
#define NO_TERM	  (-1) /* every report is believed as it is */

/* Drives credits for RUN ms under more demand than there are slots, with reports that show what was
 * in flight `age` ms ago. Returns the most that was in flight, *served how many got in. */
static unsigned drive(unsigned age, int lag, unsigned *served)
{
	static uint32_t in_flight[RUN], taken[RUN];
	struct sw_credit c = {0};
	uint32_t inuse = UINT32_MAX - 50, start = inuse, cap = start, most = 0, shown = 0;

	for (unsigned t = 1; t < RUN; t++) {
		uint32_t ended = t > SERVICE ? taken[t - SERVICE] : start;

		taken[0] = start;
		in_flight[0] = 0;
		if (t % PERIOD == 0)
			shown = t > age ? in_flight[t - 1 - age] : 0;
		if (t % PERIOD == 0 || t % HEARTBEAT == 0) {
			sw_credit_note(&c, inuse, t);
			cap = lag == NO_TERM
				      ? inuse + (CAP > shown ? CAP - shown : 0)
				      : sw_credit_grant(&c, inuse, CAP, shown, (unsigned)lag, t);
		}
		for (unsigned i = 0; i < 2 && (int32_t)(cap - inuse) > 0; i++)
			inuse++;
		taken[t] = inuse;
		in_flight[t] = inuse - ended;
		most = in_flight[t] > most ? in_flight[t] : most;
	}
	*served = inuse - start;
	return most;
}

/* A report is `age` old when it comes, and gets a period older until the next one: a lag that spans
 * both is never passed over. One that misses some of it hands out again what was admitted in the
 * part that it misses, and no more than the cap each time; without it, each report of the whole
 * time does. */
static void lagging_engine(void **state)
{
	unsigned served, most, without;

	(void)state;
	for (unsigned age = 0; age <= 2000; age += 250) {
		most = drive(age, (int)(age + PERIOD), &served);
		without = drive(age, NO_TERM, &(unsigned){0});
		print_message("reports %4u ms old: most in flight %u of %d, %u without the lag "
			      "term; %u served\n",
			      age, most, CAP, without, served);
		assert_true(most <= CAP);
		assert_true(most >= CAP * 9 / 10); /* and the engine is kept at work */
		if (age >= PERIOD)
			assert_true(without > 2 * CAP);
	}
	/* the default lag of a second, and reports that are two seconds old */
	most = drive(2000, 1000, &served);
	without = drive(2000, NO_TERM, &(unsigned){0});
	print_message("reports 2000 ms old, lag 1000 ms: most in flight %u, %u without\n", most,
		      without);
	assert_in_range(most, CAP + 1, 2 * CAP + CAP / 2);
	assert_true(without > 2 * most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caps),
		cmocka_unit_test(shares_add_up),
		cmocka_unit_test(split),
		cmocka_unit_test(half_open),
		cmocka_unit_test(grants),
		cmocka_unit_test(wraps_around),
		cmocka_unit_test(ring_reaches_back),
		cmocka_unit_test(lagging_engine),
	};

	return cmocka_run_group_tests_name("slots_policy", tests, NULL, NULL);
}
