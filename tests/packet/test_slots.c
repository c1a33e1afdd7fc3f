// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Slots: never more than the cap, back to exactly nothing, nobody full for ever, and a fair choice
 * among those who may be chosen. The functions run in the kernel, on two CPUs where it matters.
 */
#include <bpf/libbpf.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/rows.h"
#include "slots.skel.h"

enum { POOL = 7 };
enum { NO_SLOT = -1, ALL_BUSY = -2, NONE = -3, CLOSED = -4, HALF_OPEN = -5 };
enum { ONLY4 = 1, IGNORE_BUSY = 2, NOT_ESTABLISHED = 4 };

static int up(void **state)
{
	*state = rows_load();
	return *state ? 0 : -1;
}

static int down(void **state)
{
	rows_free(*state);
	return 0;
}

static int fresh(void **state)
{
	struct rows *r = *state;

	rows_clear(r);
	r->ask->pool = POOL;
	return 0;
}

/* Worker ids 3, 3 + step, 3 + 2 * step ... */
static void pool_of(struct rows *r, unsigned n, unsigned step, uint32_t cap)
{
	for (unsigned i = 0; i < n; i++) {
		rows_worker(r, 3 + i * step, cap, 0);
		rows_join(r, POOL, 3 + i * step);
	}
}

static int pick(struct rows *r, uint32_t how)
{
	r->ask->how = how;
	return rows_call(r, ASK_PICK, 0);
}

static int room(struct rows *r, uint32_t how)
{
	r->ask->how = how;
	return rows_call(r, ASK_ROOM, 0);
}

/* Who is picked, `n` times; what is taken is given back unless `keep`. */
static const uint64_t *pick_many(struct rows *r, uint32_t how, unsigned n, bool keep)
{
	r->ask->how = how;
	r->ask->keep = keep;
	memset(r->skel->bss->picked, 0, sizeof(r->skel->bss->picked));
	rows_run(bpf_program__fd(r->skel->progs.pick_and_count), n, NULL);
	return (const uint64_t *)r->skel->bss->picked;
}

/* ---- one row ----------------------------------------------------------------------------- */

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

	pool_of(r, 1, 1, 8);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pick(r, 0), 3);
	rows_worker(r, 3, 2, 0);
	assert_int_equal(pick(r, 0), NO_SLOT);
	assert_int_equal(room(r, 0), 0);
	for (int left = 3; left >= 2; left--) {
		rows_call(r, ASK_GIVE, 3);
		assert_int_equal(r->slot[3].inuse, left);
		assert_int_equal(pick(r, 0), NO_SLOT);
	}
	rows_call(r, ASK_GIVE, 3);
	assert_int_equal(room(r, 0), 1);
	assert_int_equal(pick(r, 0), 3);
	assert_int_equal(pick(r, 0), NO_SLOT);
	assert_int_equal(r->slot[3].most, 4);
	rows_worker(r, 3, 0, 0);
	rows_call(r, ASK_GIVE, 3);
	rows_call(r, ASK_GIVE, 3);
	assert_int_equal(r->slot[3].inuse, 0);
	assert_int_equal(pick(r, 0), NO_SLOT);
}

static void test_cap_raised(void **state)
{
	struct rows *r = *state;

	pool_of(r, 1, 1, 0);
	for (uint32_t cap = 0; cap < 5; cap++) {
		assert_int_equal(room(r, 0), 0);
		assert_int_equal(pick(r, 0), NO_SLOT);
		assert_false(rows_get(r->notfull, 3));
		rows_worker(r, 3, cap + 1, 0);
		assert_int_equal(room(r, 0), 1);
		assert_int_equal(pick(r, 0), 3);
	}
}

/* While others have free slots too, nothing but time tells that a cap was raised. */
static void test_cap_raised_beside_others(void **state)
{
	struct rows *r = *state;
	const uint64_t *picked;

	pool_of(r, 8, 1, 0);
	assert_int_equal(pick(r, 0), NO_SLOT);
	rows_worker(r, 3, 100, 0);
	assert_int_equal(room(r, 0), 1);
	rows_worker(r, 4, 100, 0);
	usleep(30000);
	picked = pick_many(r, 0, 1000, false);
	assert_in_range(picked[3], 350, 650);
	assert_in_range(picked[4], 350, 650);
}

/* `cap` moves on and what is taken stays: both wrap around. */
static void test_credit(void **state)
{
	struct rows *r = *state;
	struct sw_slot *slot = &r->slot[3];

	pool_of(r, 1, 1, 0);
	slot->inuse = slot->most = UINT32_MAX - 1;
	rows_worker(r, 3, 1, SW_WF_ROW | SW_WF_CREDIT);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pick(r, 0), 3);
	assert_int_equal(pick(r, 0), NO_SLOT);
	assert_int_equal(room(r, 0), 0);
	assert_int_equal(slot->inuse, 1);
	assert_int_equal(slot->most, 1);
	rows_call(r, ASK_GIVE, 3);
	assert_int_equal(slot->inuse, 1);
	assert_int_equal(pick(r, 0), NO_SLOT);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rows_call(r, ASK_UNTAKE, 3), 0);
	assert_int_equal(slot->inuse, UINT32_MAX);
	assert_int_equal(slot->gives, 2);
	assert_int_equal(slot->most, 1);
	assert_int_equal(pick(r, 0), 3);
	rows_worker(r, 3, UINT32_MAX - 5, SW_WF_ROW | SW_WF_CREDIT); /* taken back */
	assert_int_equal(pick(r, 0), NO_SLOT);
	rows_worker(r, 3, 2, SW_WF_ROW | SW_WF_CREDIT);
	assert_int_equal(room(r, 0), 1);
	assert_int_equal(pick(r, 0), 3);
	assert_int_equal(pick(r, 0), 3);
	assert_int_equal(pick(r, 0), NO_SLOT);
}

/* ---- who is picked ----------------------------------------------------------------------- */

/* Every second run of `run` workers is busy. Free ones get a fair share, to `percent`. */
static void half_busy(struct rows *r, unsigned n, unsigned step, unsigned run, unsigned picks,
		      unsigned percent)
{
	const unsigned fair = picks / (n / 2);
	const uint64_t *picked;

	pool_of(r, n, step, SW_NO_CAP);
	for (unsigned i = 0; i < n; i++)
		rows_set(r->nonbusy, 3 + i * step, i / run % 2);
	picked = pick_many(r, 0, picks, false);
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
		rows_join(r, POOL, id);
	rows_join(r, POOL, 320);
	rows_join(r, POOL, 383);
	for (unsigned id = 0; id < SW_MAX_WORKERS; id++)
		rows_worker(r, id, 5, 0);
	picked = pick_many(r, 0, 100000, false);
	for (unsigned id = 0; id < SW_MAX_WORKERS; id++) {
		if (rows_get(&r->members[POOL], id))
			assert_in_range(picked[id], 9000, 11000);
		else
			assert_int_equal(picked[id], 0);
	}
}

static void test_evens_out(void **state)
{
	struct rows *r = *state;

	pool_of(r, 64, 15, SW_NO_CAP);
	pick_many(r, 0, 64 * 100, true);
	for (unsigned i = 0; i < 64; i++)
		assert_in_range(r->slot[3 + i * 15].inuse, 92, 106);
}

static void test_evens_out_two(void **state)
{
	struct rows *r = *state;

	pool_of(r, 2, 1, SW_NO_CAP);
	r->slot[3].inuse = 50;
	pick_many(r, 0, 50, true);
	assert_int_equal(r->slot[3].inuse, 50);
	assert_int_equal(r->slot[4].inuse, 50);
}

static void test_suspect(void **state)
{
	struct rows *r = *state;

	pool_of(r, 8, 1, 1000);
	rows_set(r->suspect, 5, true);
	assert_int_equal(pick_many(r, 0, 10000, false)[5], 0);
	for (unsigned id = 3; id < 11; id++) {
		if (id != 5)
			rows_fill(r, id, 1000, 1000);
	}
	assert_int_equal(pick(r, 0), NO_SLOT);
	assert_int_equal(room(r, 0), 0);
	assert_int_equal(pick(r, IGNORE_BUSY), 5); /* nobody is there to clear it */
	assert_int_equal(room(r, IGNORE_BUSY), 1);
	for (unsigned id = 3; id < 11; id++)
		rows_set(r->suspect, id, true);
	assert_int_equal(room(r, 0), 1);
	assert_int_equal(pick(r, 0), 5);
}

static void test_last_of_many(void **state)
{
	struct rows *r = *state;
	int id = 0;

	for (unsigned i = 0; i < SW_MAX_WORKERS; i++) {
		rows_join(r, POOL, i);
		rows_fill(r, i, 4, 4);
	}
	for (unsigned n = 0; n < SW_MAX_WORKERS; n++, id = (id * 5 + 7) % SW_MAX_WORKERS) {
		rows_call(r, ASK_GIVE, id);
		assert_int_equal(room(r, 0), 1);
		assert_int_equal(pick(r, 0), id);
		assert_int_equal(pick(r, 0), NO_SLOT);
	}
}

/* All hints are wrong: caps were lowered, and one raised. */
static void test_last_of_many_unheard(void **state)
{
	struct rows *r = *state;

	for (unsigned i = 0; i < SW_MAX_WORKERS; i++) {
		rows_join(r, POOL, i);
		rows_fill(r, i, 4, 8);
	}
	pick(r, 0);
	for (unsigned i = 0; i < SW_MAX_WORKERS; i++)
		rows_worker(r, i, 4, 0);
	rows_set(r->notfull, 700, false);
	rows_worker(r, 700, 8, 0);
	for (unsigned n = r->slot[700].inuse; n < 8; n++)
		assert_int_equal(pick(r, 0), 700);
	assert_int_equal(pick(r, 0), NO_SLOT);
}

static void test_why_not(void **state)
{
	struct rows *r = *state;

	assert_int_equal(pick(r, 0), NONE);
	assert_int_equal(room(r, 0), 0);
	assert_int_equal(rows_call(r, ASK_ANY, 0), -1);
	pool_of(r, 4, 100, 1);
	memset(r->nonbusy, 0, sizeof(*r->nonbusy));
	assert_int_equal(pick(r, 0), ALL_BUSY);
	assert_int_equal(room(r, 0), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(room(r, IGNORE_BUSY), 1);
		assert_true(pick(r, IGNORE_BUSY) >= 3);
	}
	assert_int_equal(pick(r, IGNORE_BUSY), NO_SLOT);
	assert_int_equal(pick(r, 0), NO_SLOT);
	rows_call(r, ASK_GIVE, 103);
	assert_int_equal(pick(r, 0), ALL_BUSY);
	rows_set(r->nonbusy, 103, true);
	rows_set_pool(r, POOL, SW_SF_COUNT | SW_SF_CLOSED, 0);
	assert_int_equal(pick(r, 0), CLOSED);
	assert_int_equal(pick(r, IGNORE_BUSY), CLOSED);
	assert_int_equal(room(r, 0), 0);
	r->ask->pool = SW_MAX_POOLS;
	assert_int_equal(pick(r, 0), NONE);
}

static void test_only_ipv4(void **state)
{
	struct rows *r = *state;
	const uint64_t *picked;

	pool_of(r, 8, 1, 1000);
	memset(r->reach4, 0, sizeof(*r->reach4));
	assert_int_equal(pick(r, ONLY4), NONE);
	rows_set(r->reach4, 6, true);
	picked = pick_many(r, ONLY4, 1000, false);
	assert_int_equal(picked[6], 1000);
	picked = pick_many(r, 0, 8000, false);
	assert_in_range(picked[6], 700, 1300);
	rows_set(r->suspect, 6, true); /* the only one in reach: as if all were */
	assert_int_equal(pick(r, ONLY4), 6);
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

	pool_of(r, 2, 1, 100);
	rows_set_pool(r, POOL, SW_SF_COUNT, 10);
	set_half_open(r, POOL, 9);
	assert_in_range(pick(r, NOT_ESTABLISHED), 3, 4);
	set_half_open(r, POOL, 10);
	assert_int_equal(pick(r, NOT_ESTABLISHED), HALF_OPEN);
	assert_int_equal(room(r, NOT_ESTABLISHED), 0);
	assert_in_range(pick(r, 0), 3, 4);
	set_half_open(r, POOL, 0);
	set_half_open(r, SW_MAX_POOLS, SW_MAX_RESERVATIONS);
	assert_int_equal(pick(r, NOT_ESTABLISHED), HALF_OPEN);
	assert_in_range(pick(r, 0), 3, 4);
}

static void test_any(void **state)
{
	struct rows *r = *state;

	pool_of(r, 3, 200, 0);
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

/* ---- two CPUs at once -------------------------------------------------------------------- */

#define TAKES	   6000000
#define AT_A_TIME  20000
#define LONGEST_NS 40000000000LL

struct hand {
	struct rows *r;
	pthread_t thread;
	int cpu;
	uint64_t until_takes; /* hammer */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pin_to(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void *hammer(void *arg)
{
	struct hand *h = arg;
	const int program = bpf_program__fd(h->r->skel->progs.hammer);
	const volatile __u64 *takes = &h->r->skel->bss->hammering[h->cpu].takes;
	const int64_t end = now_ns() + LONGEST_NS;

	pin_to(h->cpu);
	while (*takes < h->until_takes && now_ns() < end)
		rows_run(program, AT_A_TIME, NULL);
	return NULL;
}

/* Up to two CPUs of those that this process may use. */
static unsigned two_cpus(int cpu[2])
{
	unsigned n = 0;
	cpu_set_t cpus;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int i = 0; i < ASK_CPUS && n < 2; i++) {
		if (CPU_ISSET(i, &cpus))
			cpu[n++] = i;
	}
	if (n < 2) /* as in an emulated guest, which is slow, too */
		printf("skip: takes at the same time, for want of a second CPU\n");
	return n;
}

/* Both hold up to `hold` of the 32 * 4 slots there are. Returns how often nothing was found. */
static uint64_t hammer_with_two(struct rows *r, unsigned hold, uint64_t takes)
{
	uint64_t took = 0, refused = 0, gave = 0, too_many = 0;
	struct hand hands[2] = {};
	cpu_set_t before;
	int cpu[2];
	unsigned n = two_cpus(cpu);

	if (n < 2)
		takes /= 100;
	sched_getaffinity(0, sizeof(before), &before);
	pool_of(r, 32, 9, 4);
	r->ask->hold = hold;
	r->ask->cap = 4;
	r->ask->function = ASK_TAKE;
	for (unsigned i = 0; i < n; i++) {
		hands[i] = (struct hand){r, 0, cpu[i], takes / n};
		pthread_create(&hands[i].thread, NULL, hammer, &hands[i]);
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(hands[i].thread, NULL);
	r->ask->function = ASK_GIVE;
	for (unsigned i = 0; i < n; i++) {
		const struct hammering *h = &r->skel->bss->hammering[cpu[i]];

		pin_to(cpu[i]);
		rows_run(bpf_program__fd(r->skel->progs.hammer), ASK_HELD, NULL);
		assert_int_equal(h->held, 0);
		took += h->takes;
		refused += h->refused;
		too_many += h->too_many;
	}
	sched_setaffinity(0, sizeof(before), &before);
	if (took < takes)
		printf("skip: the rest of the takes, on a slow machine: made %llu of %llu\n",
		       (unsigned long long)took, (unsigned long long)takes);
	assert_int_equal(too_many, 0);
	for (unsigned i = 0; i < 32; i++) {
		const struct sw_slot *slot = &r->slot[3 + i * 9];

		assert_int_equal(slot->inuse, 0);
		assert_in_range(slot->most, 1, 4);
		assert_int_equal(slot->takes, slot->gives);
		gave += slot->gives;
	}
	assert_int_equal(gave, took);
	assert_memory_equal(r->notfull, &r->members[POOL], sizeof(*r->notfull));
	return refused;
}

/* All slots are in use most of the time. */
static void test_hammer_full(void **state)
{
	assert_true(hammer_with_two(*state, 200, TAKES) > 0);
}

/* Two slots are always free: who finds none has not looked well. */
static void test_hammer_nearly_full(void **state)
{
	assert_int_equal(hammer_with_two(*state, 63, TAKES / 4), 0);
}

static void *fill(void *arg)
{
	struct hand *h = arg;

	pin_to(h->cpu);
	rows_run(bpf_program__fd(h->r->skel->progs.fill), SW_MAX_WORKERS, NULL);
	return NULL;
}

static void *drain(void *arg)
{
	const volatile __u32 *drained;
	struct hand *h = arg;

	drained = &h->r->skel->bss->drained;
	pin_to(h->cpu);
	while (*drained < SW_MAX_WORKERS)
		rows_run(bpf_program__fd(h->r->skel->progs.drain), SW_MAX_WORKERS, NULL);
	return NULL;
}

/* A slot is given back just when its row is being marked full. */
static void test_given_while_filled(void **state)
{
	struct rows *r = *state;
	struct hand hands[2] = {};
	int cpu[2];

	if (two_cpus(cpu) < 2)
		return;
	r->ask->cap = 2;
	for (int round = 0; round < 20; round++) {
		for (unsigned id = 0; id < SW_MAX_WORKERS; id++)
			rows_fill(r, id, 1, 2);
		r->skel->bss->filled = r->skel->bss->drained = 0;
		for (int i = 0; i < 2; i++) {
			hands[i] = (struct hand){r, 0, cpu[i], 0};
			pthread_create(&hands[i].thread, NULL, i ? fill : drain, &hands[i]);
		}
		for (int i = 0; i < 2; i++)
			pthread_join(hands[i].thread, NULL);
		for (unsigned id = 0; id < SW_MAX_WORKERS; id++) {
			assert_int_equal(r->slot[id].inuse, 1);
			assert_true(rows_get(r->notfull, id));
		}
	}
}

#define slots_test(f) cmocka_unit_test_setup(f, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		slots_test(test_take_and_give),
		slots_test(test_no_cap),
		slots_test(test_cap_lowered),
		slots_test(test_cap_raised),
		slots_test(test_cap_raised_beside_others),
		slots_test(test_credit),
		slots_test(test_half_busy),
		slots_test(test_half_busy_scattered),
		slots_test(test_half_busy_of_1020),
		slots_test(test_uneven_words),
		slots_test(test_evens_out),
		slots_test(test_evens_out_two),
		slots_test(test_suspect),
		slots_test(test_last_of_many),
		slots_test(test_last_of_many_unheard),
		slots_test(test_why_not),
		slots_test(test_only_ipv4),
		slots_test(test_half_open),
		slots_test(test_any),
		slots_test(test_hammer_full),
		slots_test(test_hammer_nearly_full),
		slots_test(test_given_while_filled),
	};

	return cmocka_run_group_tests(tests, up, down);
}
