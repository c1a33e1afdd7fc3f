// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ns to pick a worker, take a slot of it and give it back, by BPF_PROG_TEST_RUN beside an empty
 * program: by the number of workers, and by how many of them are full.
 */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>

#include "packet/lib/rows.h"
#include "slots.skel.h"

#define ROUNDS 15
#define REPEAT 100000
#define CAP    32

enum fill { NONE_FULL, HALF_FULL, ALL_BUT_ONE, ALL_FULL, FILLS };
enum { SIZES = 3, NO_SLOT = -1 };

static const unsigned sizes[SIZES] = {8, 64, SW_MAX_WORKERS};
static const struct {
	const char *name;
	int aim;    /* ns at SW_MAX_WORKERS; 0: none is stated */
	int answer; /* of a pick */
} about[FILLS] = {{"none", 110, 0},
		  {"half", 0, 0},
		  {"all but one", 260, 0},
		  {"all: nothing is found", 0, NO_SLOT}};

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int median(int *v)
{
	qsort(v, ROUNDS, sizeof(*v), ascending);
	return v[ROUNDS / 2];
}

/* Pools of all sizes share the rows, so the fill is the same for all. */
static void fill(struct rows *r, enum fill f)
{
	/* in use by the smallest pool too, and not the first that a search meets */
	const unsigned last = 5;

	for (unsigned id = 0; id < SW_MAX_WORKERS; id++) {
		bool full = f == ALL_FULL || (f == ALL_BUT_ONE && id != last) ||
			    (f == HALF_FULL && id % 2);

		rows_fill(r, id, full ? CAP : 0, CAP);
	}
}

static int measure(struct rows *r, unsigned pool, enum fill f)
{
	int last, ns;

	r->ask->pool = pool;
	ns = rows_run(bpf_program__fd(r->skel->progs.pick_and_give), REPEAT, &last);
	if (last != about[f].answer) {
		fprintf(stderr, "a pick gave %d, not what is to be measured\n", last);
		exit(1);
	}
	return ns;
}

int main(void)
{
	static int ns[SIZES][FILLS][ROUNDS], empty[ROUNDS];
	struct rows *r = rows_load();
	int base;

	if (!r)
		return 1;
	rows_clear(r);
	for (unsigned s = 0; s < SIZES; s++) {
		for (unsigned id = 0; id < sizes[s]; id++)
			rows_join(r, s, id);
	}
	for (int round = 0; round < ROUNDS; round++) {
		empty[round] = rows_run(bpf_program__fd(r->skel->progs.empty), REPEAT, NULL);
		for (enum fill f = 0; f < FILLS; f++) {
			fill(r, f);
			for (unsigned s = 0; s < SIZES; s++)
				ns[s][f][round] = measure(r, s, f);
		}
	}
	base = median(empty);
	printf("ns to pick, take and give back a slot, over an empty program in the same run,\n"
	       "median of %d rounds of %d\n%-24s",
	       ROUNDS, REPEAT, "full");
	for (unsigned s = 0; s < SIZES; s++)
		printf(" %5u %s", sizes[s], "workers");
	printf(" %9s\n", "aim");
	for (enum fill f = 0; f < FILLS; f++) {
		printf("%-24s", about[f].name);
		for (unsigned s = 0; s < SIZES; s++)
			printf(" %13d", median(ns[s][f]) - base);
		printf(about[f].aim ? " %9d\n" : "\n", about[f].aim);
	}
	rows_free(r);
	return 0;
}
