// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Netlink dumps; see netlink.h. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kernel/netlink.h"

/* Walks one datagram. *done is set by the message that ends the dump. */
static int walk(const char *buf, size_t size, sw_netlink_fn fn, void *arg, int *done)
{
	const struct nlmsghdr *nh = (const struct nlmsghdr *)buf;

	for (; NLMSG_OK(nh, size); nh = NLMSG_NEXT(nh, size)) {
		int ret;

		if (nh->nlmsg_type == NLMSG_DONE) {
			*done = 1;
			return 0;
		}
		if (nh->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(nh))->error;
		ret = fn(nh, arg);
		if (ret)
			return ret;
	}
	return 0;
}

/* Opens a socket and sends the request; to be closed. */
static int ask(int family, int type, int flags, const void *body, size_t size)
{
	struct nlmsghdr head = {
		.nlmsg_len = NLMSG_LENGTH(size),
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
	};
	const struct iovec parts[] = {{&head, NLMSG_HDRLEN}, {(void *)body, size}};
	struct timeval patience = {.tv_sec = 2};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, family), err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (writev(fd, parts, 2) >= 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int sw_netlink_dump(int family, int type, const void *body, size_t size, sw_netlink_fn fn,
		    void *arg)
{
	_Alignas(struct nlmsghdr) char buf[32768];
	int fd = ask(family, type, NLM_F_DUMP, body, size), ret = 0, done = 0;

	if (fd < 0)
		return fd;
	while (!ret && !done) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);

		ret = got < 0 ? -errno : walk(buf, got, fn, arg, &done);
	}
	close(fd);
	return ret;
}

static int ignore(const struct nlmsghdr *nh, void *arg)
{
	(void)nh;
	(void)arg;
	return 0;
}

int sw_netlink_order(int family, int type, const void *body, size_t size)
{
	_Alignas(struct nlmsghdr) char buf[1024];
	int fd = ask(family, type, NLM_F_ACK, body, size), done;
	ssize_t got;

	if (fd < 0)
		return fd;
	got = recv(fd, buf, sizeof(buf), 0);
	done = got < 0 ? -errno : walk(buf, got, ignore, NULL, &done);
	close(fd);
	return done;
}

const struct rtattr *sw_netlink_attr(const struct rtattr *first, int size, unsigned short type)
{
	for (; RTA_OK(first, size); first = RTA_NEXT(first, size))
		if ((first->rta_type & NLA_TYPE_MASK) == type)
			return first;
	return NULL;
}
