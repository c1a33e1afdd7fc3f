// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The responder; see responder.h. It shares the daemon's loop with the heartbeat, so nothing here
 * takes long: few bytes are kept of a request, few connections accepted at a time. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/responder.h"
#include "kernel/netns.h"
#include "policy/paths.h"

#define HEAD_MS	     10000	/* to send the head of a request */
#define DRAIN_MS     5000	/* to send the rest of it and to close, once it is answered */
#define HEAD_MAX     65536	/* bytes of a head; a longer one is answered as it stands */
#define DRAIN_MAX    (32 << 20) /* bytes of a body: closing before it is read would reset */
#define REQUEST_LINE 256	/* bytes of a request line that are looked at */
#define ACCEPT_BATCH 64
#define PAUSE_MS     100 /* after accept() failed */
#define PORT_TRIES   32

struct connection {
	TAILQ_ENTRY(connection) link;
	struct sw_responder *owner;
	struct event *ev;
	uint64_t until_ms;
	size_t bytes;		 /* read so far: of the head, then of what follows */
	char line[REQUEST_LINE]; /* the request line, zero terminated, cut when it is longer */
	size_t line_length;
	bool line_ended, at_line_start, answered;
};

struct sw_responder {
	struct event_base *base;
	sw_responder_fn answer;
	void *arg;
	int sockets[2]; /* v4, v6 */
	struct event *accepting[2], *resume;
	uint16_t port;
	TAILQ_HEAD(connections, connection) connections;
	unsigned n;
};

/* ---- requests ----------------------------------------------------------------------------- */

static enum sw_method parse_method(const char *word, size_t length)
{
	for (int m = SW_METHOD_GET; m <= SW_METHOD_TRACE; m++)
		if (strlen(sw_method_name((enum sw_method)m)) == length &&
		    !memcmp(sw_method_name((enum sw_method)m), word, length))
			return (enum sw_method)m;
	return SW_METHOD_NONE;
}

/* Cuts the path out of a request line, in place. */
static char *parse_path(char *line)
{
	char *path = strchr(line, ' ');
	char *host = path ? strstr(path, "://") : NULL;

	if (!path)
		return line + strlen(line);
	path++;
	if (*path != '/' && host) /* POST http://host/path */
		path = strchr(host + 3, '/') ?: line + strlen(line);
	path[strcspn(path, " ?")] = '\0';
	return path;
}

/* TLS and everything else that is not HTTP does not. */
static bool begins_request(char c)
{
	return (c >= 'A' && c <= 'Z') || c == '\r' || c == '\n';
}

/* Takes bytes of the head in. True: it is complete. */
static bool take_head(struct connection *c, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\r')
			continue;
		if (bytes[i] == '\n') {
			if (c->at_line_start && c->line_ended)
				return true;
			c->line_ended |= c->line_length > 0; /* empty lines may come first */
			c->at_line_start = true;
			continue;
		}
		c->at_line_start = false;
		if (!c->line_ended && c->line_length < sizeof(c->line) - 1)
			c->line[c->line_length++] = bytes[i];
	}
	return c->bytes >= HEAD_MAX;
}

/* ---- connections -------------------------------------------------------------------------- */

static void accept_more(struct sw_responder *r)
{
	for (int v6 = 0; v6 < 2; v6++)
		if (r->accepting[v6])
			event_add(r->accepting[v6], NULL);
}

static void accept_no_more(struct sw_responder *r)
{
	for (int v6 = 0; v6 < 2; v6++)
		if (r->accepting[v6])
			event_del(r->accepting[v6]);
}

static void drop(struct connection *c)
{
	struct sw_responder *r = c->owner;

	TAILQ_REMOVE(&r->connections, c, link);
	close(event_get_fd(c->ev));
	event_free(c->ev);
	free(c);
	if (r->n-- == SW_RESPONDER_CONNECTIONS)
		accept_more(r);
}

/* Waits for more, up to the connection's time limit. */
static void wait_on(struct connection *c)
{
	uint64_t now = sw_now_ms(), left = c->until_ms > now ? c->until_ms - now : 1;
	struct timeval tv = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};

	if (event_add(c->ev, &tv))
		drop(c);
}

/* The answer is far smaller than a fresh socket's buffer, so it is written at once or not at all.
 * Then our side is closed, and theirs is read until they close it. */
static bool answer(struct connection *c, int fd)
{
	enum sw_method method = parse_method(c->line, strcspn(c->line, " "));
	const struct sw_answer *a =
		c->owner->answer(c->owner->arg, fd, method, parse_path(c->line));

	if (!a || send(fd, a->bytes, a->length, MSG_NOSIGNAL) != (ssize_t)a->length ||
	    shutdown(fd, SHUT_WR))
		return false;
	c->answered = true;
	c->bytes = 0;
	c->until_ms = sw_now_ms() + DRAIN_MS;
	return true;
}

/* False: the connection is to end. */
static bool read_some(struct connection *c, int fd)
{
	char bytes[16384];
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	if (!c->bytes && !c->answered && !begins_request(bytes[0]))
		return false;
	c->bytes += (size_t)n;
	if (c->answered)
		return c->bytes < DRAIN_MAX;
	return !take_head(c, bytes, (size_t)n) || answer(c, fd);
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	if ((what & EV_TIMEOUT) || !read_some(c, fd))
		drop(c);
	else
		wait_on(c);
}

static int add_connection(struct sw_responder *r, int fd)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (c)
		c->ev = event_new(r->base, fd, EV_READ, on_connection, c);
	if (!c || !c->ev) {
		free(c);
		close(fd);
		return -ENOMEM;
	}
	c->owner = r;
	c->until_ms = sw_now_ms() + HEAD_MS;
	TAILQ_INSERT_TAIL(&r->connections, c, link);
	if (++r->n == SW_RESPONDER_CONNECTIONS)
		accept_no_more(r);
	wait_on(c);
	return 0;
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
	struct sw_responder *r = arg;

	(void)what;
	for (int i = 0; i < ACCEPT_BATCH && r->n < SW_RESPONDER_CONNECTIONS; i++) {
		int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (peer < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
			return;
		if (peer < 0 || add_connection(r, peer)) {
			accept_no_more(r); /* out of files or memory: others end meanwhile */
			event_add(r->resume, &pause);
			return;
		}
	}
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct sw_responder *r = arg;

	(void)fd;
	(void)what;
	if (r->n < SW_RESPONDER_CONNECTIONS)
		accept_more(r);
}

/* ---- sockets ------------------------------------------------------------------------------ */

/* A listening socket on loopback; *port 0: the kernel chooses one. */
static int listen_on(int family, uint16_t *port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = {0};
	socklen_t size = family == AF_INET ? sizeof(at.v4) : sizeof(at.v6);
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int e, on = 1;

	if (fd < 0)
		return -errno;
	at.any.sa_family = family;
	if (family == AF_INET) {
		at.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		at.v4.sin_port = htons(*port);
	} else {
		at.v6.sin6_addr = in6addr_loopback;
		at.v6.sin6_port = htons(*port);
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	}
	if (bind(fd, &at.any, size) || listen(fd, SOMAXCONN) || getsockname(fd, &at.any, &size)) {
		e = -errno;
		close(fd);
		return e;
	}
	/* Connections that it answers in a server's place have the server's port, and linger there.
	 * The server must be able to bind it all the same. Not before bind(), which then might give
	 * a port that others have. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	*port = ntohs(family == AF_INET ? at.v4.sin_port : at.v6.sin6_port);
	return fd;
}

/* One port for both families: what the kernel gives for one may be taken in the other. */
static int listen_on_both(struct sw_responder *r)
{
	for (int i = 0; i < PORT_TRIES; i++) {
		r->port = 0;
		r->sockets[0] = listen_on(AF_INET, &r->port);
		if (r->sockets[0] < 0)
			return r->sockets[0];
		r->sockets[1] = listen_on(AF_INET6, &r->port);
		if (r->sockets[1] != -EADDRINUSE)
			return 0; /* any other failure: there is no IPv6 here */
		close(r->sockets[0]);
	}
	return r->sockets[0] = -EADDRINUSE;
}

static int listen_in(struct sw_responder *r, const char *netns, struct sw_error *err)
{
	int former, e = sw_netns_enter(netns, &former, err);

	if (e)
		return e;
	e = listen_on_both(r);
	sw_netns_leave(former);
	return e ? sw_fail(err, e, "the responder cannot listen on 127.0.0.1%s%s: %s",
			   netns ? " in network namespace " : "", netns ? netns : "", strerror(-e))
		 : 0;
}

int sw_responder_open(struct sw_responder **out, struct event_base *base, const char *netns,
		      sw_responder_fn fn, void *arg, struct sw_error *err)
{
	struct sw_responder *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return sw_fail(err, -ENOMEM, "no memory");
	*r = (struct sw_responder){.base = base, .answer = fn, .arg = arg, .sockets = {-1, -1}};
	TAILQ_INIT(&r->connections);
	e = listen_in(r, netns, err);
	r->resume = evtimer_new(base, on_resume, r);
	for (int v6 = 0; !e && v6 < 2; v6++) {
		if (r->sockets[v6] < 0)
			continue;
		r->accepting[v6] =
			event_new(base, r->sockets[v6], EV_READ | EV_PERSIST, on_accept, r);
		if (!r->resume || !r->accepting[v6] || event_add(r->accepting[v6], NULL))
			e = sw_fail(err, -ENOMEM, "no memory");
	}
	if (e) {
		sw_responder_close(r);
		return e;
	}
	*out = r;
	return 0;
}

void sw_responder_close(struct sw_responder *r)
{
	struct connection *c;

	if (!r)
		return;
	for (int v6 = 0; v6 < 2; v6++) {
		if (r->accepting[v6])
			event_free(r->accepting[v6]);
		r->accepting[v6] = NULL;
		if (r->sockets[v6] >= 0)
			close(r->sockets[v6]);
	}
	if (r->resume)
		event_free(r->resume);
	while ((c = TAILQ_FIRST(&r->connections)))
		drop(c);
	free(r);
}

uint16_t sw_responder_port(const struct sw_responder *r)
{
	return r->port;
}

int sw_responder_socket(const struct sw_responder *r, bool v6)
{
	return r->sockets[v6] < 0 ? -1 : r->sockets[v6];
}
