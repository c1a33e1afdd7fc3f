// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Requests and responses of other kinds than the plain ones: which end shedding on a connection,
// and which are followed to their end.

#include "lib/ends.h"

#include <string.h>

#define HEAD_CHAT "HEAD /chat HTTP/1.1\r\nHost: llm\r\n\r\n"

struct kind {
	const char *request, *response;
	enum sw_reason why; /* it passes; alone_*: as all does on this connection from then on */
};

#define POST_HEAD "POST /chat HTTP/1.1\r\nHost: llm\r\n"
#define HELLO	  "Content-Length: 5\r\n\r\nhello"

static const struct kind kinds[] = {
	{HEAD_CHAT, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", SW_R_keep_expect},
	{HEAD_CHAT, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", SW_R_keep_expect},
	{HEAD_CHAT, "HTTP/1.1 404 None\r\n\r\n", SW_R_keep_expect},
	{POST_HEAD "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", OK_RESPONSE,
	 SW_R_keep_expect},
	{POST_HEAD "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n",
	 "HTTP/1.1 100 Continue\r\n\r\n" OK_RESPONSE, SW_R_keep_expect},
	{GET_CHAT GET_CHAT, "HTTP/1.1 204 No\r\n\r\nHTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n",
	 SW_R_keep_pipelined},
	{"GET /chat HTTP/1.1\r\nConnection: close\r\n\r\n", OK_RESPONSE, SW_R_alone_close},
	{"GET /chat HTTP/1.1\r\nConnection: Keep-Alive, close\r\n\r\n", OK_RESPONSE,
	 SW_R_alone_close},
	{"GET /chat HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", OK_RESPONSE,
	 SW_R_alone_close},
	{"GET /chat HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	 "HTTP/1.1 101 Switching Protocols\r\n\r\n", SW_R_alone_close},
	{"GET /chat HTTP/1.0\r\n\r\n", OK_RESPONSE, SW_R_keep_version},
	{"GET /chat HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", OK_RESPONSE, SW_R_keep_version},
	{"GET /chat HTTP/2.0\r\n\r\n", OK_RESPONSE, SW_R_keep_version},
	{"GET /chat\r\n\r\n", OK_RESPONSE, SW_R_keep_version},
	{"CONNECT llm:80 HTTP/1.1\r\nHost: llm\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
	 SW_R_alone_protocol},
	{"TRACE /chat HTTP/1.1\r\nHost: llm\r\n\r\n", OK_RESPONSE, SW_R_alone_protocol},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "....", SW_R_alone_protocol},
	{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "\x16\x03\x03", SW_R_alone_protocol},
	{"\r\n" GET_CHAT, OK_RESPONSE, SW_R_alone_protocol},
	{POST_HEAD "Transfer-Encoding: chunked\r\n" HELLO, OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", OK_RESPONSE,
	 SW_R_alone_framing},
	{POST_HEAD "Content-Length: 5\r\n" HELLO, OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "Content-Length: 6\r\n" HELLO, OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "Content-Length: 5, 5\r\n\r\nhello", OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "Content-Length: +5\r\n\r\nhello", OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "Content-Length: 5 \r\n\r\nhello", OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "Content-Length : 5\r\n\r\nhello", OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "Content-Length:\r\n\r\n", OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "Content-Length: 4294967301\r\n\r\nhello", OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "X: y\r\n " HELLO, OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "X: y\n" HELLO, OK_RESPONSE, SW_R_alone_framing},
	{POST_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", OK_RESPONSE,
	 SW_R_alone_framing},
	{POST_HEAD "Transfer-Encoding: identity\r\n" HELLO, OK_RESPONSE, SW_R_alone_framing},
	{GET_CHAT, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
	 SW_R_alone_close},
	{GET_CHAT, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", SW_R_alone_protocol},
	{GET_CHAT, "HTTP/1.1 200 OK\r\n\r\nhello", SW_R_alone_response},
	{GET_CHAT, "HTTP/1.1 200 OK\r\n\r\n", SW_R_alone_response},
	{GET_CHAT, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	 SW_R_alone_framing},
	{GET_CHAT,
	 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	 SW_R_alone_framing},
	{GET_CHAT, OK_RESPONSE OK_RESPONSE, SW_R_alone_response},
};

static bool is_alone(enum sw_reason why)
{
	return why >= SW_R_alone_protocol && why <= SW_R_alone_gap;
}

/* One on a connection that was shed on, with a pool that sheds: it goes to the server whole, and
 * its response back. */
static void one_kind(int family, const struct kind *k)
{
	struct ends e = shed_once(family);
	uint64_t before = counted_kept(k->why);

	if (!strcmp(k->request, GET_CHAT)) /* it is the response that is special */
		pool_finishes();
	tell(e.client, k->request);
	hear(e.server, k->request);
	tell(e.server, k->response);
	hear(e.client, k->response);
	hear_nothing(e.client);
	pool_sheds(SW_CAUSE_SATURATED);
	if (is_alone(k->why)) {
		is_served(&e, GET_CHAT);
		tell(e.client, GET_CHAT);
		hear(e.server, GET_CHAT);
		is_served(&e, GET_CHAT); /* whatever the count was */
	} else {
		is_shed(&e, GET_CHAT);
	}
	assert_int_equal(counted_kept(k->why), before + 1);
	ends_reset(&e.client);
	ends_reset(&e.server);
}

static void other_kinds(int family)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		one_kind(family, &kinds[i]);
	}
}
FAMILY_TEST(other_kinds)

/* Chunked requests are followed, in whatever pieces, and shed only when they come whole. */
static void chunked_requests(int family)
{
	static const char head[] = POST_HEAD "Transfer-Encoding: chunked\r\n\r\n";
	struct ends e = shed_once(family);

	tell(e.client, head);
	hear(e.server, head);
	tell(e.client, "5;a=b\r\nGET /");
	hear(e.server, "5;a=b\r\nGET /");
	tell(e.client, "\r\n0\r\n\r\n");
	hear(e.server, "\r\n0\r\n\r\n");
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(chunked_requests)

static void awaits_100(int family)
{
	static const char head[] = POST_HEAD "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n";
	struct ends e = shed_once(family);

	tell(e.client, head);
	hear(e.server, head);
	tell(e.server, "HTTP/1.1 100 Continue\r\n\r\n");
	hear(e.client, "HTTP/1.1 100 Continue\r\n\r\n");
	tell(e.client, "hello");
	hear(e.server, "hello");
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(awaits_100)

/* A final response before the body is there: what the server reads next is its own affair. */
static void early_response(int family)
{
	struct ends e;

	pool_armed();
	e = ends_open(family);
	tell(e.client, POST_HEAD "Content-Length: 10\r\n\r\nhello");
	hear(e.server, POST_HEAD "Content-Length: 10\r\n\r\nhello");
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	tell(e.client, "world");
	hear(e.server, "world");
	pool_sheds(SW_CAUSE_SATURATED);
	is_served(&e, GET_CHAT);
	assert_int_equal(counted_kept(SW_R_alone_response), family == 4 ? 1 : 2);
}
FAMILY_TEST(early_response)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_other_kinds),
		kept_test(test_chunked_requests),
		kept_test(test_awaits_100),
		kept_test(test_early_response),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
