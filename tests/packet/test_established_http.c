// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Where requests and responses begin and end, however they are cut, and when one is under way: what
// is shed is one whole request, when nothing else is asked.

#include "lib/ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNKED	   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define HALF	   "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"
#define OTHER_HALF "world"

/* ---- bodies ---------------------------------------------------------------------------------- */

static void body_in_later_segments(int family)
{
	static const size_t sizes[] = {1, 2, 1000, 1448, 4096, 65536, 1000000};
	struct ends e;

	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_open(family);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const char *post = a_post(sizes[i]);
		size_t head = strstr(post, "\r\n\r\n") + 4 - post;

		tell_bytes(e.client, post, head);
		hear_nothing(e.client); /* the answer comes after the body */
		tell_bytes(e.client, post + head, sizes[i] - 1);
		hear_nothing(e.client);
		is_shed(&e, post + strlen(post) - 1);
	}
	pool_finishes();
	is_served(&e, a_post(1000));
}
FAMILY_TEST(body_in_later_segments)

static void opens_in_a_body(int family)
{
	const char *post;
	struct ends e;

	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_open(family);
	post = a_post(1000);
	tell_bytes(e.client, post, 200);
	hear_nothing(e.server);
	pool_open();
	tell(e.client, post + 200);
	hear(e.client, busy());
	hear_nothing(e.server);
	is_served(&e, GET_CHAT);
	/* and the other way round: what was let in is served to its end */
	tell_bytes(e.client, post, 200);
	hear_bytes(e.server, post, 200);
	pool_sheds(SW_CAUSE_SATURATED);
	tell(e.client, post + 200);
	hear(e.server, post + 200);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(opens_in_a_body)

/* Cut anywhere: whole on one side or the other, and shed if the first part has the head. */
static void cut_anywhere(int family, const char *request)
{
	size_t length = strlen(request), head = strstr(request, "\r\n\r\n") + 4 - request;
	struct ends e;

	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_open(family);
	for (size_t cut = 1; cut < length; cut++) {
		tell_bytes(e.client, request, cut);
		if (cut < head)
			hear_bytes(e.server, request, cut);
		else
			hear_nothing(e.server);
		if (cut >= head) {
			is_shed(&e, request + cut);
			continue;
		}
		tell(e.client, request + cut);
		hear(e.server, request + cut);
		tell(e.server, OK_RESPONSE);
		hear(e.client, OK_RESPONSE);
		is_shed(&e, request);
	}
}

static void cut_get(int family)
{
	cut_anywhere(family, GET_CHAT);
}
FAMILY_TEST(cut_get)

static void cut_post(int family)
{
	cut_anywhere(family, a_post(40));
}
FAMILY_TEST(cut_post)

/* ---- more than one request ------------------------------------------------------------------- */

static void two_in_a_segment(int family)
{
	struct ends e = shed_once(family);

	tell(e.client, GET_CHAT GET_CHAT);
	hear(e.server, GET_CHAT GET_CHAT);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	tell(e.client, GET_CHAT); /* the second of them has no response yet */
	hear(e.server, GET_CHAT);
	tell(e.server, OK_RESPONSE OK_RESPONSE);
	hear(e.client, OK_RESPONSE OK_RESPONSE);
	is_shed(&e, GET_CHAT);
	/* a request, and the first bytes of the next */
	tell(e.client, GET_CHAT "GET /x");
	hear(e.server, GET_CHAT "GET /x");
	tell(e.client, " HTTP/1.1\r\n\r\n");
	hear(e.server, " HTTP/1.1\r\n\r\n");
	tell(e.server, OK_RESPONSE OK_RESPONSE);
	hear(e.client, OK_RESPONSE OK_RESPONSE);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(two_in_a_segment)

/* Answers what has come so far; each response has the number of its request in it. */
static void serve_numbers(struct ends *e, char *pending)
{
	char *end, out[100];
	ssize_t n = recv(e->server, pending + strlen(pending), 2000, MSG_DONTWAIT);

	(void)n;
	while ((end = strstr(pending, "\r\n\r\n"))) {
		int number = -1;

		if (sscanf(pending, "GET /%d HTTP/1.1\r\n", &number) != 1)
			fail_msg("the server got: %s", pending);
		snprintf(out, sizeof(out), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%05d",
			 number);
		tell(e->server, out);
		memmove(pending, end + 4, strlen(end + 4) + 1);
	}
}

/* Up to `depth` requests on their way at a time, each in a segment of its own. Answers come in
 * their order: the one with number n, or ours, in the place of request n. */
static unsigned pipeline(struct ends *e, unsigned depth, unsigned total)
{
	unsigned asked = 0, answered = 0, shed = 0;
	char request[100], head[80], pending[4096] = "";
	const size_t length = strlen("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n00000");

	while (answered < total) {
		unsigned burst = rand() % (depth + 1);

		for (; burst && asked < total && asked - answered < depth; burst--) {
			sprintf(request, "GET /%u HTTP/1.1\r\nHost: llm\r\n\r\n", asked++);
			tell(e->client, request);
			if (rand() % 3 == 0)
				memset(pending + strlen(pending), 0, 1), serve_numbers(e, pending);
		}
		if (rand() % 2)
			serve_numbers(e, pending);
		if (!hears(e->client, 1))
			continue;
		assert_int_equal(recv(e->client, head, length, MSG_WAITALL), length);
		head[length] = 0;
		if (!memcmp(head, busy(), length)) {
			hear(e->client, busy() + length);
			shed++;
		} else {
			sprintf(request, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%05u",
				answered);
			if (strcmp(head, request))
				fail_msg("in place of answer %u: %s", answered, head);
		}
		answered++;
	}
	return shed;
}

static void pipelining(int family)
{
	unsigned shed = 0;

	pool_sheds(SW_CAUSE_SATURATED);
	for (unsigned depth = 1; depth <= 8; depth++) {
		struct ends e = ends_open(family);

		shed += pipeline(&e, depth, 60);
		ends_close(&e.client);
		ends_close(&e.server);
	}
	assert_true(shed > 0);
}
FAMILY_TEST(pipelining)

/* ---- a response that is under way ------------------------------------------------------------ */

/* The client asks for more before it has all: never answered out of turn. */
static void under_way(int family, const char *first, const char *rest)
{
	struct ends e = shed_once(family);

	pool_finishes();
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	tell(e.server, first);
	hear(e.client, first);
	usleep(60000); /* its acknowledgement, delayed, reaches the server */
	pool_sheds(SW_CAUSE_SATURATED);
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	hear_nothing(e.client);
	tell(e.server, rest);
	hear(e.client, rest);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	is_shed(&e, GET_CHAT);
}

static void response_paused(int family)
{
	under_way(family, HALF, OTHER_HALF);
}
FAMILY_TEST(response_paused)

static void response_without_body_yet(int family)
{
	under_way(family, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello");
}
FAMILY_TEST(response_without_body_yet)

static void response_head_paused(int family)
{
	under_way(family, "HTTP/1.1 200 OK\r\nConte", "nt-Length: 5\r\n\r\nhello");
}
FAMILY_TEST(response_head_paused)

static void stream_paused(int family)
{
	under_way(family, CHUNKED "5\r\nhello\r\n", "0\r\n\r\n");
	under_way(family, CHUNKED, "5\r\nhello\r\n0\r\n\r\n");
	under_way(family, CHUNKED "6\r\nhel", "lo \r\n0;x=y\r\nTrailer: t\r\n\r\n");
}
FAMILY_TEST(stream_paused)

static void informed_first(int family)
{
	under_way(family, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", OK_RESPONSE);
}
FAMILY_TEST(informed_first)

static void server_thinks(int family)
{
	struct ends e;

	pool_armed();
	e = ends_open(family);
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	pool_sheds(SW_CAUSE_SATURATED);
	for (int i = 0; i < 3; i++) {
		usleep(60000);
		tell(e.client, GET_CHAT);
		hear(e.server, GET_CHAT);
	}
	for (int i = 0; i < 4; i++) {
		tell(e.server, OK_RESPONSE);
		hear(e.client, OK_RESPONSE);
	}
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(server_thinks)

/* Picked up while the server still thinks: to what it then says nobody knows the question. */
static void picked_up_while_server_thinks(int family)
{
	struct ends e = ends_open(family);

	usleep(20000);
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	pool_sheds(SW_CAUSE_SATURATED);
	usleep(60000);
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	tell(e.server, OK_RESPONSE); /* to the first of them */
	hear(e.client, OK_RESPONSE);
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	hear_nothing(e.client);
}
FAMILY_TEST(picked_up_while_server_thinks)

/* The response to one request while the body of the next is coming: neither is early. */
static void answered_while_asked(int family)
{
	struct ends e = shed_once(family);
	const char *post = a_post(1000);

	pool_finishes();
	tell(e.client, GET_CHAT);
	tell_bytes(e.client, post, 500);
	hear(e.server, GET_CHAT);
	hear_bytes(e.server, post, 500);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	tell(e.client, post + 500);
	hear(e.server, post + 500);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	pool_sheds(SW_CAUSE_SATURATED);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(answered_while_asked)

/* It has answered, but what it was asked it has not read to the end. */
static void server_has_not_read(int family)
{
	struct ends e = shed_once(family);
	const char *post = a_post(100);
	size_t head = strlen(post) - 100;

	pool_finishes();
	tell(e.client, post);
	hear_bytes(e.server, post, head);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	pool_sheds(SW_CAUSE_SATURATED);
	tell(e.client, GET_CHAT);
	hear(e.server, post + head);
	hear(e.server, GET_CHAT);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(server_has_not_read)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_body_in_later_segments),
		kept_test(test_opens_in_a_body),
		kept_test(test_cut_get),
		kept_test(test_cut_post),
		kept_test(test_two_in_a_segment),
		kept_test(test_pipelining),
		kept_test(test_response_paused),
		kept_test(test_response_without_body_yet),
		kept_test(test_response_head_paused),
		kept_test(test_stream_paused),
		kept_test(test_informed_first),
		kept_test(test_server_thinks),
		kept_test(test_picked_up_while_server_thinks),
		kept_test(test_answered_while_asked),
		kept_test(test_server_has_not_read),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
