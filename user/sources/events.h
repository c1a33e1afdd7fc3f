/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* NVIDIA Dynamo's event plane: the load that workers publish over ZeroMQ or NATS. Each event
 * becomes a report of one rank. Whose worker that is, and what several publishers that tell of the
 * same one mean, is left to the caller. */
#ifndef SPILLWAY_EVENTS_H
#define SPILLWAY_EVENTS_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "policy/busy.h"

#define SW_EVENTS_ENDPOINTS 4096 /* of ZeroMQ, at once, at most */

struct sw_events;

struct sw_load_event {
	uint64_t worker_id, publisher; /* a publisher's id is not that of its worker */
	struct sw_report report;
};

/* Called on the loop. While events come faster than they can be taken in, those of one publisher
 * about one rank are put together: the last value of each signal counts. */
typedef void (*sw_events_cb)(void *arg, const struct sw_load_event *event);

int sw_events_new(struct sw_events **out, struct event_base *base, sw_events_cb cb, void *arg,
		  struct sw_error *err);
/* Does not wait for anything. Not from the callback. NULL is fine. */
void sw_events_free(struct sw_events *e);

/* Listens to a ZeroMQ publisher at "tcp://HOST:PORT" or "ipc://PATH", or to a broker, which passes
 * on what many publish. Connects in the background, again and again. 0 also when it listens there
 * already; -EINVAL: no such address; -ENOSPC: too many. */
int sw_events_zmq(struct sw_events *e, const char *endpoint, bool broker, struct sw_error *err);
/* Listens there no more. Not from the callback. */
void sw_events_zmq_drop(struct sw_events *e, const char *endpoint);

/* Listens at a cluster of NATS servers, "nats://HOST:PORT" or "tls://HOST:PORT", in place of the
 * one before; n 0: at none. Connects in the background, again and again. `credentials_file` may be
 * NULL. Strings are copied. */
int sw_events_nats(struct sw_events *e, char *const *servers, size_t n,
		   const char *credentials_file, struct sw_error *err);

enum sw_events_state {
	SW_EVENTS_CONNECTING, /* for the first time */
	SW_EVENTS_OK,
	SW_EVENTS_FAILING, /* `error` says why; it goes on trying */
};

/* One ZeroMQ endpoint, or the NATS cluster. */
struct sw_events_status {
	const char *kind, *name; /* "zmq" or "nats"; its address: valid until it is dropped */
	enum sw_events_state state;
	uint64_t at_ms;	   /* of the last message, on sw_now_ms()'s clock; 0: none yet */
	uint64_t messages; /* about load, all that came */
	uint64_t dropped;  /* of these, repeats, and in a flood those that newer ones replaced */
	uint64_t bad;	   /* and those that could not be understood */
	uint64_t errors;   /* failures to connect, connections lost, and bad messages */
	const char *error; /* the last one, or "" while all goes well */
	const char *last_error; /* the last one */
	uint64_t last_error_ms; /* its time; 0: none yet */
};

/* Fills in the one at `index`, from 0 on. False: there are no more. */
bool sw_events_status(const struct sw_events *e, size_t index, struct sw_events_status *out);

#endif
