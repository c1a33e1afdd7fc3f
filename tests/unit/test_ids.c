// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Slot rows: found again by address or name, given out lowest first, never somebody else's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/ids.h"

static struct sw_worker_row rows[SW_MAX_WORKERS];
static struct sw_id_key keys[SW_MAX_WORKERS + 1];
static int ids[SW_MAX_WORKERS + 1];

static struct sw_id_key worker(unsigned n)
{
	__u8 addr[16] = {[10] = 0xff, [11] = 0xff, 10, 0, (__u8)(n >> 8), (__u8)n};

	return sw_id_of_worker(addr, 9000);
}

static void put(int id, struct sw_id_key key)
{
	rows[id] = (struct sw_worker_row){.port = key.port, .flags = key.flags, .tag = key.tag};
	memcpy(rows[id].addr, key.addr, sizeof(key.addr));
}

static int setup(void **state)
{
	(void)state;
	memset(rows, 0, sizeof(rows));
	return 0;
}

static void new_ones_get_the_lowest(void **state)
{
	(void)state;
	put(1, worker(7));
	for (unsigned i = 0; i < 3; i++)
		keys[i] = worker(i);
	assert_int_equal(sw_ids_assign(rows, keys, 3, ids), 0);
	assert_int_equal(ids[0], 0);
	assert_int_equal(ids[1], 2);
	assert_int_equal(ids[2], 3);
}

static void known_ones_are_found_again(void **state)
{
	(void)state;
	put(900, worker(1));
	rows[900].tag = 77; /* where it listens, which may change */
	put(3, sw_id_of_pool("qwen", false));
	keys[0] = worker(0);
	keys[1] = worker(1);
	keys[2] = sw_id_of_pool("qwen", false);
	assert_int_equal(sw_ids_assign(rows, keys, 3, ids), 0);
	assert_int_equal(ids[0], 0);
	assert_int_equal(ids[1], 900);
	assert_int_equal(ids[2], 3);
}

static void one_address_is_one_id(void **state)
{
	(void)state;
	keys[0] = worker(5);
	keys[1] = worker(6);
	keys[2] = worker(5);
	assert_int_equal(sw_ids_assign(rows, keys, 3, ids), 0);
	assert_int_equal(ids[0], ids[2]);
	assert_int_not_equal(ids[0], ids[1]);
}

static void the_port_tells_workers_apart(void **state)
{
	(void)state;
	keys[0] = worker(5);
	keys[1] = worker(5);
	keys[1].port = 9001;
	assert_int_equal(sw_ids_assign(rows, keys, 2, ids), 0);
	assert_int_not_equal(ids[0], ids[1]);
}

/* What a row holds means another thing then. */
static void credits_are_another_row(void **state)
{
	(void)state;
	put(3, sw_id_of_pool("qwen", false));
	keys[0] = sw_id_of_pool("qwen", true);
	keys[1] = sw_id_of_pool("glm", false);
	assert_int_equal(sw_ids_assign(rows, keys, 2, ids), 0);
	assert_int_equal(ids[0], 0);
	assert_int_equal(ids[1], 1);
}

static void rows_run_out(void **state)
{
	(void)state;
	for (int id = 0; id < SW_MAX_WORKERS; id++)
		put(id, worker(id));
	for (unsigned i = 0; i < SW_MAX_WORKERS; i++)
		keys[i] = worker(SW_MAX_WORKERS - 1 - i);
	keys[SW_MAX_WORKERS] = worker(SW_MAX_WORKERS);
	assert_int_equal(sw_ids_assign(rows, keys, SW_MAX_WORKERS, ids), 0);
	assert_int_equal(ids[0], SW_MAX_WORKERS - 1);
	assert_int_equal(sw_ids_assign(rows, keys, SW_MAX_WORKERS + 1, ids), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(new_ones_get_the_lowest, setup),
		cmocka_unit_test_setup(known_ones_are_found_again, setup),
		cmocka_unit_test_setup(one_address_is_one_id, setup),
		cmocka_unit_test_setup(the_port_tells_workers_apart, setup),
		cmocka_unit_test_setup(credits_are_another_row, setup),
		cmocka_unit_test_setup(rows_run_out, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
