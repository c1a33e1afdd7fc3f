// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is written to the maps of steering and read from them: virtual addresses, who listens where,
 * rows of workers, sets and counters. Needs root. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/steers.h"

/* ---- virtual addresses ---------------------------------------------------------------------- */

static unsigned read_hash(int map, struct sw_address *keys, unsigned room)
{
	unsigned n = 0;

	while (n < room && !bpf_map_get_next_key(map, n ? &keys[n - 1] : NULL, &keys[n]))
		n++;
	return n;
}

static uint32_t pool_at(const struct sw_steer *s, const char *addr, uint16_t port)
{
	struct sw_address key = steers_at(addr, port);
	uint32_t pool;

	return bpf_map_lookup_elem(sw_steer_maps(s)->virtuals, &key, &pool) ? 999 : pool;
}

static void virtual_addresses(void **state)
{
	struct sw_virtual list[] = {{steers_at("10.0.0.1", 80), 1}, {steers_at("fd00::1", 80), 1}};
	struct sw_virtual *many = calloc(SW_MAX_VIRTUALS + 1, sizeof(*many));
	struct sw_steer *s = steers_open();
	struct sw_address keys[4];
	struct sw_error err = {0};

	(void)state;
	assert_int_equal(sw_steer_virtuals(s, list, 2, &err), 0);
	assert_int_equal(pool_at(s, "10.0.0.1", 80), 1);
	assert_int_equal(pool_at(s, "fd00::1", 80), 1);
	list[0] = (struct sw_virtual){steers_at("10.0.0.1", 81), 2};
	list[1].pool = 3;
	assert_int_equal(sw_steer_virtuals(s, list, 2, &err), 0);
	assert_int_equal(pool_at(s, "10.0.0.1", 80), 999);
	assert_int_equal(pool_at(s, "10.0.0.1", 81), 2);
	assert_int_equal(pool_at(s, "fd00::1", 80), 3);
	assert_int_equal(read_hash(sw_steer_maps(s)->virtuals, keys, 4), 2);
	/* A full map makes room first. */
	for (int i = 0; i <= SW_MAX_VIRTUALS; i++)
		many[i].at = steers_at("10.0.0.2", 1 + i);
	assert_int_equal(sw_steer_virtuals(s, many, SW_MAX_VIRTUALS, &err), 0);
	assert_int_equal(sw_steer_virtuals(s, many + 1, SW_MAX_VIRTUALS, &err), 0);
	assert_int_equal(sw_steer_virtuals(s, many, SW_MAX_VIRTUALS + 1, &err), -E2BIG);
	assert_non_null(strstr(err.text, "1024"));
	assert_int_equal(pool_at(s, "10.0.0.2", 1 + SW_MAX_VIRTUALS), 0); /* all as before */
	assert_int_equal(sw_steer_virtuals(s, NULL, 0, &err), 0);
	assert_int_equal(read_hash(sw_steer_maps(s)->virtuals, keys, 4), 0);
	free(many);
	sw_steer_leave(s);
}

/* ---- who listens where ---------------------------------------------------------------------- */

/* The worker that is expected at an address, -1: none. */
static int listens(const struct sw_steer *s, const char *addr, uint16_t port)
{
	struct sw_address key = steers_at(addr, port);
	uint32_t id;

	return bpf_map_lookup_elem(sw_steer_maps(s)->listens, &key, &id) ? -1 : (int)id;
}

static void assign(struct sw_steer *s, unsigned pool, bool yes)
{
	struct sw_steer_pool v = {.flags = SW_SF_COUNT | (yes ? SW_SF_ASSIGN : 0)};

	assert_int_equal(sw_steer_set_pool(s, pool, &v), 0);
}

static void put_worker(struct sw_steer *s, unsigned id, struct sw_worker_row row)
{
	assert_int_equal(sw_steer_set_worker(s, id, &row), 0);
}

static void listening_addresses_follow_the_rows(void **state)
{
	static const struct sw_worker_row nobody;
	struct sw_steer *s = steers_open();

	(void)state;
	assign(s, 1, true);
	put_worker(s, 5, steers_row("127.0.0.1", 8001, 1));
	put_worker(s, 6, steers_row("fd00::1", 8002, 1));
	assert_int_equal(listens(s, "127.0.0.1", 8001), 5);
	assert_int_equal(listens(s, "0.0.0.0", 8001), 5);
	assert_int_equal(listens(s, "::", 8001), -1);
	assert_int_equal(listens(s, "fd00::1", 8002), 6);
	assert_int_equal(listens(s, "::", 8002), 6);
	put_worker(s, 5, steers_row("127.0.0.1", 8003, 1));
	assert_int_equal(listens(s, "127.0.0.1", 8001), -1);
	assert_int_equal(listens(s, "0.0.0.0", 8001), -1);
	assert_int_equal(listens(s, "127.0.0.1", 8003), 5);
	put_worker(s, 5, nobody);
	assert_int_equal(listens(s, "127.0.0.1", 8003), -1);
	assert_int_equal(listens(s, "0.0.0.0", 8003), -1);
	sw_steer_leave(s);
}

/* A worker that goes does not take the address of its successor with it. */
static void an_address_changes_hands(void **state)
{
	static const struct sw_worker_row nobody;
	struct sw_steer *s = steers_open();

	(void)state;
	assign(s, 1, true);
	put_worker(s, 5, steers_row("127.0.0.1", 8001, 1));
	put_worker(s, 6, steers_row("127.0.0.1", 8001, 1));
	assert_int_equal(listens(s, "127.0.0.1", 8001), 6);
	put_worker(s, 5, nobody);
	assert_int_equal(listens(s, "127.0.0.1", 8001), 6);
	/* Nor does one take the any-address of another one's port. */
	put_worker(s, 7, steers_row("127.0.0.2", 8001, 1));
	put_worker(s, 7, nobody);
	assert_int_equal(listens(s, "0.0.0.0", 8001), 6);
	sw_steer_leave(s);
}

/* Only pools whose connections go to listening sockets, whichever was told first. */
static void only_workers_of_this_host_listen(void **state)
{
	struct sw_steer *s = steers_open();

	(void)state;
	put_worker(s, 5, steers_row("127.0.0.1", 8001, 1));
	assert_int_equal(listens(s, "127.0.0.1", 8001), -1);
	assign(s, 1, true);
	assert_int_equal(listens(s, "127.0.0.1", 8001), 5);
	put_worker(s, 6, steers_row("10.0.0.1", 8001, 2));
	assert_int_equal(listens(s, "0.0.0.0", 8001), 5);
	assign(s, 1, false);
	assert_int_equal(listens(s, "127.0.0.1", 8001), -1);
	assert_int_equal(listens(s, "0.0.0.0", 8001), -1);
	sw_steer_leave(s);
}

/* ---- rows and sets -------------------------------------------------------------------------- */

static uint64_t word(int map, uint32_t index, unsigned w)
{
	struct sw_bits bits;

	assert_int_equal(bpf_map_lookup_elem(map, &index, &bits), 0);
	return bits.word[w];
}

static void sets_are_seen_by_the_kernel(void **state)
{
	struct sw_steer *s = steers_open();
	const struct sw_slot_maps *maps = sw_steer_maps(s);
	struct sw_bits bits = {.word = {[0] = 1, [15] = 1ULL << 63}};

	(void)state;
	sw_steer_set_members(s, 255, &bits);
	assert_int_equal(word(maps->members, 255, 15), 1ULL << 63);
	assert_int_equal(word(maps->members, 254, 15), 0);
	sw_steer_set_members(s, 256, &bits);
	sw_steer_set_nonbusy(s, &bits);
	assert_int_equal(word(maps->nonbusy, 0, 0), 1);
	bits.word[0] = 2;
	sw_steer_set_reach4(s, &bits);
	assert_int_equal(word(maps->reach4, 0, 0), 2);
	assert_int_equal(word(maps->nonbusy, 0, 0), 1);
	sw_steer_leave(s);
}

static void suspects_are_cleared_one_by_one(void **state)
{
	struct sw_steer *s = steers_open();
	struct sw_bits bits = {.word = {[1] = 6}};
	uint32_t zero = 0;

	(void)state;
	assert_int_equal(bpf_map_update_elem(sw_steer_maps(s)->suspect, &zero, &bits, BPF_ANY), 0);
	assert_true(sw_steer_suspect(s, 65));
	sw_steer_clear_suspect(s, 65);
	assert_false(sw_steer_suspect(s, 65));
	assert_true(sw_steer_suspect(s, 66));
	assert_false(sw_steer_suspect(s, SW_MAX_WORKERS));
	sw_steer_leave(s);
}

static void a_row_is_made_new_when_nothing_is_in_use(void **state)
{
	static const struct sw_slot clean;
	struct sw_slot slot = {.inuse = 1,
			       .most = 9,
			       .takes = 8,
			       .gives = 7,
			       .moves = 6,
			       .refusals = 5,
			       .failures = 4,
			       .corrected = 3};
	struct sw_steer *s = steers_open();
	struct sw_bits bits = {.word = {1ULL << 7 | 1ULL << 8}};
	uint32_t zero = 0;

	(void)state;
	assert_int_equal(bpf_map_update_elem(sw_steer_maps(s)->suspect, &zero, &bits, BPF_ANY), 0);
	steers_put_slot(s, 7, slot);
	assert_int_equal(sw_steer_renew(s, 7), -EBUSY);
	sw_steer_slot(s, 7, &slot);
	assert_int_equal(slot.most, 9);
	slot.inuse = 0;
	steers_put_slot(s, 7, slot);
	assert_int_equal(sw_steer_renew(s, 7), 0);
	sw_steer_slot(s, 7, &slot);
	assert_memory_equal(&slot, &clean, sizeof(slot));
	assert_false(sw_steer_suspect(s, 7));
	assert_true(sw_steer_suspect(s, 8));
	assert_int_equal(word(sw_steer_maps(s)->notfull, 0, 0), 1ULL << 7);
	assert_int_equal(sw_steer_renew(s, SW_MAX_WORKERS), -EINVAL);
	sw_steer_leave(s);
}

static void counters_are_summed(void **state)
{
	int cpus = libbpf_num_possible_cpus();
	struct sw_steer_counts *each = calloc(cpus, sizeof(*each)), sum;
	struct sw_steer *s = steers_open();
	uint32_t pool = 4;

	(void)state;
	for (int i = 0; i < cpus; i++)
		each[i] = (struct sw_steer_counts){.steered = 1, .swept = 2};
	assert_int_equal(bpf_map_update_elem(sw_steer_maps(s)->counts_steer, &pool, each, BPF_ANY),
			 0);
	assert_int_equal(sw_steer_counts(s, 4, &sum), 0);
	assert_int_equal(sum.steered, cpus);
	assert_int_equal(sum.swept, 2 * cpus);
	assert_int_equal(sum.answered, 0);
	assert_int_equal(sw_steer_counts(s, SW_MAX_POOLS, &sum), -EINVAL);
	free(each);
	sw_steer_leave(s);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, steers_setup, steers_teardown)
	const struct CMUnitTest tests[] = {
		T(virtual_addresses),
		T(listening_addresses_follow_the_rows),
		T(an_address_changes_hands),
		T(only_workers_of_this_host_listen),
		T(sets_are_seen_by_the_kernel),
		T(suspects_are_cleared_one_by_one),
		T(a_row_is_made_new_when_nothing_is_in_use),
		T(counters_are_summed),
	};
	const char *why = steers_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
