// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A small HTTP/1.x server on bufferevents. Reading never stops, so the end of a connection is seen
// while its reply is still in the making.

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server.h"

#define HEAD_MAX (64u << 10)

struct server {
	struct event_base *base;
	struct server_calls calls;
};

enum client_state {
	WANTS_HEAD,
	WANTS_BODY,
	PENDING, /* the caller has the request and owes a reply */
	FLUSHING /* the last reply is on its way, then the connection closes */
};

struct client {
	struct server *server;
	struct bufferevent *bev;
	enum client_state state;
	char *head;
	struct server_request request;
	bool close, chunked, minor0; /* minor0: HTTP/1.0, which has no chunks */
	void *data;
};

void client_set_data(struct client *c, void *data)
{
	c->data = data;
}

void *client_data(const struct client *c)
{
	return c->data;
}

static void client_free(struct client *c)
{
	bufferevent_free(c->bev);
	free(c->head);
	free(c);
}

/* ---- replies ------------------------------------------------------------------------------ */

static const char *phrase(int status)
{
	switch (status) {
	case 200: return "OK";
	case 400: return "Bad Request";
	case 404: return "Not Found";
	case 411: return "Length Required";
	case 413: return "Content Too Large";
	case 500: return "Internal Server Error";
	case 503: return "Service Unavailable";
	default: return "Status";
	}
}

static void begin(struct client *c, int status, const char *type, const char *framing)
{
	evbuffer_add_printf(bufferevent_get_output(c->bev),
			    "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s%s\r\n", status,
			    phrase(status), type, framing, c->close ? "Connection: close\r\n" : "");
}

/* The reply is complete: next request, or no more of them. Half-closes first and lets the client
 * close, so that a body still on its way cannot turn the reply into a reset. */
static void done(struct client *c)
{
	free(c->head);
	c->head = NULL;
	c->data = NULL;
	c->state = c->close ? FLUSHING : WANTS_HEAD;
	/* Looks at once for a pipelined request, or at an output that is empty already. */
	bufferevent_trigger(c->bev, c->close ? EV_WRITE : EV_READ, BEV_OPT_DEFER_CALLBACKS);
}

void client_reply(struct client *c, int status, const char *type, const char *body, size_t length)
{
	char framing[48];

	snprintf(framing, sizeof(framing), "Content-Length: %zu\r\n", length);
	begin(c, status, type, framing);
	bufferevent_write(c->bev, body, length);
	done(c);
}

void client_stream(struct client *c, const char *type)
{
	c->chunked = !c->minor0;
	c->close |= c->minor0;
	begin(c, 200, type, c->chunked ? "Transfer-Encoding: chunked\r\n" : "");
}

void client_write(struct client *c, const char *bytes, size_t length)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);

	if (c->chunked)
		evbuffer_add_printf(out, "%zx\r\n", length);
	evbuffer_add(out, bytes, length);
	if (c->chunked)
		evbuffer_add(out, "\r\n", 2);
}

void client_end(struct client *c)
{
	if (c->chunked)
		bufferevent_write(c->bev, "0\r\n\r\n", 5);
	done(c);
}

/* ---- requests ----------------------------------------------------------------------------- */

static void refuse(struct client *c, int status)
{
	char body[96];
	int n = snprintf(body, sizeof(body), "{\"error\":{\"message\":\"%s\",\"code\":%d}}",
			 phrase(status), status);

	c->close = true;
	client_reply(c, status, "application/json", body, n);
}

/* Cuts the head, request line and header lines, into strings. False: it was refused. */
static bool parse_head(struct client *c)
{
	struct server_request *r = &c->request;
	char *save, *line = strtok_r(c->head, "\r\n", &save), *mark;
	char *method = line, *path = line ? strchr(line, ' ') : NULL;
	char *version = path ? strchr(path + 1, ' ') : NULL;
	bool expects = false, keep = false;

	c->chunked = false;
	if (!version || path[1] != '/' || strncmp(version, " HTTP/1.", 8)) {
		refuse(c, 400);
		return false;
	}
	*path++ = 0;
	*version = 0;
	mark = strchr(path, '?');
	if (mark)
		*mark++ = 0;
	*r = (struct server_request){.method = method, .path = path, .query = mark ? mark : ""};
	c->minor0 = version[8] == '0';

	while ((line = strtok_r(NULL, "\r\n", &save))) {
		if (!strncasecmp(line, "Content-Length:", 15))
			r->length = strtoull(line + 15, NULL, 10);
		else if (!strncasecmp(line, "Transfer-Encoding:", 18))
			return refuse(c, 411), false;
		else if (!strncasecmp(line, "Connection: close", 17))
			c->close = true;
		else if (!strncasecmp(line, "Connection: keep-alive", 22))
			keep = true;
		else if (!strncasecmp(line, "Expect: 100-continue", 20))
			expects = true;
	}
	c->close |= c->minor0 && !keep;
	if (r->length > SERVER_BODY_MAX)
		return refuse(c, 413), false;
	if (expects)
		evbuffer_add_printf(bufferevent_get_output(c->bev),
				    "HTTP/1.1 100 Continue\r\n\r\n");
	return true;
}

static bool take_head(struct client *c, struct evbuffer *in)
{
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);

	if (end.pos < 0) {
		if (evbuffer_get_length(in) > HEAD_MAX)
			refuse(c, 400);
		return false;
	}
	c->head = calloc(1, end.pos + 5);
	if (!c->head)
		abort();
	evbuffer_remove(in, c->head, end.pos + 4);
	if (!parse_head(c))
		return false;
	c->state = WANTS_BODY;
	return true;
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct client *c = arg;

	if (c->state == FLUSHING) {
		evbuffer_drain(in, evbuffer_get_length(in));
		return;
	}
	if (c->state == WANTS_HEAD && !take_head(c, in))
		return;
	if (c->state == WANTS_BODY && evbuffer_get_length(in) >= c->request.length) {
		struct evbuffer *body = evbuffer_new();

		evbuffer_remove_buffer(in, body, c->request.length);
		c->request.body = (char *)evbuffer_pullup(body, -1);
		c->state = PENDING;
		c->server->calls.request(c->server->calls.arg, c, &c->request);
		evbuffer_free(body);
	}
}

static void on_written(struct bufferevent *bev, void *arg)
{
	struct client *c = arg;

	if (c->state == FLUSHING && !evbuffer_get_length(bufferevent_get_output(bev)))
		shutdown(bufferevent_getfd(bev), SHUT_WR);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct client *c = arg;

	(void)bev;
	(void)what;
	if (c->state == PENDING)
		c->server->calls.gone(c->server->calls.arg, c);
	client_free(c);
}

/* ---- listening ---------------------------------------------------------------------------- */

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from,
		      int length, void *arg)
{
	struct server *s = arg;
	struct client *c = calloc(1, sizeof(*c));
	const int on = 1;

	(void)l;
	(void)from;
	(void)length;
	if (!c)
		abort();
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->server = s;
	c->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

struct server *server_new(struct event_base *base, const struct server_calls *calls)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->base = base;
	s->calls = *calls;
	return s;
}

int server_listen(struct server *s, const char *address)
{
	struct sockaddr_storage a;
	int length = sizeof(a);
	unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;

	if (evutil_parse_sockaddr_port(address, (struct sockaddr *)&a, &length))
		return -EINVAL;
	if (a.ss_family == AF_INET6)
		flags |= LEV_OPT_BIND_IPV6ONLY; /* so that 0.0.0.0 and [::] go together */
	errno = 0;
	if (!evconnlistener_new_bind(s->base, on_accept, s, flags, 4096, (struct sockaddr *)&a,
				     length))
		return errno ? -errno : -EINVAL;
	return 0;
}
