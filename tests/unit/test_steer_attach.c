// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs of steering on cgroups: attached, taken over in place, taken off, and what they count is
 * put right. Needs root, and makes cgroups of its own. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static struct sw_slot slot_of(const struct sw_steer *s)
{
	struct sw_slot slot;

	sw_steer_slot(s, STEERS_WORKER, &slot);
	return slot;
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
	assert_int_equal(slot_of(s).most, 1);
	assert_int_equal(slot_of(s).takes, 2);
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
	assert_int_equal(slot_of(s).takes, 2);
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

static int other_program(void)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_SOCK_OPS, "other", "GPL", code, 2, NULL);
}

static void a_failure_leaves_what_was_attached(void **state)
{
	struct sw_steer_cgroup list[] = {{.path = steers_cgroup[1], .connect = true},
					 {.path = steers_cgroup[0], .accept = true}};
	struct sw_steer *s = steers_open();
	struct sw_error err = {0};
	int prog = other_program(), cgroup;
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
	int prog = other_program();
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

/* ---- recounts ------------------------------------------------------------------------------- */

static struct sw_recount recount(struct sw_steer *s)
{
	struct sw_recount r;

	usleep(120000);
	assert_int_equal(sw_steer_recount(s, &r), 0);
	return r;
}

static void set_inuse(struct sw_steer *s, uint32_t id, uint32_t inuse)
{
	struct sw_slot slot;

	sw_steer_slot(s, id, &slot);
	slot.inuse = inuse;
	assert_int_equal(bpf_map_update_elem(sw_steer_maps(s)->slots, &id, &slot, BPF_ANY), 0);
}

static bool can_recount(struct sw_steer *s)
{
	struct sw_recount r;
	int ret = sw_steer_recount(s, &r);

	if (!ret)
		return true;
	assert_int_equal(ret, -EOPNOTSUPP);
	printf("SKIP: this kernel refuses iterators\n");
	sw_steer_leave(s);
	return false;
}

static void drift_is_put_right_at_the_second_sight(void **state)
{
	struct sw_steer *s = steers_open();
	struct sw_recount r;
	int fd;

	(void)state;
	if (!can_recount(s))
		skip();
	steers_pool(s, 100);
	steers_attach(s, 0, true, false);
	fd = steers_connect();
	steers_await(s, 1);
	recount(s);
	assert_int_equal(recount(s).rows, 0);
	set_inuse(s, STEERS_WORKER, 6);
	set_inuse(s, 900, 2000);
	assert_int_equal(recount(s).rows, 0);
	steers_await(s, 6);
	/* Too soon after the last one, it confirms nothing. */
	assert_int_equal(sw_steer_recount(s, &r), 0);
	assert_int_equal(r.rows, 0);
	r = recount(s);
	assert_int_equal(r.rows, 2);
	assert_int_equal(r.corrected, 2005);
	assert_true(r.took_ns > 0);
	steers_await(s, 1);
	assert_int_equal(slot_of(s).corrected, 5);
	/* Nothing is put right twice, and too few is wrong too. */
	assert_int_equal(recount(s).rows, 0);
	set_inuse(s, STEERS_WORKER, 0);
	recount(s);
	assert_int_equal(recount(s).rows, 1);
	steers_await(s, 1);
	close(fd);
	steers_await(s, 0);
	sw_steer_leave(s);
}

static void what_changes_sign_is_no_drift(void **state)
{
	struct sw_steer *s = steers_open();
	int fd;

	(void)state;
	if (!can_recount(s))
		skip();
	steers_pool(s, 100);
	steers_attach(s, 0, true, false);
	fd = steers_connect();
	steers_await(s, 1);
	set_inuse(s, STEERS_WORKER, 3);
	recount(s);
	set_inuse(s, STEERS_WORKER, 0);
	assert_int_equal(recount(s).rows, 0);
	steers_await(s, 0);
	/* The smaller of two that agree. */
	set_inuse(s, STEERS_WORKER, 3);
	recount(s);
	set_inuse(s, STEERS_WORKER, 9);
	assert_int_equal(recount(s).corrected, 2);
	steers_await(s, 7);
	close(fd);
	sw_steer_leave(s);
}

/* Credits are not given back: nobody holds them. */
static void credits_are_not_recounted(void **state)
{
	struct sw_worker_row row = {.flags = SW_WF_ROW | SW_WF_CREDIT, .cap = 9}, nobody = {0};
	struct sw_steer *s = steers_open();

	(void)state;
	if (!can_recount(s))
		skip();
	assert_int_equal(sw_steer_set_worker(s, 20, &row), 0);
	set_inuse(s, 20, 5);
	recount(s);
	assert_int_equal(recount(s).rows, 0);
	assert_int_equal(sw_steer_renew(s, 20), -EBUSY);
	/* When its pool is gone the row comes free. */
	assert_int_equal(sw_steer_set_worker(s, 20, &nobody), 0);
	recount(s);
	assert_int_equal(recount(s).rows, 1);
	assert_int_equal(sw_steer_renew(s, 20), 0);
	sw_steer_leave(s);
}

/* ---- idle connections ----------------------------------------------------------------------- */

/* One request and its response, whole. */
static void converse(int router, int server)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			  response[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	char buffer[256];

	assert_int_equal(send(router, request, strlen(request), 0), strlen(request));
	assert_int_equal(recv(server, buffer, sizeof(buffer), 0), strlen(request));
	assert_int_equal(send(server, response, strlen(response), 0), strlen(response));
	assert_int_equal(recv(router, buffer, sizeof(buffer), 0), strlen(response));
}

static int close_idle(struct sw_steer *s, unsigned worker)
{
	struct sw_bits workers = {0};

	workers.word[worker / 64] = 1ULL << worker % 64;
	return sw_steer_close_idle(s, &workers, 50);
}

/* By a daemon in another network namespace than the router. */
static int close_from_elsewhere(struct sw_steer *s)
{
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), n;

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	n = close_idle(s, STEERS_WORKER);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	close(here);
	return n;
}

static void idle_connections_are_closed_where_their_router_is(void **state)
{
	struct sw_steer_cgroup c = {.path = steers_cgroup[0], .connect = true, .upstreams = true};
	struct sw_steer *s = steers_open();
	struct sw_error err = {0};
	int router, server;
	pid_t pid;

	(void)state;
	steers_pool(s, 4);
	if (sw_steer_attach(s, &c, 1, &err))
		fail_msg("%s", err.text);
	if (close_idle(s, STEERS_WORKER) == -EOPNOTSUPP) {
		printf("SKIP: this kernel closes no sockets\n");
		sw_steer_leave(s);
		skip();
	}
	router = steers_connect();
	server = steers_accept();
	converse(router, server);
	usleep(100000);
	assert_int_equal(close_from_elsewhere(s), 0); /* nobody is in the cgroup */
	pid = steers_idler();
	assert_int_equal(close_idle(s, STEERS_WORKER + 1), 0);
	assert_int_equal(close_from_elsewhere(s), 1);
	assert_int_equal(close_from_elsewhere(s), 0);
	steers_await(s, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(router);
	close(server);
	sw_steer_leave(s);
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
		T(a_link_that_somebody_took_off),
		T(a_failure_leaves_what_was_attached),
		T(programs_of_others_stay),
		T(drift_is_put_right_at_the_second_sight),
		T(what_changes_sign_is_no_drift),
		T(credits_are_not_recounted),
		T(idle_connections_are_closed_where_their_router_is),
	};
	const char *why = steers_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
