// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Sockets on the loopback interface; see local.h.

#include "local.h"
#include "counting.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 20000 /* guests are slow */

static int listener[WORKERS];

static int listen_at(int family, bool any, uint16_t port, int backlog)
{
	int one = 1, fd = socket(family == 4 ? AF_INET : AF_INET6,
				 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!any) {
		v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		v6.sin6_addr = in6addr_loopback;
	}
	assert_int_equal(bind(fd, family == 4 ? (void *)&v4 : (void *)&v6,
			      family == 4 ? sizeof(v4) : sizeof(v6)),
			 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

void worker_listen(unsigned i, int family, bool any)
{
	listener[i] = listen_at(family, any, PORT_FIRST + i, 4096);
}

void worker_listen_short(unsigned i, int backlog)
{
	listener[i] = listen_at(4, false, PORT_FIRST + i, backlog);
}

void worker_close(unsigned i)
{
	if (listener[i])
		close(listener[i]);
	listener[i] = 0;
}

void workers_close(void)
{
	for (unsigned i = 0; i < WORKERS; i++)
		worker_close(i);
}

int worker_accept(int *worker)
{
	for (int tries = PATIENCE_MS; tries; tries--, usleep(1000))
		for (unsigned i = 0; i < WORKERS; i++) {
			int fd = listener[i] ? accept(listener[i], NULL, NULL) : -1;

			*worker = i;
			if (fd >= 0)
				return fd;
		}
	return -1;
}

void end_all_of(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	while (poll(&ready, 1, 0) > 0)
		close(accept(fd, NULL, NULL));
}

void workers_end_all(void)
{
	for (unsigned i = 0; i < WORKERS; i++)
		if (listener[i])
			end_all_of(listener[i]);
}

static void watch(int epoll, int fd, bool listens)
{
	struct epoll_event event = {.events = EPOLLIN};

	event.data.u64 = (uint64_t)listens << 32 | (uint32_t)fd;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void serve(int epoll)
{
	struct epoll_event event;
	char bytes[512];

	while (epoll_wait(epoll, &event, 1, -1) >= 0) {
		int fd = (uint32_t)event.data.u64;
		ssize_t n;

		if (event.data.u64 >> 32) {
			int new = accept4(fd, NULL, NULL, SOCK_NONBLOCK);

			if (new >= 0)
				watch(epoll, new, false);
			continue;
		}
		n = read(fd, bytes, sizeof(bytes));
		if (n <= 0 || write(fd, bytes, n) != n)
			close(fd);
	}
}

int workers_serve(int responder)
{
	int pid = fork(), epoll;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < WORKERS; i++)
		if (listener[i])
			watch(epoll, listener[i], true);
	if (responder >= 0)
		watch(epoll, responder, true);
	serve(epoll);
	_exit(1);
}

int listen_on_loopback(int family, uint16_t port)
{
	return listen_at(family, false, port, 16);
}

static int begin_asking(int family, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd = socket(family == 4 ? AF_INET : AF_INET6,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	v6.sin6_addr = in6addr_loopback;
	connect(fd, family == 4 ? (void *)&v4 : (void *)&v6, family == 4 ? sizeof(v4) : sizeof(v6));
	return fd;
}

int begin_asking_virtual(int family)
{
	return begin_asking(family, PORT_DEAF);
}

int ask_loopback(int family, uint16_t port)
{
	int error = 0, fd = begin_asking(family, port);
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(error);

	if (poll(&ready, 1, PATIENCE_MS) < 1)
		error = ETIMEDOUT;
	else
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (!error)
		return fd;
	close(fd);
	return -error;
}

int ask_virtual(int family)
{
	return ask_loopback(family, PORT_DEAF);
}

void ask_and_close(int family)
{
	struct linger now = {1, 0};
	int worker, served, fd = ask_virtual(family);

	assert_true(fd >= 0);
	served = worker_accept(&worker);
	assert_true(served >= 0);
	/* no TIME_WAIT: ports are few and tests many */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
	close(served);
}
