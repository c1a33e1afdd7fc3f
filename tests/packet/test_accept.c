// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The sockops program on the accepting side: a slot that a lookup has taken becomes a connection's,
// and the listening sockets of workers are found. The lookup's part is played by hand: a take, and
// a note of it in `pending`. One CPU, on which loopback does all of its work.

#include "lib/steering.h"
#include "lib/workers.h"
#include "spillway.skel.h"

#include <bpf/bpf.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT_SERVER = 9200, PORT_CLIENT = 41000 };

static uint16_t next_port = PORT_CLIENT;

static void pin_to_a_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void bytes_of(enum way way, uint8_t out[16])
{
	struct sockaddr_storage at = local_address(way == V6 ? V6 : MAPPED, 1);

	memcpy(out, &((struct sockaddr_in6 *)&at)->sin6_addr, 16);
}

/* What a lookup leaves behind: a slot in use, and whom it is for. */
static void take_for(enum way way, uint16_t client)
{
	int slots = bpf_map__fd(world->skel->maps.slots), n = libbpf_num_possible_cpus();
	int pending = bpf_map__fd(world->skel->maps.pending);
	struct sw_pending *all = calloc((size_t)n, sizeof(*all));
	struct sw_pending *mine = &all[sched_getcpu()];
	struct sw_slot slot = slot_of(ID_A);
	uint32_t id = ID_A, zero = 0;
	socklen_t size = sizeof(mine->tuple.netns);
	int fd = socket_for(V4, SOCK_STREAM);

	slot.inuse++;
	slot.takes++;
	assert_int_equal(bpf_map_update_elem(slots, &id, &slot, 0), 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &mine->tuple.netns, &size), 0);
	close(fd);
	bytes_of(way, mine->tuple.peer);
	bytes_of(way, mine->tuple.local);
	mine->tuple.peer_port = client;
	mine->tuple.local_port = PORT_SERVER;
	mine->since_ns = 1;
	mine->slot = ID_A + 1;
	mine->pool = POOL;
	assert_int_equal(bpf_map_update_elem(pending, &zero, all, 0), 0);
	free(all);
}

static unsigned reserved(void)
{
	struct sw_tuple key, *at = NULL;
	unsigned n = 0;

	for (; !bpf_map_get_next_key(bpf_map__fd(world->skel->maps.reservations), at, &key); n++)
		at = &key;
	return n;
}

/* A server inside the cgroup; on [::] it also serves IPv4. */
static int listen_on(enum way way, bool any, uint16_t port)
{
	struct sockaddr_storage at = local_address(way, port);
	int one = 1, fd = socket_for(way, SOCK_STREAM);

	if (any && way == V4)
		((struct sockaddr_in *)&at)->sin_addr.s_addr = 0;
	if (any && way == V6)
		((struct sockaddr_in6 *)&at)->sin6_addr = in6addr_any;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, address_size(&at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* From a port of its own. `hand`: a lookup has taken a slot for it. */
static int client(enum way way, bool hand)
{
	struct sockaddr_storage at = local_address(way, next_port);
	int fd = socket_for(way, SOCK_STREAM);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, address_size(&at)), 0);
	if (hand)
		take_for(way, next_port);
	next_port++;
	assert_int_equal(connect_to(fd, local_address(way, PORT_SERVER)), 0);
	return fd;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void holds_it_until_it_is_closed(enum way server, enum way way)
{
	int listener = listen_on(server, true, PORT_SERVER), fd, peer;

	fd = client(way, true);
	peer = accept(listener, NULL, NULL);
	assert_int_equal(reserved(), 0);
	assert_int_equal(slot_of(ID_A).inuse, 1);
	assert_int_equal(slot_of(ID_A).moves - world->before[ID_A].moves, 1);
	close(fd);
	usleep(20000);
	assert_int_equal(slot_of(ID_A).inuse, 1); /* the server has not closed it yet */
	close(peer);
	await_inuse(ID_A, 0);
	assert_int_equal(slot_of(ID_A).gives - world->before[ID_A].gives, 1);
	close(listener);
}

static void ipv4(void **state)
{
	(void)state;
	holds_it_until_it_is_closed(V4, V4);
}

static void ipv6(void **state)
{
	(void)state;
	if (!world->ipv6)
		skip();
	holds_it_until_it_is_closed(V6, V6);
}

static void ipv4_on_a_socket_for_both(void **state)
{
	(void)state;
	if (!world->ipv6)
		skip();
	holds_it_until_it_is_closed(V6, V4);
}

static void with_the_programs_twice(void **state)
{
	int links[ATTACHED];

	(void)state;
	attach(world->inner, links);
	enter(world->inner);
	holds_it_until_it_is_closed(V4, V4);
	enter(world->cgroup);
	detach(links);
}

static void with_syn_cookies(void **state)
{
	static const char path[] = "/proc/sys/net/ipv4/tcp_syncookies";
	FILE *f = fopen(path, "w");

	(void)state;
	if (!f) {
		puts("skip: this kernel has no SYN cookies");
		skip();
	}
	fputs("2", f);
	fclose(f);
	holds_it_until_it_is_closed(V4, V4);
	f = fopen(path, "w");
	fputs("1", f);
	fclose(f);
}

static void what_no_lookup_let_in_holds_nothing(void **state)
{
	int listener = listen_on(V4, true, PORT_SERVER), fd = client(V4, false);
	int peer = accept(listener, NULL, NULL);

	(void)state;
	assert_int_equal(slot_of(ID_A).moves, world->before[ID_A].moves);
	close(fd);
	close(peer);
	close(listener);
}

static void reserved_while_it_is_only_a_request(void **state)
{
	int one = 1, listener = listen_on(V4, true, PORT_SERVER), fd;

	(void)state;
	/* the ACK alone makes no connection of it */
	setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &one, sizeof(one));
	fd = client(V4, true);
	assert_int_equal(reserved(), 1);
	assert_int_equal(slot_of(ID_A).moves, world->before[ID_A].moves);
	close(client(V4, false)); /* what comes in between changes nothing */
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(reserved(), 0);
	assert_int_equal(slot_of(ID_A).moves - world->before[ID_A].moves, 1);
	close(fd);
	close(listener);
}

/* Closing the listener ends what nobody has accepted from it. */
static void never_accepted(void **state)
{
	int listener = listen_on(V4, true, PORT_SERVER), fd = client(V4, true);

	(void)state;
	assert_int_equal(slot_of(ID_A).inuse, 1);
	close(listener);
	await_inuse(ID_A, 0);
	close(fd);
}

static void no_memory_to_bind_a_slot(void **state)
{
	static const char limit[] = "/proc/sys/net/core/optmem_max";
	FILE *f = fopen(limit, "r+");
	int before = 0, listener, fd;

	(void)state;
	if (!f || fscanf(f, "%d", &before) != 1) {
		puts("skip: this kernel has no optmem_max in a network namespace");
		skip();
	}
	listener = listen_on(V4, true, PORT_SERVER);
	rewind(f);
	fprintf(f, "16");
	fclose(f);
	fd = client(V4, true);
	f = fopen(limit, "w");
	fprintf(f, "%d", before);
	fclose(f);
	assert_int_equal(slot_of(ID_A).inuse, 0);
	assert_int_equal(counted().no_storage, 1);
	close(fd);
	close(listener);
}

/* ---- listening sockets ----------------------------------------------------------------------- */

/* Is this socket what `listening` has for the worker? */
static bool found(unsigned id, int fd)
{
	uint64_t cookie = 0, mine = 1;
	socklen_t size = sizeof(mine);
	uint32_t key = id;

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &mine, &size);
	return !bpf_map_lookup_elem(bpf_map__fd(world->skel->maps.listening), &key, &cookie) &&
	       cookie == mine;
}

static void expect(unsigned id, enum way way, bool any)
{
	struct sw_address key = {.port = PORT_SERVER};
	uint32_t value = id;

	if (!any)
		bytes_of(way, key.addr);
	else if (way == V4)
		key.addr[10] = key.addr[11] = 0xff;
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(world->skel->maps.listens), &key, &value, 0), 0);
}

static void forget(enum way way, bool any)
{
	struct sw_address key = {.port = PORT_SERVER};

	if (!any)
		bytes_of(way, key.addr);
	else if (way == V4)
		key.addr[10] = key.addr[11] = 0xff;
	bpf_map_delete_elem(bpf_map__fd(world->skel->maps.listens), &key);
}

static void finds(enum way server, bool any, bool want)
{
	int fd;

	for (int again = 0; again < 2; again++) { /* a server that is started anew, too */
		fd = listen_on(server, any, PORT_SERVER);
		assert_int_equal(found(ID_A, fd), want);
		close(fd);
		assert_false(found(ID_A, fd));
	}
}

static void listening_workers_are_found(void **state)
{
	(void)state;
	set_steer(SW_SF_COUNT | SW_SF_ASSIGN, 0, RESPONDER, LONG);
	finds(V4, false, false);
	expect(ID_A, V4, false);
	expect(ID_A, V4, true);
	finds(V4, false, true);
	finds(V4, true, true);
	if (world->ipv6) {
		finds(V6, true, true);	 /* [::] serves IPv4 too */
		finds(V6, false, false); /* ::1 does not */
		expect(ID_A, V6, false);
		finds(V6, false, true);
		forget(V6, false);
	}
	set_steer(SW_SF_COUNT, 0, RESPONDER, LONG); /* nothing goes to its socket */
	finds(V4, true, false);
	set_steer(SW_SF_COUNT | SW_SF_ASSIGN, 0, RESPONDER, LONG);
	forget(V4, false);
	forget(V4, true);
	finds(V4, true, false);
}

static void not_in_another_namespace(void **state)
{
	struct sw_worker_row row;
	uint32_t id = ID_A;
	int workers = bpf_map__fd(world->skel->maps.workers), fd = socket_for(V4, SOCK_STREAM);
	socklen_t size = sizeof(row.tag);

	(void)state;
	set_steer(SW_SF_COUNT | SW_SF_ASSIGN, 0, RESPONDER, LONG);
	expect(ID_A, V4, true);
	assert_int_equal(bpf_map_lookup_elem(workers, &id, &row), 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &row.tag, &size), 0);
	close(fd);
	bpf_map_update_elem(workers, &id, &row, 0);
	finds(V4, true, true);
	row.tag++;
	bpf_map_update_elem(workers, &id, &row, 0);
	finds(V4, true, false);
	forget(V4, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		steering_test(ipv4),
		steering_test(ipv6),
		steering_test(ipv4_on_a_socket_for_both),
		steering_test(with_the_programs_twice),
		steering_test(with_syn_cookies),
		steering_test(what_no_lookup_let_in_holds_nothing),
		steering_test(reserved_while_it_is_only_a_request),
		steering_test(never_accepted),
		steering_test(no_memory_to_bind_a_slot),
		steering_test(listening_workers_are_found),
		steering_test(not_in_another_namespace),
	};

	pin_to_a_cpu();
	return steering_run(tests);
}
