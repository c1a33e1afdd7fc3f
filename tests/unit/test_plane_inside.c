// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a plane that looks up runs inside its namespace: sweeps, the search for workers, and the
 * responder of a pool. Needs root. */
#include <bpf/bpf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "kernel/netns.h"
#include "kernel/steer_impl.h"
#include "lib/lookups.h"

static uint64_t cookie_of(const char *netns)
{
	struct sw_netns_id id;
	int former;

	assert_int_equal(sw_netns_enter(netns, &former, NULL), 0);
	assert_int_equal(sw_netns_identify(&id), 0);
	sw_netns_leave(former);
	return id.cookie;
}

/* A slot that is held for a connection that does not exist. */
static void reserve(const char *netns, uint16_t port)
{
	struct sw_tuple t = {
		.netns = cookie_of(netns),
		.peer = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 2},
		.local = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 1},
		.peer_port = port,
		.local_port = LOOKUPS_PORT};
	struct sw_reservation r = {
		.since_ns = sw_now_ns(), .slot = LOOKUPS_WORKER + 1, .pool = LOOKUPS_POOL};

	assert_int_equal(
		bpf_map_update_elem(sw_steer_maps(lookups_steer)->reservations, &t, &r, BPF_ANY),
		0);
}

static uint32_t inuse(void)
{
	struct sw_slot slot;

	sw_steer_slot(lookups_steer, LOOKUPS_WORKER, &slot);
	return slot.inuse;
}

/* Of this namespace only, and when it was missing twice. */
static void reservations_without_connections_are_swept(void **state)
{
	struct sw_pool_use use = {.half_open = 3};
	uint32_t pools[] = {LOOKUPS_POOL, SW_MAX_POOLS};
	struct sw_plane *p = lookups_open(true);

	(void)state;
	lookups_pool();
	lookups_steer->slots[LOOKUPS_WORKER].inuse = 3;
	for (int i = 0; i < 2; i++)
		assert_int_equal(bpf_map_update_elem(sw_steer_maps(lookups_steer)->pool_use,
						     &pools[i], &use, BPF_ANY),
				 0);
	reserve(nets_guarded, 1);
	reserve(nets_guarded, 2);
	reserve(nets_client, 3);
	assert_int_equal(sw_plane_sweep(p), 0);
	assert_int_equal(inuse(), 3);
	assert_int_equal(sw_plane_sweep(p), 2);
	assert_int_equal(inuse(), 1);
	assert_int_equal(sw_plane_sweep(p), 0);
	assert_int_equal(inuse(), 1);
	sw_plane_leave(p);
}

static void workers_are_found(void **state)
{
	struct sw_plane *p = lookups_open(true);
	uint32_t id = LOOKUPS_WORKER;
	uint64_t cookie;
	int server;

	(void)state;
	lookups_pool();
	assert_int_equal(sw_plane_find_workers(p), 0);
	server = lookups_listen(WORKER_PORT);
	assert_int_equal(sw_plane_find_workers(p), 1);
	assert_int_equal(sw_plane_find_workers(p), 1);
	assert_int_equal(bpf_map_lookup_elem(sw_steer_maps(lookups_steer)->listening, &id, &cookie),
			 0);
	close(server);
	assert_int_equal(sw_plane_find_workers(p), 0);
	sw_plane_leave(p);
}

static void the_responder_of_a_pool(void **state)
{
	struct sw_plane *p = lookups_open(true);
	uint32_t key = LOOKUPS_POOL * 2;
	uint64_t cookie;
	int map = bpf_obj_get(nets_pin("responding")), server = lookups_listen(7000);

	(void)state;
	assert_int_equal(sw_plane_set_responder(p, LOOKUPS_POOL, false, server), 0);
	assert_int_equal(bpf_map_lookup_elem(map, &key, &cookie), 0);
	key++;
	assert_int_not_equal(bpf_map_lookup_elem(map, &key, &cookie), 0);
	assert_int_equal(sw_plane_set_responder(p, SW_MAX_POOLS, false, server), -EINVAL);
	assert_true(sw_plane_set_responder(p, LOOKUPS_POOL, false, map) < 0);
	/* It answers who finds nothing free. */
	lookups_pool();
	lookups_configure(p);
	assert_int_equal(lookups_connect(), 0);
	close(server);
	assert_int_not_equal(lookups_connect(), 0);
	close(map);
	sw_plane_leave(p);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, lookups_setup, lookups_teardown)
	const struct CMUnitTest tests[] = {
		T(reservations_without_connections_are_swept),
		T(workers_are_found),
		T(the_responder_of_a_pool),
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
