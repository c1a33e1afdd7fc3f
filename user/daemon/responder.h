/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A listener on loopback that answers every request with a canned response: where connections go
 * when a pool has nothing free. Which response is its owner's matter.
 */
#ifndef SPILLWAY_RESPONDER_H
#define SPILLWAY_RESPONDER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include <spillway/abi.h>

#define SW_RESPONDER_CONNECTIONS 1024 /* at a time; more wait to be accepted */

struct sw_responder;

/* The answer to a request for `path` (up to '?') on this socket; valid until the loop runs again.
 * NULL: none, the connection is closed. */
typedef const struct sw_answer *(*sw_responder_fn)(void *arg, int connection, enum sw_method method,
						   const char *path);

/* Listens on 127.0.0.1 and ::1 of a network namespace (NULL: the caller's), on one port that the
 * kernel chooses. Without IPv6 there, on 127.0.0.1 alone. */
int sw_responder_open(struct sw_responder **out, struct event_base *base, const char *netns,
		      sw_responder_fn fn, void *arg, struct sw_error *err);
/* Ends its connections too. NULL is fine. */
void sw_responder_close(struct sw_responder *r);

uint16_t sw_responder_port(const struct sw_responder *r);
/* The listening socket of a family; -1: it has none. */
int sw_responder_socket(const struct sw_responder *r, bool v6);

#endif
