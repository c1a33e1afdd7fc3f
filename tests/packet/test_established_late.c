// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Connections that were there before following began, of clients that pipeline: what gives them
// away, and that their requests pass then. Real sockets on both sides.

#include "lib/ends.h"

#include <time.h>

#include "spillway.skel.h"

#define NUMBERED(n) "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" #n
#define SECOND_NS   1000000000ULL
#define HOUR_NS	    (3600 * SECOND_NS)

/* Two requests are on their way and one answer is out: to whom begins to look now, the next
 * request seems to be the first. */
static struct ends open_with_one_due(int family)
{
	struct ends e = ends_open(family);

	tell(e.client, GET_CHAT);
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT GET_CHAT);
	tell(e.server, NUMBERED(1));
	hear(e.client, NUMBERED(1));
	return e;
}

static void answer_in_turn(struct ends *e, const char *request, const char *response)
{
	tell(e->client, request);
	hear(e->server, request);
	tell(e->server, response);
	hear(e->client, response);
}

/* A connection of before, with nothing due, and the pool sheds: is its second request shed? */
static void check_another(int family, bool shed)
{
	struct ends e;

	pool_open();
	e = ends_open(family);
	answer_in_turn(&e, GET_CHAT, OK_RESPONSE);
	pool_sheds(SW_CAUSE_SATURATED);
	answer_in_turn(&e, GET_CHAT, OK_RESPONSE);
	if (shed)
		is_shed(&e, GET_CHAT);
	else
		answer_in_turn(&e, GET_CHAT, OK_RESPONSE);
}

/* A server that reads one request at a time answers the second while the third lies unread. */
static void answer_of_an_unread_one(int family)
{
	struct ends e = open_with_one_due(family);

	pool_sheds(SW_CAUSE_SATURATED);
	tell(e.client, GET_CHAT);
	hear_nothing(e.client);
	tell(e.server, NUMBERED(2));
	hear(e.client, NUMBERED(2));
	hear(e.server, GET_CHAT);
	tell(e.client, GET_CHAT); /* the third has no answer yet */
	hear(e.server, GET_CHAT);
	tell(e.server, NUMBERED(3));
	hear(e.client, NUMBERED(3));
	answer_in_turn(&e, GET_CHAT, NUMBERED(4));
	assert_int_equal(counted_kept(SW_R_alone_response), family == 4 ? 1 : 2);
	check_another(family, false);
}
FAMILY_TEST(answer_of_an_unread_one)

/* One that reads all there is gives two answers, where only one seemed to be due. */
static void answer_that_nobody_asked_for(int family)
{
	struct ends e = open_with_one_due(family);

	pool_sheds(SW_CAUSE_SATURATED);
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	tell(e.server, NUMBERED(2));
	tell(e.server, NUMBERED(3));
	hear(e.client, NUMBERED(2) NUMBERED(3));
	answer_in_turn(&e, GET_CHAT, NUMBERED(4));
	check_another(family, false);
}
FAMILY_TEST(answer_that_nobody_asked_for)

/* Whoever waits for answers is shed on, on such connections as well. */
static void client_that_waits(int family)
{
	check_another(family, true);
}
FAMILY_TEST(client_that_waits)

static void two_at_once(int family)
{
	struct ends e;

	pool_armed();
	e = ends_open(family);
	tell(e.client, GET_CHAT GET_CHAT);
	hear(e.server, GET_CHAT GET_CHAT);
	tell(e.server, OK_RESPONSE OK_RESPONSE);
	hear(e.client, OK_RESPONSE OK_RESPONSE);
	check_another(family, false);
	/* but this one is known from its first byte */
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(two_at_once)

static void before_the_rest(int family, const char *begin, const char *rest)
{
	struct ends e;

	pool_armed();
	e = ends_open(family);
	answer_in_turn(&e, GET_CHAT, begin);
	answer_in_turn(&e, GET_CHAT, rest);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	check_another(family, false);
}

static void before_the_length(int family)
{
	before_the_rest(family, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "lo");
}
FAMILY_TEST(before_the_length)

static void before_the_last_chunk(int family)
{
	before_the_rest(family, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
			"0\r\n\r\n");
}
FAMILY_TEST(before_the_last_chunk)

/* It is remembered for an hour. */
static void long_ago(int family)
{
	uint8_t client[16];
	struct timespec now;
	uint64_t at;

	ends_address(family, CLIENT, client);
	clock_gettime(CLOCK_MONOTONIC, &now);
	at = now.tv_sec * SECOND_NS + now.tv_nsec - HOUR_NS - SECOND_NS;
	kept_put(kept.skel->maps.pipelining, client, &at);
	check_another(family, true);
	at += 60 * SECOND_NS;
	kept_put(kept.skel->maps.pipelining, client, &at);
	check_another(family, false);
}
FAMILY_TEST(long_ago)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_answer_of_an_unread_one),
		kept_test(test_answer_that_nobody_asked_for),
		kept_test(test_client_that_waits),
		kept_test(test_two_at_once),
		kept_test(test_before_the_length),
		kept_test(test_before_the_last_chunk),
		kept_test(test_long_ago),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
