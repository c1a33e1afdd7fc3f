// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Every way in which a connection that holds a slot can end, or not come to be: the slot is given
// back, once. Each test ends with all slots free (steering_settle).

#include "lib/steering.h"
#include "lib/workers.h"
#include "spillway.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct linger reset = {.l_onoff = 1};

static void only(unsigned id)
{
	for (unsigned i = ID_A; i <= ID_B; i++)
		set_member(i, i == id);
}

static uint64_t taken(unsigned id)
{
	return slot_of(id).takes - world->before[id].takes;
}

static uint64_t given(unsigned id)
{
	return slot_of(id).gives - world->before[id].gives;
}

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
	only(ID_FAR);
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
	only(ID_A);
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
	only(ID_DEAF);
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
	only(ID_A);
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
	only(ID_FAR);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -ENETUNREACH);
	only(ID_A);
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
	only(ID_DEAD);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -EINPROGRESS);
	poll(&ready, 1, 5000);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -ECONNABORTED);
	only(ID_A);
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
	only(ID_FAR);
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
	only(ID_FAR);
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

/* ---- the life of cgroups and programs -------------------------------------------------------- */

/* Its connections live on when a cgroup is gone, be it that their FIN waits behind data which
 * nobody reads. */
static void the_cgroup_is_removed_first(void **state)
{
	int links[ATTACHED], pid, status, hold, server;
	char cgroup[220];

	(void)state;
	only(ID_DEAD);
	server = workers_listen(PORT_DEAD);
	snprintf(cgroup, sizeof(cgroup), "%s-gone", world->cgroup);
	assert_int_equal(mkdir(cgroup, 0755), 0);
	attach(cgroup, links);
	pid = fork();
	if (!pid) {
		static char data[1 << 20];
		int fd;

		enter(cgroup);
		fd = socket_for(V4, SOCK_STREAM | SOCK_NONBLOCK);
		connect_to(fd, virtual_address(V4, VIRTUAL));
		poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 5000);
		for (int i = 0; i < 64; i++) {
			send(fd, data, sizeof(data), 0);
			usleep(1000);
		}
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(rmdir(cgroup), 0);
	usleep(100000);
	assert_int_equal(slot_of(ID_DEAD).inuse, 1);
	hold = accept(server, NULL, NULL);
	close(hold); /* with data unread: a reset */
	await_inuse(ID_DEAD, 0);
	close(server);
	detach(links);
}

/* Both cgroups of a nest have the programs: still one slot for a connection. */
static void attached_twice(void **state)
{
	int links[ATTACHED];

	(void)state;
	attach(world->inner, links);
	enter(world->inner);
	for (enum way way = V4; way < WAYS; way++) {
		struct sockaddr_in6 peer;
		socklen_t size = sizeof(peer);
		int fd;

		if (way != V4 && !world->ipv6)
			continue;
		only(ID_A);
		fd = connected(way);
		assert_int_equal(who(fd), 'A');
		assert_int_equal(slot_of(ID_A).inuse, 1);
		assert_int_equal(getpeername(fd, (struct sockaddr *)&peer, &size), 0);
		assert_int_equal(ntohs(peer.sin6_port), VIRTUAL);
		close(fd);
		await_inuse(ID_A, 0);
		set_steer(SW_SF_CLOSED, 0, RESPONDER, LONG);
		fd = connected(way);
		assert_int_equal(who(fd), 'R');
		assert_int_equal(getpeername(fd, (struct sockaddr *)&peer, &size), 0);
		assert_int_equal(ntohs(peer.sin6_port), VIRTUAL);
		close(fd);
		set_steer(SW_SF_CLOSED | SW_SF_REFUSE, 0, 0, LONG);
		fd = socket_for(way, SOCK_STREAM);
		assert_int_equal(connect_to(fd, virtual_address(way, VIRTUAL)), -ECONNREFUSED);
		close(fd);
		set_steer(0, 0, RESPONDER, LONG);
		only(ID_FAR);
		fd = socket_for(way, SOCK_STREAM);
		assert_int_equal(connect_to(fd, virtual_address(way, VIRTUAL)), -ENETUNREACH);
		assert_int_equal(slot_of(ID_FAR).inuse, 1);
		close(fd);
		assert_int_equal(slot_of(ID_FAR).inuse, 0);
		only(ID_DEAD);
		fd = socket_for(way, SOCK_STREAM);
		assert_int_equal(connect_to(fd, virtual_address(way, VIRTUAL)), -ECONNREFUSED);
		close(fd);
		assert_int_equal(slot_of(ID_DEAD).failures - world->before[ID_DEAD].failures,
				 way + 1);
		assert_int_equal(counted().steered, 3 * (way + 1));
		assert_int_equal(counted().answered, way + 1);
		assert_int_equal(counted().refused, way + 1);
	}
	enter(world->cgroup);
	detach(links);
}

/* ---- many ------------------------------------------------------------------------------------ */

/* A client that makes `n` connections one after the other; some it ends by RST, and some meet no
 * free slot. */
static int client(int n)
{
	int pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < n; i++) {
		enum way way = i % 3 || !world->ipv6 ? V4 : MAPPED;
		int fd = socket_for(way, SOCK_STREAM);

		if (connect_to(fd, virtual_address(way, VIRTUAL)))
			_exit(1);
		if (i % 5 == 0)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		if (i % 2)
			who(fd);
		close(fd);
	}
	_exit(0);
}

static void ended_well(int *pids, int n)
{
	int status;

	for (int i = 0; i < n; i++) {
		waitpid(pids[i], &status, 0);
		assert_int_equal(status, 0);
	}
	await_inuse(ID_A, 0);
	await_inuse(ID_B, 0);
	for (unsigned id = ID_A; id <= ID_B; id += ID_B - ID_A) {
		assert_int_equal(taken(id), given(id));
		assert_true(slot_of(id).most <= 4);
	}
	assert_int_equal(taken(ID_A) + taken(ID_B), counted().steered);
}

static void two_thousand_at_once(void **state)
{
	int pids[20];

	(void)state;
	for (int i = 0; i < 20; i++)
		pids[i] = client(100);
	ended_well(pids, 20);
	assert_int_equal(counted().steered + counted().answered, 2000);
	assert_true(taken(ID_A) > 100 && taken(ID_B) > 100);
}

/* What an upgrade does: the same programs, loaded anew, over the same maps. */
static void programs_swapped_under_load(void **state)
{
	struct spillway *other = steering_load(world->skel), *skel[2] = {world->skel, other};
	int pids[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		pids[i] = client(100);
	for (int i = 0; i < 20; i++) {
		steering_swap(skel[i % 2 ? 0 : 1]);
		usleep(10000);
	}
	ended_well(pids, 8);
	assert_int_equal(counted().steered + counted().answered, 800);
	steering_unload(other);
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
		steering_test(the_cgroup_is_removed_first),
		steering_test(attached_twice),
		steering_test(two_thousand_at_once),
		steering_test(programs_swapped_under_load),
	};

	return steering_run(tests);
}
