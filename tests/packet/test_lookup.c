// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Who gets a connection that sk_lookup gives away, and what counts as one: workers behind a port on
// which nobody listens, real connections, and SYNs of a client that never answers. How slots come
// back when things go wrong is in test_reserve.c.

#include "lib/counting.h"
#include "lib/local.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOME = 4 };

/* `n` workers of a family, each with room for `cap`. */
static void employ(int family, unsigned n, uint32_t cap)
{
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN, SW_MAX_RESERVATIONS, 60000);
	for (unsigned i = 0; i < n; i++) {
		count_worker(ID_FIRST + i, family, PORT_FIRST + i, cap);
		worker_listen(i, family, false);
	}
}

static bool can(int family)
{
	return family == 4 || counting->w->ipv6;
}

/* ---- to whom --------------------------------------------------------------------------------- */

static void goes_to_a_worker_and_holds_a_slot(void **state)
{
	(void)state;
	for (int family = 4; family <= 6 && can(family); family += 2) {
		int fd, served, worker;

		employ(family, SOME, 2);
		fd = ask_virtual(family);
		assert_true(fd >= 0);
		served = worker_accept(&worker);
		assert_true(served >= 0);
		count_await(1, 0);
		assert_int_equal(count_slot(ID_FIRST + worker).inuse, 1);
		close(fd);
		close(served);
		count_await(0, 0);
		workers_close();
	}
	assert_int_equal(count_steers().steered, can(6) ? 2 : 1);
	assert_int_equal(count_all().moves, count_all().takes);
}

/* Each of those that are not busy gets its share, by and large; busy ones get nothing. */
static void spreads_over_those_that_are_not_busy(void **state)
{
	(void)state;
	employ(4, WORKERS, 1000);
	for (unsigned i = 0; i < WORKERS; i += 2)
		count_busy(ID_FIRST + i, true);
	for (unsigned n = 0; n < 800; n++)
		ask_and_close(4);
	for (unsigned i = 0; i < WORKERS; i++) {
		uint64_t got = count_slot(ID_FIRST + i).moves;

		if (i % 2)
			assert_in_range(got, 140, 260);
		else
			assert_int_equal(got, 0);
	}
}

static void never_more_than_the_cap(void **state)
{
	int fd[3 * SOME];

	(void)state;
	employ(4, SOME, 3);
	for (unsigned i = 0; i < 3 * SOME; i++) {
		fd[i] = ask_virtual(4);
		assert_true(fd[i] >= 0);
	}
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	assert_int_equal(count_all().inuse, 3 * SOME);
	assert_int_equal(count_all().most, 3);
	assert_true(count_steers().no_slot >= 1 && count_steers().refused >= 1);
	for (unsigned i = 0; i < 3 * SOME; i++)
		close(fd[i]);
	workers_end_all();
}

/* A server on [::] serves IPv4 too, and its connections are its own whatever they look like. */
static void dual_stack_listeners(void **state)
{
	(void)state;
	if (!can(6))
		skip();
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN, 2, 60000);
	count_worker(ID_FIRST, 4, PORT_FIRST, 2);
	worker_listen(0, 6, true);
	for (int family = 4; family <= 6; family += 2) {
		int fd = ask_virtual(family);

		assert_true(fd >= 0);
		count_await(1, 0);
		close(fd);
		workers_end_all();
		count_await(0, 0);
	}
}

/* A worker that cannot take this kind of address is not to be blamed for it. */
static void the_other_family_is_left_out(void **state)
{
	(void)state;
	if (!can(6))
		skip();
	employ(4, 1, 100);
	count_worker(ID_FIRST + 1, 6, PORT_FIRST + 1, 100);
	worker_listen(1, 6, false);
	for (unsigned n = 0; n < 20; n++)
		ask_and_close(n % 2 ? 4 : 6);
	assert_int_equal(count_slot(ID_FIRST).moves, 10);
	assert_int_equal(count_slot(ID_FIRST + 1).moves, 10);
	assert_false(count_suspect(ID_FIRST) || count_suspect(ID_FIRST + 1));
}

/* ---- workers that come and go ------------------------------------------------------------------
 */

static void a_dead_worker_gets_nothing(void **state)
{
	(void)state;
	employ(4, SOME, 100);
	worker_close(1);
	assert_false(count_listens(ID_FIRST + 1));
	for (unsigned n = 0; n < 40; n++)
		ask_and_close(4);
	assert_int_equal(count_slot(ID_FIRST + 1).moves, 0);
	assert_int_equal(count_slot(ID_FIRST + 1).refusals, 1); /* one try, and it is a suspect */
	assert_true(count_suspect(ID_FIRST + 1));
	assert_int_equal(count_steers().no_listener, 1);
	assert_int_equal(count_steers().suspected, 1);
	assert_int_equal(count_all().moves, 40);
}

static void all_dead_is_nobody(void **state)
{
	(void)state;
	employ(4, 2, 100);
	workers_close();
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	assert_true(count_steers().unavailable >= 1);
	assert_int_equal(count_all().inuse, 0);
}

static void a_restart_is_seen_at_once(void **state)
{
	(void)state;
	employ(4, 1, 100);
	ask_and_close(4);
	worker_close(0);
	worker_listen(0, 4, false);
	ask_and_close(4);
	worker_close(0);
	worker_listen(0, 4, true); /* now on any address */
	ask_and_close(4);
	assert_int_equal(count_slot(ID_FIRST).moves, 3);
	assert_int_equal(count_steers().no_listener, 0);
}

static bool can_find(void)
{
	if (counting->w->finder)
		return true;
	print_message("skip: this kernel lets us look for no listening sockets\n");
	return false;
}

/* What listened before anything was attached. */
static void listeners_are_found(void **state)
{
	(void)state;
	if (!can_find())
		skip();
	employ(4, 3, 100);
	workers_close();
	counting_hears_nothing(true);
	worker_listen(0, 4, false);
	worker_listen(1, 4, true);
	counting_hears_nothing(false);
	assert_false(count_listens(ID_FIRST) || count_listens(ID_FIRST + 1));
	assert_int_equal(count_find(), 2);
	assert_true(count_listens(ID_FIRST) && count_listens(ID_FIRST + 1));
	assert_int_equal(count_find(), 2);
	count_member(ID_FIRST + 2, false);
	for (unsigned n = 0; n < 20; n++)
		ask_and_close(4);
	assert_int_equal(count_steers().no_listener, 0);
	/* one that has another's place in the map gives way to the right one */
	count_worker(ID_FIRST, 4, PORT_FIRST + 1, 100);
	count_find();
	count_member(ID_FIRST + 1, false);
	worker_close(0);
	ask_and_close(4);
	assert_int_equal(count_steers().no_listener, 0);
}

static void workers_of_other_namespaces_are_not_looked_for(void **state)
{
	(void)state;
	if (!can_find())
		skip();
	employ(4, 1, 100);
	workers_close();
	counting_hears_nothing(true);
	worker_listen(0, 4, false);
	counting_hears_nothing(false);
	count_worker_elsewhere(ID_FIRST);
	assert_int_equal(count_find(), 0);
	assert_false(count_listens(ID_FIRST));
}

/* ---- nothing free -----------------------------------------------------------------------------
 */

static void the_responder_answers(void **state)
{
	(void)state;
	for (int family = 4; family <= 6 && can(family); family += 2) {
		int responder = listen_on_loopback(family, 7777), fd, served;

		employ(family, 1, 0);
		count_responder(family, responder);
		fd = ask_virtual(family);
		assert_true(fd >= 0);
		served = accept(responder, NULL, NULL);
		assert_true(served >= 0);
		close(fd);
		close(served);
		close(responder);
		workers_close();
	}
	assert_int_equal(count_steers().answered, can(6) ? 2 : 1);
	assert_int_equal(count_all().takes, 0);
}

static void each_cause_is_counted(void **state)
{
	(void)state;
	employ(4, 1, 1);
	count_busy(ID_FIRST, true);
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	assert_true(count_steers().all_busy >= 1);
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN | SW_SF_CLOSED, 10, 60000);
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	assert_true(count_steers().closed >= 1);
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN, 0, 60000);
	count_busy(ID_FIRST, false);
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	assert_true(count_steers().half_open_limit >= 1);
	count_member(ID_FIRST, false);
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN, 10, 60000);
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	assert_true(count_steers().unavailable >= 1);
}

/* Nobody renews the deadline: busy is ignored, caps stay, and nobody is left to answer. */
static void without_a_daemon_caps_stay(void **state)
{
	int responder = listen_on_loopback(4, 7777), fd;

	(void)state;
	employ(4, 1, 1);
	count_responder(4, responder);
	count_busy(ID_FIRST, true);
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN, 10, -100);
	fd = ask_virtual(4);
	assert_true(fd >= 0);
	count_await(1, 0);
	assert_true(count_steers().overdue >= 1);
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	assert_int_equal(count_steers().answered, 0);
	close(fd);
	close(responder);
	workers_end_all();
}

/* ---- pools that are counted as a whole ---------------------------------------------------------
 */

static int ask_main(void)
{
	return ask_loopback(4, PORT_MAIN);
}

static void a_guarded_server_is_counted(void **state)
{
	int first, second;

	(void)state;
	count_row(2);
	first = ask_main();
	second = ask_main();
	assert_true(first >= 0 && second >= 0);
	count_await(2, 0);
	assert_int_equal(ask_main(), -ECONNREFUSED);
	assert_int_equal(count_slot(ID_ROW).most, 2);
	close(first);
	close(second);
	end_all_of(counting->w->listener[4]);
	count_await(0, 0);
}

/* Let in, and not counted: when no daemon renews the deadline, when the operator only looks on, and
 * when the source is exempt. */
static void who_is_let_in_without_a_slot(void **state)
{
	struct sw_listener l = world_default_listener(ID_MAIN);

	(void)state;
	count_row(0);
	assert_int_equal(ask_main(), -ECONNREFUSED);
	count_pool(SW_SF_COUNT, 10, -100);
	close(ask_main());
	count_pool(SW_SF_COUNT, 10, 60000);
	l.flags = SW_LF_OBSERVE;
	world_listener(counting->w, ID_MAIN, &l);
	close(ask_main());
	l.flags = SW_LF_EXEMPT;
	world_listener(counting->w, ID_MAIN, &l);
	assert_int_equal(ask_main(), -ECONNREFUSED);
	world_exempt(counting->w, 4, "127.0.0.0/8", true);
	close(ask_main());
	world_exempt(counting->w, 4, "127.0.0.0/8", false);
	assert_int_equal(count_steers().passed, 3);
	assert_int_equal(count_all().takes, 0);
	end_all_of(counting->w->listener[4]);
}

static void pools_that_are_not_counted_are_left_alone(void **state)
{
	(void)state;
	count_row(0);
	count_pool(0, 10, 60000);
	close(ask_main());
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	end_all_of(counting->w->listener[4]);
	assert_int_equal(count_steers().refused, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		counting_test(goes_to_a_worker_and_holds_a_slot),
		counting_test(spreads_over_those_that_are_not_busy),
		counting_test(never_more_than_the_cap),
		counting_test(dual_stack_listeners),
		counting_test(the_other_family_is_left_out),
		counting_test(a_dead_worker_gets_nothing),
		counting_test(all_dead_is_nobody),
		counting_test(a_restart_is_seen_at_once),
		counting_test(listeners_are_found),
		counting_test(workers_of_other_namespaces_are_not_looked_for),
		counting_test(the_responder_answers),
		counting_test(each_cause_is_counted),
		counting_test(without_a_daemon_caps_stay),
		counting_test(a_guarded_server_is_counted),
		counting_test(who_is_let_in_without_a_slot),
		counting_test(pools_that_are_not_counted_are_left_alone),
	};

	return cmocka_run_group_tests(tests, counting_up, counting_down);
}
