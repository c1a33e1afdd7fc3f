// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a plane refuses to open, in one clear line and with nothing left behind, and the
 * capabilities that it can do with. Needs root. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/probe.h"
#include "lib/nets.h"

static void bad_settings_give_one_clear_line(void **state)
{
	char nope[] = "nope0", tun[] = "tun0", *names[] = {nope}, *tuns[] = {tun};
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	struct sw_error err;

	(void)state;
	conf.interfaces = names;
	conf.n_interfaces = 1;
	assert_int_equal(nets_open_bad(&conf, &err), -ENODEV);
	assert_non_null(strstr(err.text, "nope0"));
	if (nets_try(nets_guarded, "ip tuntap add tun0 mode tun 2>/dev/null")) {
		printf("SKIP: no tun devices here\n");
	} else {
		conf.interfaces = tuns;
		assert_int_equal(nets_open_bad(&conf, &err), -EPFNOSUPPORT);
		assert_non_null(strstr(err.text, "tun0"));
	}
	conf = nets_conf(SW_ATTACH_TC);
	conf.netns = "/run/netns/spk-nowhere";
	assert_int_equal(nets_open_bad(&conf, &err), -ENOENT);
	assert_non_null(strstr(err.text, "spk-nowhere"));
	conf.netns = "/proc/self/status";
	assert_int_equal(nets_open_bad(&conf, &err), -EINVAL);
	conf.netns = "pid:x";
	assert_int_equal(nets_open_bad(&conf, &err), -EINVAL);
	conf = nets_conf(SW_ATTACH_TC);
	conf.pin_root = "/tmp/spk-pins";
	assert_int_equal(nets_open_bad(&conf, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "mount -t bpf"));
	nets_assert_bare();
}

/* A second interface that cannot be had takes the first one down again. */
static void no_half_attached_state(void **state)
{
	char veth0[] = "veth0", other[] = "other0", *names[] = {veth0, other};
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_XDP);
	struct sw_error err;

	(void)state;
	nets_peer_gro();
	nets_run(nets_guarded, "ip link add other0 type veth");
	nets_run(nets_guarded, "ip link set other0 up");
	conf.interfaces = names;
	conf.n_interfaces = 2;
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_non_null(strstr(err.text, "other0"));
	nets_assert_bare();
}

static void keep_caps(uint32_t low, uint32_t high)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{.effective = low, .permitted = low},
						 {.effective = high, .permitted = high}};

	if (syscall(SYS_capset, &head, data))
		_exit(9);
}

static void without_capabilities(void **state)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		struct sw_error err = {0};
		struct sw_plane *p;

		if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
			_exit(2);
		_exit(sw_plane_open(&p, &conf, &err) != -EPERM || !strstr(err.text, "CAP_BPF"));
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	nets_assert_bare();
}

/* What a child with only the capabilities that are named comes to. */
static int live_with_few_caps(void)
{
	struct sw_plane_conf conf = {.pin_root = nets_root};
	bool enough = sw_probe_hand_over(); /* before 6.9 CAP_SYS_ADMIN is needed too */
	struct sw_error err = {0};
	struct sw_plane *p;
	int ret;

	keep_caps(1U << CAP_NET_ADMIN, 1U << (CAP_BPF - 32) | 1U << (CAP_PERFMON - 32));
	ret = sw_plane_open(&p, &conf, &err);
	if (!enough)
		return ret == -EPERM && strstr(err.text, "CAP_SYS_ADMIN") ? 0 : 1;
	if (ret) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	sw_plane_leave(p);
	if (sw_plane_open(&p, &conf, NULL))
		return 2;
	if (sw_plane_changed(p))
		return 3;
	sw_plane_close(p, 0);
	return access(nets_root, F_OK) ? 0 : 4;
}

/* As a service has them; entering a namespace would take CAP_SYS_ADMIN. */
static void with_no_more_capabilities_than_needed(void **state)
{
	(void)state;
	nets_run(NULL, "ip link set lo up");
	for (int clsact = 0; clsact < 2; clsact++) {
		int status;
		pid_t pid;

		if (clsact)
			nets_use_clsact();
		pid = fork();
		if (!pid)
			_exit(live_with_few_caps());
		waitpid(pid, &status, 0);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_int_equal(nets_tcx(NULL, "lo").n, 0);
		assert_int_not_equal(nets_try(NULL, "tc qdisc show dev lo | grep -q clsact"), 0);
	}
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, nets_setup, nets_teardown)
	const struct CMUnitTest tests[] = {
		T(bad_settings_give_one_clear_line),
		T(no_half_attached_state),
		T(without_capabilities),
		T(with_no_more_capabilities_than_needed),
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
