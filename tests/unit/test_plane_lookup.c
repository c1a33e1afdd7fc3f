// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A plane that counts and steers: sk_lookup on its namespace, the host's slots under it, and what
 * outlives the daemon. What is run inside is in test_plane_inside.c. Needs root. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/remove.h"
#include "lib/lookups.h"

static unsigned lookups(void)
{
	int netns = open(nets_guarded, O_RDONLY | O_CLOEXEC);
	uint32_t ids[4], n = 4;

	assert_int_equal(bpf_prog_query(netns, BPF_SK_LOOKUP, 0, NULL, ids, &n), 0);
	close(netns);
	return n;
}

static uint32_t link_id(void)
{
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_obj_get(nets_pin("link_lookup"));

	if (fd < 0)
		return 0;
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	close(fd);
	return info.id;
}

static uint32_t map_id(const char *name)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_obj_get(nets_pin(name));

	if (fd < 0)
		return 0;
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	close(fd);
	return info.id;
}

/* ---- attaching ------------------------------------------------------------------------------ */

static void without_lookup_there_is_nothing_of_it(void **state)
{
	struct sw_plane *p = lookups_open(false);

	(void)state;
	assert_int_equal(lookups(), 0);
	assert_int_equal(link_id(), 0);
	assert_int_equal(map_id("responding"), 0);
	assert_int_equal(sw_plane_sweep(p), 0);
	assert_int_equal(sw_plane_find_workers(p), 0);
	assert_int_equal(sw_plane_set_responder(p, 0, false, 0), -EINVAL);
	sw_plane_close(p, 0);
	assert_int_not_equal(access(nets_pin(""), F_OK), 0);
}

static void clients_reach_a_worker(void **state)
{
	struct sw_plane *p;
	int server;

	(void)state;
	lookups_pool();
	assert_int_equal(lookups_connect(), -ECONNREFUSED);
	p = lookups_open(true);
	lookups_configure(p);
	assert_int_equal(lookups(), 1);
	server = lookups_listen(WORKER_PORT);
	assert_int_equal(sw_plane_find_workers(p), 1);
	assert_int_equal(lookups_connect(), 0);
	/* The namespace is the plane's own, not where the daemon is. */
	close(server);
	sw_plane_end_lookup(p);
	assert_int_equal(lookups(), 0);
	assert_int_equal(lookups_connect(), -ECONNREFUSED);
	sw_plane_close(p, 0);
	assert_int_not_equal(access(nets_pin(""), F_OK), 0);
}

static void steering_outlives_the_daemon(void **state)
{
	struct sw_plane *p = lookups_open(true);
	int server = lookups_listen(WORKER_PORT);
	uint32_t link, ports, responding;

	(void)state;
	lookups_pool();
	lookups_configure(p);
	assert_int_equal(sw_plane_find_workers(p), 1);
	link = link_id();
	ports = map_id("ports");
	responding = map_id("responding");
	assert_int_not_equal(responding, 0);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
	sw_plane_close(p, 0);
	sw_steer_leave(lookups_steer);
	lookups_steer = NULL;
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 0);
	assert_int_equal(lookups(), 1);
	assert_int_equal(lookups_connect(), 0);

	assert_int_equal(sw_steer_open(&lookups_steer, nets_root, NULL), 0);
	p = lookups_open(true);
	assert_int_equal(link_id(), link);
	assert_int_equal(map_id("ports"), ports);
	assert_int_equal(map_id("responding"), responding);
	assert_int_equal(lookups_connect(), 0);
	/* One that is replaced while it runs. */
	sw_plane_leave(p);
	p = lookups_open(true);
	assert_int_equal(link_id(), link);
	assert_int_equal(sw_plane_changed(p), 0);
	sw_plane_leave(p);

	/* And one that is not to look up any more. */
	p = lookups_open(false);
	assert_int_equal(lookups(), 0);
	assert_int_equal(link_id(), 0);
	sw_plane_close(p, 0);
	assert_int_not_equal(access(nets_pin(""), F_OK), 0);
	close(server);
}

static void what_was_left_is_removed_when_nobody_wants_it(void **state)
{
	const char *both[] = {NULL, nets_guarded}, *other[] = {NULL, nets_client};
	struct sw_error err;

	(void)state;
	sw_plane_close(lookups_open(true), 0);
	sw_host_remove_others(nets_root, both, 2);
	assert_int_equal(lookups(), 1);
	sw_host_remove_others(nets_root, other, 2);
	assert_int_equal(lookups(), 0);
	assert_int_not_equal(access(nets_pin(""), F_OK), 0);

	sw_plane_close(lookups_open(true), 0);
	sw_plane_leave(lookups_open(true));
	nets_use_clsact();
	sw_plane_leave(lookups_open(true));
	assert_true(nets_clsact());
	assert_int_equal(sw_host_remove(nets_root, &err), 0);
	assert_int_equal(lookups(), 0);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 0);
	assert_false(nets_clsact());
	assert_int_not_equal(access(nets_root, F_OK), 0);
}

static void a_failure_takes_off_only_what_is_new(void **state)
{
	char nope[] = "nope0", lo[] = "lo", *names[] = {lo, nope};
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_XDP);
	struct sw_error err = {0};

	(void)state;
	conf.slots = sw_steer_maps(lookups_steer);
	conf.lookup = true;
	conf.interfaces = names;
	conf.n_interfaces = 2;
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_int_equal(lookups(), 0);
	/* A frame is sent on trial, and does not leave: attached at last, and fails. */
	nets_run(nets_guarded, "ip link add other0 type veth");
	nets_run(nets_guarded, "ip link set other0 up");
	names[1] = (char[]){"other0"};
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_int_equal(lookups(), 0);
	assert_int_equal(link_id(), 0);
	sw_plane_leave(lookups_open(true));
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_int_equal(lookups(), 1);
}

static void a_lookup_that_is_taken_away(void **state)
{
	struct sw_plane *p = lookups_open(true);
	int link = bpf_obj_get(nets_pin("link_lookup"));

	(void)state;
	assert_int_equal(sw_plane_changed(p), 0);
	assert_int_equal(bpf_link_detach(link), 0);
	close(link);
	assert_int_equal(sw_plane_changed(p), 1);
	sw_plane_leave(p);
	p = lookups_open(true);
	assert_int_equal(lookups(), 1);
	assert_int_equal(sw_plane_changed(p), 0);
	sw_plane_leave(p);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, lookups_setup, lookups_teardown)
	const struct CMUnitTest tests[] = {
		T(without_lookup_there_is_nothing_of_it),
		T(clients_reach_a_worker),
		T(steering_outlives_the_daemon),
		T(what_was_left_is_removed_when_nobody_wants_it),
		T(a_failure_takes_off_only_what_is_new),
		T(a_lookup_that_is_taken_away),
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
