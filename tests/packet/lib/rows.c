// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools and slot rows of a test, written as the daemon writes them. What is tried with them is the
 * tests' own. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rows.h"
#include "slots.skel.h"

static void *mapped(const struct bpf_map *map)
{
	size_t size = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

struct rows *rows_load(void)
{
	struct rows *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->skel = slots__open_and_load();
	if (!r->skel) {
		perror("the programs of slots could not be loaded (root is needed)");
		free(r);
		return NULL;
	}
	r->ask = &r->skel->bss->ask;
	r->slot = mapped(r->skel->maps.slots);
	r->members = mapped(r->skel->maps.members);
	r->nonbusy = mapped(r->skel->maps.nonbusy);
	r->reach4 = mapped(r->skel->maps.reach4);
	r->suspect = mapped(r->skel->maps.suspect);
	r->notfull = mapped(r->skel->maps.notfull);
	return r;
}

void rows_free(struct rows *r)
{
	slots__destroy(r->skel);
	free(r);
}

static void write_to(const struct bpf_map *map, uint32_t key, const void *value)
{
	if (bpf_map_update_elem(bpf_map__fd(map), &key, value, 0)) {
		perror(bpf_map__name(map));
		exit(1);
	}
}

void rows_clear(struct rows *r)
{
	static const struct sw_worker_row row;
	static const struct sw_steer_pool steer;
	static const struct sw_pool_use use;
	unsigned i;

	memset(&r->skel->bss->ask, 0, sizeof(*r->skel->bss));
	memset(r->slot, 0, sizeof(*r->slot) * SW_MAX_WORKERS);
	memset(r->members, 0, sizeof(*r->members) * SW_MAX_POOLS);
	memset(r->nonbusy, 0, sizeof(*r->nonbusy));
	memset(r->reach4, 0, sizeof(*r->reach4));
	memset(r->suspect, 0, sizeof(*r->suspect));
	memset(r->notfull, 0, sizeof(*r->notfull));
	for (i = 0; i < SW_MAX_WORKERS; i++)
		write_to(r->skel->maps.workers, i, &row);
	for (i = 0; i < SW_MAX_POOLS; i++)
		write_to(r->skel->maps.steers, i, &steer);
	for (i = 0; i <= SW_MAX_POOLS; i++)
		write_to(r->skel->maps.pool_use, i, &use);
}

void rows_worker(struct rows *r, unsigned id, uint32_t cap, uint32_t flags)
{
	struct sw_worker_row row = {.cap = cap, .flags = flags};

	write_to(r->skel->maps.workers, id, &row);
}

void rows_set_pool(struct rows *r, unsigned pool, uint32_t flags, uint32_t half_open)
{
	struct sw_steer_pool steer = {.flags = flags, .half_open = half_open};
	unsigned w, last = 0;

	steer.first = SW_WORDS;
	for (w = 0; w < SW_WORDS; w++) {
		if (!r->members[pool].word[w])
			continue;
		last = w;
		if (steer.first == SW_WORDS)
			steer.first = w;
	}
	if (steer.first == SW_WORDS)
		steer.first = 0;
	else
		steer.words = last - steer.first + 1;
	write_to(r->skel->maps.steers, pool, &steer);
}

void rows_join(struct rows *r, unsigned pool, unsigned id)
{
	rows_set(&r->members[pool], id, true);
	rows_set(r->nonbusy, id, true);
	rows_set(r->reach4, id, true);
	rows_set_pool(r, pool, SW_SF_COUNT, SW_MAX_RESERVATIONS);
}

void rows_fill(struct rows *r, unsigned id, uint32_t inuse, uint32_t cap)
{
	rows_worker(r, id, cap, 0);
	r->slot[id].inuse = r->slot[id].most = inuse;
	rows_set(r->notfull, id, inuse < cap);
}

void rows_set(struct sw_bits *b, unsigned id, bool on)
{
	uint64_t bit = 1ULL << (id % 64);

	if (on)
		b->word[id / 64] |= bit;
	else
		b->word[id / 64] &= ~bit;
}

bool rows_get(const struct sw_bits *b, unsigned id)
{
	return b->word[id / 64] >> (id % 64) & 1;
}

unsigned rows_run(int program, unsigned repeat, int *last)
{
	char frame[64] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = repeat);

	if (bpf_prog_test_run_opts(program, &opts)) {
		perror("BPF_PROG_TEST_RUN");
		exit(1);
	}
	if (last)
		*last = opts.retval;
	return opts.duration;
}

int rows_call(struct rows *r, enum ask_function function, unsigned id)
{
	int last;

	r->ask->function = function;
	r->ask->id = id;
	rows_run(bpf_program__fd(r->skel->progs.call), 1, &last);
	return last;
}

void rows_pool(struct rows *r, unsigned n, unsigned step, uint32_t cap)
{
	for (unsigned i = 0; i < n; i++) {
		rows_worker(r, 3 + i * step, cap, 0);
		rows_join(r, ROWS_POOL, 3 + i * step);
	}
}

int rows_pick(struct rows *r, uint32_t how)
{
	r->ask->how = how;
	return rows_call(r, ASK_PICK, 0);
}

int rows_room(struct rows *r, uint32_t how)
{
	r->ask->how = how;
	return rows_call(r, ASK_ROOM, 0);
}

const uint64_t *rows_pick_many(struct rows *r, uint32_t how, unsigned n, bool keep)
{
	r->ask->how = how;
	r->ask->keep = keep;
	memset(r->skel->bss->picked, 0, sizeof(r->skel->bss->picked));
	rows_run(bpf_program__fd(r->skel->progs.pick_and_count), n, NULL);
	return (const uint64_t *)r->skel->bss->picked;
}

int rows_up(void **state)
{
	*state = rows_load();
	return *state ? 0 : -1;
}

int rows_down(void **state)
{
	rows_free(*state);
	return 0;
}

int rows_fresh(void **state)
{
	struct rows *r = *state;

	rows_clear(r);
	r->ask->pool = ROWS_POOL;
	return 0;
}
