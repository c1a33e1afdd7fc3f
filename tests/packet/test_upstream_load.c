// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Upstream connections that are used while idle ones are being closed: no request is lost; and what
// a packet costs.

#include "lib/upstream_talk.h"

#include <bpf/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- races ---------------------------------------------------------------------------------- */

enum { REQUESTS = 2000 };

struct race {
	struct upstreams *u;
	atomic_bool over;
	atomic_uint served, closed;
	unsigned broken; /* connections that were said to be fine, and were not */
};

static void serve(struct race *r, int fd)
{
	char request[sizeof(GET)];

	while (recv(fd, request, strlen(GET), MSG_WAITALL) == (ssize_t)strlen(GET)) {
		r->served++;
		send(fd, COUNTED, strlen(COUNTED), MSG_NOSIGNAL);
	}
	close(fd);
}

static void *run_server(void *race)
{
	struct race *r = race;
	int fd;

	while ((fd = accept(r->u->listener[0], NULL, NULL)) >= 0)
		serve(r, fd);
	return NULL;
}

static void *run_closer(void *race)
{
	struct race *r = race;

	while (!r->over) {
		int n = upstream_close(r->u, 0);

		r->closed += n > 0 ? n : 0;
	}
	return NULL;
}

/* A router with one pooled connection. Whatever could be written is answered, always. */
static unsigned run_router(struct race *r)
{
	struct sw_socket row = upstream_row(UP_WORKER);
	unsigned lost = 0, asked = 0;
	char response[sizeof(COUNTED)];
	bool fine;
	int fd = -1;

	while (asked < REQUESTS) {
		struct timespec nap = {0, rand() % 150000};

		if (fd < 0)
			fd = upstream_connect(r->u, &row, false);
		if (asked % 2)
			nanosleep(&nap, NULL);
		fine = asked % 4 > 1 && !upstream_error(fd);
		if (send(fd, GET, strlen(GET), MSG_NOSIGNAL) != (ssize_t)strlen(GET)) {
			r->broken += fine;
			close(fd);
			fd = -1;
			continue;
		}
		asked++;
		if (recv(fd, response, strlen(COUNTED), MSG_WAITALL) != (ssize_t)strlen(COUNTED))
			lost++;
	}
	close(fd);
	return lost;
}

static void test_race(void **state)
{
	struct race r = {.u = *state};
	pthread_t server, closer;
	unsigned lost;

	pthread_create(&server, NULL, run_server, &r);
	pthread_create(&closer, NULL, run_closer, &r);
	lost = run_router(&r);
	r.over = true;
	pthread_join(closer, NULL);
	shutdown(r.u->listener[0], SHUT_RDWR);
	pthread_join(server, NULL);
	assert_int_equal(listen(r.u->listener[0], 128), 0);
	print_message("%d requests, %u served, %u lost, %u connections closed\n", REQUESTS,
		      r.served, lost, r.closed);
	assert_int_equal(lost, 0);
	assert_int_equal(r.broken, 0);
	assert_int_equal(r.served, REQUESTS);
	assert_true(r.closed > REQUESTS / 100);
}

/* ---- cost ----------------------------------------------------------------------------------- */

enum { BULK = 64 << 20, PIECE = 65536, TOKENS = 10000, EXCHANGES = 2000 };

static void send_bulk(struct upstream_pair *p)
{
	static const char piece[PIECE];

	ask(p, GET);
	answer(p, OK "Content-Length: 67108864\r\n\r\n");
	for (int i = 0; i < BULK / PIECE; i++) {
		upstream_send(p->server, piece, PIECE);
		upstream_take(p->router, PIECE);
	}
}

static void send_tokens(struct upstream_pair *p)
{
	ask(p, GET);
	answer(p, SSE);
	for (int i = 0; i < TOKENS; i++)
		answer(p, TOKEN);
	answer(p, "0\r\n\r\n");
}

static void send_requests(struct upstream_pair *p)
{
	for (int i = 0; i < EXCHANGES; i++) {
		ask(p,
		    "POST /v1/chat/completions HTTP/1.1\r\nHost: pool\r\n"
		    "User-Agent: something/1.0\r\nAccept: */*\r\nContent-Type: application/json\r\n"
		    "Content-Length: 10\r\nX-Request-Id: 0123456789abcdef\r\n\r\n{\"a\":\"bc\"}");
		answer(p,
		       "HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 10:00:00 GMT\r\nServer: uvicorn\r\n"
		       "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n"
		       "{\"a\":\"bc\"}");
	}
}

static void measure(struct upstreams *u, const char *what, bool steered,
		    void (*traffic)(struct upstream_pair *p))
{
	struct sw_socket row = upstream_row(UP_WORKER);
	struct upstream_pair p = upstream_open(u, steered ? &row : NULL, false);
	struct upstream_cost before = upstream_cost(u), after;

	traffic(&p);
	after = upstream_cost(u);
	print_message("%-28s out %5.0f ns, in %5.0f ns a packet\n", what,
		      (after.out_ns - before.out_ns) / (after.out - before.out),
		      (after.in_ns - before.in_ns) / (after.in - before.in));
	if (steered)
		expect_closed(u, &p);
	upstream_end(&p);
}

/* Both ends are in the cgroup, so half of the packets are of a socket that is not followed. */
static void test_cost(void **state)
{
	struct upstreams *u = *state;
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

	assert_true(stats >= 0);
	measure(u, "not steered, requests", false, send_requests);
	measure(u, "requests", true, send_requests);
	measure(u, "events, a packet each", true, send_tokens);
	measure(u, "counted bytes", true, send_bulk);
	close(stats);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_race),
		cmocka_unit_test(test_cost),
	};

	if (!upstream_supported())
		return 0;
	return cmocka_run_group_tests(tests, upstreams_up, upstreams_down);
}
