/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One HTTP exchange on one new connection, the way a plain client does it: connect, write the whole
 * request, then read until the response is complete. Tells exactly how it ended. What to ask and
 * what to make of the answers is the caller's. */
#ifndef TOOLS_EXCHANGE_H
#define TOOLS_EXCHANGE_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum exchange_fault {
	FAULT_NONE,
	FAULT_CONNECT, /* refused or unreachable */
	FAULT_RESET,   /* the peer reset the connection */
	FAULT_TIMEOUT, /* nothing moved for timeout_ms */
	FAULT_SHORT,   /* the response ended before its end */
	FAULT_WRONG,   /* the response is not what its head promises */
	FAULT_OPEN,    /* complete, but the server did not close as it said it would */
	FAULTS
};

const char *exchange_fault_name(enum exchange_fault fault);

struct exchange_request { /* owned by the caller, unchanged while exchanges use it */
	struct sockaddr_storage to;
	socklen_t to_length;
	char *head; /* request line and header lines up to the empty one */
	size_t head_length;
	char *body; /* may be NULL */
	size_t body_length;
	bool split;	     /* head and body in separate writes, so in separate segments */
	unsigned timeout_ms; /* longest wait for any progress */
};

struct exchange_outcome {
	enum exchange_fault fault;
	int status;	       /* 0 when there was none */
	uint16_t source_port;  /* as given to exchange_start() */
	uint64_t connected_us; /* from start to the end of the handshake */
	uint64_t latency_us;   /* from start to the last byte of the response */
	uint64_t stall_us;     /* longest time without progress, the server's close included */
	const struct exchange_request *request;
};

typedef void (*exchange_cb)(void *arg, const struct exchange_outcome *o);

/* Starts an exchange; `cb` is called once, later, from the loop. source_port 0: the kernel's
 * choice. Negative errno, and then no callback: -EADDRNOTAVAIL means that the kernel still holds a
 * connection on that source port. */
int exchange_start(struct event_base *base, const struct exchange_request *r, uint16_t source_port,
		   exchange_cb cb, void *arg);

/* Parses "ADDR:PORT" or "[ADDR6]:PORT" into r->to. False: it is not that. */
bool exchange_parse_address(const char *text, struct exchange_request *r);

/* Fills head and body of a request: `body_size` bytes of a chat completion, streamed or not, unless
 * `body_size` is negative (no body, as for GET). `close`: asks the server to close, and expects it;
 * else the client closes when it has its answer. */
void exchange_compose(struct exchange_request *r, const char *method, const char *path,
		      long body_size, bool stream, bool close);

uint64_t exchange_now_us(void); /* CLOCK_MONOTONIC */

#endif
