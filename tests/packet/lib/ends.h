/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both ends of a connection in the hands of one test: it speaks as the client and as the server,
 * and says what either must hear, to the byte.
 */
#ifndef SPILLWAY_TEST_ENDS_H
#define SPILLWAY_TEST_ENDS_H

#include "kept.h"

#include <sys/socket.h>

struct ends {
	int family; /* 4 or 6 */
	int client, server;
	uint16_t port; /* the client's */
};

#define OK_RESPONSE "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define GET_CHAT    "GET /chat HTTP/1.1\r\nHost: llm\r\n\r\n"

void ends_address(int family, enum side side, uint8_t out[16]); /* IPv4: mapped */
struct sockaddr_storage ends_sockaddr(int family, enum side side, uint16_t port);

/* A connection; a port of 0 is any. What is special about a socket has to be set before that. */
struct ends ends_open(int family);
int ends_socket(int family, enum side side, int protocol);
int ends_listen(int family, int protocol);
struct ends ends_connect(int family, int client, int listener, uint16_t port);
void ends_close_all(void);
int ends_keep(int fd); /* it is closed when the test ends */
/* Closes one end at once: with a RST. */
void ends_reset(int *fd);
void ends_close(int *fd);

void tell(int fd, const char *text);
void tell_bytes(int fd, const void *bytes, size_t n);
/* What comes next is this. */
void hear(int fd, const char *text);
void hear_bytes(int fd, const void *bytes, size_t n);
void hear_end(int fd);	    /* the other side has said all */
void hear_reset(int fd);    /* or has gone */
void hear_nothing(int fd);  /* now, and for a moment */
bool hears(int fd, int ms); /* anything, within this time */

const char *busy(void); /* the answer in most tests: SATURATED, DEFAULT */
/* A request from its beginning to its end. */
void is_served(struct ends *e, const char *request);
void is_shed(struct ends *e, const char *request);
/* A new connection on which a request was shed, and the pool sheds on. */
struct ends shed_once(int family);
/* It is as good as new. */
void goes_on(struct ends *e);

/* A POST with `n` bytes of body; it is valid until the next call. */
const char *a_post(size_t n);
/* Moves n bytes of a pattern that no shift leaves alike from one end to the other. */
void move_bytes(int from, int to, size_t n);

/* The heads of a POST with a body of n bytes, and of its response, or of a GET and a response with
 * such a body. */
void begin_bytes(struct ends *e, bool up, size_t n);

/* Runs a test for each IP version that there is. */
void each_family(void (*test)(int family));
#define FAMILY_TEST(f)                                                                             \
	static void test_##f(void **state)                                                         \
	{                                                                                          \
		(void)state;                                                                       \
		each_family(f);                                                                    \
	}

#endif
