// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the kernel is told of pools, so of who is given connections: as workers turn busy and drain,
 * operators say a word, and pools and the daemon itself go. */
#include <errno.h>

#include "common/clock.h"
#include "slots/live.h"

static void one_worker_of_two_pools(void **state)
{
	int id;

	(void)state;
	worker_confs[1][0].at = worker_confs[0][0].at;
	worker_confs[1][0].engine_limit = 2;
	apply();
	id = workers[0][0].id;
	assert_int_equal(workers[1][0].id, id);
	assert_int_equal(kernel.workers[id].cap, 4);  /* the lower one */
	assert_int_equal(kernel.workers[id].pool, 1); /* the one that wants its listeners known */
	assert_true(has(&kernel.members[0], id) && has(&kernel.members[1], id));
	workers[1][0].load.busy = true;
	sw_steering_apply(&pools[1]);
	assert_false(has(&kernel.nonbusy, id));
	workers[1][0].load.busy = false;
	sw_steering_apply(&pools[1]);
	assert_true(has(&kernel.nonbusy, id));
}

static void busy_and_drained_ones(void **state)
{
	(void)state;
	apply();
	workers[0][0].load.busy = true;
	workers[0][1].drain = true;
	sw_steering_apply(&pools[0]);
	assert_false(has(&kernel.nonbusy, workers[0][0].id));
	assert_true(has(&kernel.members[0], workers[0][0].id));
	assert_false(has(&kernel.members[0], workers[0][1].id));
	assert_true(has(&kernel.nonbusy, workers[1][0].id));
}

static void an_operators_word(void **state)
{
	(void)state;
	apply();
	workers[0][0].load.busy = true;
	pools[0].force = SW_FORCE_OPEN;
	pools[0].force_until_ms = sw_now_ms() + 60000;
	sw_steering_apply(&pools[0]);
	assert_true(has(&kernel.nonbusy, workers[0][0].id));
	assert_false(kernel.steers[0].flags & SW_SF_CLOSED);
	pools[0].force = SW_FORCE_SATURATED;
	sw_steering_apply(&pools[0]);
	assert_true(kernel.steers[0].flags & SW_SF_CLOSED);
	pools[0].force_until_ms = 1; /* over */
	sw_steering_apply(&pools[0]);
	assert_false(kernel.steers[0].flags & SW_SF_CLOSED);
	pools[0].drain = pools[2].drain = true;
	beat(0);
	assert_true(kernel.steers[0].flags & SW_SF_CLOSED);
	assert_int_equal(kernel.steers[2].flags, SW_SF_COUNT); /* its gates are what closes it */
}

static void what_pools_are_told(void **state)
{
	uint64_t now_ns = sw_now_ns();

	(void)state;
	pool_confs[0].steer.refuse = true;
	pool_confs[0].steer.error = ECONNREFUSED;
	apply();
	assert_int_equal(kernel.steers[0].flags, SW_SF_REFUSE);
	assert_int_equal(kernel.steers[0].error, ECONNREFUSED);
	assert_int_equal(kernel.steers[1].flags, SW_SF_COUNT | SW_SF_ASSIGN);
	assert_int_equal(kernel.steers[1].half_open, 9);
	assert_in_range(kernel.steers[1].deadline_ns, now_ns + 2000000000, now_ns + 3000000000);
	assert_int_equal(kernel.steers[1].first, 0);
	assert_int_equal(kernel.steers[1].words, 1);
}

static void words_that_are_in_use(void **state)
{
	(void)state;
	for (int id = 0; id < 130; id++)
		if (id != 64)
			kernel.workers[id].port = 1; /* somebody else's */
	sw_slots_read(&steering);
	apply();
	assert_int_equal(workers[0][0].id, 64);
	assert_int_equal(workers[0][1].id, 130);
	assert_int_equal(kernel.steers[0].first, 1);
	assert_int_equal(kernel.steers[0].words, 2);
}

static void full_pools(void **state)
{
	(void)state;
	apply();
	for (unsigned i = 0; i < WORKERS; i++)
		kernel.slots[workers[0][i].id].inuse = i ? 6 : 5;
	kernel.slots[pools[2].row].inuse = 18;
	beat(0);
	assert_false(pools[0].full);
	assert_true(pools[2].full);
	workers[0][0].drain = true;
	beat(0);
	assert_true(pools[0].full);
	assert_false(pools[1].full);
}

/* A pool's number may be another one's after a reload: nobody gets what is not meant for him. */
static void a_number_that_changes_hands(void **state)
{
	struct sw_slots_plan plan;
	struct sw_error err = {0};
	struct sw_bits all = {0};

	(void)state;
	apply();
	pool_confs[0].workers = worker_confs[1]; /* the second pool takes the first one's place */
	pool_confs[0].steer.by = SW_STEER_LOCAL;
	pool_confs[0].n_workers = 2;
	worker_confs[1][1].at = worker_confs[0][1].at; /* but has a worker in common with it */
	assert_int_equal(sw_slots_plan(&steering, pools, 1, &plan, &err), 0);
	sw_steer_narrow(&steering, pools, 1, &plan, true);
	assert_true(has(&kernel.members[0], workers[0][0].id)); /* no listener leads there */
	sw_steer_narrow(&steering, pools, 1, &plan, false);
	all.word[0] = 1ULL << workers[0][1].id;
	assert_memory_equal(&kernel.members[0], &all, sizeof(all));
	all.word[0] = 0;
	assert_memory_equal(&kernel.members[1], &all, sizeof(all));
	assert_memory_equal(&kernel.members[2], &all, sizeof(all));
	sw_slots_plan_free(&plan);
}

static void pools_that_vanish(void **state)
{
	(void)state;
	apply();
	conf.n_pools = 1;
	apply();
	assert_int_equal(kernel.steers[1].flags, 0);
	assert_int_equal(kernel.members[1].word[0], 0);
	assert_int_equal(live.n_leaving, WORKERS + 1);
}

static void a_daemon_that_goes(void **state)
{
	(void)state;
	apply();
	pools[0].drain = true;
	beat(0);
	sw_steer_farewell(&steering);
	assert_int_equal(kernel.steers[0].flags, 0);
	assert_int_equal(kernel.steers[1].flags, SW_SF_COUNT | SW_SF_ASSIGN);
	assert_int_equal(kernel.steers[1].deadline_ns, 1); /* long ago */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(one_worker_of_two_pools),	LIVE_TEST(busy_and_drained_ones),
		LIVE_TEST(an_operators_word),		LIVE_TEST(what_pools_are_told),
		LIVE_TEST(words_that_are_in_use),	LIVE_TEST(full_pools),
		LIVE_TEST(a_number_that_changes_hands), LIVE_TEST(pools_that_vanish),
		LIVE_TEST(a_daemon_that_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
