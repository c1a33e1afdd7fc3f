// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the daemon tells the kernel about workers and pools as they come, turn busy, drain and go.
 * The kernel is a few arrays here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "daemon/steering.h"

#define POOLS	3
#define WORKERS 3

/* ---- the kernel --------------------------------------------------------------------------- */

static struct kernel {
	struct sw_worker_row workers[SW_MAX_WORKERS];
	struct sw_slot slots[SW_MAX_WORKERS];
	struct sw_bits members[SW_MAX_POOLS], nonbusy, reach4;
	struct sw_steer_pool steers[SW_MAX_POOLS];
	unsigned writes; /* of rows */
} kernel;
static const struct sw_slot_maps maps = {.members = 1, .steers = 2};

const struct sw_slot_maps *sw_steer_maps(const struct sw_steer *s)
{
	(void)s;
	return &maps;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	unsigned pool = *(const unsigned *)key;

	if (fd == maps.members)
		memcpy(value, &kernel.members[pool], sizeof(struct sw_bits));
	else
		memcpy(value, &kernel.steers[pool], sizeof(struct sw_steer_pool));
	return 0;
}

int sw_steer_set_pool(struct sw_steer *s, unsigned pool, const struct sw_steer_pool *v)
{
	(void)s;
	kernel.steers[pool] = *v;
	return 0;
}

int sw_steer_set_worker(struct sw_steer *s, unsigned id, const struct sw_worker_row *v)
{
	(void)s;
	kernel.writes += memcmp(&kernel.workers[id], v, sizeof(*v)) != 0;
	kernel.workers[id] = *v;
	return 0;
}

int sw_steer_get_worker(const struct sw_steer *s, unsigned id, struct sw_worker_row *out)
{
	(void)s;
	*out = kernel.workers[id];
	return 0;
}

void sw_steer_set_members(struct sw_steer *s, unsigned pool, const struct sw_bits *v)
{
	(void)s;
	kernel.members[pool] = *v;
}

void sw_steer_set_nonbusy(struct sw_steer *s, const struct sw_bits *v)
{
	(void)s;
	kernel.nonbusy = *v;
}

void sw_steer_set_reach4(struct sw_steer *s, const struct sw_bits *v)
{
	(void)s;
	kernel.reach4 = *v;
}

void sw_steer_slot(const struct sw_steer *s, unsigned id, struct sw_slot *out)
{
	(void)s;
	*out = kernel.slots[id];
}

int sw_steer_renew(struct sw_steer *s, unsigned id)
{
	(void)s;
	return kernel.slots[id].inuse ? -EBUSY : 0;
}

static bool has(const struct sw_bits *b, int id)
{
	return b->word[id / 64] >> (id % 64) & 1;
}

/* ---- a daemon: two steered pools and a guarded one ----------------------------------------- */

static struct sw_worker_conf worker_confs[POOLS][WORKERS];
static struct sw_pool_conf pool_confs[POOLS];
static struct sw_config conf = {
	.pools = pool_confs, .n_pools = POOLS, .deadline_ms = 2000, .heartbeat_ms = 200};
static struct sw_live_worker workers[POOLS][WORKERS];
static struct sw_live_worker *lists[POOLS][WORKERS];
static struct sw_live_pool pools[POOLS];
static struct sw_live live;
static struct sw_steering steering;

static void make_worker(unsigned pool, unsigned i)
{
	static char names[POOLS][WORKERS][8];
	struct sw_worker_conf *c = &worker_confs[pool][i];

	snprintf(names[pool][i], sizeof(names[pool][i]), "w%u%u", pool, i);
	*c = (struct sw_worker_conf){
		.name = names[pool][i], .share = 1, .engine_limit = 4, .queue_limit = 2};
	c->at = (struct sw_endpoint){.addr = {[10] = 0xff, [11] = 0xff, 10, 0, pool, i},
				     .port = 9000};
	workers[pool][i] = (struct sw_live_worker){.conf = c, .pool = &pools[pool], .id = -1};
	lists[pool][i] = &workers[pool][i];
}

static int setup(void **state)
{
	static const enum sw_steer_by by[POOLS] = {SW_STEER_CONNECT, SW_STEER_LOCAL, SW_STEER_NONE};
	static char names[POOLS][8] = {"qwen", "glm", "plain"};

	(void)state;
	sw_log_level(SW_ERROR);
	memset(&kernel, 0, sizeof(kernel));
	memset(&steering, 0, sizeof(steering));
	free(live.leaving);
	live = (struct sw_live){.conf = &conf,
				.pools = pools,
				.n_pools = POOLS,
				.steer = (struct sw_steer *)&kernel,
				.steering = &steering};
	conf.n_pools = POOLS;
	steering.live = &live;
	for (unsigned p = 0; p < POOLS; p++) {
		for (unsigned i = 0; i < WORKERS; i++)
			make_worker(p, i);
		pool_confs[p] = (struct sw_pool_conf){.name = names[p],
						      .workers = worker_confs[p],
						      .n_workers = WORKERS,
						      .steer.by = by[p],
						      .steer.count = SW_COUNT_CONNECTIONS};
		pools[p] = (struct sw_live_pool){.conf = &pool_confs[p],
						 .limits = pool_confs[p].limits,
						 .live = &live,
						 .workers = lists[p],
						 .n_workers = WORKERS,
						 .row = -1};
	}
	return 0;
}

/* Takes the configuration as it stands now. */
static void apply(void)
{
	struct sw_slots_plan plan;
	struct sw_error err = {0};

	if (sw_slots_plan(&steering, pools, conf.n_pools, &plan, &err))
		fail_msg("%s", err.text);
	sw_steer_narrow(&steering, pools, conf.n_pools, &plan, false);
	for (unsigned p = 0; p < POOLS; p++)
		pools[p].n_workers = pool_confs[p].n_workers;
	live.n_pools = conf.n_pools;
	sw_slots_commit(&steering, &plan);
	sw_slots_write(&steering);
	steering.settled = true;
	sw_steer_write(&steering);
	sw_steer_clear(&steering);
}

static void beat(uint64_t later_ms)
{
	sw_slots_write(&steering);
	sw_slots_beat(&steering, sw_now_ms() + later_ms);
	sw_steer_write(&steering);
}

/* ---- rows --------------------------------------------------------------------------------- */

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

/* ---- who is given connections -------------------------------------------------------------- */

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
		cmocka_unit_test_setup(everybody_has_a_row, setup),
		cmocka_unit_test_setup(no_cap_no_row, setup),
		cmocka_unit_test_setup(counted_without_a_cap, setup),
		cmocka_unit_test_setup(a_cap_that_cannot_be_held, setup),
		cmocka_unit_test_setup(nobody_elses_row_is_touched, setup),
		cmocka_unit_test_setup(who_leaves_keeps_the_row_while_in_use, setup),
		cmocka_unit_test_setup(who_comes_back_has_the_old_row, setup),
		cmocka_unit_test_setup(the_next_daemon_finds_the_rows, setup),
		cmocka_unit_test_setup(rows_run_out, setup),
		cmocka_unit_test_setup(one_worker_of_two_pools, setup),
		cmocka_unit_test_setup(busy_and_drained_ones, setup),
		cmocka_unit_test_setup(an_operators_word, setup),
		cmocka_unit_test_setup(what_pools_are_told, setup),
		cmocka_unit_test_setup(words_that_are_in_use, setup),
		cmocka_unit_test_setup(full_pools, setup),
		cmocka_unit_test_setup(a_number_that_changes_hands, setup),
		cmocka_unit_test_setup(pools_that_vanish, setup),
		cmocka_unit_test_setup(a_daemon_that_goes, setup),
		cmocka_unit_test_setup(credits_follow_reports, setup),
		cmocka_unit_test_setup(credits_that_leave, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
