// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Idle upstream connections: which are closed, and above all which never are.

#include "lib/upstream.h"
#include "kernel/idle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GET	"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD	"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK	"HTTP/1.1 200 OK\r\nServer: a simulated one\r\n"
#define COUNTED OK "Content-Length: 5\r\n\r\nhello"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"
#define SSE	OK "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define TOKEN	"f\r\ndata: {\"a\":1}\n\n\r\n" /* 20 bytes */

static void pause_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static struct upstream_pair open_steered(struct upstreams *u)
{
	struct sw_socket row = upstream_row(UP_WORKER);

	return upstream_open(u, &row, false);
}

/* The peer's acknowledgement may be late; nothing else may. */
static void expect_closed(struct upstreams *u, struct upstream_pair *p)
{
	int n = 0;

	for (int i = 0; i < 500 && !n; i++) {
		n = upstream_close(u, 0);
		if (!n)
			pause_ms(5);
	}
	assert_int_equal(n, 1);
	assert_true(upstream_gone(p->router));
}

static void expect_open(struct upstreams *u, struct upstream_pair *p)
{
	assert_int_equal(upstream_close(u, 0), 0);
	assert_false(upstream_gone(p->router));
}

static void move(int from, int to, const char *text, size_t len)
{
	upstream_send(from, text, len);
	upstream_take(to, len);
}

static void ask(struct upstream_pair *p, const char *text)
{
	move(p->router, p->server, text, strlen(text));
}

static void answer(struct upstream_pair *p, const char *text)
{
	move(p->server, p->router, text, strlen(text));
}

/* ---- framing -------------------------------------------------------------------------------- */

static const struct exchange {
	const char *what, *request, *response;
} idle[] = {
	{"a length", GET, COUNTED},
	{"a length of nothing", GET, OK "content-length:0\r\n\r\n"},
	{"a length among others",
	 "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody",
	 OK "Content-Length-Of-All: 9\r\nX: Content-Length: 8\r\nCONTENT-LENGTH: \t5\r\n"
	    "Transfer: chunked\r\n\r\nhello"},
	{"a body that looks like a response", GET, OK "Content-Length: 42\r\n\r\n" OK},
	{"chunks", GET, CHUNKED "5\r\nhello\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n"},
	{"chunks that look like the last one", GET,
	 CHUNKED "9\r\n\r\n0\r\n\r\n\r\n\r\n5\r\n0\r\n\r\n\r\n000\r\n\r\n"},
	{"extensions and trailers", GET,
	 CHUNKED "2;a=b;c=\"0\"\r\nab\r\n0;last\r\nA: b\r\nContent-Length: 7\r\n\r\n"},
	{"events", "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
	 SSE TOKEN TOKEN TOKEN "0\r\n\r\n"},
	{"a request in chunks",
	 "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
	 "3\r\nabc\r\n0\r\n\r\n",
	 COUNTED},
	{"204", "DELETE / HTTP/1.1\r\n\r\n", "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n"},
	{"304", GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"},
	{"HEAD", HEAD, OK "Content-Length: 500\r\n\r\n"},
	{"100 and then 200",
	 "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
	 "HTTP/1.1 100 Continue\r\n\r\n" COUNTED},
	{"103, 102 and then 204", GET,
	 "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
	 "HTTP/1.1 204 No Content\r\n\r\n"},
	{"no reason phrase", GET, "HTTP/1.1 404\r\nContent-Length: 1\r\n\r\nx"},
	{"keep-alive", "GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
	 OK "Connection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx"},
	{"a long line", GET,
	 OK "A-Name-That-Is-Longer-Than-Any-That-Matters: 1\r\nA: 0123456789\t0123456789\r\n"
	    "Content-Length: 1\r\n\r\nx"},
	{"pipelined", GET HEAD GET, COUNTED OK "Content-Length: 9\r\n\r\n" COUNTED},
};

/* Every one of these ends, as seen by somebody lenient, and is not to be closed all the same. */
static const struct exchange never[] = {
	{"HTTP/1.0", GET, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"},
	{"no length", GET, OK "\r\nhello"},
	{"no length, and nothing yet", GET, OK "\r\n"},
	{"a coding that is not chunked", GET, OK "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n"},
	{"two lengths", GET, OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
	{"two lengths in one", GET, OK "Content-Length: 1, 1\r\n\r\nx"},
	{"a length and chunks", GET,
	 OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"chunks and a length", GET,
	 OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"},
	{"another coding", GET, OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
	{"a signed length", GET, OK "Content-Length: +1\r\n\r\nx"},
	{"a length with an end", GET, OK "Content-Length: 1 \r\n\r\nx"},
	{"an empty length", GET, OK "Content-Length:\r\n\r\n"},
	{"a length that wraps", GET, OK "Content-Length: 4294967297\r\n\r\nx"},
	{"a chunk that wraps", GET, CHUNKED "100000001\r\nx\r\n0\r\n\r\n"},
	{"a chunk without a size", GET, CHUNKED "\r\n0\r\n\r\n"},
	{"more in a chunk than its size", GET, CHUNKED "1\r\nxy\r\n0\r\n\r\n"},
	{"a bare line feed", GET, OK "A: b\nContent-Length: 1\r\n\r\nx"},
	{"a bare line feed before a length", GET,
	 OK "A: b\nContent-Length: 9\r\nContent-Length: 1\r\n\r\nx"},
	{"a name and nothing else", GET, OK "Connection\r\nContent-Length: 1\r\n\r\nx"},
	{"only line feeds", GET, "HTTP/1.1 200 OK\nContent-Length: 1\n\nx"},
	{"a bare carriage return", GET, OK "A: b\rContent-Length: 9\r\nContent-Length: 1\r\n\r\nx"},
	{"a space before the colon", GET, OK "Content-Length : 9\r\nContent-Length: 1\r\n\r\nx"},
	{"a folded line", GET, OK "A: b\r\n Content-Length: 9\r\nContent-Length: 1\r\n\r\nx"},
	{"a line without a colon", GET, OK "Content-Length 1\r\nContent-Length: 1\r\n\r\nx"},
	{"a status of four digits", GET, "HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\nx"},
	{"more than the length says", GET, COUNTED "HTTP"},
	{"an answer too many", GET, COUNTED COUNTED},
	{"100 and no more", GET, "HTTP/1.1 100 Continue\r\n\r\n"},
	{"close, says the server", GET, OK "Connection: close\r\nContent-Length: 1\r\n\r\nx"},
	{"close, says the router", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", COUNTED},
	{"an upgrade", "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	 "HTTP/1.1 101 Switching Protocols\r\n\r\n"},
	{"101 for nothing", GET, "HTTP/1.1 101 Switching Protocols\r\n\r\n" COUNTED},
	{"CONNECT", "CONNECT a:80 HTTP/1.1\r\n\r\n", COUNTED},
	{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\1\1\1\4\1 and so on"},
	{"TLS", "\x16\x03\x01\x02\x01\x01\x01\x01\xfc\x03\x03", "\x16\x03\x03\x02"},
	{"a line before the request", "\r\n" GET, COUNTED},
	{"a body that nobody counts", "POST / HTTP/1.1\r\n\r\nbody", COUNTED},
	{"half a request", "POST / HTTP/1.1\r\nContent-Le", COUNTED},
	{"half a body", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nbody", COUNTED},
	{"one answer to two", GET GET, COUNTED},
	{"HEAD with a body", HEAD, COUNTED},
	{"GET with the answer to HEAD", GET, OK "Content-Length: 500\r\n\r\n"},
	{"no answer", GET, ""},
	{"half a response", GET, OK "Content-Length: 5\r\n\r\nhell"},
	{"no last chunk", GET, SSE TOKEN TOKEN},
	{"half of the last chunk", GET, SSE TOKEN "0\r\n"},
};

#define ROWS(a) (sizeof(a) / sizeof(*(a)))

static void test_idle(void **state)
{
	struct upstreams *u = *state;

	for (unsigned i = 0; i < ROWS(idle); i++) {
		struct upstream_pair p = open_steered(u);

		print_message("idle after: %s\n", idle[i].what);
		expect_open(u, &p); /* it was never used: its first request may be on its way */
		ask(&p, idle[i].request);
		expect_open(u, &p);
		answer(&p, idle[i].response);
		ask(&p, GET); /* the pooled connection's second use */
		expect_open(u, &p);
		answer(&p, SSE TOKEN);
		expect_open(u, &p);
		answer(&p, "0\r\n\r\n");
		expect_closed(u, &p);
		upstream_end(&p);
	}
}

static void test_never(void **state)
{
	struct upstreams *u = *state;

	for (unsigned i = 0; i < ROWS(never); i++) {
		struct upstream_pair p = open_steered(u);

		print_message("never after: %s\n", never[i].what);
		ask(&p, never[i].request);
		answer(&p, never[i].response);
		pause_ms(5);
		expect_open(u, &p);
		upstream_end(&p);
	}
}

/* One byte a segment: idle after the last one, and at no other. */
static void test_every_byte(void **state)
{
	struct upstreams *u = *state;

	for (unsigned i = 0; i < ROWS(idle); i++) {
		const char *request = idle[i].request, *response = idle[i].response;
		struct upstream_pair p = open_steered(u);

		print_message("byte by byte: %s\n", idle[i].what);
		for (size_t n = 0; request[n]; n++) {
			move(p.router, p.server, request + n, 1);
			expect_open(u, &p);
		}
		for (size_t n = 0; response[n]; n++) {
			expect_open(u, &p);
			move(p.server, p.router, response + n, 1);
		}
		expect_closed(u, &p);
		upstream_end(&p);
	}
}

/* Two segments, split at every place. */
static void test_every_split(void **state)
{
	static const char response[] = SSE TOKEN "0\r\n\r\n";
	struct upstreams *u = *state;

	for (size_t n = 1; n < sizeof(response) - 1; n++) {
		struct upstream_pair p = open_steered(u);

		ask(&p, GET);
		move(p.server, p.router, response, n);
		expect_open(u, &p);
		answer(&p, response + n);
		expect_closed(u, &p);
		upstream_end(&p);
	}
}

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
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_every_split),
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
		cmocka_unit_test(test_race),
		cmocka_unit_test(test_cost),
	};
	const struct CMUnitTest few[] = {cmocka_unit_test(test_passes)};

	if (sw_idle_supported())
		return cmocka_run_group_tests(all, upstreams_up, upstreams_down);
	puts("skip: closing idle connections, which this kernel cannot (6.5)");
	return cmocka_run_group_tests(few, upstreams_up, upstreams_down);
}
