// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The event plane over ZeroMQ, see events_impl.h: a SUB socket for each publisher or broker. libzmq
 * connects, resolves and receives on a thread of its own; here is read what it has received. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "sources/events_impl.h"
#include "sources/frames.h"

#define SOCKETS	     3	 /* of libzmq for each endpoint: its own and two of its monitor */
#define RETRY_MS     100 /* and twice as long each time, up to: */
#define RETRY_MAX_MS 5000

/* Messages that wait, and bytes of one frame: a longer one ends the connection. A broker passes on
 * other topics too, which hold more. */
#define DIRECT_QUEUED 1024
#define DIRECT_BYTES  (16 * 1024)
#define BROKER_QUEUED 256
#define BROKER_BYTES  (1024 * 1024)

struct endpoint {
	struct sw_link link; /* first: they are the same */
	const struct sw_zmq *all;
	void *socket, *monitor; /* NULL: to be opened */
	struct event *readable;
	bool broker;
	zmq_msg_t frames[SW_FRAMES]; /* of the message that is under way */
	unsigned n;		     /* may be more than are kept */
};

struct sw_zmq {
	struct sw_events *events;
	struct event_base *base;
	void *context;
	struct endpoint **endpoints;
	size_t n;
};

/* ---- messages ------------------------------------------------------------------------------- */

/* A whole message has come. */
static void take_message(struct endpoint *p)
{
	struct sw_frame frames[SW_FRAMES], envelope;
	struct sw_error err;
	int ret;

	for (int i = 0; i < SW_FRAMES; i++)
		frames[i] =
			(struct sw_frame){zmq_msg_data(&p->frames[i]), zmq_msg_size(&p->frames[i])};
	ret = sw_frames_read(frames, p->n, p->broker, &envelope, &err);
	if (ret < 0)
		sw_link_bad(&p->link, err.text);
	else if (ret)
		sw_link_took(&p->link, envelope.data, envelope.length);
}

/* libzmq's descriptor says only that something has happened. It may stay readable until all was
 * read, so it is looked at again only then. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct endpoint *p = arg;

	(void)fd;
	(void)what;
	sw_link_ready(&p->link);
}

/* ---- connections ---------------------------------------------------------------------------- */

static void note(struct endpoint *p, unsigned event)
{
	switch (event) {
	case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: sw_link_up(&p->link); break;
	case ZMQ_EVENT_DISCONNECTED: sw_link_down(&p->link, "the connection was lost"); break;
	case ZMQ_EVENT_CONNECT_RETRIED:
		sw_link_down(&p->link, "cannot connect; is a publisher listening there?");
		break;
	case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
	case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
	case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
		sw_link_down(&p->link, "no ZeroMQ publisher answers there");
		break;
	default: break;
	}
}

/* Of each event there are two frames: its number and value, and the address. */
static void look_at(struct endpoint *p)
{
	uint16_t event;
	char frame[256];

	while (zmq_recv(p->monitor, frame, sizeof(frame), ZMQ_DONTWAIT) >= 6) {
		memcpy(&event, frame, sizeof(event));
		zmq_recv(p->monitor, frame, sizeof(frame), ZMQ_DONTWAIT);
		note(p, event);
	}
}

void sw_zmq_look(struct sw_zmq *z)
{
	for (size_t i = 0; i < z->n; i++)
		if (z->endpoints[i]->socket)
			look_at(z->endpoints[i]);
		else
			sw_link_ready(&z->endpoints[i]->link); /* opens it, or tries again to */
}

/* ---- endpoints ------------------------------------------------------------------------------ */

static void close_sockets(struct endpoint *p)
{
	if (p->readable)
		event_free(p->readable);
	/* Or libzmq's thread may wait for ever for somebody to take an event, and we for it. */
	if (p->socket)
		zmq_socket_monitor(p->socket, NULL, 0);
	if (p->monitor)
		zmq_close(p->monitor);
	if (p->socket)
		zmq_close(p->socket);
	p->readable = NULL;
	p->monitor = p->socket = NULL;
}

static void close_endpoint(struct endpoint *p)
{
	sw_link_end(&p->link);
	close_sockets(p);
	for (int i = 0; i < SW_FRAMES; i++)
		zmq_msg_close(&p->frames[i]);
	free(p->link.name);
	free(p);
}

static int set(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof(value));
}

static int set_options(void *socket, bool broker)
{
	const int64_t largest = broker ? BROKER_BYTES : DIRECT_BYTES;
	const char *prefix = broker ? "namespace." : SW_LOAD_TOPIC;

	return set(socket, ZMQ_LINGER, 0) ||
	       set(socket, ZMQ_RCVHWM, broker ? BROKER_QUEUED : DIRECT_QUEUED) ||
	       set(socket, ZMQ_IPV6, 1) || set(socket, ZMQ_RECONNECT_IVL, RETRY_MS) ||
	       set(socket, ZMQ_RECONNECT_IVL_MAX, RETRY_MAX_MS) ||
	       set(socket, ZMQ_CONNECT_TIMEOUT, 5000) || set(socket, ZMQ_HANDSHAKE_IVL, 5000) ||
	       /* a publisher whose host is gone says nothing, as one does that has no load */
	       set(socket, ZMQ_TCP_KEEPALIVE, 1) || set(socket, ZMQ_TCP_KEEPALIVE_IDLE, 10) ||
	       set(socket, ZMQ_TCP_KEEPALIVE_INTVL, 5) || set(socket, ZMQ_TCP_KEEPALIVE_CNT, 3) ||
	       zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof(largest)) ||
	       zmq_setsockopt(socket, ZMQ_SUBSCRIBE, prefix, strlen(prefix));
}

/* Its monitor is read once a second, so it needs no descriptor on the loop. */
static void *open_monitor(const struct sw_zmq *z, void *socket)
{
	const int events = ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED |
			   ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
			   ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
	void *monitor = zmq_socket(z->context, ZMQ_PAIR);
	char address[64];

	snprintf(address, sizeof(address), "inproc://monitor-%p", socket);
	if (monitor &&
	    (set(monitor, ZMQ_LINGER, 0) || zmq_socket_monitor(socket, address, events) ||
	     zmq_connect(monitor, address))) {
		zmq_close(monitor);
		monitor = NULL;
	}
	return monitor;
}

static int try_opening(struct endpoint *p)
{
	size_t size = sizeof(evutil_socket_t);
	evutil_socket_t fd;

	p->socket = zmq_socket(p->all->context, ZMQ_SUB);
	if (!p->socket || set_options(p->socket, p->broker))
		return -1;
	p->monitor = open_monitor(p->all, p->socket);
	if (!p->monitor || zmq_connect(p->socket, p->link.name) ||
	    zmq_getsockopt(p->socket, ZMQ_FD, &fd, &size))
		return -1;
	p->readable = event_new(p->all->base, fd, EV_READ, on_readable, p);
	return p->readable ? 0 : -1;
}

static int open_endpoint(struct endpoint *p, struct sw_error *err)
{
	int number;

	if (!try_opening(p))
		return 0;
	number = zmq_errno(); /* libzmq has some of its own */
	close_sockets(p);
	return sw_fail(err, -EIO, "cannot listen: %s", zmq_strerror(number));
}

/* To open many sockets takes long, so that is a piece of work as well. Else one frame, as there is
 * no limit to how many a message may have. */
static bool read_piece(struct sw_link *link)
{
	struct endpoint *p = (struct endpoint *)link;
	zmq_msg_t *frame = &p->frames[p->n < SW_FRAMES ? p->n : SW_FRAMES - 1];
	struct sw_error err;

	if (!p->socket && open_endpoint(p, &err)) {
		sw_link_down(link, "%s", err.text);
		return false;
	}
	if (zmq_msg_recv(frame, p->socket, ZMQ_DONTWAIT) < 0) {
		event_add(p->readable, NULL);
		return false;
	}
	p->n++;
	if (zmq_msg_more(frame))
		return true;
	take_message(p);
	p->n = 0;
	return true;
}

/* "tcp://HOST:PORT" or "ipc://PATH". What libzmq makes of it is seen when it is opened. */
static bool is_address(const char *text)
{
	const char *port;
	char *end;
	long number;

	if (!strncmp(text, "ipc://", 6))
		return text[6] != '\0';
	port = strncmp(text, "tcp://", 6) ? NULL : strrchr(text + 6, ':');
	if (!port || port == text + 6)
		return false;
	number = strtol(port + 1, &end, 10);
	return !*end && number > 0 && number <= UINT16_MAX;
}

/* The index of an endpoint; `n`: it is none. */
static size_t find(const struct sw_zmq *z, const char *address)
{
	size_t i = 0;

	while (i < z->n && strcmp(z->endpoints[i]->link.name, address))
		i++;
	return i;
}

static int add(struct sw_zmq *z, const char *address, bool broker, struct sw_error *err)
{
	struct endpoint **more = reallocarray(z->endpoints, z->n + 1, sizeof(struct endpoint *));
	struct endpoint *p = calloc(1, sizeof(*p));
	char *name = strdup(address);

	if (more)
		z->endpoints = more;
	if (!more || !p || !name) {
		free(p);
		free(name);
		return sw_fail(err, -ENOMEM, "no memory");
	}
	p->link = (struct sw_link){
		.events = z->events, .read = read_piece, .kind = "zmq", .name = name};
	p->all = z;
	p->broker = broker;
	for (int i = 0; i < SW_FRAMES; i++)
		zmq_msg_init(&p->frames[i]);
	z->endpoints[z->n++] = p;
	sw_link_ready(&p->link);
	return 0;
}

int sw_zmq_add(struct sw_zmq *z, const char *address, bool broker, struct sw_error *err)
{
	size_t i = find(z, address);

	if (i < z->n && z->endpoints[i]->broker == broker)
		return 0;
	if (!is_address(address))
		return sw_fail(err, -EINVAL,
			       "cannot listen to %s: it is neither tcp://HOST:PORT nor ipc://PATH",
			       address);
	sw_zmq_drop(z, address);
	if (z->n >= SW_EVENTS_ENDPOINTS)
		return sw_fail(err, -ENOSPC, "cannot listen to %s: %d endpoints are the limit",
			       address, SW_EVENTS_ENDPOINTS);
	return add(z, address, broker, err);
}

void sw_zmq_drop(struct sw_zmq *z, const char *address)
{
	size_t i = find(z, address);

	if (i == z->n)
		return;
	close_endpoint(z->endpoints[i]);
	z->endpoints[i] = z->endpoints[--z->n];
}

const struct sw_link *sw_zmq_link(const struct sw_zmq *z, size_t index)
{
	return index < z->n ? &z->endpoints[index]->link : NULL;
}

/* ---- all of them ---------------------------------------------------------------------------- */

int sw_zmq_new(struct sw_zmq **out, struct sw_events *e, struct event_base *base,
	       struct sw_error *err)
{
	struct sw_zmq *z = calloc(1, sizeof(*z));
	void *context = zmq_ctx_new();

	if (!z || !context ||
	    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, SW_EVENTS_ENDPOINTS * SOCKETS)) {
		if (context)
			zmq_ctx_term(context);
		free(z);
		return sw_fail(err, -ENOMEM, "cannot set up ZeroMQ: no memory");
	}
	*z = (struct sw_zmq){.events = e, .base = base, .context = context};
	*out = z;
	return 0;
}

static void *end(void *context)
{
	zmq_ctx_term(context);
	return NULL;
}

void sw_zmq_free(struct sw_zmq *z)
{
	pthread_t thread;

	if (!z)
		return;
	while (z->n)
		close_endpoint(z->endpoints[--z->n]);
	free(z->endpoints);
	/* libzmq's thread may be resolving a name, and to end it is to wait for that */
	if (!pthread_create(&thread, NULL, end, z->context))
		pthread_detach(thread);
	free(z);
}
