// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// From the SYN on: what is held for connections that are not established yet, and how it comes back
// when they never are. A packet socket plays clients that answer late, or not at all.

#include "lib/counting.h"
#include "lib/local.h"
#include "lib/talk.h"
#include "lib/wire.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 5000 /* guests are slow */

static struct wire wire;
static struct lane lane;

struct client {
	struct frame syn;
	uint32_t seq; /* of the SYN-ACK */
};

/* ---- clients -----------------------------------------------------------------------------------
 */

static int begin(void **state)
{
	counting_reset(state);
	lane = (struct lane){.w = counting->w, .family = 4, .id = ID_DEAF};
	lane_trying(&lane, "start");
	return wire_up(&wire, counting->w) ? 0 : -1;
}

static int end(void **state)
{
	wire_down(&wire);
	return counting_settle(state);
}

static void employ(unsigned n, uint32_t cap, uint32_t half_open)
{
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN, half_open, 60000);
	for (unsigned i = 0; i < n; i++) {
		count_worker(ID_FIRST + i, 4, PORT_FIRST + i, cap);
		worker_listen(i, 4, false);
	}
}

static void transmit(const struct frame *f)
{
	static struct packet p;

	wire_send(&wire, f, &p, 0);
}

/* Sends a SYN from a fresh port, or again; true: there was a SYN-ACK, and no RST. */
static bool knock(struct client *c)
{
	static struct result r;

	if (!c->syn.sport) {
		counting->w->next_port++;
		c->syn = lane_frame(&lane, TCP_SYN);
		c->syn.dport = PORT_DEAF;
		frame_option_mss(&c->syn, 1460);
	}
	transmit(&c->syn);
	assert_true(wire_receive(&wire, c->syn.sport, &r, PATIENCE_MS));
	assert_null(reply_parse(r.bytes, r.len, &r.reply));
	c->seq = r.reply.seq;
	return r.reply.flags == (TCP_SYN | TCP_ACK);
}

/* Unanswered SYNs, from a port each. */
static unsigned knock_often(struct client *c, unsigned n)
{
	unsigned in = 0;

	for (unsigned i = 0; i < n; i++) {
		memset(&c[in], 0, sizeof(*c));
		in += knock(&c[in]);
	}
	return in;
}

static void reply(const struct client *c, uint8_t flags, const char *text)
{
	struct frame f = c->syn;

	f.seq++;
	f.ack = c->seq + 1;
	f.flags = flags;
	f.options_len = 0;
	f.payload = text;
	f.payload_len = strlen(text);
	transmit(&f);
}

static void complete(const struct client *c)
{
	reply(c, TCP_ACK, "");
}

static void abort_it(const struct client *c)
{
	reply(c, TCP_RST | TCP_ACK, "");
}

/* ---- a slot from the SYN on
 * ---------------------------------------------------------------------- */

/* However long the last ACK takes. */
static void never_more_than_the_cap_before_the_ack(void **state)
{
	struct client c[40];

	(void)state;
	employ(2, 2, SW_MAX_RESERVATIONS);
	assert_int_equal(knock_often(c, 20), 4);
	count_await(4, 4);
	assert_int_equal(count_reservations(), 4);
	assert_int_equal(count_all().moves, 0);
	complete(&c[0]);
	complete(&c[1]);
	count_await(4, 2);
	assert_int_equal(count_all().moves, 2);
	assert_int_equal(knock_often(c + 4, 10), 0);
	complete(&c[2]);
	complete(&c[3]);
	count_await(4, 0);
	assert_int_equal(count_reservations(), 0);
	for (int i = 0; i < 4; i++)
		abort_it(&c[i]);
	count_await(0, 0);
	assert_int_equal(count_all().most, 2);
	assert_int_equal(count_all().takes, 4);
}

static void a_flood_holds_what_it_may(void **state)
{
	struct client c[120];

	(void)state;
	employ(1, 8, 4);
	assert_int_equal(knock_often(c, 50), 4);
	count_await(4, 4);
	assert_true(count_steers().half_open_limit >= 46);
	for (int i = 0; i < 4; i++)
		complete(&c[i]);
	count_await(4, 0);
	assert_int_equal(knock_often(c + 4, 50), 4);
	count_await(8, 4);
	for (int i = 0; i < 8; i++)
		abort_it(&c[i]);
	assert_int_equal(count_all().most, 8);
}

static void a_syn_sent_again_takes_nothing_more(void **state)
{
	struct client c = {};

	(void)state;
	employ(2, 8, 8);
	for (int i = 0; i < 5; i++)
		assert_true(knock(&c));
	count_await(1, 1);
	complete(&c);
	count_await(1, 0);
	abort_it(&c);
	count_await(0, 0);
	assert_int_equal(count_all().takes, 1);
}

/* A new SYN from ports whose former request is gone, before a sweep has seen that. */
static void the_same_ports_again(void **state)
{
	struct client c = {};

	(void)state;
	employ(2, 8, 8);
	for (int i = 0; i < 5; i++) {
		assert_true(knock(&c));
		count_await(1, 1);
		assert_int_equal(count_reservations(), 1);
		abort_it(&c);
		c.syn.seq += 100000;
	}
	assert_int_equal(count_all().takes, 5);
	assert_int_equal(count_all().gives, 4);
}

/* Whatever has neither socket nor cookie comes by the lookup too. */
static void strange_segments_leave_nothing(void **state)
{
	struct client c = {};

	(void)state;
	employ(2, 8, 8);
	for (int i = 0; i < 20; i++) {
		counting->w->next_port++;
		c.syn = lane_frame(&lane, TCP_SYN);
		c.syn.dport = PORT_DEAF;
		reply(&c, i % 2 ? TCP_RST : TCP_ACK, "");
	}
	assert_true(count_all().inuse <= 1);
	assert_int_equal(count_all().most, 1);
	usleep(150000);
	count_sweep();
	count_await(0, 0);
	assert_int_equal(count_all().moves, 0);
}

/* ---- sweeps
 * -------------------------------------------------------------------------------------- */

static void sweeps_leave_alone_what_lives(void **state)
{
	struct client c[4];

	(void)state;
	employ(2, 4, 8);
	assert_int_equal(knock_often(c, 4), 4);
	complete(&c[0]);
	count_await(4, 3);
	for (int i = 0; i < 5; i++)
		assert_int_equal(count_sweep(), 0);
	count_await(4, 3);
	assert_int_equal(count_steers().steered, 4); /* no look-up of a sweep is taken for one */
	abort_it(&c[1]);
	while (!count_sweep())
		usleep(10000);
	count_await(3, 2);
	assert_int_equal(count_steers().swept, 1);
	for (int i = 0; i < 4; i++)
		abort_it(&c[i]);
}

/* Once is not enough: between its reservation and its place in the tables a request is nowhere. */
static void missing_once_is_not_gone(void **state)
{
	struct client c;

	(void)state;
	employ(1, 4, 8);
	assert_int_equal(knock_often(&c, 1), 1);
	abort_it(&c);
	usleep(50000);
	assert_int_equal(count_sweep(), 0);
	count_await(1, 1);
	assert_int_equal(count_sweep(), 1);
	count_await(0, 0);
}

static void requests_that_time_out(void **state)
{
	int retries = count_sysctl("tcp_synack_retries", 0), tries = 0;
	struct client c[4];

	(void)state;
	employ(1, 4, 8);
	assert_int_equal(knock_often(c, 4), 4);
	while (count_all().inuse && tries++ < 400) {
		usleep(50000);
		count_sweep();
	}
	count_await(0, 0);
	assert_int_equal(count_steers().swept, 4);
	count_sysctl("tcp_synack_retries", retries);
}

/* The stack throws a SYN away while nobody accepts: what was taken comes back without a request. */
static void syns_that_the_stack_drops(void **state)
{
	struct client first = {}, late = {};

	(void)state;
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN, 8, 60000);
	count_worker(ID_FIRST, 4, PORT_FIRST, 4);
	worker_listen_short(0, 0);
	assert_true(knock(&first));
	complete(&first);
	count_await(1, 0);
	for (int i = 0; i < 5; i++) { /* each look-up gives back what the one before has left */
		counting->w->next_port++;
		late.syn = lane_frame(&lane, TCP_SYN);
		late.syn.dport = PORT_DEAF;
		transmit(&late.syn);
		count_await(2, 1);
	}
	assert_int_equal(count_reservations(), 0);
	usleep(150000);
	count_sweep();
	count_await(1, 0);
	assert_int_equal(count_all().most, 2);
	abort_it(&first);
	count_await(0, 0);
}

static void other_namespaces_are_left_alone_for_ten_minutes(void **state)
{
	struct client c;

	(void)state;
	employ(1, 4, 8);
	assert_int_equal(knock_often(&c, 1), 1);
	count_age_reservation(590, true);
	abort_it(&c);
	usleep(20000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(count_sweep(), 0);
	count_age_reservation(11, true); /* back to ours, which is none of its business here */
	assert_int_equal(count_sweep(), 1);
	count_await(0, 0);
}

/* ---- SYN cookies
 * --------------------------------------------------------------------------------- */

/* There is no request, and the ACK is looked up anew: it has to come to the socket that made the
 * cookie. New sockets each time: one that has made a cookie takes those of others too. */
static void cookies_come_home(void **state)
{
	int before = count_sysctl("tcp_syncookies", 2);
	struct client c[3];

	(void)state;
	for (int round = 0; round < 5; round++) {
		employ(WORKERS, 3, 100);
		assert_int_equal(knock_often(c, 3), 3);
		assert_int_equal(count_reservations(), 0);
		assert_true(count_all().inuse <= 1);
		for (int i = 0; i < 3; i++)
			complete(&c[i]);
		count_await(3, 0);
		for (int i = 0; i < 3; i++)
			abort_it(&c[i]);
		count_await(0, 0);
		workers_close();
	}
	assert_int_equal(count_all().moves, 15);
	count_sysctl("tcp_syncookies", before);
}

static void cookies_are_counted_exactly(void **state)
{
	int before = count_sysctl("tcp_syncookies", 2), fd[8], n = 0;

	(void)state;
	employ(2, 4, 100);
	for (int i = 0; i < 30; i++)
		ask_and_close(4);
	count_await(0, 0);
	assert_int_equal(count_all().moves, 30);
	for (int i = 0; i < 8; i++) {
		fd[i] = ask_virtual(4);
		assert_true(fd[i] >= 0);
	}
	count_await(8, 0);
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	assert_int_equal(count_all().most, 4);
	while (n < 8)
		close(fd[n++]);
	workers_end_all();
	count_sysctl("tcp_syncookies", before);
}

/* The last slot went to another between the cookie and its ACK. */
static void a_cookie_without_a_slot(void **state)
{
	int before = count_sysctl("tcp_syncookies", 2);
	struct client c[2];

	(void)state;
	employ(1, 1, 100);
	assert_int_equal(knock_often(c, 2), 2);
	complete(&c[0]);
	count_await(1, 0);
	complete(&c[1]);
	usleep(20000);
	assert_int_equal(count_all().inuse, 1);
	assert_int_equal(count_all().most, 1);
	abort_it(&c[0]);
	count_await(0, 0);
	count_sysctl("tcp_syncookies", before);
}

/* ---- many
 * ---------------------------------------------------------------------------------------- */

enum { AT_ONCE = 200, CONNECTIONS = 2000 };

static void open_one(struct pollfd *p)
{
	*p = (struct pollfd){.fd = begin_asking_virtual(4), .events = POLLOUT};
	assert_true(p->fd >= 0);
}

/* Sends a word; when it comes back, or now and then at once, closes or resets. True: it is over. */
static bool go_on(struct pollfd *p, unsigned n)
{
	struct linger now = {1, 0};

	if (!p->revents)
		return false;
	if (p->revents & POLLOUT && !(p->revents & (POLLERR | POLLHUP)) && n % 5) {
		p->events = POLLIN;
		if (send(p->fd, "x", 1, MSG_NOSIGNAL) == 1)
			return false;
	}
	if (n % 2)
		setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(p->fd);
	return true;
}

/* On all CPUs, over more than there are slots for; the rest is answered by the responder. */
static void storm(unsigned n)
{
	struct pollfd p[AT_ONCE];
	unsigned opened = 0, over = 0;

	for (; opened < AT_ONCE; opened++)
		open_one(&p[opened]);
	while (over < n) {
		assert_true(poll(p, AT_ONCE, PATIENCE_MS * 4) > 0);
		for (unsigned i = 0; i < AT_ONCE; i++) {
			if (p[i].fd < 0 || !go_on(&p[i], over + i))
				continue;
			over++;
			p[i].fd = -1;
			if (opened++ < n)
				open_one(&p[i]);
		}
	}
}

static void all_come_back_after_a_storm(void **state)
{
	int responder = listen_on_loopback(4, 7777), server;
	cpu_set_t cpus, one;

	(void)state;
	sched_getaffinity(0, sizeof(one), &one);
	memset(&cpus, 0xff, sizeof(cpus));
	sched_setaffinity(0, sizeof(cpus), &cpus);
	employ(WORKERS, 5, 1000);
	count_responder(4, responder);
	server = workers_serve(responder);
	storm(CONNECTIONS);
	/* a few were reset before they were established, which only a sweep can see */
	for (int i = 0; i < 100 && count_all().inuse; i++) {
		usleep(50000);
		count_sweep();
	}
	count_await(0, 0);
	assert_true(count_all().moves > CONNECTIONS / 10);
	assert_in_range(count_all().most, 2, 5);
	assert_int_equal(count_all().takes, count_all().gives);
	storm(AT_ONCE);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	close(responder);
	sched_setaffinity(0, sizeof(one), &one);
}

#define wire_test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		wire_test(never_more_than_the_cap_before_the_ack),
		wire_test(a_flood_holds_what_it_may),
		wire_test(a_syn_sent_again_takes_nothing_more),
		wire_test(the_same_ports_again),
		wire_test(strange_segments_leave_nothing),
		wire_test(sweeps_leave_alone_what_lives),
		wire_test(missing_once_is_not_gone),
		wire_test(requests_that_time_out),
		wire_test(syns_that_the_stack_drops),
		wire_test(other_namespaces_are_left_alone_for_ten_minutes),
		wire_test(cookies_come_home),
		wire_test(cookies_are_counted_exactly),
		wire_test(a_cookie_without_a_slot),
		wire_test(all_come_back_after_a_storm),
	};

	return cmocka_run_group_tests(tests, counting_up, counting_down);
}
