// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Every way in which a connection that holds a slot can end, or not come to be: the slot is given
// back, once. Each test ends with all slots free (steering_settle). Cgroups and programs that come
// and go, and many connections, are in test_slots_swap.c.

#include "lib/steering.h"
#include "lib/workers.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct linger reset = {.l_onoff = 1};

static void sysctl(const char *path, const char *value)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(value, f) < 0 || fclose(f))
		fail_msg("%s: %s", path, strerror(errno));
}

/* ---- connect() that came to nothing ---------------------------------------------------------- */

static void no_route(void **state)
{
	int fd = socket_for(V4, SOCK_STREAM);

	(void)state;
	set_only_member(ID_FAR);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -ENETUNREACH);
	assert_int_equal(taken(ID_FAR), 1);
	close(fd);
	assert_int_equal(slot_of(ID_FAR).inuse, 0);
	assert_false(suspected(ID_FAR)); /* nothing was sent to it */
}

static void no_port_left(void **state)
{
	static const char range[] = "/proc/sys/net/ipv4/ip_local_port_range";
	int fd, other = socket_for(V4, SOCK_STREAM);

	(void)state;
	set_only_member(ID_A);
	sysctl(range, "40000 40000");
	fd = connected(V4);
	assert_int_equal(connect_to(other, virtual_address(V4, VIRTUAL)), -EADDRNOTAVAIL);
	assert_int_equal(taken(ID_A), 2);
	close(other);
	assert_int_equal(slot_of(ID_A).inuse, 1);
	assert_false(suspected(ID_A));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)); /* no TIME_WAIT on the port */
	close(fd);
	sysctl(range, "32768 60999");
}

/* A SYN that nobody answers, and a client that has had enough. */
static void closed_before_it_was_established(void **state)
{
	int fd = socket_for(V4, SOCK_STREAM | SOCK_NONBLOCK);

	(void)state;
	set_only_member(ID_DEAF);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -EINPROGRESS);
	assert_int_equal(slot_of(ID_DEAF).inuse, 1);
	close(fd);
	assert_int_equal(slot_of(ID_DEAF).inuse, 0);
	assert_true(suspected(ID_DEAF));
}

/* The SYN waits for the first data; the kernel says nothing of a socket that is closed before. */
static void fast_open_without_data(void **state)
{
	int one = 1, fd = socket_for(V4, SOCK_STREAM);

	(void)state;
	set_only_member(ID_A);
	sysctl("/proc/sys/net/ipv4/tcp_fastopen", "5"); /* a client, without a cookie too */
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof(one)), 0);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), 0);
	assert_int_equal(slot_of(ID_A).inuse, 1);
	close(fd);
	assert_int_equal(slot_of(ID_A).inuse, 0);
	fd = socket_for(V4, SOCK_STREAM);
	setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof(one));
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(who(fd), 'A');
	assert_int_equal(slot_of(ID_A).inuse, 1);
	close(fd);
}

/* ---- one socket, several connections --------------------------------------------------------- */

static void again_after_a_failure(void **state)
{
	int fd = socket_for(V4, SOCK_STREAM);

	(void)state;
	set_only_member(ID_FAR);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -ENETUNREACH);
	set_only_member(ID_A);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), 0);
	assert_int_equal(who(fd), 'A');
	assert_int_equal(slot_of(ID_FAR).inuse, 0);
	assert_int_equal(slot_of(ID_A).inuse, 1);
	close(fd);
	await_inuse(ID_A, 0);
	assert_int_equal(given(ID_A), 1);
}

static void again_after_a_refusal(void **state)
{
	int fd = socket_for(V4, SOCK_STREAM | SOCK_NONBLOCK), error;
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(error);

	(void)state;
	set_only_member(ID_DEAD);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -EINPROGRESS);
	poll(&ready, 1, 5000);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -ECONNABORTED);
	set_only_member(ID_A);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -EINPROGRESS);
	poll(&ready, 1, 5000);
	assert_int_equal(who(fd), 'A');
	close(fd);
	assert_int_equal(given(ID_DEAD), 1);
}

static void disconnected_and_connected_again(void **state)
{
	struct sockaddr_storage none = {.ss_family = AF_UNSPEC}, peer;
	socklen_t size = sizeof(peer);
	int fd = connected(V4);

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(connect_to(fd, none), 0);
		assert_int_equal(slot_of(ID_A).inuse + slot_of(ID_B).inuse, 0);
		assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), 0);
		assert_int_equal(slot_of(ID_A).inuse + slot_of(ID_B).inuse, 1);
	}
	/* to an address that is not ours: no slot, and no other name than its own */
	assert_int_equal(connect_to(fd, none), 0);
	assert_int_equal(connect_to(fd, local_address(V4, PORT_B)), 0);
	assert_int_equal(slot_of(ID_A).inuse + slot_of(ID_B).inuse, 0);
	assert_int_equal(getpeername(fd, (struct sockaddr *)&peer, &size), 0);
	assert_int_equal(ntohs(((struct sockaddr_in *)&peer)->sin_port), PORT_B);
	close(fd);
}

static void elsewhere_after_a_failure(void **state)
{
	int fd = socket_for(V4, SOCK_STREAM);

	(void)state;
	set_only_member(ID_FAR);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -ENETUNREACH);
	assert_int_equal(slot_of(ID_FAR).inuse, 1);
	assert_int_equal(connect_to(fd, local_address(V4, PORT_B)), 0);
	assert_int_equal(slot_of(ID_FAR).inuse, 0);
	close(fd);
	assert_int_equal(given(ID_FAR), 1);
}

/* ---- who holds the socket -------------------------------------------------------------------- */

static void the_last_descriptor_counts(void **state)
{
	int fd = connected(V4), two, pid, status;
	unsigned id = who(fd) == 'A' ? ID_A : ID_B;

	(void)state;
	two = dup(fd);
	close(fd);
	usleep(50000);
	assert_int_equal(slot_of(id).inuse, 1);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	close(two);
	usleep(50000);
	assert_int_equal(slot_of(id).inuse, 1);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	await_inuse(id, 0);
	assert_int_equal(given(id), 1);
}

static void failed_connects_of_a_shared_socket(void **state)
{
	int fd = socket_for(V4, SOCK_STREAM), two = dup(fd);

	(void)state;
	set_only_member(ID_FAR);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -ENETUNREACH);
	close(fd);
	assert_int_equal(slot_of(ID_FAR).inuse, 1);
	close(two);
	assert_int_equal(slot_of(ID_FAR).inuse, 0);
}

static void reset_by_the_client(void **state)
{
	int fds[8];

	(void)state;
	for (int i = 0; i < 8; i++) {
		fds[i] = connected(V4);
		setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	for (int i = 0; i < 8; i++)
		close(fds[i]);
	assert_int_equal(slot_of(ID_A).inuse + slot_of(ID_B).inuse, 0);
	assert_int_equal(given(ID_A) + given(ID_B), 8);
}

static void killed_with_open_connections(void **state)
{
	int ready[2], pid, status;
	char c;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 8; i++) {
			int fd = socket_for(V4, SOCK_STREAM);

			if (connect_to(fd, virtual_address(V4, VIRTUAL)) || !who(fd))
				_exit(1);
		}
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(slot_of(ID_A).inuse + slot_of(ID_B).inuse, 8);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	await_inuse(ID_A, 0);
	await_inuse(ID_B, 0);
	assert_int_equal(given(ID_A) + given(ID_B), 8);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		steering_test(no_route),
		steering_test(no_port_left),
		steering_test(closed_before_it_was_established),
		steering_test(fast_open_without_data),
		steering_test(again_after_a_failure),
		steering_test(again_after_a_refusal),
		steering_test(disconnected_and_connected_again),
		steering_test(elsewhere_after_a_failure),
		steering_test(the_last_descriptor_counts),
		steering_test(failed_connects_of_a_shared_socket),
		steering_test(reset_by_the_client),
		steering_test(killed_with_open_connections),
	};

	return steering_run(tests);
}
