// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What goes over the wire for requests that are shed on a connection: lost, corrupt and repeated
// segments, probes, and the numbers of both sides. Ends are in test_established_end.c.

#include "lib/spy.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* ---- probes ---------------------------------------------------------------------------------- */

static void probe_each_second(int fd)
{
	int on = 1, one = 1, two = 2;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &two, sizeof(two));
}

/* Three unanswered ones end a connection. */
static void test_keep_alive_probes(void **state)
{
	struct ends e[2];
	unsigned n = 0;

	(void)state;
	for (int family = 4; family <= (kept.ipv6 ? 6 : 4); family += 2, n++) {
		e[n] = shed_once(family);
		is_shed(&e[n], a_post(3000));
		probe_each_second(e[n].client);
		probe_each_second(e[n].server);
	}
	sleep(5);
	while (n--)
		goes_on(&e[n]);
}

static void probe_of(struct spy *s, uint32_t back, const char *byte)
{
	struct segment g;

	spy_send(s, SPY_ACK, back, byte, strlen(byte));
	assert_true(spy_next(s, &g, 1000));
	assert_false(g.ours);
	assert_int_equal(g.ack, s->next);
}

static void probes_with_a_byte(int family)
{
	struct ends e = shed_once(family);
	struct spy s = spy_on(&e);

	is_shed(&e, GET_CHAT);
	usleep(100000);
	probe_of(&s, 1, "");
	usleep(600000); /* the stack answers few of them in half a second */
	probe_of(&s, 1, "x");
	hear_nothing(e.server);
	goes_on(&e);
}
FAMILY_TEST(probes_with_a_byte)

/* An old acknowledgement of a part of the answer, which the socket has never sent. */
static void acknowledged_in_part(int family)
{
	struct ends e = shed_once(family);
	struct spy s = spy_on(&e);
	struct segment g;

	is_shed(&e, GET_CHAT);
	usleep(100000);
	spy_catch_up(&s);
	spy_send_ack(&s, s.last.ack - 100);
	assert_false(spy_next(&s, &g, 50)); /* nobody objects */
	goes_on(&e);
}
FAMILY_TEST(acknowledged_in_part)

/* ---- numbers --------------------------------------------------------------------------------- */

static unsigned long netstat(enum side side, const char *name)
{
	char line[8192], values[8192];
	unsigned long found = ~0UL;
	FILE *f;

	kept_enter(side);
	f = fopen("/proc/thread-self/net/netstat", "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && fgets(values, sizeof(values), f)) {
		char *at[2], *n = strtok_r(line, " \n", &at[0]),
			     *v = strtok_r(values, " \n", &at[1]);

		for (; n && v; n = strtok_r(NULL, " \n", &at[0]), v = strtok_r(NULL, " \n", &at[1]))
			if (!strcmp(n, name))
				found = strtoul(v, NULL, 10);
	}
	fclose(f);
	return found;
}

/* Blocks lie in the numbers of him who reads them, or they are thrown away and a timer mends what
 * was lost. On a busy machine the timer may be first, now and then. */
static bool mended_by_blocks(struct ends *e)
{
	unsigned long discarded = netstat(SERVER, "TCPSACKDiscard"),
		      mended = netstat(SERVER, "TCPSackRecovery");

	pool_finishes();
	begin_bytes(e, false, 2000000);
	lose(LOSS_IN, 1000, 5, 1);
	move_bytes(e->server, e->client, 2000000);
	was_lost(LOSS_IN, 1);
	pool_sheds(SW_CAUSE_SATURATED);
	is_shed(e, a_post(3000));
	assert_int_equal(netstat(SERVER, "TCPSACKDiscard"), discarded);
	return netstat(SERVER, "TCPSackRecovery") > mended;
}

static void blocks_of_the_client(int family)
{
	struct ends e = shed_once(family);
	int tries = 10;

	while (!mended_by_blocks(&e) && --tries)
		;
	assert_true(tries);
}
FAMILY_TEST(blocks_of_the_client)

static void blocks_of_the_server(int family)
{
	struct ends e = shed_once(family);
	struct spy s = spy_on(&e);
	uint32_t acked = 0, sent = 0;
	unsigned blocks = 0;
	struct segment g;

	for (int i = 0; i < 10; i++)
		is_shed(&e, a_post(3000));
	pool_finishes();
	begin_bytes(&e, true, 2000000);
	spy_catch_up(&s);
	lose(LOSS_OUT, 1000, 5, 1);
	move_bytes(e.client, e.server, 2000000);
	was_lost(LOSS_OUT, 1);
	while (spy_next(&s, &g, 0)) {
		if (g.ours) {
			sent = (int32_t)(g.seq + g.length - sent) > 0 || !sent ? g.seq + g.length
									       : sent;
			continue;
		}
		acked = g.ack;

		for (unsigned i = 0; i < g.n_blocks; i++, blocks++) {
			assert_true((int32_t)(g.block[i][1] - g.block[i][0]) > 0);
			assert_true((int32_t)(sent - g.block[i][1]) >= 0);
			assert_true((int32_t)(g.block[i][0] - acked) > 0 || i == 0);
			assert_true((int32_t)(g.block[i][0] - acked) > -3000000);
		}
	}
	assert_true(blocks > 0);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	pool_sheds(SW_CAUSE_SATURATED);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(blocks_of_the_server)

/* More bytes than half of the numbers there are, since the last request that was shed. */
static void pour(int from, int to, size_t n)
{
	static char bytes[1 << 20];
	size_t sent = 0, got = 0;

	while (got < n) {
		struct pollfd p[2] = {{.fd = to, .events = POLLIN},
				      {.fd = sent < n ? from : -1, .events = POLLOUT}};
		ssize_t some;

		if (poll(p, 2, 10000) <= 0)
			fail_msg("stuck at %zu of %zu bytes", got, n);
		if (p[1].revents) {
			some = send(from, bytes,
				    n - sent < sizeof(bytes) ? n - sent : sizeof(bytes),
				    MSG_DONTWAIT | MSG_NOSIGNAL);
			sent += some > 0 ? some : 0;
		}
		if (p[0].revents) {
			some = recv(to, NULL, n - got, MSG_DONTWAIT | MSG_TRUNC);
			if (some <= 0)
				fail_msg("end at %zu of %zu bytes", got, n);
			got += some;
		}
	}
}

static void test_numbers_wrap(void **state)
{
	const size_t much = 2300UL << 20;
	struct ends e = shed_once(4);
	struct timespec begin, end;

	(void)state;
	is_shed(&e, a_post(1000));
	pool_finishes();
	tell(e.client, "GET /x HTTP/1.1\r\n\r\n");
	hear(e.server, "GET /x HTTP/1.1\r\n\r\n");
	tell(e.server, "HTTP/1.1 200 OK\r\n\r\n"); /* no frame: the rest is anything */
	hear(e.client, "HTTP/1.1 200 OK\r\n\r\n");
	clock_gettime(CLOCK_MONOTONIC, &begin);
	pour(e.server, e.client, much / 50);
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (end.tv_sec - begin.tv_sec > 1) {
		printf("skip: here it would take minutes to wrap numbers\n");
		skip();
	}
	pour(e.server, e.client, much);
	move_bytes(e.server, e.client, 100000);
	pour(e.client, e.server, much);
	move_bytes(e.client, e.server, 100000);
	pour(e.client, e.server, much);
	pour(e.server, e.client, much);
	move_bytes(e.server, e.client, 100000);
	move_bytes(e.client, e.server, 100000);
	ends_cleanly(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_answer_lost),
		kept_test(test_answer_lost_thrice),
		kept_test(test_body_lost),
		kept_test(test_head_lost),
		kept_test(test_handshake_lost),
		kept_test(test_pipelined_behind_an_answer),
		kept_test(test_response_lost),
		kept_test(test_answer_changes),
		kept_test(test_acknowledgement_goes_up),
		kept_test(test_corrupt_segments),
		kept_test(test_keep_alive_probes),
		kept_test(test_probes_with_a_byte),
		kept_test(test_acknowledged_in_part),
		kept_test(test_blocks_of_the_client),
		kept_test(test_blocks_of_the_server),
		kept_test(test_numbers_wrap),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
