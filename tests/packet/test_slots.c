// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The slots of one worker: never more than the cap, back to exactly nothing, and nobody full for
 * ever. Who is picked is in test_slots_pick.c, what two CPUs do at once in test_slots_race.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/rows.h"

static void test_take_and_give(void **state)
{
	struct rows *r = *state;
	struct sw_slot *slot = &r->slot[900];

	rows_worker(r, 900, 4, 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(rows_call(r, ASK_TAKE, 900), 0);
	assert_false(rows_get(r->notfull, 900));
	assert_int_equal(rows_call(r, ASK_TAKE, 900), -1);
	assert_int_equal(slot->inuse, 4);
	assert_int_equal(slot->refusals, 1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rows_call(r, ASK_GIVE, 900), 0);
		assert_true(rows_get(r->notfull, 900));
	}
	assert_int_equal(slot->inuse, 0);
	assert_int_equal(slot->most, 4);
	assert_int_equal(slot->takes, 4);
	assert_int_equal(slot->gives, 4);
	/* one more than were taken */
	rows_call(r, ASK_GIVE, 900);
	assert_int_equal(slot->inuse, 0);
	assert_int_equal(slot->gives, 4);
	/* ids that there are not */
	assert_int_equal(rows_call(r, ASK_TAKE, SW_MAX_WORKERS), -1);
	assert_int_equal(rows_call(r, ASK_TAKE, UINT32_MAX), -1);
}

static void test_no_cap(void **state)
{
	struct rows *r = *state;

	rows_worker(r, 0, SW_NO_CAP, 0);
	r->slot[0].inuse = 1000000;
	assert_int_equal(rows_call(r, ASK_TAKE, 0), 0);
	assert_int_equal(r->slot[0].inuse, 1000001);
}

static void test_cap_lowered(void **state)
{
	struct rows *r = *state;

	rows_pool(r, 1, 1, 8);
	for (int i = 0; i < 4; i++)
		assert_int_equal(rows_pick(r, 0), 3);
	rows_worker(r, 3, 2, 0);
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
	assert_int_equal(rows_room(r, 0), 0);
	for (int left = 3; left >= 2; left--) {
		rows_call(r, ASK_GIVE, 3);
		assert_int_equal(r->slot[3].inuse, left);
		assert_int_equal(rows_pick(r, 0), NO_SLOT);
	}
	rows_call(r, ASK_GIVE, 3);
	assert_int_equal(rows_room(r, 0), 1);
	assert_int_equal(rows_pick(r, 0), 3);
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
	assert_int_equal(r->slot[3].most, 4);
	rows_worker(r, 3, 0, 0);
	rows_call(r, ASK_GIVE, 3);
	rows_call(r, ASK_GIVE, 3);
	assert_int_equal(r->slot[3].inuse, 0);
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
}

static void test_cap_raised(void **state)
{
	struct rows *r = *state;

	rows_pool(r, 1, 1, 0);
	for (uint32_t cap = 0; cap < 5; cap++) {
		assert_int_equal(rows_room(r, 0), 0);
		assert_int_equal(rows_pick(r, 0), NO_SLOT);
		assert_false(rows_get(r->notfull, 3));
		rows_worker(r, 3, cap + 1, 0);
		assert_int_equal(rows_room(r, 0), 1);
		assert_int_equal(rows_pick(r, 0), 3);
	}
}

/* While others have free slots too, nothing but time tells that a cap was raised. */
static void test_cap_raised_beside_others(void **state)
{
	struct rows *r = *state;
	const uint64_t *picked;

	rows_pool(r, 8, 1, 0);
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
	rows_worker(r, 3, 100, 0);
	assert_int_equal(rows_room(r, 0), 1);
	rows_worker(r, 4, 100, 0);
	usleep(30000);
	picked = rows_pick_many(r, 0, 1000, false);
	assert_in_range(picked[3], 350, 650);
	assert_in_range(picked[4], 350, 650);
}

/* `cap` moves on and what is taken stays: both wrap around. */
static void test_credit(void **state)
{
	struct rows *r = *state;
	struct sw_slot *slot = &r->slot[3];

	rows_pool(r, 1, 1, 0);
	slot->inuse = slot->most = UINT32_MAX - 1;
	rows_worker(r, 3, 1, SW_WF_ROW | SW_WF_CREDIT);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rows_pick(r, 0), 3);
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
	assert_int_equal(rows_room(r, 0), 0);
	assert_int_equal(slot->inuse, 1);
	assert_int_equal(slot->most, 1);
	rows_call(r, ASK_GIVE, 3);
	assert_int_equal(slot->inuse, 1);
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rows_call(r, ASK_UNTAKE, 3), 0);
	assert_int_equal(slot->inuse, UINT32_MAX);
	assert_int_equal(slot->gives, 2);
	assert_int_equal(slot->most, 1);
	assert_int_equal(rows_pick(r, 0), 3);
	rows_worker(r, 3, UINT32_MAX - 5, SW_WF_ROW | SW_WF_CREDIT); /* taken back */
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
	rows_worker(r, 3, 2, SW_WF_ROW | SW_WF_CREDIT);
	assert_int_equal(rows_room(r, 0), 1);
	assert_int_equal(rows_pick(r, 0), 3);
	assert_int_equal(rows_pick(r, 0), 3);
	assert_int_equal(rows_pick(r, 0), NO_SLOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rows_test(test_take_and_give),
		rows_test(test_no_cap),
		rows_test(test_cap_lowered),
		rows_test(test_cap_raised),
		rows_test(test_cap_raised_beside_others),
		rows_test(test_credit),
	};

	return cmocka_run_group_tests(tests, rows_up, rows_down);
}
