// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Sockets of both sides, and what they say to each other; see ends.h.

#include "ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 15000 /* guests are slow */
#define MOMENT_MS   5
#define FDS_MAX	    512

static int fds[FDS_MAX];
static unsigned n_fds;

int ends_keep(int fd)
{
	if (fd < 0)
		fail_msg("socket: %s", strerror(errno));
	assert_true(n_fds < FDS_MAX);
	return fds[n_fds++] = fd;
}

/* ---- connections ----------------------------------------------------------------------------- */

void ends_address(int family, enum side side, uint8_t out[16])
{
	memset(out, 0, 16);
	inet_pton(AF_INET6, family == 4 ? "::ffff:192.0.2.0" : "2001:db8::", out);
	out[15] = side + 1;
}

struct sockaddr_storage ends_sockaddr(int family, enum side side, uint16_t port)
{
	struct sockaddr_storage out = {0};
	uint8_t addr[16];

	ends_address(family, side, addr);
	if (family == 4) {
		struct sockaddr_in *a = (void *)&out;

		*a = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
		memcpy(&a->sin_addr, addr + 12, 4);
	} else {
		struct sockaddr_in6 *a = (void *)&out;

		*a = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
		memcpy(&a->sin6_addr, addr, 16);
	}
	return out;
}

static socklen_t size_of(int family)
{
	return family == 4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

int ends_socket(int family, enum side side, int protocol)
{
	int one = 1, fd;

	kept_enter(side);
	fd = ends_keep(
		socket(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, protocol));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int ends_listen(int family, int protocol)
{
	struct sockaddr_storage at = ends_sockaddr(family, SERVER, KEPT_PORT);
	int fd = ends_socket(family, SERVER, protocol);

	if (bind(fd, (void *)&at, size_of(family)) || listen(fd, 64))
		fail_msg("listen: %s", strerror(errno));
	return fd;
}

struct ends ends_connect(int family, int client, int listener, uint16_t port)
{
	struct sockaddr_storage from = ends_sockaddr(family, CLIENT, port),
				to = ends_sockaddr(family, SERVER, KEPT_PORT);
	socklen_t size = size_of(family);
	struct ends e = {.family = family, .client = client};
	int one = 1;

	if (bind(client, (void *)&from, size) || connect(client, (void *)&to, size))
		fail_msg("connect from port %u: %s", port, strerror(errno));
	getsockname(client, (void *)&from, &size);
	e.port = ntohs(((struct sockaddr_in *)&from)->sin_port);
	e.server = ends_keep(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	setsockopt(e.server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return e;
}

struct ends ends_open(int family)
{
	int listener = ends_listen(family, 0);
	struct ends e = ends_connect(family, ends_socket(family, CLIENT, 0), listener, 0);

	ends_close(&listener);
	return e;
}

void ends_close(int *fd)
{
	for (unsigned i = 0; i < n_fds; i++)
		if (fds[i] == *fd)
			fds[i] = fds[--n_fds];
	close(*fd);
	*fd = -1;
}

void ends_reset(int *fd)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	ends_close(fd);
}

void ends_close_all(void)
{
	while (n_fds) {
		int fd = fds[0];

		ends_reset(&fd);
	}
}

/* ---- speaking and hearing -------------------------------------------------------------------- */

void tell_bytes(int fd, const void *bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t sent = send(fd, (const char *)bytes + done, n - done, MSG_NOSIGNAL);

		if (sent < 0)
			fail_msg("send: %s", strerror(errno));
		done += sent;
	}
}

void tell(int fd, const char *text)
{
	tell_bytes(fd, text, strlen(text));
}

bool hears(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

void hear_bytes(int fd, const void *bytes, size_t n)
{
	const char *want = bytes;
	char *got = malloc(n + 1);
	size_t done = 0;

	while (done < n) {
		ssize_t more = hears(fd, PATIENCE_MS) ? recv(fd, got + done, n - done, 0) : -2;

		if (more <= 0)
			fail_msg("%s after %zu of %zu bytes: %.60s",
				 more == -2 ? "silence"
				 : more	    ? strerror(errno)
					    : "end",
				 done, n, want);
		done += more;
	}
	got[n] = 0;
	if (memcmp(got, want, n))
		fail_msg("heard: %.300s\nand not: %.300s", got, want);
	free(got);
}

void hear(int fd, const char *text)
{
	hear_bytes(fd, text, strlen(text));
}

void hear_end(int fd)
{
	char byte;
	ssize_t n;

	assert_true(hears(fd, PATIENCE_MS));
	n = recv(fd, &byte, 1, 0);
	if (n)
		fail_msg("no end but %s", n < 0 ? strerror(errno) : "a byte");
}

void hear_reset(int fd)
{
	char byte;

	assert_true(hears(fd, PATIENCE_MS));
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
}

void hear_nothing(int fd)
{
	char bytes[301] = "";

	if (hears(fd, MOMENT_MS)) {
		ssize_t n = recv(fd, bytes, sizeof(bytes) - 1, 0);

		fail_msg("heard something (%zd): %s", n, bytes);
	}
}

const char *busy(void)
{
	return kept_answer(SW_CAUSE_SATURATED, SW_FAMILY_DEFAULT);
}

void is_served(struct ends *e, const char *request)
{
	tell(e->client, request);
	hear(e->server, request);
	tell(e->server, OK_RESPONSE);
	hear(e->client, OK_RESPONSE);
	hear_nothing(e->server);
	hear_nothing(e->client);
}

void is_shed(struct ends *e, const char *request)
{
	tell(e->client, request);
	hear(e->client, busy());
	hear_nothing(e->server);
	hear_nothing(e->client);
}

struct ends shed_once(int family)
{
	struct ends e;

	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_open(family);
	is_shed(&e, GET_CHAT);
	return e;
}

void goes_on(struct ends *e)
{
	pool_finishes();
	is_served(e, GET_CHAT);
	is_served(e, a_post(20000));
	pool_sheds(SW_CAUSE_SATURATED);
	is_shed(e, GET_CHAT);
	is_shed(e, a_post(20000));
}

/* ---- much ------------------------------------------------------------------------------------ */

static uint8_t pattern(size_t i)
{
	return (uint32_t)(i / 4 * 2654435761U) >> (8 * (i % 4));
}

const char *a_post(size_t n)
{
	static char *text;
	size_t head;

	free(text);
	text = malloc(n + 200);
	head = sprintf(text,
		       "POST /v1/chat/completions HTTP/1.1\r\nHost: llm\r\nContent-Length: %zu\r\n"
		       "\r\n",
		       n);
	for (size_t i = 0; i < n; i++)
		text[head + i] = ' ' + pattern(i) % 90;
	text[head + n] = 0;
	return text;
}

void move_bytes(int from, int to, size_t n)
{
	enum { PIECE = 1 << 16 };
	static uint8_t out[PIECE], in[PIECE];
	size_t sent = 0, got = 0;

	while (got < n) {
		struct pollfd p[2] = {{.fd = to, .events = POLLIN},
				      {.fd = sent < n ? from : -1, .events = POLLOUT}};
		ssize_t some;

		if (poll(p, 2, PATIENCE_MS) <= 0)
			fail_msg("stuck at %zu of %zu bytes, %zu sent", got, n, sent);
		if (p[1].revents) {
			size_t some_out = n - sent < PIECE ? n - sent : PIECE;

			for (size_t i = 0; i < some_out; i++)
				out[i] = pattern(sent + i);
			some = send(from, out, some_out, MSG_DONTWAIT | MSG_NOSIGNAL);
			sent += some > 0 ? some : 0;
		}
		if (!p[0].revents)
			continue;
		some = recv(to, in, n - got < PIECE ? n - got : PIECE, MSG_DONTWAIT);
		if (some <= 0)
			fail_msg("end at %zu of %zu bytes", got, n);
		for (ssize_t i = 0; i < some; i++, got++)
			if (in[i] != pattern(got))
				fail_msg("byte %zu of %zu is not what was sent", got, n);
	}
}

void begin_bytes(struct ends *e, bool up, size_t n)
{
	char head[200];

	snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", up ? n : 0);
	tell(e->client, head);
	hear(e->server, head);
	if (up)
		return;
	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", n);
	tell(e->server, head);
	hear(e->client, head);
}

void each_family(void (*test)(int family))
{
	for (int family = 4; family <= (kept.ipv6 ? 6 : 4); family += 2) {
		kept_defaults();
		test(family);
	}
}
