// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// One HTTP exchange on a non-blocking socket, driven by libevent. It writes all before it reads,
// like http.client or requests: a server that closes too early is caught by that.

#include <errno.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exchange.h"
#include "response.h"

#define RESPONSE_MAX (1u << 20)

enum step { CONNECTING, WRITING, READING, CLOSING };

struct exchange {
	const struct exchange_request *request;
	exchange_cb cb;
	void *arg;
	struct event *event;
	enum step step;
	size_t sent; /* bytes of head and body together */
	char *bytes; /* of the response */
	size_t length, room;
	uint64_t started_us, progress_us;
	struct exchange_outcome outcome;
};

const char *exchange_fault_name(enum exchange_fault fault)
{
	static const char *const names[FAULTS] = {"none",  "connect", "reset", "timeout",
						  "short", "wrong",   "open"};

	return names[fault];
}

uint64_t exchange_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ULL + t.tv_nsec / 1000;
}

bool exchange_parse_address(const char *text, struct exchange_request *r)
{
	int length = sizeof(r->to);
	const struct sockaddr_in *in = (const void *)&r->to; /* the port is where IPv6 has it */

	if (evutil_parse_sockaddr_port(text, (struct sockaddr *)&r->to, &length) || !in->sin_port)
		return false;
	r->to_length = length;
	return true;
}

void exchange_compose(struct exchange_request *r, const char *method, const char *path,
		      long body_size, bool stream, bool close)
{
	static const char begin[] =
		"{\"model\":\"demo\",\"stream\":%s,\"messages\":[{\"role\":\"user\","
		"\"content\":\"";
	static const char end[] = "\"}]}";
	char length[96] = "", opening[sizeof(begin) + 8];
	int n;

	if (body_size >= 0) {
		size_t room = snprintf(opening, sizeof(opening), begin, stream ? "true" : "false");

		snprintf(length, sizeof(length),
			 "Content-Type: application/json\r\nContent-Length: %ld\r\n", body_size);
		r->body_length = body_size;
		r->body = malloc(body_size + 1);
		if (!r->body)
			abort();
		memset(r->body, 'a', body_size);
		if (r->body_length >= room + strlen(end)) {
			memcpy(r->body, opening, room);
			memcpy(r->body + body_size - strlen(end), end, strlen(end));
		}
	}
	n = asprintf(&r->head, "%s %s HTTP/1.1\r\nHost: engine\r\n%s%s\r\n", method, path,
		     close ? "Connection: close\r\n" : "", length);
	if (n < 0)
		abort();
	r->head_length = n;
}

static void finish(struct exchange *x, enum exchange_fault fault)
{
	int fd = event_get_fd(x->event);

	x->outcome.fault = fault;
	event_free(x->event);
	close(fd);
	x->cb(x->arg, &x->outcome);
	free(x->bytes);
	free(x);
}

static void progress(struct exchange *x)
{
	uint64_t now = exchange_now_us();

	if (now - x->progress_us > x->outcome.stall_us)
		x->outcome.stall_us = now - x->progress_us;
	x->progress_us = now;
}

static void on_ready(int fd, short what, void *arg);

/* Waits for the socket to become writable or readable, for at most the time-out. */
static void await(struct exchange *x, short what)
{
	unsigned ms = x->request->timeout_ms;
	struct timeval limit = {ms / 1000, ms % 1000 * 1000};
	struct event_base *base = event_get_base(x->event);
	int fd = event_get_fd(x->event);

	event_del(x->event);
	event_assign(x->event, base, fd, what | EV_PERSIST, on_ready, x);
	event_add(x->event, &limit);
}

static void write_request(struct exchange *x, int fd)
{
	const struct exchange_request *r = x->request;
	size_t total = r->head_length + r->body_length;

	while (x->sent < total) {
		bool head = x->sent < r->head_length;
		size_t left = head ? r->head_length - x->sent : 0;
		struct iovec iov[2] = {
			{r->head + r->head_length - left, left},
			{r->body + (head ? 0 : x->sent - r->head_length),
			 head ? r->body_length : total - x->sent},
		};
		struct msghdr m = {.msg_iov = iov + !head, .msg_iovlen = head && !r->split ? 2 : 1};
		ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);

		if (n < 0) {
			if (errno != EAGAIN)
				finish(x, FAULT_RESET);
			return;
		}
		x->sent += n;
		progress(x);
	}
	x->step = READING;
	await(x, EV_READ);
}

/* Reads once; 0 at end of file, -1 when the exchange is not to go on now. */
static ssize_t read_some(struct exchange *x, int fd)
{
	ssize_t n;

	if (x->length == x->room) {
		x->room = x->room ? 2 * x->room : 4096;
		x->bytes = realloc(x->bytes, x->room);
		if (!x->bytes)
			abort();
	}
	n = recv(fd, x->bytes + x->length, x->room - x->length, 0);
	if (n >= 0) {
		x->length += n;
		progress(x);
	} else if (errno != EAGAIN) {
		finish(x, FAULT_RESET);
	}
	return n;
}

static void read_response(struct exchange *x, int fd)
{
	ssize_t n = read_some(x, fd);
	struct response r;

	if (n < 0)
		return;
	if (x->step == CLOSING) {
		finish(x, n ? FAULT_WRONG : FAULT_NONE);
		return;
	}
	switch (response_judge(x->bytes, x->length, !n, &r)) {
	case RESPONSE_MORE:
		if (x->length > RESPONSE_MAX)
			finish(x, FAULT_WRONG);
		return;
	case RESPONSE_COMPLETE:
		x->outcome.status = r.status;
		x->outcome.latency_us = x->progress_us - x->started_us;
		x->step = CLOSING;
		if (!n || !r.closes)
			finish(x, FAULT_NONE);
		return;
	case RESPONSE_SHORT: finish(x, FAULT_SHORT); return;
	case RESPONSE_WRONG: finish(x, FAULT_WRONG);
	}
}

static void on_ready(int fd, short what, void *arg)
{
	struct exchange *x = arg;
	socklen_t size = sizeof(int);
	int error = 0;

	if (what & EV_TIMEOUT) {
		progress(x);
		finish(x, x->step == CLOSING ? FAULT_OPEN : FAULT_TIMEOUT);
		return;
	}
	if (x->step == CONNECTING) {
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
		if (error) {
			finish(x, error == ECONNRESET ? FAULT_RESET : FAULT_CONNECT);
			return;
		}
		progress(x);
		x->outcome.connected_us = x->progress_us - x->started_us;
		x->step = WRITING;
	}
	if (x->step == WRITING)
		write_request(x, fd);
	else
		read_response(x, fd);
}

/* A non-blocking socket that is connecting, or negative errno. */
static int open_socket(const struct exchange_request *r, uint16_t source_port)
{
	int fd = socket(r->to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 from = {.sin6_family = r->to.ss_family,
				    .sin6_port = htons(source_port)};
	const int on = 1;
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (source_port) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, (struct sockaddr *)&from, r->to_length))
			goto fail;
	}
	if (!connect(fd, (const struct sockaddr *)&r->to, r->to_length) || errno == EINPROGRESS)
		return fd;
fail:
	err = -errno;
	close(fd);
	return err == -EADDRINUSE ? -EADDRNOTAVAIL : err;
}

int exchange_start(struct event_base *base, const struct exchange_request *r, uint16_t source_port,
		   exchange_cb cb, void *arg)
{
	struct exchange *x;
	uint64_t now = exchange_now_us();
	int fd = open_socket(r, source_port);

	if (fd < 0)
		return fd;
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	x->request = r;
	x->cb = cb;
	x->arg = arg;
	x->started_us = x->progress_us = now;
	x->outcome.source_port = source_port;
	x->outcome.request = r;
	x->event = event_new(base, fd, EV_WRITE | EV_PERSIST, on_ready, x);
	await(x, EV_WRITE);
	return 0;
}
