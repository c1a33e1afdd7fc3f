// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs of steering on cgroups: attached, taken over in place, taken off, and what fails. Needs
 * root, and makes cgroups of its own. Recounts are in test_steer_recount.c, idle connections in
 * test_steer_idle.c. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/link.h"
#include "lib/steers.h"

static const char *const connecting[] = {"connect4",	 "connect6", "getpeername4",
					 "getpeername6", "release",  "sockops"};
#define HOOKS (sizeof(connecting) / sizeof(*connecting))

static void assert_hooks(unsigned cgroup, bool connect, bool accept)
{
	for (size_t i = 0; i < HOOKS; i++) {
		bool want = connect || (accept && !strcmp(connecting[i], "sockops"));

		if (!steers_link_id(steers_link(connecting[i], cgroup)) == want)
			fail_msg("%s: not %d", connecting[i], want);
	}
}

static uint32_t program(const char *hook)
{
	return sw_link_program(steers_link(hook, 0));
}

/* ---- attaching ------------------------------------------------------------------------------ */

static void a_connection_is_steered_and_counted(void **state)
{
	struct sw_steer *s = steers_open();
	int one, two;

	(void)state;
	steers_pool(s, 1);
	assert_int_equal(steers_connect(), -ECONNREFUSED); /* nobody has this address */
	steers_attach(s, 0, true, false);
	assert_hooks(0, true, false);
	one = steers_connect();
	assert_true(one >= 0);
	steers_await(s, 1);
	assert_int_equal(steers_connect(), -ECONNREFUSED);
	close(one);
	steers_await(s, 0);
	two = steers_connect();
	assert_true(two >= 0);
	close(two);
	steers_await(s, 0);
	assert_int_equal(steers_slot(s).most, 1);
	assert_int_equal(steers_slot(s).takes, 2);
	sw_steer_remove(s);
	assert_int_not_equal(access(steers_root, F_OK), 0);
}

static void a_new_daemon_takes_over_in_place(void **state)
{
	struct sw_steer *s = steers_open();
	uint32_t link[HOOKS], former = 0;
	int fd;

	(void)state;
	steers_pool(s, 4);
	steers_attach(s, 0, true, true);
	fd = steers_connect();
	steers_await(s, 1);
	for (size_t i = 0; i < HOOKS; i++)
		link[i] = steers_link_id(steers_link(connecting[i], 0));
	former = program("connect4");
	sw_steer_leave(s);
	close(steers_connect()); /* steered while nobody is there */

	s = steers_open();
	assert_int_equal(program("connect4"), former);
	steers_attach(s, 0, true, true);
	for (size_t i = 0; i < HOOKS; i++)
		assert_int_equal(steers_link_id(steers_link(connecting[i], 0)), link[i]);
	assert_int_not_equal(program("connect4"), former);
	steers_await(s, 1);
	assert_int_equal(steers_slot(s).takes, 2);
	close(fd);
	steers_await(s, 0);
	sw_steer_leave(s);
}

static void what_is_attached_is_left_alone(void **state)
{
	struct sw_steer *s = steers_open();
	uint32_t before;

	(void)state;
	steers_attach(s, 0, true, false);
	before = program("connect4");
	steers_attach(s, 0, true, false);
	assert_int_equal(program("connect4"), before);
	/* Less needs no other programs either. */
	steers_attach(s, 0, false, true);
	assert_hooks(0, false, true);
	steers_attach(s, 0, true, true);
	assert_hooks(0, true, true);
	assert_int_equal(sw_steer_attach(s, NULL, 0, NULL), 0);
	assert_hooks(0, false, false);
	sw_steer_leave(s);
}

/* Who connects while the programs are put on takes no slot that nobody would give back. */
static void ends_are_heard_of_first(void **state)
{
	struct sw_steer *s = steers_open();
	uint32_t first;

	(void)state;
	steers_attach(s, 0, true, false);
	first = steers_link_id(steers_link("connect4", 0));
	assert_in_range(steers_link_id(steers_link("sockops", 0)), 1, first);
	assert_in_range(steers_link_id(steers_link("release", 0)), 1, first);
	assert_in_range(first, 1, steers_link_id(steers_link("connect6", 0)));
	sw_steer_leave(s);
}

static void assert_only_ends_are_heard_of(void)
{
	for (size_t i = 0; i < HOOKS; i++)
		assert_int_equal(!!steers_link_id(steers_link(connecting[i], 0)),
				 !strcmp(connecting[i], "sockops") ||
					 !strcmp(connecting[i], "release"));
}

/* A cgroup that is no longer steered, by this daemon or the next one, has connections yet. */
static void a_cgroup_is_left(void **state)
{
	struct sw_steer *s = steers_open();
	int fd;

	(void)state;
	steers_pool(s, 1);
	steers_attach(s, 0, true, false);
	fd = steers_connect();
	steers_await(s, 1);
	assert_int_equal(sw_steer_attach(s, NULL, 0, NULL), 0);
	assert_only_ends_are_heard_of();
	sw_steer_leave(s);
	s = steers_open();
	assert_int_equal(sw_steer_attach(s, NULL, 0, NULL), 0);
	assert_only_ends_are_heard_of();
	close(fd);
	steers_await(s, 0);
	assert_int_equal(sw_steer_attach(s, NULL, 0, NULL), 0);
	assert_hooks(0, false, false);
	sw_steer_leave(s);
}

/* Programs that follow HTTP are loaded when the first one wants them, and the others go on. */
static void upstreams_are_followed_on_demand(void **state)
{
	struct sw_steer_cgroup c = {.path = steers_cgroup[0], .connect = true, .upstreams = true};
	struct sw_steer *s = steers_open();
	struct sw_error err = {0};
	uint32_t link;
	int fd;

	(void)state;
	steers_pool(s, 4);
	steers_attach(s, 0, true, false);
	link = steers_link_id(steers_link("connect4", 0));
	fd = steers_connect();
	if (sw_steer_attach(s, &c, 1, &err))
		fail_msg("%s", err.text);
	assert_int_not_equal(steers_link_id(steers_link("ingress", 0)), 0);
	assert_int_not_equal(steers_link_id(steers_link("egress", 0)), 0);
	assert_int_equal(steers_link_id(steers_link("connect4", 0)), link);
	steers_await(s, 1);
	close(fd);
	steers_await(s, 0);
	c.upstreams = false;
	assert_int_equal(sw_steer_attach(s, &c, 1, &err), 0);
	assert_int_equal(steers_link_id(steers_link("ingress", 0)), 0);
	sw_steer_leave(s);
}

static void one_cgroup_named_twice(void **state)
{
	char detour[256];
	struct sw_steer_cgroup list[] = {{.path = steers_cgroup[0], .connect = true},
					 {.path = detour, .accept = true},
					 {.path = steers_cgroup[1], .accept = true}};
	struct sw_steer *s = steers_open();

	(void)state;
	snprintf(detour, sizeof(detour), "%s/../%s", steers_cgroup[1],
		 strrchr(steers_cgroup[0], '/') + 1);
	assert_int_equal(sw_steer_attach(s, list, 3, NULL), 0);
	assert_hooks(0, true, true);
	assert_hooks(1, false, true);
	sw_steer_leave(s);
}

/* The kernel takes links off a removed cgroup a moment later, and until then it may have
 * connections. */
static void await_removal(struct sw_steer *s, int cgroup, const char *pin)
{
	for (int i = 0; i < 200 && !access(pin, F_OK); i++) {
		usleep(20000);
		steers_attach(s, cgroup, true, false);
	}
	assert_int_not_equal(access(pin, F_OK), 0);
}

static void a_cgroup_that_is_made_anew(void **state)
{
	struct sw_steer *s = steers_open();
	char before[256];

	(void)state;
	steers_attach(s, 0, true, false);
	snprintf(before, sizeof(before), "%s", steers_link("connect4", 0));
	assert_int_equal(rmdir(steers_cgroup[0]), 0);
	assert_int_equal(mkdir(steers_cgroup[0], 0755), 0);
	assert_string_not_equal(before, steers_link("connect4", 0));
	steers_attach(s, 0, true, false);
	assert_hooks(0, true, false);
	await_removal(s, 0, before);
	/* One that died while no daemon was there. */
	snprintf(before, sizeof(before), "%s", steers_link("connect4", 0));
	sw_steer_leave(s);
	assert_int_equal(rmdir(steers_cgroup[0]), 0);
	assert_int_equal(mkdir(steers_cgroup[0], 0755), 0);
	s = steers_open();
	steers_attach(s, 1, true, false);
	await_removal(s, 1, before);
	sw_steer_leave(s);
}

static void a_link_that_somebody_took_off(void **state)
{
	struct sw_steer *s = steers_open();
	int link, fd;

	(void)state;
	steers_pool(s, 1);
	steers_attach(s, 0, true, false);
	link = bpf_obj_get(steers_link("connect4", 0));
	assert_int_equal(bpf_link_detach(link), 0);
	close(link);
	assert_int_equal(steers_connect(), -ECONNREFUSED);
	steers_attach(s, 0, true, false);
	fd = steers_connect();
	assert_true(fd >= 0);
	close(fd);
	sw_steer_leave(s);
}

/* ---- what fails ----------------------------------------------------------------------------- */

static void a_failure_leaves_what_was_attached(void **state)
{
	struct sw_steer_cgroup list[] = {{.path = steers_cgroup[1], .connect = true},
					 {.path = steers_cgroup[0], .accept = true}};
	struct sw_steer *s = steers_open();
	struct sw_error err = {0};
	int prog = steers_other_program(), cgroup;
	uint32_t link;

	(void)state;
	steers_attach(s, 1, false, true);
	link = steers_link_id(steers_link("sockops", 1));
	/* One that lets nobody beside it. */
	cgroup = open(steers_cgroup[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(bpf_prog_attach(prog, cgroup, BPF_CGROUP_SOCK_OPS, 0), 0);
	assert_int_equal(sw_steer_attach(s, list, 2, &err), -EPERM);
	assert_non_null(strstr(err.text, "bpftool cgroup tree"));
	assert_non_null(strstr(err.text, steers_cgroup[0]));
	assert_hooks(1, false, true);
	assert_hooks(0, false, false);
	assert_int_equal(bpf_prog_detach2(prog, cgroup, BPF_CGROUP_SOCK_OPS), 0);

	list[1].path = "/proc";
	assert_int_equal(sw_steer_attach(s, list, 2, &err), -EINVAL);
	list[1].path = "/nowhere/at/all";
	assert_int_equal(sw_steer_attach(s, list, 2, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
	assert_hooks(1, false, true);
	assert_int_equal(steers_link_id(steers_link("sockops", 1)), link);
	close(cgroup);
	close(prog);
	sw_steer_leave(s);
}

static void programs_of_others_stay(void **state)
{
	int prog = steers_other_program();
	int cgroup = open(steers_cgroup[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int link = bpf_link_create(prog, cgroup, BPF_CGROUP_SOCK_OPS, NULL);
	struct sw_steer *s = steers_open();
	uint32_t ids[4], n = 4;

	(void)state;
	assert_true(link >= 0);
	steers_attach(s, 0, true, true);
	assert_int_equal(bpf_prog_query(cgroup, BPF_CGROUP_SOCK_OPS, 0, NULL, ids, &n), 0);
	assert_int_equal(n, 2);
	sw_steer_remove(s);
	n = 4;
	assert_int_equal(bpf_prog_query(cgroup, BPF_CGROUP_SOCK_OPS, 0, NULL, ids, &n), 0);
	assert_int_equal(n, 1);
	close(link);
	close(cgroup);
	close(prog);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, steers_setup, steers_teardown)
	const struct CMUnitTest tests[] = {
		T(a_connection_is_steered_and_counted),
		T(a_new_daemon_takes_over_in_place),
		T(what_is_attached_is_left_alone),
		T(upstreams_are_followed_on_demand),
		T(one_cgroup_named_twice),
		T(a_cgroup_that_is_made_anew),
		T(ends_are_heard_of_first),
		T(a_cgroup_is_left),
		T(a_link_that_somebody_took_off),
		T(a_failure_leaves_what_was_attached),
		T(programs_of_others_stay),
	};
	const char *why = steers_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
