// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Slots while cgroups and programs come and go and many connect at once: given back, once. Each
// test ends with all slots free (steering_settle).

#include "lib/steering.h"
#include "lib/workers.h"
#include "spillway.skel.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the life of cgroups and programs -------------------------------------------------------- */

/* Its connections live on when a cgroup is gone, be it that their FIN waits behind data which
 * nobody reads. */
static void the_cgroup_is_removed_first(void **state)
{
	int links[ATTACHED], pid, status, hold, server;
	char cgroup[220];

	(void)state;
	set_only_member(ID_DEAD);
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
		set_only_member(ID_A);
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
		set_only_member(ID_FAR);
		fd = socket_for(way, SOCK_STREAM);
		assert_int_equal(connect_to(fd, virtual_address(way, VIRTUAL)), -ENETUNREACH);
		assert_int_equal(slot_of(ID_FAR).inuse, 1);
		close(fd);
		assert_int_equal(slot_of(ID_FAR).inuse, 0);
		set_only_member(ID_DEAD);
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
	const struct linger reset = {.l_onoff = 1};
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
		steering_test(the_cgroup_is_removed_first),
		steering_test(attached_twice),
		steering_test(two_thousand_at_once),
		steering_test(programs_swapped_under_load),
	};

	return steering_run(tests);
}
