// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Idle upstream connections: which are closed, and above all which never are. How responses are
// read is in test_upstream_http.c, what happens under load in test_upstream_load.c.

#include "lib/upstream_talk.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- time ----------------------------------------------------------------------------------- */

static void test_pauses(void **state)
{
	static const char *const heads[] = {OK "Content-Length: 60\r\n\r\n", SSE};
	struct upstreams *u = *state;

	for (unsigned i = 0; i < ROWS(heads); i++) {
		struct upstream_pair p = open_steered(u);

		ask(&p, GET);
		answer(&p, heads[i]);
		for (int token = 0; token < 3; token++) {
			pause_ms(300);
			expect_open(u, &p);
			answer(&p, TOKEN);
		}
		if (i)
			answer(&p, "0\r\n\r\n");
		expect_closed(u, &p);
		upstream_end(&p);
	}
}

static void test_idle_for_long_enough(void **state)
{
	struct upstreams *u = *state;
	struct upstream_pair p = open_steered(u);

	ask(&p, GET);
	answer(&p, COUNTED);
	pause_ms(60);
	assert_int_equal(upstream_close(u, 60000), 0);
	assert_int_equal(upstream_close(u, 50), 1);
	upstream_end(&p);
}

/* ---- whose ---------------------------------------------------------------------------------- */

static void test_only_the_worker(void **state)
{
	struct sw_socket mine = upstream_row(UP_WORKER), other = upstream_row(UP_WORKER + 1),
			 none = {.port = 80}, plain = {.slot = UP_WORKER + 1};
	const struct sw_socket *rows[] = {&mine, &other, &none, &plain, NULL};
	struct upstream_pair p[ROWS(rows)];
	struct upstreams *u = *state;

	for (unsigned i = 0; i < ROWS(rows); i++) {
		p[i] = upstream_open(u, rows[i], false);
		ask(&p[i], GET);
		answer(&p[i], COUNTED);
	}
	expect_closed(u, &p[0]);
	assert_int_equal(upstream_close(u, 0), 0);
	for (unsigned i = 0; i < ROWS(rows); i++) {
		assert_int_equal(upstream_gone(p[i].router), i == 0);
		assert_int_equal(send(p[i].router, GET, 1, MSG_NOSIGNAL), i ? 1 : -1);
		upstream_end(&p[i]);
	}
}

static void test_ipv6(void **state)
{
	struct sw_socket row = upstream_row(UP_WORKER);
	struct upstreams *u = *state;
	struct upstream_pair p;

	if (u->listener[1] < 0) {
		print_message("skip: no IPv6\n");
		skip();
	}
	p = upstream_open(u, &row, true);
	ask(&p, GET);
	expect_open(u, &p);
	answer(&p, COUNTED);
	expect_closed(u, &p);
	upstream_end(&p);
}

/* Older than the programs: nobody knows what is under way. */
static void test_seen_from_the_start(void **state)
{
	struct upstreams *u = *state;
	struct sw_socket row = upstream_row(UP_WORKER);
	struct upstream_pair p = upstream_open(u, NULL, false);

	upstream_set_row(u, p.router, &row);
	ask(&p, GET);
	answer(&p, COUNTED);
	pause_ms(5);
	expect_open(u, &p);
	upstream_end(&p);
}

/* ---- a router that asks before it sends ----------------------------------------------------- */

static void test_asked(void **state)
{
	struct upstreams *u = *state;
	struct upstream_pair p = open_steered(u);

	upstream_avoid(u, true);
	assert_int_equal(upstream_error(p.router), 0); /* it has just connected */
	ask(&p, GET);
	assert_int_equal(upstream_error(p.router), 0);
	answer(&p, COUNTED);
	assert_int_equal(upstream_error(p.router), ECONNRESET);
	upstream_avoid(u, false);
	assert_int_equal(upstream_error(p.router), 0);
	for (int i = 0; i < 10; i++) {
		expect_open(u, &p); /* its request may be on its way now */
		pause_ms(10);
	}
	expect_closed(u, &p);
	assert_int_equal(upstream_error(p.router), ECONNABORTED);
	upstream_end(&p);
}

static void test_asked_of_others(void **state)
{
	struct upstreams *u = *state;
	struct upstream_pair p = upstream_open(u, NULL, false);

	upstream_avoid(u, true);
	ask(&p, GET);
	answer(&p, COUNTED);
	assert_int_equal(upstream_error(p.router), 0);
	upstream_avoid(u, false);
	upstream_end(&p);
}

/* ---- what TCP knows ------------------------------------------------------------------------- */

static void test_unread_response(void **state)
{
	struct upstreams *u = *state;
	struct upstream_pair p = open_steered(u);

	ask(&p, GET);
	upstream_send(p.server, COUNTED, strlen(COUNTED));
	pause_ms(5);
	expect_open(u, &p);
	upstream_take(p.router, strlen(COUNTED) - 1);
	expect_open(u, &p);
	upstream_take(p.router, 1);
	expect_closed(u, &p);
	upstream_end(&p);
}

/* The next request is written and has not left, or has not arrived. */
static void test_request_on_its_way(void **state)
{
	struct upstreams *u = *state;
	struct upstream_pair p = open_steered(u);

	ask(&p, GET);
	answer(&p, COUNTED);
	upstream_lose(u, GATE_OUT, p.router);
	upstream_send(p.router, GET, strlen(GET));
	expect_open(u, &p);
	upstream_lose_nothing(u);
	upstream_take(p.server, strlen(GET));
	upstream_lose(u, GATE_IN, p.server);
	answer(&p, COUNTED);
	upstream_send(p.router, GET, strlen(GET));
	expect_open(u, &p);
	upstream_lose_nothing(u);
	upstream_take(p.server, strlen(GET));
	expect_open(u, &p);
	answer(&p, COUNTED);
	expect_closed(u, &p);
	upstream_end(&p);
}

/* The server has answered before it had all of the request. */
static void test_early_answer(void **state)
{
	static const char head[] = "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
	struct upstreams *u = *state;
	struct upstream_pair p = open_steered(u);

	ask(&p, head);
	answer(&p, COUNTED);
	expect_open(u, &p);
	upstream_lose(u, GATE_IN, p.server);
	upstream_send(p.router, "body", 4);
	expect_open(u, &p);
	upstream_lose_nothing(u);
	upstream_take(p.server, 4);
	expect_closed(u, &p);
	upstream_end(&p);
}

/* Seen by the program, lost, and sent again: whole, and together with what follows. */
static void test_sent_again(void **state)
{
	static const char response[] = SSE TOKEN "0\r\n\r\n";
	struct upstreams *u = *state;

	for (size_t n = 1; n < sizeof(response) - 1; n += 7) {
		struct upstream_pair p = open_steered(u);

		upstream_lose(u, GATE_OUT, p.router);
		upstream_send(p.router, GET, strlen(GET));
		upstream_lose_nothing(u);
		upstream_take(p.server, strlen(GET));
		upstream_lose(u, GATE_IN, p.router);
		upstream_send(p.server, response, n);
		upstream_send(p.server, response + n, sizeof(response) - 1 - n);
		expect_open(u, &p);
		upstream_lose_nothing(u);
		upstream_take(p.router, sizeof(response) - 1);
		expect_closed(u, &p);
		upstream_end(&p);
	}
}

/* Lost before the program saw it, so that what follows comes first: of no matter to counted bytes,
 * and never to be trusted where something has to be read. */
static void test_out_of_order(void **state)
{
	static const char *const heads[] = {OK "Content-Length: 60\r\n\r\n", SSE};
	struct upstreams *u = *state;

	for (unsigned i = 0; i < ROWS(heads); i++) {
		struct upstream_pair p = open_steered(u);
		int cut;

		ask(&p, GET);
		answer(&p, heads[i]);
		cut = upstream_cut(p.router);
		upstream_send(p.server, TOKEN, 20);
		close(cut);
		upstream_send(p.server, TOKEN, 20);
		upstream_send(p.server, TOKEN, 20);
		upstream_take(p.router, 60);
		if (i)
			answer(&p, "0\r\n\r\n");
		pause_ms(5);
		if (i)
			expect_open(u, &p);
		else
			expect_closed(u, &p);
		upstream_end(&p);
	}
}

/* On a kernel that cannot close, that the programs load and let everything pass. */
static void test_passes(void **state)
{
	struct upstream_pair p = open_steered(*state);

	ask(&p, GET);
	answer(&p, COUNTED);
	upstream_end(&p);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_idle_for_long_enough),
		cmocka_unit_test(test_only_the_worker),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_seen_from_the_start),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_asked_of_others),
		cmocka_unit_test(test_unread_response),
		cmocka_unit_test(test_request_on_its_way),
		cmocka_unit_test(test_early_answer),
		cmocka_unit_test(test_sent_again),
		cmocka_unit_test(test_out_of_order),
	};
	const struct CMUnitTest few[] = {cmocka_unit_test(test_passes)};

	if (upstream_supported())
		return cmocka_run_group_tests(all, upstreams_up, upstreams_down);
	return cmocka_run_group_tests(few, upstreams_up, upstreams_down);
}
