// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// From the SYN on: what is held for connections that are not established yet, and how it comes back
// when they never are. SYN cookies and storms are in test_reserve_many.c.

#include "lib/clients.h"

#include <unistd.h>

/* However long the last ACK takes. */
static void never_more_than_the_cap_before_the_ack(void **state)
{
	struct client c[40];

	(void)state;
	employ(2, 2, SW_MAX_RESERVATIONS);
	assert_int_equal(clients_knock(c, 20), 4);
	count_await(4, 4);
	assert_int_equal(count_reservations(), 4);
	assert_int_equal(count_all().moves, 0);
	client_complete(&c[0]);
	client_complete(&c[1]);
	count_await(4, 2);
	assert_int_equal(count_all().moves, 2);
	assert_int_equal(clients_knock(c + 4, 10), 0);
	client_complete(&c[2]);
	client_complete(&c[3]);
	count_await(4, 0);
	assert_int_equal(count_reservations(), 0);
	for (int i = 0; i < 4; i++)
		client_abort(&c[i]);
	count_await(0, 0);
	assert_int_equal(count_all().most, 2);
	assert_int_equal(count_all().takes, 4);
}

static void a_flood_holds_what_it_may(void **state)
{
	struct client c[120];

	(void)state;
	employ(1, 8, 4);
	assert_int_equal(clients_knock(c, 50), 4);
	count_await(4, 4);
	assert_true(count_steers().half_open_limit >= 46);
	for (int i = 0; i < 4; i++)
		client_complete(&c[i]);
	count_await(4, 0);
	assert_int_equal(clients_knock(c + 4, 50), 4);
	count_await(8, 4);
	for (int i = 0; i < 8; i++)
		client_abort(&c[i]);
	assert_int_equal(count_all().most, 8);
}

static void a_syn_sent_again_takes_nothing_more(void **state)
{
	struct client c = {};

	(void)state;
	employ(2, 8, 8);
	for (int i = 0; i < 5; i++)
		assert_true(client_knock(&c));
	count_await(1, 1);
	client_complete(&c);
	count_await(1, 0);
	client_abort(&c);
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
		assert_true(client_knock(&c));
		count_await(1, 1);
		assert_int_equal(count_reservations(), 1);
		client_abort(&c);
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
		client_new(&c);
		client_reply(&c, i % 2 ? TCP_RST : TCP_ACK, "");
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
	assert_int_equal(clients_knock(c, 4), 4);
	client_complete(&c[0]);
	count_await(4, 3);
	for (int i = 0; i < 5; i++)
		assert_int_equal(count_sweep(), 0);
	count_await(4, 3);
	assert_int_equal(count_steers().steered, 4); /* no look-up of a sweep is taken for one */
	client_abort(&c[1]);
	while (!count_sweep())
		usleep(10000);
	count_await(3, 2);
	assert_int_equal(count_steers().swept, 1);
	for (int i = 0; i < 4; i++)
		client_abort(&c[i]);
}

/* Once is not enough: between its reservation and its place in the tables a request is nowhere. */
static void missing_once_is_not_gone(void **state)
{
	struct client c;

	(void)state;
	employ(1, 4, 8);
	assert_int_equal(clients_knock(&c, 1), 1);
	client_abort(&c);
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
	assert_int_equal(clients_knock(c, 4), 4);
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
	assert_true(client_knock(&first));
	client_complete(&first);
	count_await(1, 0);
	for (int i = 0; i < 5; i++) { /* each look-up gives back what the one before has left */
		client_new(&late);
		client_send(&late.syn);
		count_await(2, 1);
	}
	assert_int_equal(count_reservations(), 0);
	usleep(150000);
	count_sweep();
	count_await(1, 0);
	assert_int_equal(count_all().most, 2);
	client_abort(&first);
	count_await(0, 0);
}

static void other_namespaces_are_left_alone_for_ten_minutes(void **state)
{
	struct client c;

	(void)state;
	employ(1, 4, 8);
	assert_int_equal(clients_knock(&c, 1), 1);
	count_age_reservation(590, true);
	client_abort(&c);
	usleep(20000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(count_sweep(), 0);
	count_age_reservation(11, true); /* back to ours, which is none of its business here */
	assert_int_equal(count_sweep(), 1);
	count_await(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		clients_test(never_more_than_the_cap_before_the_ack),
		clients_test(a_flood_holds_what_it_may),
		clients_test(a_syn_sent_again_takes_nothing_more),
		clients_test(the_same_ports_again),
		clients_test(strange_segments_leave_nothing),
		clients_test(sweeps_leave_alone_what_lives),
		clients_test(missing_once_is_not_gone),
		clients_test(requests_that_time_out),
		clients_test(syns_that_the_stack_drops),
		clients_test(other_namespaces_are_left_alone_for_ten_minutes),
	};

	return cmocka_run_group_tests(tests, counting_up, counting_down);
}
