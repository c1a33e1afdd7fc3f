// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Idle upstream connections, closed in the network namespace of their router. Which ones are idle
 * is test_upstream.c's matter. Needs root, and makes cgroups of its own. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/steers.h"

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
		T(idle_connections_are_closed_where_their_router_is),
	};
	const char *why = steers_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
