/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What routers and servers say to each other in tests of what is idle, and what is then expected of
 * their connection. */
#ifndef SPILLWAY_TEST_UPSTREAM_TALK_H
#define SPILLWAY_TEST_UPSTREAM_TALK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "upstream.h"

#define GET	"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK	"HTTP/1.1 200 OK\r\nServer: a simulated one\r\n"
#define COUNTED OK "Content-Length: 5\r\n\r\nhello"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"
#define SSE	OK "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define TOKEN	"f\r\ndata: {\"a\":1}\n\n\r\n" /* 20 bytes */
#define ROWS(a) (sizeof(a) / sizeof(*(a)))

/* Can this kernel close idle connections? A line says so when it cannot. */
bool upstream_supported(void);

void pause_ms(unsigned ms);

/* A connection to UP_WORKER. */
struct upstream_pair open_steered(struct upstreams *u);

/* Sends and takes at the other end: any bytes, a request, a response. */
void move(int from, int to, const char *text, size_t len);
void ask(struct upstream_pair *p, const char *text);
void answer(struct upstream_pair *p, const char *text);

/* It is closed as idle, and nothing else is; it is not, and nothing is. */
void expect_closed(struct upstreams *u, struct upstream_pair *p);
void expect_open(struct upstreams *u, struct upstream_pair *p);

#endif
