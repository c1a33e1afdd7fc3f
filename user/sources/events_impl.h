/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the event plane (events.c) and its transports (zmq.c, nats.c) owe each other. A transport
 * says when there is something to read and is then asked for one piece at a time, so that none of
 * them can hold the loop up. Private to user/sources.
 */
#ifndef SPILLWAY_EVENTS_IMPL_H
#define SPILLWAY_EVENTS_IMPL_H

#include <sys/queue.h>

#include "sources/events.h"

#define SW_EVENT_BYTES 4096 /* of an envelope, at most */

/* One endpoint, or one cluster. */
struct sw_link {
	struct sw_events *events;
	TAILQ_ENTRY(sw_link) ready_link;
	bool ready;
	/* Reads one piece, if there is one. False: there was none, and the transport will call
	 * sw_link_ready() when there is again. */
	bool (*read)(struct sw_link *l);

	const char *kind;
	char *name;
	enum sw_events_state state;
	uint64_t at_ms, messages, dropped, bad, errors;
	struct sw_error error; /* the last one */
	uint64_t error_ms;     /* its time; 0: none yet */
	bool wrong;	       /* it is not over */
	bool said_bad;	       /* one line about bad messages is enough */
};

/* There is something to read. */
void sw_link_ready(struct sw_link *l);
/* A message about load has come: its envelope. */
void sw_link_took(struct sw_link *l, const void *envelope, size_t length);
/* One has come that is wrong already outside the envelope. */
void sw_link_bad(struct sw_link *l, const char *why);
/* Its connection is there. */
void sw_link_up(struct sw_link *l);
/* It is not, or could not be made; says so once. */
__attribute__((format(printf, 2, 3))) void sw_link_down(struct sw_link *l, const char *fmt, ...);
/* To be called before it is freed. */
void sw_link_end(struct sw_link *l);

/* ---- zmq.c: all endpoints ------------------------------------------------------------------ */

struct sw_zmq;

int sw_zmq_new(struct sw_zmq **out, struct sw_events *e, struct event_base *base,
	       struct sw_error *err);
void sw_zmq_free(struct sw_zmq *z);
int sw_zmq_add(struct sw_zmq *z, const char *endpoint, bool broker, struct sw_error *err);
void sw_zmq_drop(struct sw_zmq *z, const char *endpoint);
/* Once a second: what became of connections. */
void sw_zmq_look(struct sw_zmq *z);
/* NULL: there are no more. */
const struct sw_link *sw_zmq_link(const struct sw_zmq *z, size_t index);

/* ---- nats.c: one cluster ------------------------------------------------------------------- */

struct sw_nats;

int sw_nats_new(struct sw_nats **out, struct sw_events *e, struct event_base *base,
		char *const *servers, size_t n, const char *credentials_file, struct sw_error *err);
void sw_nats_free(struct sw_nats *n);
const struct sw_link *sw_nats_link(const struct sw_nats *n);

#endif
