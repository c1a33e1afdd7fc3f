// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Enters and leaves network namespaces; see netns.h. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/netns.h"

static int open_netns(const char *netns, struct sw_error *err)
{
	char path[64];
	char *end;
	int fd;

	if (!strncmp(netns, "pid:", 4)) {
		long pid = strtol(netns + 4, &end, 10);

		if (pid <= 0 || *end)
			return sw_fail(err, -EINVAL, "network namespace %s: not a process id",
				       netns);
		snprintf(path, sizeof(path), "/proc/%ld/ns/net", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	} else {
		fd = open(netns, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return sw_fail(err, -errno, "network namespace %s: %s", netns, strerror(errno));
	return fd;
}

int sw_netns_enter(const char *netns, int *former, struct sw_error *err)
{
	int ret = 0, own, fd;

	*former = SW_NETNS_STAYED;
	if (!netns)
		return 0;
	fd = open_netns(netns, err);
	if (fd < 0)
		return fd;
	own = open(SW_OWN_NETNS, O_RDONLY | O_CLOEXEC);
	if (own < 0 || setns(fd, CLONE_NEWNET)) {
		ret = sw_fail(err, -errno, "network namespace %s: %s%s", netns, strerror(errno),
			      errno == EPERM	? " (entering one needs CAP_SYS_ADMIN)"
			      : errno == EINVAL ? " (the file is not a network namespace)"
						: "");
		if (own >= 0)
			close(own);
	} else {
		*former = own;
	}
	close(fd);
	return ret;
}

void sw_netns_leave(int former)
{
	if (former == SW_NETNS_STAYED)
		return;
	/* Everything after this would happen in the wrong namespace. */
	if (setns(former, CLONE_NEWNET)) {
		sw_log(SW_ERROR, "cannot return to the own network namespace: %s", strerror(errno));
		abort();
	}
	close(former);
}

int sw_netns_identify(struct sw_netns_id *out)
{
	socklen_t size = sizeof(out->cookie);
	struct stat st;
	int fd;

	if (stat(SW_OWN_NETNS, &st))
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*out = (struct sw_netns_id){.dev = st.st_dev, .ino = st.st_ino};
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &out->cookie, &size))
		out->cookie = 0; /* before 5.14 */
	close(fd);
	return 0;
}

bool sw_netns_same(const struct sw_netns_id *a, const struct sw_netns_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->cookie == b->cookie;
}
