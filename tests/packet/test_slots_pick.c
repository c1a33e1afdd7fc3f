// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who is picked: a fair choice among those who may be chosen, whoever is busy, full, suspect or out
 * of reach; and why nobody is.
 */
#include <bpf/libbpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/rows.h"
#include "slots.skel.h"

/* Every second run of `run` workers is busy. Free ones get a fair share, to `percent`. */
static void half_busy(struct rows *r, unsigned n, unsigned step, unsigned run, unsigned picks,
		      unsigned percent)
{
	const unsigned fair = picks / (n / 2);
	const uint64_t *picked;

	rows_pool(r, n, step, SW_NO_CAP);
	for (unsigned i = 0; i < n; i++)
		rows_set(r->nonbusy, 3 + i * step, i / run % 2);
	picked = rows_pick_many(r, 0, picks, false);
	for (unsigned i = 0; i < n; i++) {
		if (i / run % 2)
			assert_in_range(picked[3 + i * step], fair - fair * percent / 100,
					fair + fair * percent / 100);
		else
			assert_int_equal(picked[3 + i * step], 0);
	}
}

static void test_half_busy(void **state)
{
	half_busy(*state, 32, 1, 16, 100000, 10);
}

static void test_half_busy_scattered(void **state)
{
	half_busy(*state, 32, 31, 4, 100000, 10);
}

static void test_half_busy_of_1020(void **state)
{
	half_busy(*state, 1020, 1, 85, 200000, 30);
}

static void test_uneven_words(void **state)
{
	struct rows *r = *state;
	const uint64_t *picked;

	/* one alone in its word, seven in the next, three words of nobody, two */
	for (unsigned id = 63; id < 71; id++)
		rows_join(r, ROWS_POOL, id);
	rows_join(r, ROWS_POOL, 320);
	rows_join(r, ROWS_POOL, 383);
	for (unsigned id = 0; id < SW_MAX_WORKERS; id++)
		rows_worker(r, id, 5, 0);
	picked = rows_pick_many(r, 0, 100000, false);
	for (unsigned id = 0; id < SW_MAX_WORKERS; id++) {
		if (rows_get(&r->members[ROWS_POOL], id))
			assert_in_range(picked[id], 9000, 11000);
		else
			assert_int_equal(picked[id], 0);
	}
}

static void test_evens_out(void **state)
{
	struct rows *r = *state;

	rows_pool(r, 64, 15, SW_NO_CAP);
	rows_pick_many(r, 0, 64 * 100, true);
	for (unsigned i = 0; i < 64; i++)
		assert_in_range(r->slot[3 + i * 15].inuse, 92, 106);
}

static void test_evens_out_two(void **state)
{
	struct rows *r = *state;

	rows_pool(r, 2, 1, SW_NO_CAP);
	r->slot[3].inuse = 50;
	rows_pick_many(r, 0, 50, true);
	assert_int_equal(r->slot[3].inuse, 50);
	assert_int_equal(r->slot[4].inuse, 50);
}

static void test_suspect(void **state)
{
	struct rows *r = *state;

	rows_pool(r, 8, 1, 1000);
	rows_set(r->suspect, 5, true);
	assert_int_equal(rows_pick_many(r, 0, 10000, false)[5], 0);
	for (unsigned id = 3; id < 11; id++) {
		if (id != 5)
			rows_fill(r, id, 1000, 1000);
	}
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
	assert_int_equal(rows_room(r, 0), 0);
	assert_int_equal(rows_pick(r, IGNORE_BUSY), 5); /* nobody is there to clear it */
	assert_int_equal(rows_room(r, IGNORE_BUSY), 1);
	for (unsigned id = 3; id < 11; id++)
		rows_set(r->suspect, id, true);
	assert_int_equal(rows_room(r, 0), 1);
	assert_int_equal(rows_pick(r, 0), 5);
}

static void test_last_of_many(void **state)
{
	struct rows *r = *state;
	int id = 0;

	for (unsigned i = 0; i < SW_MAX_WORKERS; i++) {
		rows_join(r, ROWS_POOL, i);
		rows_fill(r, i, 4, 4);
	}
	for (unsigned n = 0; n < SW_MAX_WORKERS; n++, id = (id * 5 + 7) % SW_MAX_WORKERS) {
		rows_call(r, ASK_GIVE, id);
		assert_int_equal(rows_room(r, 0), 1);
		assert_int_equal(rows_pick(r, 0), id);
		assert_int_equal(rows_pick(r, 0), NO_SLOT);
	}
}

/* All hints are wrong: caps were lowered, and one raised. */
static void test_last_of_many_unheard(void **state)
{
	struct rows *r = *state;

	for (unsigned i = 0; i < SW_MAX_WORKERS; i++) {
		rows_join(r, ROWS_POOL, i);
		rows_fill(r, i, 4, 8);
	}
	rows_pick(r, 0);
	for (unsigned i = 0; i < SW_MAX_WORKERS; i++)
		rows_worker(r, i, 4, 0);
	rows_set(r->notfull, 700, false);
	rows_worker(r, 700, 8, 0);
	for (unsigned n = r->slot[700].inuse; n < 8; n++)
		assert_int_equal(rows_pick(r, 0), 700);
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
}

static void test_why_not(void **state)
{
	struct rows *r = *state;

	assert_int_equal(rows_pick(r, 0), NONE);
	assert_int_equal(rows_room(r, 0), 0);
	assert_int_equal(rows_call(r, ASK_ANY, 0), -1);
	rows_pool(r, 4, 100, 1);
	memset(r->nonbusy, 0, sizeof(*r->nonbusy));
	assert_int_equal(rows_pick(r, 0), ALL_BUSY);
	assert_int_equal(rows_room(r, 0), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rows_room(r, IGNORE_BUSY), 1);
		assert_true(rows_pick(r, IGNORE_BUSY) >= 3);
	}
	assert_int_equal(rows_pick(r, IGNORE_BUSY), NO_SLOT);
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
	rows_call(r, ASK_GIVE, 103);
	assert_int_equal(rows_pick(r, 0), ALL_BUSY);
	rows_set(r->nonbusy, 103, true);
	rows_set_pool(r, ROWS_POOL, SW_SF_COUNT | SW_SF_CLOSED, 0);
	assert_int_equal(rows_pick(r, 0), CLOSED);
	assert_int_equal(rows_pick(r, IGNORE_BUSY), CLOSED);
	assert_int_equal(rows_room(r, 0), 0);
	r->ask->pool = SW_MAX_POOLS;
	assert_int_equal(rows_pick(r, 0), NONE);
}

static void test_only_ipv4(void **state)
{
	struct rows *r = *state;
	const uint64_t *picked;

	rows_pool(r, 8, 1, 1000);
	memset(r->reach4, 0, sizeof(*r->reach4));
	assert_int_equal(rows_pick(r, ONLY4), NONE);
	rows_set(r->reach4, 6, true);
	picked = rows_pick_many(r, ONLY4, 1000, false);
	assert_int_equal(picked[6], 1000);
	picked = rows_pick_many(r, 0, 8000, false);
	assert_in_range(picked[6], 700, 1300);
	rows_set(r->suspect, 6, true); /* the only one in reach: as if all were */
	assert_int_equal(rows_pick(r, ONLY4), 6);
}

static void set_half_open(struct rows *r, unsigned pool, unsigned n)
{
	struct sw_pool_use use = {.half_open = n};

	assert_int_equal(bpf_map__update_elem(r->skel->maps.pool_use, &pool, sizeof(pool), &use,
					      sizeof(use), 0),
			 0);
}

static void test_half_open(void **state)
{
	struct rows *r = *state;

	rows_pool(r, 2, 1, 100);
	rows_set_pool(r, ROWS_POOL, SW_SF_COUNT, 10);
	set_half_open(r, ROWS_POOL, 9);
	assert_in_range(rows_pick(r, NOT_ESTABLISHED), 3, 4);
	set_half_open(r, ROWS_POOL, 10);
	assert_int_equal(rows_pick(r, NOT_ESTABLISHED), HALF_OPEN);
	assert_int_equal(rows_room(r, NOT_ESTABLISHED), 0);
	assert_in_range(rows_pick(r, 0), 3, 4);
	set_half_open(r, ROWS_POOL, 0);
	set_half_open(r, SW_MAX_POOLS, SW_MAX_RESERVATIONS);
	assert_int_equal(rows_pick(r, NOT_ESTABLISHED), HALF_OPEN);
	assert_in_range(rows_pick(r, 0), 3, 4);
}

static void test_any(void **state)
{
	struct rows *r = *state;

	rows_pool(r, 3, 200, 0);
	memset(r->nonbusy, 0, sizeof(*r->nonbusy));
	rows_set(r->suspect, 3, true);
	rows_set(r->suspect, 403, true);
	for (int i = 0; i < 100; i++)
		assert_int_equal(rows_call(r, ASK_ANY, 0), 203);
	rows_set(r->suspect, 203, true);
	assert_in_range(rows_call(r, ASK_ANY, 0), 3, 403);
	for (unsigned id = 3; id <= 403; id += 200)
		assert_int_equal(r->slot[id].takes + r->slot[id].refusals, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rows_test(test_half_busy),
		rows_test(test_half_busy_scattered),
		rows_test(test_half_busy_of_1020),
		rows_test(test_uneven_words),
		rows_test(test_evens_out),
		rows_test(test_evens_out_two),
		rows_test(test_suspect),
		rows_test(test_last_of_many),
		rows_test(test_last_of_many_unheard),
		rows_test(test_why_not),
		rows_test(test_only_ipv4),
		rows_test(test_half_open),
		rows_test(test_any),
	};

	return cmocka_run_group_tests(tests, rows_up, rows_down);
}
