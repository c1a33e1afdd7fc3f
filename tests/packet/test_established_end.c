// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How connections end on which requests were shed: from either side, at any moment, and not by what
// only looks like an end.

#include "lib/spy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- ends ------------------------------------------------------------------------------------ */
static void server_closes(int family)
{
	struct ends e = shed_once(family);

	ends_cleanly(&e);
	e = shed_once(family);
	is_shed(&e, a_post(100000));
	ends_cleanly(&e);
}
FAMILY_TEST(server_closes)

static void client_closes(int family)
{
	struct ends e = shed_once(family);
	struct spy s = spy_on(&e);

	is_shed(&e, a_post(100000));
	shutdown(e.client, SHUT_WR);
	hear_end(e.server);
	tell(e.server, "and yet");
	hear(e.client, "and yet");
	ends_close(&e.server);
	hear_end(e.client);
	spy_catch_up(&s);
	assert_int_equal(s.resets, 0);
}
FAMILY_TEST(client_closes)

/* FIN on the heels of a request whose answer is lost. */
static void half_closed_while_unanswered(int family)
{
	struct ends e = shed_once(family);

	lose(LOSS_IN, 100, 0, 1);
	tell(e.client, GET_CHAT);
	shutdown(e.client, SHUT_WR);
	hear(e.client, busy());
	was_lost(LOSS_IN, 1);
	hear_end(e.server);
	ends_cleanly(&e);
}
FAMILY_TEST(half_closed_while_unanswered)

static void request_with_fin(int family)
{
	struct ends e = shed_once(family);
	int on = 1, off = 0;

	setsockopt(e.client, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
	tell(e.client, GET_CHAT);
	shutdown(e.client, SHUT_WR);
	setsockopt(e.client, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
	hear(e.server, GET_CHAT);
	hear_end(e.server);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	ends_cleanly(&e);
}
FAMILY_TEST(request_with_fin)

static void server_closes_while_unanswered(int family)
{
	struct ends e = shed_once(family);

	lose(LOSS_IN, 100, 0, 1);
	tell(e.client, GET_CHAT);
	usleep(2000);
	was_lost(LOSS_IN, 1);
	shutdown(e.server, SHUT_WR);
	hear(e.client, busy());
	hear_end(e.client);
	ends_close(&e.client);
	hear_end(e.server);
}
FAMILY_TEST(server_closes_while_unanswered)

static void client_gives_up(int family, bool at_once)
{
	struct ends e = shed_once(family);
	const char *post = a_post(5000);

	tell_bytes(e.client, post, 2000);
	hear_nothing(e.server);
	if (at_once) {
		ends_reset(&e.client);
		hear_reset(e.server);
		return;
	}
	shutdown(e.client, SHUT_WR);
	hear_end(e.server);
	assert_int_equal(counted_kept(SW_R_alone_close), family == 4 ? 1 : 2);
	ends_cleanly(&e);
}

static void client_closes_in_a_body(int family)
{
	client_gives_up(family, false);
}
FAMILY_TEST(client_closes_in_a_body)

static void client_resets_in_a_body(int family)
{
	client_gives_up(family, true);
}
FAMILY_TEST(client_resets_in_a_body)

/* The server spoke first, so that the connection is left alone for that, and for nothing else. */
static void client_closes_when_told_to(int family)
{
	struct ends e = shed_once(family);

	tell_bytes(e.client, a_post(5000), 2000);
	hear_nothing(e.server);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	shutdown(e.client, SHUT_WR);
	hear_end(e.server);
	assert_int_equal(counted_kept(SW_R_alone_response), family == 4 ? 1 : 2);
	assert_int_equal(counted_kept(SW_R_alone_close), 0);
	ends_cleanly(&e);
}
FAMILY_TEST(client_closes_when_told_to)

/* The FIN overtakes the body: the answer is owed all the same. */
static void fin_overtakes_the_body(int family)
{
	struct ends e = shed_once(family);
	const char *post = a_post(1000);
	size_t head = strlen(post) - 1000;

	tell_bytes(e.client, post, head);
	usleep(2000);
	lose(LOSS_OUT, 1, 0, 1);
	tell(e.client, post + head);
	shutdown(e.client, SHUT_WR);
	hear(e.client, busy());
	was_lost(LOSS_OUT, 1);
	hear_end(e.server);
	ends_cleanly(&e);
}
FAMILY_TEST(fin_overtakes_the_body)

static void server_closes_in_a_body(int family)
{
	struct ends e = shed_once(family);
	const char *post = a_post(5000);

	tell_bytes(e.client, post, 2000);
	hear_nothing(e.server);
	shutdown(e.server, SHUT_WR);
	hear_end(e.client);
	tell(e.client, post + 2000); /* an answer behind the end would be a reset */
	usleep(20000);
	hear_end(e.client);
	shutdown(e.client, SHUT_WR);
	hear_end(e.server);
	ends_cleanly(&e);
}
FAMILY_TEST(server_closes_in_a_body)

static void await_acknowledged(int fd)
{
	int left = 1;

	for (int i = 0; i < 500 && left; i++) {
		usleep(10000);
		assert_int_equal(ioctl(fd, SIOCOUTQ, &left), 0);
	}
	assert_int_equal(left, 0);
}

/* It says something while a body is swallowed, and goes on: an answer would come in its place. */
static void server_speaks_in_a_body(int family)
{
	struct ends e = shed_once(family);
	const char *post = a_post(5000);
	size_t rest = strlen(post) - 1000;

	tell_bytes(e.client, post, 2000);
	hear_nothing(e.server);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	usleep(60000); /* its acknowledgement, delayed, reaches the server */
	tell_bytes(e.client, post + 2000, rest - 2000);
	lose(LOSS_IN, 0, 0, 1); /* what acknowledges the last of it */
	tell(e.client, post + rest);
	hear_nothing(e.client);
	await_acknowledged(e.client);
	was_lost(LOSS_IN, 1);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	pool_open();
	is_served(&e, a_post(100));
	is_served(&e, GET_CHAT);
}
FAMILY_TEST(server_speaks_in_a_body)

static void resets(int family)
{
	struct ends e = shed_once(family);

	ends_reset(&e.client);
	hear_reset(e.server);
	e = shed_once(family);
	ends_reset(&e.server);
	hear_reset(e.client);
	e = shed_once(family);
	is_shed(&e, a_post(30000));
	ends_reset(&e.server);
	hear_reset(e.client);
}
FAMILY_TEST(resets)

/* None of these ends a connection, so none may end its translation. */
static void strays(int family)
{
	struct ends e = shed_once(family);
	struct spy s = spy_on(&e);
	const char *post;

	is_shed(&e, a_post(1000));
	spy_send(&s, SPY_RST, 1, "", 0);
	spy_send(&s, SPY_RST, 500, "", 0); /* of the body that was shed */
	spy_send(&s, SPY_RST, 5000, "", 0);
	spy_send(&s, SPY_RST, -100000000, "", 0);
	spy_send(&s, SPY_RST, -10, "", 0);
	goes_on(&e);
	spy_send(&s, SPY_SYN, 1, "", 0);
	spy_send(&s, SPY_SYN, 0, "", 0);
	spy_send(&s, SPY_SYN, 50000, "", 0);
	goes_on(&e);
	post = a_post(1000);
	tell_bytes(e.client, post, strlen(post) - 100);
	usleep(1000);
	spy_send(&s, SPY_RST, 100, "", 0); /* of the body that is being swallowed */
	spy_send(&s, SPY_RST, -10, "", 0);
	is_shed(&e, post + strlen(post) - 100);
	spy_send(&s, SPY_FIN | SPY_ACK, 100, "", 0);
	spy_send(&s, SPY_FIN | SPY_ACK, -100, "", 0);
	usleep(1000);
	goes_on(&e);
}
FAMILY_TEST(strays)

static void same_port_again(int family)
{
	int listener = ends_listen(family, 0);
	struct ends e = {0};

	pool_sheds(SW_CAUSE_SATURATED);
	for (int i = 0; i < 12; i++) {
		e = ends_connect(family, ends_socket(family, CLIENT, 0), listener, 30000 + family);
		for (int k = 0; k < i; k++)
			is_shed(&e, k % 2 ? GET_CHAT : a_post(3000));
		goes_on(&e);
		if (i % 2) {
			ends_reset(&e.client);
			hear_reset(e.server);
			ends_close(&e.server);
		} else {
			ends_close(&e.server); /* which then waits */
			hear_end(e.client);
			ends_close(&e.client);
		}
		usleep(2000);
	}
}
FAMILY_TEST(same_port_again)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_server_closes),
		kept_test(test_client_closes),
		kept_test(test_half_closed_while_unanswered),
		kept_test(test_request_with_fin),
		kept_test(test_server_closes_while_unanswered),
		kept_test(test_client_closes_in_a_body),
		kept_test(test_client_resets_in_a_body),
		kept_test(test_client_closes_when_told_to),
		kept_test(test_fin_overtakes_the_body),
		kept_test(test_server_closes_in_a_body),
		kept_test(test_server_speaks_in_a_body),
		kept_test(test_resets),
		kept_test(test_strays),
		kept_test(test_same_port_again),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
