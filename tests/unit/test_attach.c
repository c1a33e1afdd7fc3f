// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a plane attaches and what it leaves behind: each hook, and beside other people's programs.
 * What a new daemon takes over is in test_attach_again.c. Needs root. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/netns.h"
#include "kernel/probe.h"
#include "lib/nets.h"

/* ---- hooks ------------------------------------------------------------------------------------
 */

static void tc_alone(void **state)
{
	struct sw_plane *p;
	struct stat st;
	char target[64] = "";

	(void)state;
	if (!nets_has_tcx())
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
	nets_assert_bare();
}

static void native_xdp_where_the_driver_transmits(void **state)
{
	struct sw_plane *p;

	(void)state;
	nets_peer_gro();
	p = nets_open(SW_ATTACH_AUTO);
	assert_true(nets_attachment(p, "veth0")->xdp);
	assert_int_equal(nets_attachment(p, "veth0")->xdp_hook, SW_HOOK_XDP_REDIRECT);
	assert_string_equal(nets_attachment(p, "veth0")->note, "");
	assert_false(nets_attachment(p, "lo")->xdp);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 1);
	sw_plane_close(p, 0);
	nets_assert_bare();
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
	nets_assert_bare();
}

static void the_driver_s_reason_is_told(void **state)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_XDP);
	struct sw_plane *p;
	struct sw_error err;

	(void)state;
	nets_peer_gro();
	nets_run(nets_guarded, "ip link set veth0 mtu 9000");
	nets_run(nets_client, "ip link set veth1 mtu 9000");
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_non_null(strstr(err.text, "MTU"));
	p = nets_open(SW_ATTACH_AUTO);
	assert_non_null(strstr(nets_attachment(p, "veth0")->note, "MTU"));
	sw_plane_close(p, 0);
	nets_assert_bare();
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
	nets_assert_bare();
}

static void clsact_without_tcx(void **state)
{
	struct sw_plane *p;

	(void)state;
	nets_use_clsact();
	p = nets_open(SW_ATTACH_TC);
	assert_int_equal(nets_attachment(p, "veth0")->tc_hook, SW_HOOK_CLSACT);
	assert_true(nets_filter(NETS_OURS));
	sw_plane_close(p, 0);
	assert_false(nets_clsact());
	nets_assert_bare();
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
	nets_assert_bare();
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
	nets_use_clsact();
	nets_stranger_filter("veth0", false, 1);
	p = nets_open(SW_ATTACH_TC);
	assert_true(nets_filter(NETS_OURS));
	assert_true(nets_filter("pref 1 .*stranger"));
	sw_plane_close(p, 0);
	assert_false(nets_filter(NETS_OURS));
	assert_true(nets_filter("pref 1 .*stranger"));
	nets_run(nets_guarded, "tc filter del dev veth0 ingress");
	/* The qdisc is theirs even when it is empty. */
	sw_plane_close(nets_open(SW_ATTACH_TC), 0);
	assert_true(nets_clsact());
	nets_run(nets_guarded, "tc qdisc del dev veth0 clsact");
}

static void a_filter_added_under_our_qdisc_survives(void **state)
{
	(void)state;
	nets_use_clsact();
	for (int egress = 0; egress < 2; egress++) {
		struct sw_plane *p = nets_open(SW_ATTACH_TC);

		nets_stranger_filter("veth0", egress, 9);
		sw_plane_close(p, 0);
		assert_int_equal(nets_try(nets_guarded,
					  "tc filter show dev veth0 %s | grep -q stranger",
					  egress ? "egress" : "ingress"),
				 0);
		assert_false(nets_filter(NETS_OURS));
		nets_run(nets_guarded, "tc qdisc del dev veth0 clsact");
	}
}

static void another_with_our_numbers_is_respected(void **state)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	struct sw_error err;

	(void)state;
	nets_use_clsact();
	nets_stranger_filter("veth0", false, 529);
	assert_int_equal(nets_open_bad(&conf, &err), -EEXIST);
	assert_non_null(strstr(err.text, "tc filter show"));
	assert_true(nets_filter("handle 0x211 stranger"));
	nets_run(nets_guarded, "tc qdisc del dev veth0 clsact");
	nets_assert_bare();
}

static void another_s_tcx_program_survives(void **state)
{
	int prog, link, former;
	uint32_t theirs;

	(void)state;
	if (!nets_has_tcx())
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
	nets_peer_gro();
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
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
