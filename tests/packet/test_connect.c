// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Where connect() goes: real sockets in a cgroup, real workers, one pool behind an address that
// does not exist. How slots come back is in test_slots_end.c.

#include "lib/steering.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static bool can(enum way way)
{
	return way == V4 || world->ipv6;
}

/* The address that the socket shows for its peer is the one that was asked for. */
static void shows(int fd, struct sockaddr_storage want)
{
	struct sockaddr_storage got = {0};
	socklen_t size = sizeof(got);

	assert_int_equal(getpeername(fd, (struct sockaddr *)&got, &size), 0);
	assert_int_equal(size, address_size(&want));
	assert_memory_equal(&got, &want, size);
}

static uint64_t takes(void)
{
	uint64_t n = 0;

	for (unsigned id = ID_A; id <= ID_B; id++)
		n += slot_of(id).takes - world->before[id].takes;
	return n;
}

/* ---- steering -------------------------------------------------------------------------------- */

static void goes_to_a_worker_and_holds_a_slot(void **state)
{
	(void)state;
	for (enum way way = V4; way < WAYS; way++) {
		int fd;
		char name;

		if (!can(way))
			continue;
		fd = connected(way);
		name = who(fd);
		assert_true(name == 'A' || name == 'B');
		assert_int_equal(slot_of(name == 'A' ? ID_A : ID_B).inuse, 1);
		assert_int_equal(slot_of(name == 'A' ? ID_B : ID_A).inuse, 0);
		shows(fd, virtual_address(way, VIRTUAL));
		close(fd);
		await_inuse(name == 'A' ? ID_A : ID_B, 0);
		assert_int_equal(counted().steered, way + 1);
	}
}

static void ipv6_workers_too(void **state)
{
	int fd;

	(void)state;
	if (!world->ipv6)
		skip();
	set_worker(ID_A, V6, PORT_A, 4);
	set_member(ID_B, false);
	for (enum way way = V6; way < WAYS; way++) {
		fd = connected(way);
		assert_int_equal(who(fd), 'A');
		shows(fd, virtual_address(way, VIRTUAL));
		close(fd);
	}
	/* an IPv4 socket cannot get there */
	fd = socket_for(V4, SOCK_STREAM);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), 0);
	assert_int_equal(who(fd), 'R');
	assert_int_equal(counted().unavailable, 1);
	close(fd);
}

static void never_more_than_the_cap(void **state)
{
	int fds[8], n[2] = {0};

	(void)state;
	for (int i = 0; i < 8; i++) {
		fds[i] = connected(V4);
		n[who(fds[i]) == 'A']++;
	}
	assert_int_equal(n[0], 4);
	assert_int_equal(n[1], 4);
	assert_int_equal(slot_of(ID_A).inuse, 4);
	for (int i = 0; i < 8; i++)
		close(fds[i]);
	assert_true(slot_of(ID_A).most <= 4 && slot_of(ID_B).most <= 4);
}

static void busy_workers_get_nothing(void **state)
{
	(void)state;
	set_busy(ID_A, true);
	for (int i = 0; i < 20; i++) {
		int fd = connected(V4);

		assert_int_equal(who(fd), 'B');
		close(fd);
		await_inuse(ID_B, 0);
	}
}

/* ---- not ours -------------------------------------------------------------------------------- */

static void other_addresses_are_left_alone(void **state)
{
	(void)state;
	for (enum way way = V4; way < WAYS; way++) {
		int fd;

		if (!can(way))
			continue;
		fd = socket_for(way, SOCK_STREAM);
		assert_int_equal(connect_to(fd, local_address(way, PORT_B)), 0);
		assert_int_equal(who(fd), 'B');
		shows(fd, local_address(way, PORT_B));
		close(fd);
		fd = socket_for(way, SOCK_STREAM); /* the address alone is not enough */
		assert_int_equal(connect_to(fd, virtual_address(way, VIRTUAL + 1)), -ENETUNREACH);
		close(fd);
	}
	assert_int_equal(takes(), 0);
}

static void udp_is_left_alone(void **state)
{
	(void)state;
	for (enum way way = V4; way < WAYS; way++) {
		int fd;

		if (!can(way))
			continue;
		fd = socket_for(way, SOCK_DGRAM);
		assert_int_equal(connect_to(fd, virtual_address(way, VIRTUAL)), -ENETUNREACH);
		close(fd);
	}
	assert_int_equal(takes(), 0);
}

static void mptcp_sockets_are_left_alone(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);

	(void)state;
	if (fd < 0) {
		puts("skip: this kernel has no MPTCP");
		skip();
	}
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -ENETUNREACH);
	close(fd);
	assert_int_equal(takes(), 0);
}

static void sockets_made_outside_the_cgroup_are_left_alone(void **state)
{
	char root[200];
	int fd;

	(void)state;
	snprintf(root, sizeof(root), "%s", world->cgroup);
	*strrchr(root, '/') = 0;
	enter(root);
	fd = socket_for(V4, SOCK_STREAM);
	enter(world->cgroup);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -ENETUNREACH);
	close(fd);
	assert_int_equal(takes(), 0);
}

/* ---- nothing free ---------------------------------------------------------------------------- */

static void fails_with(int error)
{
	int fd = socket_for(V4, SOCK_STREAM);

	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -error);
	close(fd);
}

static void refused_with_the_errno_of_the_pool(void **state)
{
	(void)state;
	set_worker(ID_A, V4, PORT_A, 0);
	set_worker(ID_B, V4, PORT_B, 0);
	set_steer(SW_SF_REFUSE, 0, RESPONDER, LONG);
	fails_with(ECONNREFUSED);
	set_steer(SW_SF_REFUSE, EHOSTUNREACH, RESPONDER, LONG);
	fails_with(EHOSTUNREACH);
	set_steer(SW_SF_REFUSE, 4095, RESPONDER, LONG);
	fails_with(4095);
	set_steer(SW_SF_REFUSE, 4096, RESPONDER, LONG); /* no errno */
	fails_with(ECONNREFUSED);
	set_steer(0, EAGAIN, 0, LONG); /* nobody to answer */
	fails_with(EAGAIN);
	assert_int_equal(counted().refused, 5);
	assert_int_equal(counted().no_slot, 5);
	assert_int_equal(counted().answered, 0);
}

static void answered_by_the_responder(void **state)
{
	(void)state;
	set_worker(ID_A, V4, PORT_A, 0);
	set_worker(ID_B, V4, PORT_B, 0);
	for (enum way way = V4; way < WAYS; way++) {
		int fd;

		if (!can(way))
			continue;
		fd = connected(way);
		assert_int_equal(who(fd), 'R');
		shows(fd, virtual_address(way, VIRTUAL));
		close(fd);
		assert_int_equal(counted().answered, way + 1);
	}
	assert_int_equal(takes(), 0);
	assert_int_equal(counted().steered, 0);
}

static void each_cause_is_counted(void **state)
{
	int fd;

	(void)state;
	set_busy(ID_A, true);
	set_busy(ID_B, true);
	close(connected(V4));
	assert_int_equal(counted().all_busy, 1);
	set_steer(SW_SF_CLOSED, 0, RESPONDER, LONG);
	fd = connected(V4);
	assert_int_equal(who(fd), 'R');
	close(fd);
	assert_int_equal(counted().closed, 1);
	set_steer(0, 0, RESPONDER, LONG);
	set_member(ID_A, false);
	set_member(ID_B, false);
	close(connected(V4));
	assert_int_equal(counted().unavailable, 1);
	assert_int_equal(counted().answered, 3);
}

/* Nobody renews the deadline: what was busy may long not be, and the responder has gone too. */
static void without_a_daemon_busy_is_ignored_and_caps_stay(void **state)
{
	int fd;

	(void)state;
	set_worker(ID_B, V4, PORT_B, 0);
	set_busy(ID_A, true);
	set_busy(ID_B, true);
	set_steer(0, 0, RESPONDER, -1);
	fd = connected(V4);
	assert_int_equal(who(fd), 'A');
	assert_int_equal(counted().overdue, 1);
	close(fd);
	await_inuse(ID_A, 0);
	set_worker(ID_A, V4, PORT_A, 0);
	fails_with(ECONNREFUSED);
	assert_int_equal(counted().answered, 0);
}

/* The kernel takes memory for a socket's extras only up to a limit. */
static void no_memory_to_bind_a_slot(void **state)
{
	static const char limit[] = "/proc/sys/net/core/optmem_max";
	FILE *f = fopen(limit, "r+");
	int before = 0;

	(void)state;
	if (!f || fscanf(f, "%d", &before) != 1) {
		puts("skip: this kernel has no optmem_max in a network namespace");
		skip();
	}
	rewind(f);
	fprintf(f, "16");
	fclose(f);
	fails_with(ECONNREFUSED);
	f = fopen(limit, "w");
	fprintf(f, "%d", before);
	fclose(f);
	assert_int_equal(counted().no_storage, 1);
	assert_int_equal(counted().refused, 1);
	assert_int_equal(takes(), 0);
}

/* ---- workers that are not there -------------------------------------------------------------- */

static void a_dead_worker_is_suspected(void **state)
{
	struct pollfd ready = {.events = POLLOUT};
	int fd = socket_for(V4, SOCK_STREAM | SOCK_NONBLOCK), error = 0;
	socklen_t size = sizeof(error);

	(void)state;
	set_member(ID_A, false);
	set_member(ID_B, false);
	set_member(ID_DEAD, true);
	assert_int_equal(connect_to(fd, virtual_address(V4, VIRTUAL)), -EINPROGRESS);
	ready.fd = fd;
	assert_int_equal(poll(&ready, 1, 5000), 1);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	assert_int_equal(error, ECONNREFUSED);
	assert_int_equal(slot_of(ID_DEAD).inuse, 0); /* with the socket still open */
	assert_true(suspected(ID_DEAD));
	assert_int_equal(slot_of(ID_DEAD).failures - world->before[ID_DEAD].failures, 1);
	assert_int_equal(counted().suspected, 1);
	close(fd);

	/* now the others get all, in spite of the slots that it has free */
	set_member(ID_A, true);
	for (int i = 0; i < 20; i++) {
		fd = connected(V4);
		assert_int_equal(who(fd), 'A');
		close(fd);
		await_inuse(ID_A, 0);
	}
}

static void a_blocking_connect_to_it_fails_the_same(void **state)
{
	(void)state;
	set_member(ID_A, false);
	set_member(ID_B, false);
	set_member(ID_DEAD, true);
	fails_with(ECONNREFUSED);
	assert_true(suspected(ID_DEAD));
	assert_int_equal(slot_of(ID_DEAD).inuse, 0);
	fails_with(ECONNREFUSED); /* a suspect, but there is nobody else */
	assert_int_equal(slot_of(ID_DEAD).failures - world->before[ID_DEAD].failures, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		steering_test(goes_to_a_worker_and_holds_a_slot),
		steering_test(ipv6_workers_too),
		steering_test(never_more_than_the_cap),
		steering_test(busy_workers_get_nothing),
		steering_test(other_addresses_are_left_alone),
		steering_test(udp_is_left_alone),
		steering_test(mptcp_sockets_are_left_alone),
		steering_test(sockets_made_outside_the_cgroup_are_left_alone),
		steering_test(refused_with_the_errno_of_the_pool),
		steering_test(answered_by_the_responder),
		steering_test(each_cause_is_counted),
		steering_test(without_a_daemon_busy_is_ignored_and_caps_stay),
		steering_test(no_memory_to_bind_a_slot),
		steering_test(a_dead_worker_is_suspected),
		steering_test(a_blocking_connect_to_it_fails_the_same),
	};

	return steering_run(tests);
}
