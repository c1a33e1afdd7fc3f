// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a plane attaches and what it leaves behind: each hook, beside other people's programs, and
 * when a new daemon takes over from a killed one. Needs root. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "kernel/netns.h"
#include "kernel/probe.h"
#include "lib/nets.h"

#define TCX_INGRESS 46
#define OURS	    "pref 529.* handle 0x211 spillway_tc"

static void peer_with_gro(void)
{
	nets_run(nets_client, "ethtool -K veth1 gro on");
}

static bool has_tcx(void)
{
	if (sw_probe_tcx())
		return true;
	printf("SKIP: the kernel has no TCX\n");
	return false;
}

static void use_clsact(void)
{
	setenv("SPILLWAY_NO_TCX", "1", 1);
}

/* Filters at ingress of veth0 whose line matches. */
static int filters(const char *pattern)
{
	return !nets_try(nets_guarded, "tc filter show dev veth0 ingress | grep -q '%s'", pattern);
}

static int qdisc(void)
{
	return !nets_try(nets_guarded, "tc qdisc show dev veth0 | grep -q clsact");
}

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

static void assert_nothing_left(void)
{
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 0);
	assert_int_equal(nets_tcx(nets_guarded, "lo").n, 0);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 0);
	assert_false(filters(""));
	assert_int_not_equal(access(nets_root, F_OK), 0);
}

/* ---- hooks ------------------------------------------------------------------------------------
 */

static void tc_alone(void **state)
{
	struct sw_plane *p;
	struct stat st;
	char target[64] = "";

	(void)state;
	if (!has_tcx())
		return;
	p = nets_open(SW_ATTACH_TC);
	assert_int_equal(nets_attachment(p, "veth0")->tc_hook, SW_HOOK_TCX);
	assert_false(nets_attachment(p, "veth0")->xdp);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
	assert_int_equal(nets_tcx(nets_guarded, "lo").n, 1);
	assert_int_equal(stat(nets_pin("secrets"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(readlink(nets_pin("netns"), target, sizeof(target) - 1) > 0);
	assert_string_equal(target, nets_guarded);
	sw_plane_close(p, 0);
	assert_nothing_left();
}

static void native_xdp_where_the_driver_transmits(void **state)
{
	struct sw_plane *p;

	(void)state;
	peer_with_gro();
	p = nets_open(SW_ATTACH_AUTO);
	assert_true(nets_attachment(p, "veth0")->xdp);
	assert_int_equal(nets_attachment(p, "veth0")->xdp_hook, SW_HOOK_XDP_REDIRECT);
	assert_string_equal(nets_attachment(p, "veth0")->note, "");
	assert_false(nets_attachment(p, "lo")->xdp);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 1);
	sw_plane_close(p, 0);
	assert_nothing_left();
}

static void tc_where_it_does_not(void **state)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_XDP);
	struct sw_plane *p;
	struct sw_error err;

	(void)state;
	p = nets_open(SW_ATTACH_AUTO);
	assert_false(nets_attachment(p, "veth0")->xdp);
	assert_non_null(strstr(nets_attachment(p, "veth0")->note, "gro on"));
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 0);
	sw_plane_close(p, 0);
	assert_int_equal(nets_open_bad(&conf, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "veth0"));
	assert_non_null(strstr(err.text, "gro on"));
	assert_nothing_left();
}

static void the_driver_s_reason_is_told(void **state)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_XDP);
	struct sw_plane *p;
	struct sw_error err;

	(void)state;
	peer_with_gro();
	nets_run(nets_guarded, "ip link set veth0 mtu 9000");
	nets_run(nets_client, "ip link set veth1 mtu 9000");
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_non_null(strstr(err.text, "MTU"));
	p = nets_open(SW_ATTACH_AUTO);
	assert_non_null(strstr(nets_attachment(p, "veth0")->note, "MTU"));
	sw_plane_close(p, 0);
	assert_nothing_left();
}

static void generic_xdp(void **state)
{
	struct sw_plane *p;

	(void)state;
	p = nets_open(SW_ATTACH_XDP_GENERIC);
	assert_true(nets_attachment(p, "veth0")->xdp);
	assert_int_equal(nets_attachment(p, "veth0")->xdp_hook, SW_HOOK_XDP_GENERIC);
	assert_int_equal(nets_try(nets_guarded, "ip link show veth0 | grep -q xdpgeneric"), 0);
	sw_plane_close(p, 0);
	assert_nothing_left();
}

static void clsact_without_tcx(void **state)
{
	struct sw_plane *p;

	(void)state;
	use_clsact();
	p = nets_open(SW_ATTACH_TC);
	assert_int_equal(nets_attachment(p, "veth0")->tc_hook, SW_HOOK_CLSACT);
	assert_true(filters(OURS));
	sw_plane_close(p, 0);
	assert_false(qdisc());
	assert_nothing_left();
}

static void a_name_with_a_dot(void **state)
{
	struct sw_plane *p;

	(void)state;
	nets_run(nets_guarded, "ip link add veth0.5 type veth peer name other");
	nets_run(nets_guarded, "ip link set veth0.5 up");
	p = nets_open(SW_ATTACH_TC);
	nets_attachment(p, "veth0.5");
	sw_plane_leave(p);
	p = nets_open(SW_ATTACH_TC);
	if (sw_probe_tcx())
		assert_int_equal(nets_tcx(nets_guarded, "veth0.5").n, 1);
	sw_plane_close(p, 0);
	assert_int_equal(nets_tcx(nets_guarded, "veth0.5").n, 0);
	assert_nothing_left();
}

static void named_interfaces_only(void **state)
{
	char veth0[] = "veth0", *names[] = {veth0, veth0};
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	const struct sw_attachment *at;
	struct sw_error err = {0};
	struct sw_plane *p;

	(void)state;
	nets_run(nets_guarded, "ip link add other type veth");
	nets_run(nets_guarded, "ip link set other up");
	conf.interfaces = names;
	conf.n_interfaces = 2;
	assert_int_equal(sw_plane_open(&p, &conf, &err), 0);
	assert_int_equal(sw_plane_attachments(p, &at), 2);
	nets_attachment(p, "veth0");
	nets_attachment(p, "lo");
	sw_plane_close(p, 0);
}

/* ---- others -----------------------------------------------------------------------------------
 */

static void another_s_filter_survives(void **state)
{
	struct sw_plane *p;

	(void)state;
	use_clsact();
	nets_stranger_filter("veth0", false, 1);
	p = nets_open(SW_ATTACH_TC);
	assert_true(filters(OURS));
	assert_true(filters("pref 1 .*stranger"));
	sw_plane_close(p, 0);
	assert_false(filters(OURS));
	assert_true(filters("pref 1 .*stranger"));
	nets_run(nets_guarded, "tc filter del dev veth0 ingress");
	/* The qdisc is theirs even when it is empty. */
	sw_plane_close(nets_open(SW_ATTACH_TC), 0);
	assert_true(qdisc());
	nets_run(nets_guarded, "tc qdisc del dev veth0 clsact");
}

static void a_filter_added_under_our_qdisc_survives(void **state)
{
	(void)state;
	use_clsact();
	for (int egress = 0; egress < 2; egress++) {
		struct sw_plane *p = nets_open(SW_ATTACH_TC);

		nets_stranger_filter("veth0", egress, 9);
		sw_plane_close(p, 0);
		assert_int_equal(nets_try(nets_guarded,
					  "tc filter show dev veth0 %s | grep -q stranger",
					  egress ? "egress" : "ingress"),
				 0);
		assert_false(filters(OURS));
		nets_run(nets_guarded, "tc qdisc del dev veth0 clsact");
	}
}

static void another_with_our_numbers_is_respected(void **state)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	struct sw_error err;

	(void)state;
	use_clsact();
	nets_stranger_filter("veth0", false, 529);
	assert_int_equal(nets_open_bad(&conf, &err), -EEXIST);
	assert_non_null(strstr(err.text, "tc filter show"));
	assert_true(filters("handle 0x211 stranger"));
	nets_run(nets_guarded, "tc qdisc del dev veth0 clsact");
	assert_nothing_left();
}

static void another_s_tcx_program_survives(void **state)
{
	int prog, link, former;
	uint32_t theirs;

	(void)state;
	if (!has_tcx())
		return;
	prog = nets_stranger(false);
	assert_int_equal(sw_netns_enter(nets_guarded, &former, NULL), 0);
	link = bpf_link_create(prog, if_nametoindex("veth0"), TCX_INGRESS, NULL);
	sw_netns_leave(former);
	assert_true(link >= 0);
	theirs = nets_tcx(nets_guarded, "veth0").id;
	struct sw_plane *p = nets_open(SW_ATTACH_TC);

	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 2);
	sw_plane_close(p, 0);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").id, theirs);
	close(link);
	close(prog);
}

static void another_s_xdp_program_survives(void **state)
{
	static const enum sw_attach modes[] = {SW_ATTACH_XDP, SW_ATTACH_XDP_GENERIC};
	struct sw_plane *p;
	struct sw_error err;
	uint32_t theirs;
	int prog, former;

	(void)state;
	peer_with_gro();
	prog = nets_stranger(true);
	assert_int_equal(sw_netns_enter(nets_guarded, &former, NULL), 0);
	assert_int_equal(bpf_xdp_attach(if_nametoindex("veth0"), prog, XDP_FLAGS_DRV_MODE, NULL),
			 0);
	sw_netns_leave(former);
	close(prog);
	theirs = nets_xdp(nets_guarded, "veth0").id;
	p = nets_open(SW_ATTACH_AUTO);
	assert_false(nets_attachment(p, "veth0")->xdp);
	assert_non_null(strstr(nets_attachment(p, "veth0")->note, "another XDP program"));
	assert_int_equal(nets_xdp(nets_guarded, "veth0").id, theirs);
	sw_plane_close(p, 0);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").id, theirs);
	for (int i = 0; i < 2; i++) {
		struct sw_plane_conf conf = nets_conf(modes[i]);

		assert_true(nets_open_bad(&conf, &err) < 0);
		assert_non_null(strstr(err.text, "another XDP program"));
		assert_int_equal(nets_xdp(nets_guarded, "veth0").id, theirs);
	}
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 0);
}

/* ---- a new daemon -----------------------------------------------------------------------------
 */

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

static struct sw_secrets secrets(void)
{
	struct sw_secrets s;
	uint32_t zero = 0;
	int fd = bpf_obj_get(nets_pin("secrets"));

	assert_int_equal(bpf_map_lookup_elem(fd, &zero, &s), 0);
	close(fd);
	return s;
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
	if (!has_tcx())
		return;
	peer_with_gro();
	live_and_die(SW_ATTACH_AUTO);
	tc = nets_tcx(nets_guarded, "veth0");
	xdp = nets_xdp(nets_guarded, "veth0");
	assert_int_equal(tc.n, 1);
	assert_int_equal(xdp.n, 1);
	tc_link = pinned_link("link_tc_veth0");
	xdp_link = pinned_link("link_xdp_veth0");
	before = secrets();
	assert_memory_not_equal(&before, &none, sizeof(before));

	p = nets_open(SW_ATTACH_AUTO);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
	assert_int_not_equal(nets_tcx(nets_guarded, "veth0").id, tc.id);
	assert_int_not_equal(nets_xdp(nets_guarded, "veth0").id, xdp.id);
	assert_int_equal(pinned_link("link_tc_veth0"), tc_link);
	assert_int_equal(pinned_link("link_xdp_veth0"), xdp_link);
	after = secrets();
	assert_memory_equal(&before, &after, sizeof(before));
	/* What it was doing is brought to an end, nothing new begins. */
	fd = bpf_obj_get(nets_pin("pools"));
	assert_int_equal(bpf_map_lookup_elem(fd, &index, &pool), 0);
	close(fd);
	assert_int_equal(pool.mode, SW_MODE_FINISH);
	assert_int_equal(pool.cause, SW_CAUSE_NO_SLOTS);
	sw_plane_close(p, 0);
	assert_nothing_left();
}

static void a_filter_is_taken_over_in_place(void **state)
{
	struct sw_plane *p;

	(void)state;
	use_clsact();
	live_and_die(SW_ATTACH_TC);
	assert_true(filters(OURS));
	p = nets_open(SW_ATTACH_TC);
	nets_run(nets_guarded, "test $(tc filter show dev veth0 ingress | grep -c handle) = 1");
	sw_plane_close(p, 0);
	assert_false(qdisc()); /* made by the first one, for both */
	assert_nothing_left();
}

static void what_the_new_one_does_not_use_goes(void **state)
{
	char veth0[] = "veth0", *names[] = {veth0};
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	struct sw_plane *p;

	(void)state;
	peer_with_gro();
	nets_run(nets_guarded, "ip link add other type veth");
	nets_run(nets_guarded, "ip link set other up");
	use_clsact();
	live_and_die(SW_ATTACH_AUTO);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 1);
	unsetenv("SPILLWAY_NO_TCX");
	if (!has_tcx())
		return;
	/* From XDP and clsact on all interfaces to TCX on one. */
	conf.interfaces = names;
	conf.n_interfaces = 1;
	assert_int_equal(sw_plane_open(&p, &conf, NULL), 0);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 0);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
	assert_false(filters(""));
	assert_int_not_equal(nets_try(nets_guarded, "tc qdisc show dev other | grep -q clsact"), 0);
	sw_plane_close(p, 0);
	assert_nothing_left();
}

static void from_native_to_generic(void **state)
{
	struct sw_plane *p;

	(void)state;
	peer_with_gro();
	live_and_die(SW_ATTACH_XDP);
	p = nets_open(SW_ATTACH_XDP_GENERIC);
	assert_int_equal(nets_try(nets_guarded, "ip link show veth0 | grep -q xdpgeneric"), 0);
	sw_plane_close(p, 0);
	assert_nothing_left();
}

static void another_layout_is_taken_over(void **state)
{
	char from[256], to[256], scope[256];
	uint32_t link;
	struct sw_plane *p;

	(void)state;
	if (!has_tcx())
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
	assert_nothing_left();
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
	assert_nothing_left();
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, nets_setup, nets_teardown)
	const struct CMUnitTest tests[] = {
		T(tc_alone),
		T(native_xdp_where_the_driver_transmits),
		T(tc_where_it_does_not),
		T(the_driver_s_reason_is_told),
		T(generic_xdp),
		T(clsact_without_tcx),
		T(a_name_with_a_dot),
		T(named_interfaces_only),
		T(another_s_filter_survives),
		T(a_filter_added_under_our_qdisc_survives),
		T(another_with_our_numbers_is_respected),
		T(another_s_tcx_program_survives),
		T(another_s_xdp_program_survives),
		T(links_are_taken_over_in_place),
		T(a_filter_is_taken_over_in_place),
		T(what_the_new_one_does_not_use_goes),
		T(from_native_to_generic),
		T(another_layout_is_taken_over),
		T(a_map_of_another_shape_is_replaced),
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
