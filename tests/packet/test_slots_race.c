// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Slots that two CPUs take and give back at once, in the kernel: never more than the cap, back to
 * exactly nothing, and nobody full for ever.
 */
#include <bpf/libbpf.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

#include "lib/rows.h"
#include "slots.skel.h"

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
	rows_pool(r, 32, 9, 4);
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
	assert_memory_equal(r->notfull, &r->members[ROWS_POOL], sizeof(*r->notfull));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		rows_test(test_hammer_full),
		rows_test(test_hammer_nearly_full),
		rows_test(test_given_while_filled),
	};

	return cmocka_run_group_tests(tests, rows_up, rows_down);
}
