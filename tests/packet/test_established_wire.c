// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What goes over the wire for requests that are shed on a connection: lost, late, corrupt and
// repeated segments. Ends are in test_established_end.c, other numbers in
// test_established_numbers.c.

#include "lib/spy.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* ---- what is lost ---------------------------------------------------------------------------- */

static void answer_lost(int family)
{
	struct ends e = shed_once(family);
	struct spy s = spy_on(&e);
	struct segment g, answers[2];
	unsigned n = 0, requests = 0;

	lose(LOSS_IN, 100, 0, 1);
	is_shed(&e, GET_CHAT);
	was_lost(LOSS_IN, 1);
	while (spy_next(&s, &g, 50)) {
		requests += g.ours && g.length;
		if (!g.ours && g.length && n < 2)
			answers[n++] = g;
	}
	assert_int_equal(requests, 2);
	assert_int_equal(n, 2);
	assert_int_equal(answers[0].seq, answers[1].seq);
	assert_int_equal(answers[0].ack, answers[1].ack);
	assert_int_equal(answers[0].length, KEPT_ANSWER);
	assert_int_equal(answers[1].length, KEPT_ANSWER);
	assert_memory_equal(answers[0].start, answers[1].start, KEPT_ANSWER);
	assert_true(counted_kept(SW_R_shed_again) > 0);
	goes_on(&e);
}
FAMILY_TEST(answer_lost)

/* Nor is the request acknowledged before the answer is there, whatever else goes by. */
static void answer_lost_thrice(int family)
{
	struct ends e = shed_once(family);
	struct spy s = spy_on(&e);
	struct segment g;
	uint32_t from;

	is_shed(&e, GET_CHAT);
	spy_catch_up(&s);
	from = s.next;
	lose(LOSS_IN, 100, 0, 3);
	tell(e.client, GET_CHAT);
	for (int i = 0; i < 3; i++) {
		usleep(30000);
		spy_send(&s, SPY_ACK, s.next - from + 1, "", 0);
	}
	hear(e.client, busy());
	was_lost(LOSS_IN, 3);
	while (spy_next(&s, &g, 0))
		if (!g.ours && !g.length)
			assert_int_equal(g.ack, from);
	goes_on(&e);
}
FAMILY_TEST(answer_lost_thrice)

static struct tcp_info info_of(int fd)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
	return info;
}

static void body_lost(int family)
{
	struct ends e = shed_once(family);
	const char *post;
	uint64_t again;

	for (unsigned skip = 0; skip < 8; skip++) {
		lose(LOSS_OUT, 1000, skip, 1);
		is_shed(&e, a_post(60000));
		lose(LOSS_OUT, 0, 0, 0);
	}
	/* what came behind it has not to come again */
	again = info_of(e.client).tcpi_bytes_retrans;
	post = a_post(50000);
	tell_bytes(e.client, post, strlen(post) - 50000);
	lose(LOSS_OUT, 1, 0, 1);
	tell_bytes(e.client, post + strlen(post) - 50000, 1000);
	is_shed(&e, post + strlen(post) - 49000);
	was_lost(LOSS_OUT, 1);
	assert_true(info_of(e.client).tcpi_bytes_retrans - again < 25000);
	lose(LOSS_OUT, 1, 0, 2);
	is_shed(&e, GET_CHAT);
	was_lost(LOSS_OUT, 2);
	goes_on(&e);
}
FAMILY_TEST(body_lost)

/* The first part of a head is late: what comes behind it must not seem to be all. */
static void head_lost(int family)
{
	struct ends e = shed_once(family);
	const char *post = a_post(30);

	lose(LOSS_OUT, 1, 0, 1);
	tell_bytes(e.client, post, 20);
	tell(e.client, post + 20);
	if (hears(e.client, 2000)) {
		hear(e.client, busy()); /* all of it came again, in one segment */
	} else {
		hear(e.server, post);
		tell(e.server, OK_RESPONSE);
		hear(e.client, OK_RESPONSE);
	}
	was_lost(LOSS_OUT, 1);
	goes_on(&e);
}
FAMILY_TEST(head_lost)

/* The first request overtakes the end of the handshake: it counts all the same. */
static void handshake_lost(int family)
{
	int listener = ends_listen(family, 0), client = ends_socket(family, CLIENT, 0);
	struct sockaddr_storage to = ends_sockaddr(family, SERVER, KEPT_PORT);
	struct ends e = {.family = family, .client = client};

	pool_finishes();
	lose(LOSS_OUT, 0, 1, 1);
	assert_int_equal(connect(client, (void *)&to, sizeof(to)), 0);
	usleep(1000);
	was_lost(LOSS_OUT, 1);
	tell(client, GET_CHAT);
	e.server = ends_keep(accept(listener, NULL, NULL));
	hear(e.server, GET_CHAT);
	tell(client, GET_CHAT);
	hear(e.server, GET_CHAT);
	tell(e.server, OK_RESPONSE);
	hear(client, OK_RESPONSE);
	pool_sheds(SW_CAUSE_SATURATED);
	tell(client, GET_CHAT); /* with one under way */
	hear(e.server, GET_CHAT);
	tell(e.server, OK_RESPONSE OK_RESPONSE);
	hear(client, OK_RESPONSE OK_RESPONSE);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(handshake_lost)

/* The client asks again before it has acknowledged the answer. */
static void pipelined_behind_an_answer(int family)
{
	struct ends e = shed_once(family);

	lose(LOSS_IN, 100, 0, 1);
	tell(e.client, GET_CHAT);
	usleep(2000);
	tell(e.client, a_post(50));
	hear(e.client, busy());
	hear(e.client, busy());
	hear_nothing(e.server);
	goes_on(&e);
}
FAMILY_TEST(pipelined_behind_an_answer)

/* A response that the client lacks: what it asks meanwhile is the server's. */
static void response_lost(int family)
{
	struct ends e = shed_once(family);

	pool_finishes();
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	lose(LOSS_IN, 1, 0, 1);
	tell(e.server, OK_RESPONSE);
	usleep(1000);
	was_lost(LOSS_IN, 1);
	pool_sheds(SW_CAUSE_SATURATED);
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE OK_RESPONSE);
	goes_on(&e);
}
FAMILY_TEST(response_lost)

/* A reload between an answer and its repetition. */
static void answer_changes(int family)
{
	char old[KEPT_ANSWER + 1], got[KEPT_ANSWER + 1];
	struct ends e = shed_once(family);

	strcpy(old, busy());
	lose(LOSS_IN, 100, 0, 1);
	tell(e.client, GET_CHAT);
	usleep(20000);
	was_lost(LOSS_IN, 1);
	rewrite_answers("late");
	assert_true(hears(e.client, 10000));
	assert_int_equal(recv(e.client, got, KEPT_ANSWER, MSG_WAITALL), KEPT_ANSWER);
	got[KEPT_ANSWER] = 0;
	assert_true(!strcmp(got, old) || !strcmp(got, busy()));
	goes_on(&e);
}
FAMILY_TEST(answer_changes)

/* And one with another length: better an end than bytes that do not fit. */
static void answer_gets_shorter(int family)
{
	struct ends e = shed_once(family);

	lose(LOSS_IN, 100, 0, 1);
	tell(e.client, GET_CHAT);
	usleep(20000);
	was_lost(LOSS_IN, 1);
	cut_answers();
	hear_reset(e.client);
	assert_int_equal(counted_kept(SW_R_shed_no_answer), family == 4 ? 1 : 2);
}
FAMILY_TEST(answer_gets_shorter)

/* What the request acknowledges the server hears of. */
static void acknowledgement_goes_up(int family)
{
	struct ends e;

	pool_armed();
	e = ends_open(family);
	for (int i = 0; i < 20; i++) {
		pool_finishes();
		is_served(&e, GET_CHAT);
		pool_sheds(SW_CAUSE_SATURATED);
		is_shed(&e, i % 2 ? GET_CHAT : a_post(3000));
		assert_int_equal(info_of(e.server).tcpi_unacked, 0);
	}
	usleep(300000);
	assert_int_equal(info_of(e.server).tcpi_total_retrans, 0);
	assert_int_equal(info_of(e.client).tcpi_total_retrans, 0);
}
FAMILY_TEST(acknowledgement_goes_up)

static void corrupt_segments(int family)
{
	static const char fooling[] = "POST /x HTTP/1.1\r\nContent-Length: 100\r\n\r\n";
	struct ends e = shed_once(family);
	struct spy s = spy_on(&e);

	is_shed(&e, GET_CHAT);
	usleep(100000); /* its acknowledgement, delayed */
	spy_send_corrupt(&s, GET_CHAT, strlen(GET_CHAT));
	spy_send_corrupt(&s, fooling, strlen(fooling));
	hear_nothing(e.server);
	spy_catch_up(&s);
	assert_int_equal(s.answers, 1);
	assert_int_equal(counted_kept(SW_R_pass_checksum), family == 4 ? 2 : 5);
	pool_finishes();
	spy_send_corrupt(&s, fooling, strlen(fooling));
	hear_nothing(e.server);
	assert_int_equal(counted_kept(SW_R_pass_checksum), family == 4 ? 3 : 6);
	is_served(&e, GET_CHAT);
	pool_sheds(SW_CAUSE_SATURATED);
	is_shed(&e, GET_CHAT);
	goes_on(&e);
}
FAMILY_TEST(corrupt_segments)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_answer_lost),	     kept_test(test_answer_lost_thrice),
		kept_test(test_body_lost),	     kept_test(test_head_lost),
		kept_test(test_handshake_lost),	     kept_test(test_pipelined_behind_an_answer),
		kept_test(test_response_lost),	     kept_test(test_answer_changes),
		kept_test(test_answer_gets_shorter), kept_test(test_acknowledgement_goes_up),
		kept_test(test_corrupt_segments),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
