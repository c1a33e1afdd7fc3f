// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The event plane, see events.h: gives each transport its turn, leaves out repeats, and hands loads
 * on. What is on the wire is left to zmq.c, nats.c and msgpack.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "sources/events_impl.h"
#include "sources/msgpack.h"
#include "sources/pending.h"
#include "sources/repeats.h"

/* A turn reads and hands on for as long as this; in a flood the loop is left to others between two.
 */
#define READ_NS	 1500000
#define TELL_NS	 1000000
#define PAUSE_US 3000
#define PIECES	 32 /* that one transport reads before the next one may */

TAILQ_HEAD(links, sw_link);

struct sw_events {
	sw_events_cb cb;
	void *arg;
	struct event *turn, *second;
	struct links ready;
	struct sw_pending *pending;
	struct sw_repeats *repeats;
	struct sw_zmq *zmq;
	struct sw_nats *nats; /* NULL: none */
};

/* ---- turns ---------------------------------------------------------------------------------- */

static void read_ready(struct sw_events *e)
{
	uint64_t end_ns = sw_now_ns() + READ_NS;
	struct sw_link *l;

	while ((l = TAILQ_FIRST(&e->ready)) && sw_now_ns() < end_ns) {
		bool more = true;

		for (int i = 0; more && i < PIECES; i++)
			more = l->read(l);
		TAILQ_REMOVE(&e->ready, l, ready_link);
		l->ready = more;
		if (more)
			TAILQ_INSERT_TAIL(&e->ready, l, ready_link);
	}
}

/* False: some are left. */
static bool tell(struct sw_events *e)
{
	uint64_t end_ns = sw_now_ns() + TELL_NS;
	struct sw_load_event event;

	while (sw_now_ns() < end_ns) {
		if (!sw_pending_take(e->pending, &event))
			return true;
		e->cb(e->arg, &event);
	}
	return false;
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval pause = {.tv_usec = PAUSE_US};
	struct sw_events *e = arg;
	bool all;

	(void)fd;
	(void)what;
	read_ready(e);
	all = tell(e);
	if (!all || !TAILQ_EMPTY(&e->ready))
		evtimer_add(e->turn, &pause);
}

void sw_link_ready(struct sw_link *l)
{
	static const struct timeval at_once;
	struct sw_events *e = l->events;

	if (l->ready)
		return;
	l->ready = true;
	TAILQ_INSERT_TAIL(&e->ready, l, ready_link);
	if (!evtimer_pending(e->turn, NULL))
		evtimer_add(e->turn, &at_once);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct sw_events *e = arg;

	(void)fd;
	(void)what;
	sw_zmq_look(e->zmq);
}

/* ---- messages ------------------------------------------------------------------------------- */

void sw_link_bad(struct sw_link *l, const char *why)
{
	l->at_ms = sw_now_ms();
	l->messages++;
	l->bad++;
	l->errors++;
	l->error_ms = l->at_ms;
	l->wrong = true;
	sw_fail(&l->error, 0, "%s", why);
	if (!l->said_bad)
		sw_log(SW_WARN, "event plane: %s: no load: %s", l->name, why);
	l->said_bad = true;
}

static void pend(struct sw_link *l, const struct sw_load_event *event)
{
	struct sw_events *e = l->events;
	enum sw_pended done = sw_pending_put(e->pending, event);
	struct sw_load_event first;

	if (done == SW_PENDED_REPLACED)
		l->dropped++;
	if (done != SW_PENDED_FULL)
		return;
	sw_pending_take(e->pending, &first);
	e->cb(e->arg, &first);
	sw_pending_put(e->pending, event);
}

void sw_link_took(struct sw_link *l, const void *bytes, size_t length)
{
	struct sw_load_event event;
	struct sw_envelope envelope;
	struct sw_error err;

	if (length > SW_EVENT_BYTES) {
		sw_link_bad(l, "a message that is too long");
		return;
	}
	if (sw_envelope_read(bytes, length, &envelope, &err) ||
	    sw_load_read(envelope.payload, envelope.length, &event.worker_id, &event.report,
			 &err)) {
		sw_link_bad(l, err.text);
		return;
	}
	l->at_ms = sw_now_ms();
	l->messages++;
	sw_link_up(l);
	event.publisher = envelope.publisher;
	if (sw_repeats_knows(l->events->repeats, envelope.publisher, envelope.sequence,
			     envelope.published_ms, l->at_ms))
		l->dropped++;
	else
		pend(l, &event);
}

/* ---- connections ---------------------------------------------------------------------------- */

void sw_link_up(struct sw_link *l)
{
	if (l->state == SW_EVENTS_FAILING)
		sw_log(SW_INFO, "event plane: %s: connected again", l->name);
	l->state = SW_EVENTS_OK;
	l->wrong = false;
}

void sw_link_down(struct sw_link *l, const char *fmt, ...)
{
	va_list ap;

	l->errors++;
	l->error_ms = sw_now_ms();
	l->wrong = true;
	va_start(ap, fmt);
	vsnprintf(l->error.text, sizeof(l->error.text), fmt, ap);
	va_end(ap);
	if (l->state != SW_EVENTS_FAILING)
		sw_log(SW_WARN, "event plane: %s: %s", l->name, l->error.text);
	l->state = SW_EVENTS_FAILING;
}

void sw_link_end(struct sw_link *l)
{
	if (l->ready)
		TAILQ_REMOVE(&l->events->ready, l, ready_link);
	l->ready = false;
}

bool sw_events_status(const struct sw_events *e, size_t index, struct sw_events_status *out)
{
	const struct sw_link *l = e->nats && !index
					  ? sw_nats_link(e->nats)
					  : sw_zmq_link(e->zmq, e->nats ? index - 1 : index);

	if (!l)
		return false;
	*out = (struct sw_events_status){.kind = l->kind,
					 .name = l->name,
					 .state = l->state,
					 .at_ms = l->at_ms,
					 .messages = l->messages,
					 .dropped = l->dropped,
					 .bad = l->bad,
					 .errors = l->errors,
					 .error = l->wrong ? l->error.text : "",
					 .last_error = l->error.text,
					 .last_error_ms = l->error_ms};
	return true;
}

/* ---- from outside --------------------------------------------------------------------------- */

int sw_events_new(struct sw_events **out, struct event_base *base, sw_events_cb cb, void *arg,
		  struct sw_error *err)
{
	const struct timeval second = {.tv_sec = 1};
	struct sw_events *e = calloc(1, sizeof(*e));
	int ret = -ENOMEM;

	if (!e)
		return sw_fail(err, -ENOMEM, "no memory");
	e->cb = cb;
	e->arg = arg;
	TAILQ_INIT(&e->ready);
	e->pending = sw_pending_new();
	e->repeats = sw_repeats_new();
	e->turn = evtimer_new(base, on_turn, e);
	e->second = event_new(base, -1, EV_PERSIST, on_second, e);
	if (!e->pending || !e->repeats || !e->turn || !e->second || event_add(e->second, &second))
		sw_fail(err, ret, "no memory");
	else
		ret = sw_zmq_new(&e->zmq, e, base, err);
	if (ret)
		sw_events_free(e);
	else
		*out = e;
	return ret;
}

void sw_events_free(struct sw_events *e)
{
	if (!e)
		return;
	sw_zmq_free(e->zmq);
	sw_nats_free(e->nats);
	if (e->turn)
		event_free(e->turn);
	if (e->second)
		event_free(e->second);
	sw_pending_free(e->pending);
	sw_repeats_free(e->repeats);
	free(e);
}

int sw_events_zmq(struct sw_events *e, const char *endpoint, bool broker, struct sw_error *err)
{
	return sw_zmq_add(e->zmq, endpoint, broker, err);
}

void sw_events_zmq_drop(struct sw_events *e, const char *endpoint)
{
	sw_zmq_drop(e->zmq, endpoint);
}

int sw_events_nats(struct sw_events *e, char *const *servers, size_t n,
		   const char *credentials_file, struct sw_error *err)
{
	struct sw_nats *nats = NULL;
	int ret = n ? sw_nats_new(&nats, e, event_get_base(e->turn), servers, n, credentials_file,
				  err)
		    : 0;

	if (ret)
		return ret;
	sw_nats_free(e->nats);
	e->nats = nats;
	return 0;
}
