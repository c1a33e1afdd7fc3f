// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is read of upstream connections: after which exchanges one is idle, and after which it never
// is, byte by byte and however it is cut into segments.

#include "lib/upstream_talk.h"

#include <unistd.h>

#define HEAD "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_every_split),
	};

	if (!upstream_supported())
		return 0;
	return cmocka_run_group_tests(tests, upstreams_up, upstreams_down);
}
