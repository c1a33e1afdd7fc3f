// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recounts: what the slots of workers say is put right when it is wrong twice, and nothing else is.
 * Needs root, and makes cgroups of its own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "lib/steers.h"

static struct sw_recount recount(struct sw_steer *s)
{
	struct sw_recount r;

	usleep(120000);
	assert_int_equal(sw_steer_recount(s, &r), 0);
	return r;
}

static void set_inuse(struct sw_steer *s, uint32_t id, uint32_t inuse)
{
	struct sw_slot slot;

	sw_steer_slot(s, id, &slot);
	slot.inuse = inuse;
	steers_put_slot(s, id, slot);
}

static bool can_recount(struct sw_steer *s)
{
	struct sw_recount r;
	int ret = sw_steer_recount(s, &r);

	if (!ret)
		return true;
	assert_int_equal(ret, -EOPNOTSUPP);
	printf("SKIP: this kernel refuses iterators\n");
	sw_steer_leave(s);
	return false;
}

static void drift_is_put_right_at_the_second_sight(void **state)
{
	struct sw_steer *s = steers_open();
	struct sw_recount r;
	uint64_t begin_ms;
	int fd;

	(void)state;
	if (!can_recount(s))
		skip();
	steers_pool(s, 100);
	steers_attach(s, 0, true, false);
	fd = steers_connect();
	steers_await(s, 1);
	recount(s);
	assert_int_equal(recount(s).rows, 0);
	set_inuse(s, STEERS_WORKER, 6);
	set_inuse(s, 900, 2000);
	assert_int_equal(recount(s).rows, 0);
	begin_ms = sw_now_ms();
	steers_await(s, 6);
	/* Too soon after the last one, it confirms nothing. */
	assert_int_equal(sw_steer_recount(s, &r), 0);
	if (!r.rows)
		r = recount(s);
	else
		assert_true(sw_now_ms() - begin_ms > 80); /* held up for so long it was not */
	assert_int_equal(r.rows, 2);
	assert_int_equal(r.corrected, 2005);
	assert_true(r.took_ns > 0);
	steers_await(s, 1);
	assert_int_equal(steers_slot(s).corrected, 5);
	/* Nothing is put right twice, and too few is wrong too. */
	assert_int_equal(recount(s).rows, 0);
	set_inuse(s, STEERS_WORKER, 0);
	recount(s);
	assert_int_equal(recount(s).rows, 1);
	steers_await(s, 1);
	close(fd);
	steers_await(s, 0);
	sw_steer_leave(s);
}

static void what_changes_sign_is_no_drift(void **state)
{
	struct sw_steer *s = steers_open();
	int fd;

	(void)state;
	if (!can_recount(s))
		skip();
	steers_pool(s, 100);
	steers_attach(s, 0, true, false);
	fd = steers_connect();
	steers_await(s, 1);
	set_inuse(s, STEERS_WORKER, 3);
	recount(s);
	set_inuse(s, STEERS_WORKER, 0);
	assert_int_equal(recount(s).rows, 0);
	steers_await(s, 0);
	/* The smaller of two that agree. */
	set_inuse(s, STEERS_WORKER, 3);
	recount(s);
	set_inuse(s, STEERS_WORKER, 9);
	assert_int_equal(recount(s).corrected, 2);
	steers_await(s, 7);
	close(fd);
	sw_steer_leave(s);
}

/* Credits are not given back: nobody holds them. */
static void credits_are_not_recounted(void **state)
{
	struct sw_worker_row row = {.flags = SW_WF_ROW | SW_WF_CREDIT, .cap = 9}, nobody = {0};
	struct sw_steer *s = steers_open();

	(void)state;
	if (!can_recount(s))
		skip();
	assert_int_equal(sw_steer_set_worker(s, 20, &row), 0);
	set_inuse(s, 20, 5);
	recount(s);
	assert_int_equal(recount(s).rows, 0);
	assert_int_equal(sw_steer_renew(s, 20), -EBUSY);
	/* When its pool is gone the row comes free. */
	assert_int_equal(sw_steer_set_worker(s, 20, &nobody), 0);
	recount(s);
	assert_int_equal(recount(s).rows, 1);
	assert_int_equal(sw_steer_renew(s, 20), 0);
	sw_steer_leave(s);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, steers_setup, steers_teardown)
	const struct CMUnitTest tests[] = {
		T(drift_is_put_right_at_the_second_sight),
		T(what_changes_sign_is_no_drift),
		T(credits_are_not_recounted),
	};
	const char *why = steers_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
