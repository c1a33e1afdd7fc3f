// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The numbers of both sides of a connection on which requests were shed: probes, old and partial
// acknowledgements, SACK blocks, and what happens when they wrap.

#include "lib/spy.h"

#include <poll.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
	if ((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 > 300) {
		printf("skip: here it would take more than a minute to wrap numbers\n");
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
		kept_test(test_keep_alive_probes),    kept_test(test_probes_with_a_byte),
		kept_test(test_acknowledged_in_part), kept_test(test_blocks_of_the_client),
		kept_test(test_blocks_of_the_server), kept_test(test_numbers_wrap),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
