// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The first data segment: what counts as a request that may be shed, wherever it is cut, and which
// answer it gets. The paths themselves are in test_paths.c.

#include "lib/paths.h"
#include "lib/talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens a conversation and sends `len` bytes in its first segment. */
static bool ask(struct lane *l, const void *bytes, size_t len, enum sw_reason want,
		struct result *r)
{
	struct talk t;
	struct frame f;

	if (!talk_opened(&t, l))
		return false;
	f = talk_segment(&t, 0, 0, TCP_PSH | TCP_ACK, bytes, len);
	return talk_expect(&t, &f, want, r);
}

static void ask_text(struct lane *l, const char *text, enum sw_reason want)
{
	lane_trying(l, "request \"%.60s\"", text);
	ask(l, text, strlen(text), want, NULL);
}

static void methods(struct lane *l)
{
	static const char *const known[] = {"GET",   "HEAD",	"PUT",	   "DELETE",
					    "PATCH", "OPTIONS", "CONNECT", "TRACE"};
	struct sw_listener all = world_default_listener(ID_MAIN);
	char text[100];

	all.flags = SW_LF_ALL_PATHS;
	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct sw_listener usual = world_default_listener(ID_MAIN);

		snprintf(text, sizeof(text), "%s /v1/completions HTTP/1.1\r\n\r\n", known[i]);
		world_listener(l->w, ID_MAIN, &usual);
		ask_text(l, text, SW_R_handover_path);
		world_listener(l->w, ID_MAIN, &all);
		ask_text(l, text, SW_R_shed_saturated);
	}
	ask_text(l, "POST /v1/completions HTTP/1.1\r\n\r\n", SW_R_shed_saturated);
	ask_text(l, "GET /anything/at/all HTTP/1.1\r\n\r\n", SW_R_shed_saturated);
	ask_text(l, "BREW /v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_unread);
}

static void other_targets(struct lane *l)
{
	static const struct {
		const char *text;
		enum sw_reason want;
	} rows[] = {
		{"POST /v1/completions HTTP/1.1\r\n", SW_R_shed_saturated},
		{"POST /v1/completions HTTP/1.0\n\n", SW_R_shed_saturated},
		{"POST /v1/completions\tHTTP/1.1\r\n\r\n", SW_R_handover_unread},
		{"POST /v1/completions\r\n\r\n", SW_R_handover_unread},
		{"POST  /v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST http://llm/v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST //v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST /v1//completions HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST /v1/./completions HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST /v1/%63ompletions HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST /V1/COMPLETIONS HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST /v1/completions/ HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST /v1/completions#top HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST /v1/completions; HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST * HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST / HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"POST ? HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"CONNECT llm:443 HTTP/1.1\r\nHost: llm:443\r\n\r\n", SW_R_handover_path},
		{"OPTIONS * HTTP/1.1\r\n\r\n", SW_R_handover_path},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SW_R_handover_unread},
		{"post /v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_unread},
		{"POSTS /v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_unread},
		{"XPOST /v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_unread},
		{" POST /v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_unread},
		{"\r\nPOST /v1/completions HTTP/1.1\r\n\r\n", SW_R_handover_unread},
		{"\r\n\r\n\r\n\r\n\r\n", SW_R_handover_unread},
		{"{\"model\": \"no HTTP at all\"}", SW_R_handover_unread},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ask_text(l, rows[i].text, rows[i].want);
}

static void not_text(struct lane *l)
{
	static const uint8_t hello[] = {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 7, 7, 7, 7, 7, 7};
	static const uint8_t nul[] = "POST /v1/completions\0 HTTP/1.1\r\n\r\n";
	static const uint8_t high[] = "POST /v1/completions\xa0 HTTP/1.1\r\n\r\n";
	static const uint8_t zeros[64];

	lane_trying(l, "TLS ClientHello");
	ask(l, hello, sizeof(hello), SW_R_handover_unread, NULL);
	lane_trying(l, "zeros");
	ask(l, zeros, sizeof(zeros), SW_R_handover_unread, NULL);
	lane_trying(l, "path that ends in a zero byte");
	ask(l, nul, sizeof(nul) - 1, SW_R_handover_path, NULL);
	lane_trying(l, "path that ends in a space with the high bit set");
	ask(l, high, sizeof(high) - 1, SW_R_handover_path, NULL);
}

/* Headers and bodies that other proxies stumble over make no difference. */
static void headers(struct lane *l)
{
	static const char *const rows[] = {
		"POST /v1/completions HTTP/1.1\nHost: llm\nContent-Length: 2\n\n{}",
		"POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\n\r\n",
		"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"POST /v1/completions?stream=true HTTP/1.1\r\n\r\n",
		"POST /v1/completions? HTTP/1.1\r\n\r\n",
		"POST /v1/completions?a=/health HTTP/1.1\r\n\r\n",
		"POST /v1/completions HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\n\r\n",
		"POST /score HTTP/1.1\r\n\r\nPOST /score HTTP/1.1\r\n\r\nPOST /score HTTP/1.1\r\n\r\n",
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ask_text(l, rows[i], SW_R_shed_saturated);
	/* pipelined behind one that must pass: all of them pass */
	ask_text(l, HEALTH REQUEST, SW_R_handover_path);
	ask_text(l, HEALTH HEALTH REQUEST, SW_R_handover_path);
}

/* The first segment cut at every byte, and with it the request in two and the rest alone. */
static void split(struct lane *l)
{
	static const char text[] = REQUEST;
	size_t whole = strlen(text), readable = strcspn(text + 5, " ") + 6;

	for (size_t cut = 1; cut <= whole; cut++) {
		struct talk t;
		struct frame rest, f;

		lane_trying(l, "request cut behind byte %zu", cut);
		if (!talk_opened(&t, l))
			continue;
		rest = talk_segment(&t, cut, 0, TCP_ACK, text + cut, whole - cut);
		if (cut < whole) /* it overtakes the first: comes again */
			talk_expect(&t, &rest, SW_R_drop_order, NULL);
		f = talk_segment(&t, 0, 0, TCP_ACK, text, cut);
		talk_expect(&t, &f, cut < readable ? SW_R_handover_unread : SW_R_shed_saturated,
			    NULL);
	}
}

/* Every length, so that checksums over odd and even ends of all sizes are taken and made. */
static void lengths(struct lane *l)
{
	static const char head[] = "POST /v1/completions HTTP/1.1\r\n\r\n";
	char text[3300];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i < sizeof(head) - 1 ? head[i] : "\xff\x01\x80\x7e\xa5"[i % 5];
	for (size_t len = 30; len < sizeof(text); len += len < 1400 ? 1 : 149) {
		lane_trying(l, "request of %zu bytes", len);
		ask(l, text, len, SW_R_shed_saturated, NULL);
	}
}

/* A client may send its FIN with the request. */
static void fin_with_request(struct lane *l)
{
	struct talk t;
	struct frame f;

	lane_trying(l, "request with FIN");
	if (!talk_opened(&t, l))
		return;
	f = talk_request(&t, REQUEST);
	f.flags |= TCP_FIN;
	talk_expect(&t, &f, SW_R_shed_saturated, NULL);
}

/* Ports, sequence numbers and TCP options may have any value. */
static void without_options(struct lane *l)
{
	struct talk t = talk_bare(l);
	struct frame f;

	lane_trying(l, "request without TCP options");
	if (!talk_open(&t))
		return;
	f = talk_request(&t, REQUEST);
	talk_expect(&t, &f, SW_R_shed_saturated, NULL);
	lane_trying(l, "the same with ECE and CWR set");
	t = talk_new(l);
	t.syn.flags |= TCP_ECE | TCP_CWR;
	if (!talk_open(&t))
		return;
	f = talk_request(&t, REQUEST);
	f.flags |= TCP_CWR;
	talk_expect(&t, &f, SW_R_shed_saturated, NULL);
}

/* What GRO has put together is answered as one. */
static void super_segment(struct lane *l)
{
	char text[2800] = REQUEST;
	struct talk t;
	struct frame f;

	if (l->hook != HOOK_TC)
		return;
	memset(text + strlen(REQUEST), 'x', sizeof(text) - strlen(REQUEST));
	lane_trying(l, "GRO super-segment");
	if (!talk_opened(&t, l))
		return;
	f = talk_segment(&t, 0, 0, TCP_ACK, text, sizeof(text));
	l->gso_size = 1448;
	talk_expect(&t, &f, SW_R_shed_saturated, NULL);
	f = talk_segment(&t, sizeof(text), LENGTH, TCP_ACK, text, sizeof(text));
	talk_expect(&t, &f, SW_R_drain_data, NULL);
	l->gso_size = 0;
}

/* Paths under SW_PATH_MAX are read; longer ones, or ones that do not end, are never shed. */
static void long_paths(struct lane *l)
{
	for (unsigned len = SW_PATH_MAX - 3; len < SW_PATH_MAX + 4; len++) {
		char path[100] = "/", text[200];
		struct sw_path key;

		memset(path + 1, 'p', len - 1);
		key = path_key(SET_PATHS, SW_METHOD_POST, 0, path);
		if (len < SW_PATH_MAX)
			world_path(l->w, &key, SW_PATH_SHED, SW_FAMILY_DEFAULT);
		lane_trying(l, "path of %u bytes", len);
		snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\n\r\n", path);
		ask(l, text, strlen(text),
		    len < SW_PATH_MAX ? SW_R_shed_saturated : SW_R_handover_path, NULL);
		snprintf(text, sizeof(text), "POST %s?%060d HTTP/1.1\r\n\r\n", path, 0);
		ask(l, text, strlen(text),
		    len < SW_PATH_MAX ? SW_R_shed_saturated : SW_R_handover_path, NULL);
	}
}

static void long_query(struct lane *l)
{
	char text[1400];

	snprintf(text, sizeof(text), "POST /v1/completions?%01000d HTTP/1.1\r\n\r\n", 0);
	lane_trying(l, "query of 1000 bytes");
	ask(l, text, strlen(text), SW_R_shed_saturated, NULL);
	snprintf(text, sizeof(text), "POST /%01000d HTTP/1.1\r\n\r\n", 0);
	lane_trying(l, "path of 1000 bytes");
	ask(l, text, strlen(text), SW_R_handover_path, NULL);
}

LANE_TEST(methods)
LANE_TEST(other_targets)
LANE_TEST(not_text)
LANE_TEST(headers)
LANE_TEST(split)
LANE_TEST(lengths)
LANE_TEST(fin_with_request)
LANE_TEST(without_options)
LANE_TEST(super_segment)
LANE_TEST(long_paths)
LANE_TEST(long_query)

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_methods),
		packet_test(test_other_targets),
		packet_test(test_not_text),
		packet_test(test_headers),
		packet_test(test_split),
		packet_test(test_lengths),
		packet_test(test_fin_with_request),
		packet_test(test_without_options),
		packet_test(test_super_segment),
		packet_test(test_long_paths),
		packet_test(test_long_query),
	};

	return world_run(tests);
}
