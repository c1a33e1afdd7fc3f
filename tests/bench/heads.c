// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ns to read what frames a request or a response on a connection that is followed, by
 * BPF_PROG_TEST_RUN beside an empty program. Nothing but the reading: neither the packet's headers
 * nor the flow's lock and look-up are part of it.
 */
#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads.skel.h"

#define ROUNDS	15
#define REPEAT	100000
#define HEADERS 66 /* Ethernet, IPv4, TCP with timestamps */

#define SDK                                                                                        \
	"Accept: application/json\r\n"                                                             \
	"Content-Type: application/json\r\n"                                                       \
	"User-Agent: AsyncOpenAI/Python 1.99.1\r\n"                                                \
	"X-Stainless-Lang: python\r\n"                                                             \
	"X-Stainless-Package-Version: 1.99.1\r\n"                                                  \
	"X-Stainless-OS: Linux\r\n"                                                                \
	"X-Stainless-Arch: x64\r\n"                                                                \
	"X-Stainless-Runtime: CPython\r\n"                                                         \
	"X-Stainless-Runtime-Version: 3.12.3\r\n"                                                  \
	"Authorization: Bearer sk-0123456789abcdef0123456789abcdef0123456789abcdef\r\n"            \
	"X-Stainless-Async: async:asyncio\r\n"                                                     \
	"x-stainless-retry-count: 0\r\n"                                                           \
	"x-stainless-read-timeout: 600\r\n"

#define CHUNKED                                                                                    \
	"HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 10:00:00 GMT\r\nserver: uvicorn\r\n"            \
	"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"

static const struct {
	const char *name;
	int response;
	const char *before; /* what comes once in front of it */
	const char *text;
} about[] = {
	{"GET of wrk", 0, NULL,
	 "GET /v1/models HTTP/1.1\r\nHost: 10.77.0.1:8001\r\nContent-Type: application/json\r\n\r\n"},
	{"POST of wrk", 0, NULL,
	 "POST /v1/chat/completions HTTP/1.1\r\nHost: 10.77.0.1:8001\r\nContent-Length: 400\r\n"
	 "Content-Type: application/json\r\n\r\n"},
	{"POST of an SDK", 0, NULL,
	 "POST /v1/chat/completions HTTP/1.1\r\nHost: 10.77.0.1:8000\r\n"
	 "Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n" SDK
	 "Content-Length: 1412\r\n\r\n"},
	{"response of nginx", 1, NULL,
	 "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Mon, 30 Nov 2026 10:00:00 GMT\r\n"
	 "Content-Type: application/json\r\nContent-Length: 28\r\nConnection: keep-alive\r\n\r\n"},
	{"response of uvicorn", 1, NULL,
	 "HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 10:00:00 GMT\r\nserver: uvicorn\r\n"
	 "content-length: 1024\r\ncontent-type: application/json\r\n\r\n"},
	{"a token, in a chunk", 1, CHUNKED,
	 "a4\r\ndata: {\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\","
	 "\"model\":\"demo\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},"
	 "\"finish_reason\":null}]}\n\n\r\n"},
};
enum { ROWS = sizeof(about) / sizeof(about[0]) };

static int run(int program, const char *text, int repeat)
{
	char packet[HEADERS + 1024] = {0};
	size_t length = strlen(text);
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = HEADERS + length,
		    .repeat = repeat);

	memcpy(packet + HEADERS, text, length);
	if (bpf_prog_test_run_opts(program, &opts)) {
		perror("BPF_PROG_TEST_RUN");
		exit(1);
	}
	if (opts.retval) {
		fprintf(stderr, "not understood: %s\n", text);
		exit(1);
	}
	return opts.duration;
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int median(int *v)
{
	qsort(v, ROUNDS, sizeof(*v), ascending);
	return v[ROUNDS / 2];
}

int main(void)
{
	static int ns[ROWS][ROUNDS], empty[ROUNDS];
	struct heads *h = heads__open_and_load();
	int base, start, read, nothing;

	if (!h) {
		perror("the programs could not be loaded (root is needed)");
		return 1;
	}
	start = bpf_program__fd(h->progs.start);
	read = bpf_program__fd(h->progs.read_payload);
	nothing = bpf_program__fd(h->progs.empty);
	h->bss->headers = HEADERS;
	for (int round = 0; round < ROUNDS; round++) {
		empty[round] = run(nothing, about[0].text, REPEAT);
		for (int r = 0; r < ROWS; r++) {
			run(start, about[r].text, 1);
			h->bss->response = about[r].response;
			if (about[r].before)
				run(read, about[r].before, 1);
			ns[r][round] = run(read, about[r].text, REPEAT);
		}
	}
	base = median(empty);
	printf("ns to read what frames a message, over an empty program in the same run,\n"
	       "median of %d rounds of %d\n%-24s %9s %9s\n",
	       ROUNDS, REPEAT, "", "bytes", "ns");
	for (int r = 0; r < ROWS; r++)
		printf("%-24s %9zu %9d\n", about[r].name, strlen(about[r].text),
		       median(ns[r]) - base);
	heads__destroy(h);
	return 0;
}
