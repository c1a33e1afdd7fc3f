// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Sockets of a steering test, and whom they reach; see steering.h.

#include "steering.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>

static struct sockaddr_storage address(enum way way, const char *v4, const char *v6, uint16_t port)
{
	struct sockaddr_storage out = {0};
	struct sockaddr_in6 *in6 = (void *)&out;
	struct sockaddr_in *in = (void *)&out;
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "::ffff:%s", v4);
	if (way == V4) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		inet_pton(AF_INET, v4, &in->sin_addr);
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		inet_pton(AF_INET6, way == V6 ? v6 : mapped, &in6->sin6_addr);
	}
	return out;
}

struct sockaddr_storage virtual_address(enum way way, uint16_t port)
{
	return address(way, "198.51.100.7", "2001:db8:7::7", port);
}

struct sockaddr_storage local_address(enum way way, uint16_t port)
{
	return address(way, "127.0.0.1", "::1", port);
}

socklen_t address_size(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

int socket_for(enum way way, int type)
{
	return socket(way == V4 ? AF_INET : AF_INET6, type | SOCK_CLOEXEC, 0);
}

int connect_to(int fd, struct sockaddr_storage to)
{
	return connect(fd, (struct sockaddr *)&to, address_size(&to)) ? -errno : 0;
}

int connected(enum way way)
{
	int fd = socket_for(way, SOCK_STREAM);

	assert_int_equal(connect_to(fd, virtual_address(way, VIRTUAL)), 0);
	return fd;
}

char who(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	char name = 0;

	poll(&ready, 1, 5000);
	return recv(fd, &name, 1, 0) == 1 ? name : 0;
}
