// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The rows that workers and pools have in the kernel: who has one, with which cap, and for how
 * long. Who is given connections is in test_slots_live_pools.c. */
#include <errno.h>
#include <string.h>

#include "slots/live.h"

static void everybody_has_a_row(void **state)
{
	const struct sw_worker_row *row;

	(void)state;
	apply();
	for (unsigned p = 0; p < 2; p++)
		for (unsigned i = 0; i < WORKERS; i++) {
			row = &kernel.workers[workers[p][i].id];
			assert_memory_equal(row->addr, worker_confs[p][i].at.addr, 16);
			assert_int_equal(row->port, 9000);
			assert_int_equal(row->pool, p);
			assert_int_equal(row->cap, 6);
			assert_int_equal(row->engine, 4);
			assert_true(has(&kernel.members[p], workers[p][i].id));
			assert_true(has(&kernel.reach4, workers[p][i].id));
		}
	assert_int_equal(workers[2][0].id, -1);
	row = &kernel.workers[pools[2].row];
	assert_int_equal(row->flags, SW_WF_ROW);
	assert_int_equal(row->cap, 18);
	assert_int_equal(row->engine, 12);
	assert_true(has(&kernel.members[2], pools[2].row));
	assert_int_equal(pools[2].cap, 18);
}

static void no_cap_no_row(void **state)
{
	(void)state;
	pool_confs[2].steer.count = SW_COUNT_REPORTS;
	worker_confs[2][1].engine_limit = 0;
	worker_confs[0][1].engine_limit = 0;
	apply();
	assert_int_equal(pools[2].row, -1);
	assert_int_equal(kernel.steers[2].flags, 0);
	assert_int_equal(kernel.workers[workers[0][1].id].cap, SW_NO_CAP);
	assert_true(pools[0].cap == UINT64_MAX);
}

static void counted_without_a_cap(void **state)
{
	(void)state;
	worker_confs[2][1].engine_limit = 0;
	apply();
	assert_int_equal(kernel.workers[pools[2].row].cap, SW_NO_CAP);
	assert_int_equal(kernel.steers[2].flags, SW_SF_COUNT);
}

/* Where nothing can be handed over, requests that must pass would be sent away. */
static void a_cap_that_cannot_be_held(void **state)
{
	(void)state;
	pools[2].uncapped = true;
	apply();
	assert_int_equal(kernel.workers[pools[2].row].cap, SW_NO_CAP);
	assert_int_equal(pools[2].cap, 18);
}

static void nobody_elses_row_is_touched(void **state)
{
	(void)state;
	apply();
	kernel.writes = 0;
	pool_confs[0].n_workers = 2;
	apply();
	beat(2000);
	assert_int_equal(kernel.writes, 1); /* of the one that left */
	pool_confs[0].n_workers = 3;
	apply();
	assert_int_equal(kernel.writes, 2);
}

static void who_leaves_keeps_the_row_while_in_use(void **state)
{
	int id;

	(void)state;
	apply();
	id = workers[0][2].id;
	kernel.slots[id].inuse = 1;
	pool_confs[0].n_workers = 2;
	apply();
	assert_false(has(&kernel.members[0], id));
	assert_int_equal(live.n_leaving, 1);
	assert_string_equal(live.leaving[0].name, "qwen/w02");
	beat(10000);
	assert_int_equal(live.n_leaving, 1);
	assert_int_equal(kernel.workers[id].port, 9000);
	kernel.slots[id].inuse = 0;
	beat(500); /* one may be on its way */
	assert_int_equal(live.n_leaving, 1);
	beat(1200);
	assert_int_equal(live.n_leaving, 0);
	assert_int_equal(kernel.workers[id].port, 0);
}

static void who_comes_back_has_the_old_row(void **state)
{
	int id;

	(void)state;
	apply();
	id = workers[0][1].id;
	kernel.slots[id].inuse = 5;
	pool_confs[0].n_workers = 1;
	apply();
	assert_int_equal(live.n_leaving, 2);
	pool_confs[0].n_workers = 3;
	apply();
	assert_int_equal(workers[0][1].id, id);
	assert_int_equal(live.n_leaving, 0);
	assert_true(has(&kernel.members[0], id));
}

static void the_next_daemon_finds_the_rows(void **state)
{
	int ids[POOLS], row;

	(void)state;
	worker_confs[0][0].at.port = 1; /* so that the lowest id is not the first one's */
	apply();
	for (unsigned p = 0; p < POOLS; p++)
		ids[p] = workers[p][1].id;
	row = pools[2].row;
	memset(steering.rows, 0, sizeof(steering.rows));
	worker_confs[0][0].at.port = 9000;
	live.n_pools = 0; /* of which it knows nothing */
	sw_slots_read(&steering);
	apply();
	for (unsigned p = 0; p < 2; p++)
		assert_int_equal(workers[p][1].id, ids[p]);
	assert_int_equal(pools[2].row, row);
	assert_int_equal(live.n_leaving, 1);
	assert_string_equal(live.leaving[0].name, "10.0.0.0:1"); /* all that this one knows of it */
}

static void rows_run_out(void **state)
{
	struct sw_slots_plan plan;
	struct sw_error err = {0};

	(void)state;
	for (int id = 0; id < SW_MAX_WORKERS - 6; id++)
		steering.rows[id] = (struct sw_worker_row){.port = 1};
	assert_int_equal(sw_slots_plan(&steering, pools, POOLS, &plan, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "1024"));
}

/* ---- credits ------------------------------------------------------------------------------ */

static void credits_follow_reports(void **state)
{
	struct sw_worker_row *row;

	(void)state;
	pool_confs[2].steer.count = SW_COUNT_REPORTS;
	pool_confs[2].steer.report_lag_ms = 1000;
	apply();
	row = &kernel.workers[pools[2].row];
	assert_int_equal(row->flags, SW_WF_ROW | SW_WF_CREDIT);
	sw_slots_credit(&steering, &pools[2], 10000);
	assert_int_equal(row->cap, 18);
	workers[2][0].load.n_ranks = workers[2][1].load.n_ranks = 1;
	workers[2][0].load.rank[0].value[SW_SIG_RUNNING] = 3;
	workers[2][0].load.rank[0].value[SW_SIG_WAITING] = 2;
	sw_slots_credit(&steering, &pools[2], 11000);
	assert_int_equal(row->cap, 13);
	workers[2][0].load.rank[0].value[SW_SIG_RUNNING] = 5; /* one report, one step */
	sw_slots_credit_worker(&steering, &workers[2][0], 11100);
	assert_int_equal(row->cap, 11);
	workers[2][0].load.rank[0].value[SW_SIG_RUNNING] = 3;
	pools[2].counted = false; /* other pools, after a reload */
	sw_slots_credit_worker(&steering, &workers[2][1], 11200);
	assert_int_equal(row->cap, 13);
	workers[2][1].load.busy = true; /* neither its slots nor its load */
	workers[2][1].load.rank[0].value[SW_SIG_RUNNING] = 100;
	sw_slots_credit(&steering, &pools[2], 12000);
	assert_int_equal(row->cap, 7);
	kernel.slots[pools[2].row].inuse = 4;
	sw_slots_credit(&steering, &pools[2], 12100); /* no report can show those */
	assert_int_equal(row->cap, 4 + 3);
	beat(0);
	assert_int_equal(row->cap, 4 + 3); /* a heartbeat does not undo it */
}

/* What was taken is never given back there, so the row would never be free again. */
static void credits_that_leave(void **state)
{
	int row;

	(void)state;
	pool_confs[2].steer.count = SW_COUNT_REPORTS;
	apply();
	row = pools[2].row;
	kernel.slots[row].inuse = 7000;
	conf.n_pools = 2;
	apply();
	assert_int_equal(live.n_leaving, 1);
	assert_int_equal(kernel.workers[row].flags, SW_WF_ROW);
	kernel.slots[row].inuse = 0; /* a recount */
	beat(1200);
	assert_int_equal(live.n_leaving, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(everybody_has_a_row),
		LIVE_TEST(no_cap_no_row),
		LIVE_TEST(counted_without_a_cap),
		LIVE_TEST(a_cap_that_cannot_be_held),
		LIVE_TEST(nobody_elses_row_is_touched),
		LIVE_TEST(who_leaves_keeps_the_row_while_in_use),
		LIVE_TEST(who_comes_back_has_the_old_row),
		LIVE_TEST(the_next_daemon_finds_the_rows),
		LIVE_TEST(rows_run_out),
		LIVE_TEST(credits_follow_reports),
		LIVE_TEST(credits_that_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
