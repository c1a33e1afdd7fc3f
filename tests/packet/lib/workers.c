// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The workers of a steering test; see workers.h.

#include "steering.h"
#include "workers.h"

#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

void workers_loopback_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr)) {
		perror("lo up");
		exit(1);
	}
	close(fd);
}

static int listen_at(enum way way, uint16_t port, int backlog)
{
	struct sockaddr_storage at = local_address(way, port);
	int one = 1, fd = socket_for(way, SOCK_STREAM | SOCK_NONBLOCK);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, address_size(&at)) || listen(fd, backlog)) {
		perror("a worker cannot listen");
		exit(1);
	}
	return fd;
}

static void watch(int epoll, int fd, char name)
{
	struct epoll_event event = {.events = EPOLLIN};

	event.data.u64 = (uint64_t)name << 32 | (uint32_t)fd;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void greet(int epoll, int listener, char name)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, &name, 1) == 1)
		watch(epoll, fd, 0);
	else
		close(fd);
}

static void serve(int epoll)
{
	struct epoll_event event;
	char waste[4096];

	while (epoll_wait(epoll, &event, 1, -1) >= 0) {
		int fd = (int)(uint32_t)event.data.u64;
		char name = (char)(event.data.u64 >> 32);

		if (name)
			greet(epoll, fd, name);
		else if (read(fd, waste, sizeof(waste)) <= 0)
			close(fd);
	}
	_exit(1);
}

int workers_start(void)
{
	static const struct {
		uint16_t port;
		char name;
	} all[] = {{PORT_A, 'A'}, {PORT_B, 'B'}, {RESPONDER, 'R'}};
	int epoll = epoll_create1(EPOLL_CLOEXEC), pid;

	for (size_t i = 0; i < 2 * sizeof(all) / sizeof(all[0]); i++) {
		int fd = listen_at(i % 2 ? V6 : V4, all[i / 2].port, 4096);

		if (fd >= 0)
			watch(epoll, fd, all[i / 2].name);
	}
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		serve(epoll);
	}
	/* the listening sockets stay open here, which does no harm: nobody accepts from them */
	close(epoll);
	return pid;
}

int workers_listen(uint16_t port)
{
	return listen_at(V4, port, 16);
}

int workers_deaf(uint16_t port, int *filler, int n)
{
	int fd = listen_at(V4, port, 0);

	for (int i = 0; i < n; i++) {
		filler[i] = socket_for(V4, SOCK_STREAM | SOCK_NONBLOCK);
		connect_to(filler[i], local_address(V4, port));
		usleep(1000);
	}
	return fd;
}
