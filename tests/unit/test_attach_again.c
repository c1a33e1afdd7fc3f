// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a new daemon does with what a killed one has attached and pinned: taken over in place, put
 * right or removed. Needs root. */
#include <bpf/bpf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "lib/nets.h"

static uint32_t pinned_link(const char *name)
{
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_obj_get(nets_pin(name));

	assert_true(fd >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	close(fd);
	return info.id;
}

/* A daemon that is killed. */
static void live_and_die(enum sw_attach attach)
{
	int ready[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		struct sw_plane_conf conf = nets_conf(attach);
		struct sw_error err = {0};
		struct sw_plane *p;

		if (!sw_plane_open(&p, &conf, &err) &&
		    !sw_plane_set_pool(p, 3, SW_MODE_SHED, SW_CAUSE_NO_SLOTS, false,
				       sw_now_ns() + 1000000000) &&
		    write(ready[1], "", 1) == 1)
			pause();
		fprintf(stderr, "%s\n", err.text);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void links_are_taken_over_in_place(void **state)
{
	static const struct sw_secrets none;
	struct nets_programs tc, xdp;
	uint32_t tc_link, xdp_link;
	struct sw_secrets before, after;
	struct sw_pool pool;
	struct sw_plane *p;
	uint32_t index = 3;
	int fd;

	(void)state;
	if (!nets_has_tcx())
		return;
	nets_peer_gro();
	live_and_die(SW_ATTACH_AUTO);
	tc = nets_tcx(nets_guarded, "veth0");
	xdp = nets_xdp(nets_guarded, "veth0");
	assert_int_equal(tc.n, 1);
	assert_int_equal(xdp.n, 1);
	tc_link = pinned_link("link_tc_veth0");
	xdp_link = pinned_link("link_xdp_veth0");
	before = nets_secrets();
	assert_memory_not_equal(&before, &none, sizeof(before));

	p = nets_open(SW_ATTACH_AUTO);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
	assert_int_not_equal(nets_tcx(nets_guarded, "veth0").id, tc.id);
	assert_int_not_equal(nets_xdp(nets_guarded, "veth0").id, xdp.id);
	assert_int_equal(pinned_link("link_tc_veth0"), tc_link);
	assert_int_equal(pinned_link("link_xdp_veth0"), xdp_link);
	after = nets_secrets();
	assert_memory_equal(&before, &after, sizeof(before));
	/* What it was doing is brought to an end, nothing new begins. */
	fd = bpf_obj_get(nets_pin("pools"));
	assert_int_equal(bpf_map_lookup_elem(fd, &index, &pool), 0);
	close(fd);
	assert_int_equal(pool.mode, SW_MODE_FINISH);
	assert_int_equal(pool.cause, SW_CAUSE_NO_SLOTS);
	sw_plane_close(p, 0);
	nets_assert_bare();
}

static void a_filter_is_taken_over_in_place(void **state)
{
	struct sw_plane *p;

	(void)state;
	nets_use_clsact();
	live_and_die(SW_ATTACH_TC);
	assert_true(nets_filter(NETS_OURS));
	p = nets_open(SW_ATTACH_TC);
	nets_run(nets_guarded, "test $(tc filter show dev veth0 ingress | grep -c handle) = 1");
	sw_plane_close(p, 0);
	assert_false(nets_clsact()); /* made by the first one, for both */
	nets_assert_bare();
}

static void what_the_new_one_does_not_use_goes(void **state)
{
	char veth0[] = "veth0", *names[] = {veth0};
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	struct sw_plane *p;

	(void)state;
	nets_peer_gro();
	nets_run(nets_guarded, "ip link add other type veth");
	nets_run(nets_guarded, "ip link set other up");
	nets_use_clsact();
	live_and_die(SW_ATTACH_AUTO);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 1);
	unsetenv("SPILLWAY_NO_TCX");
	if (!nets_has_tcx())
		return;
	/* From XDP and clsact on all interfaces to TCX on one. */
	conf.interfaces = names;
	conf.n_interfaces = 1;
	assert_int_equal(sw_plane_open(&p, &conf, NULL), 0);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 0);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
	assert_false(nets_filter(""));
	assert_int_not_equal(nets_try(nets_guarded, "tc qdisc show dev other | grep -q clsact"), 0);
	sw_plane_close(p, 0);
	nets_assert_bare();
}

static void from_native_to_generic(void **state)
{
	struct sw_plane *p;

	(void)state;
	nets_peer_gro();
	live_and_die(SW_ATTACH_XDP);
	p = nets_open(SW_ATTACH_XDP_GENERIC);
	assert_int_equal(nets_try(nets_guarded, "ip link show veth0 | grep -q xdpgeneric"), 0);
	sw_plane_close(p, 0);
	nets_assert_bare();
}

static void another_layout_is_taken_over(void **state)
{
	char from[256], to[256], scope[256];
	uint32_t link;
	struct sw_plane *p;

	(void)state;
	if (!nets_has_tcx())
		return;
	live_and_die(SW_ATTACH_TC);
	link = pinned_link("link_tc_veth0");
	snprintf(scope, sizeof(scope), "%s", nets_pin(""));
	snprintf(from, sizeof(from), "%s/v%d", nets_root, SW_LAYOUT);
	snprintf(to, sizeof(to), "%s/v0", nets_root);
	assert_int_equal(rename(from, to), 0);
	p = nets_open(SW_ATTACH_TC);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
	assert_int_equal(pinned_link("link_tc_veth0"), link);
	assert_int_not_equal(access(to, F_OK), 0);
	sw_plane_close(p, 0);
	nets_assert_bare();
}

static void a_map_of_another_shape_is_replaced(void **state)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	struct sw_plane *p;
	int fd;

	(void)state;
	live_and_die(SW_ATTACH_TC);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "flood", 4, 8, 1, NULL);
	unlink(nets_pin("flood"));
	assert_int_equal(bpf_obj_pin(fd, nets_pin("flood")), 0);
	close(fd);
	p = nets_open(SW_ATTACH_TC);
	fd = bpf_obj_get(nets_pin("flood"));
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	assert_int_equal(info.value_size, sizeof(struct sw_flood));
	assert_int_equal(info.max_entries, SW_FLOOD);
	close(fd);
	sw_plane_close(p, 0);
	nets_assert_bare();
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, nets_setup, nets_teardown)
	const struct CMUnitTest tests[] = {
		T(links_are_taken_over_in_place),      T(a_filter_is_taken_over_in_place),
		T(what_the_new_one_does_not_use_goes), T(from_native_to_generic),
		T(another_layout_is_taken_over),       T(a_map_of_another_shape_is_replaced),
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
