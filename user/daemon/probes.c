// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Probes of workers; see probes.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/probes.h"
#include "kernel/netns.h"

#define TIMEOUT_MS 1000

struct probe {
	struct sw_probes *owner;
	struct event *ev; /* NULL: not under way */
	int id;
};

struct sw_probes {
	struct event_base *base;
	sw_probe_fn answered;
	void *arg;
	struct probe list[SW_PROBES];
};

static void end(struct probe *p)
{
	close(event_get_fd(p->ev));
	event_free(p->ev);
	p->ev = NULL;
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
	struct probe *p = arg;
	socklen_t size = sizeof(int);
	int error = ETIMEDOUT, id = p->id;

	if (what & EV_WRITE)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	end(p);
	if (!error)
		p->owner->answered(p->owner->arg, id);
}

static int start_connecting(int fd, const uint8_t addr[16], uint16_t port)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	int failed;

	memcpy(&v6.sin6_addr, addr, 16);
	memcpy(&v4.sin_addr, addr + 12, 4);
	failed = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)
			 ? connect(fd, (struct sockaddr *)&v4, sizeof(v4))
			 : connect(fd, (struct sockaddr *)&v6, sizeof(v6));
	return failed && errno != EINPROGRESS ? -errno : 0;
}

static int open_socket(const uint8_t addr[16], uint16_t port, const char *netns)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	int family = memcmp(addr, mapped, sizeof(mapped)) ? AF_INET6 : AF_INET;
	int fd, former, e = sw_netns_enter(netns, &former, NULL);

	if (e)
		return e;
	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	e = fd < 0 ? -errno : start_connecting(fd, addr, port);
	sw_netns_leave(former);
	if (e && fd >= 0)
		close(fd);
	return e ? e : fd;
}

/* The place for a new one, or NULL. */
static struct probe *find_place(struct sw_probes *p, int id)
{
	struct probe *place = NULL;

	for (int i = 0; i < SW_PROBES; i++) {
		if (!p->list[i].ev)
			place = &p->list[i];
		else if (p->list[i].id == id)
			return NULL;
	}
	return place;
}

int sw_probe_start(struct sw_probes *p, int id, const uint8_t addr[16], uint16_t port,
		   const char *netns)
{
	const struct timeval tv = {.tv_sec = TIMEOUT_MS / 1000,
				   .tv_usec = TIMEOUT_MS % 1000 * 1000};
	struct probe *place = find_place(p, id);
	int fd;

	if (!place)
		return -EBUSY;
	fd = open_socket(addr, port, netns);
	if (fd < 0)
		return fd;
	place->id = id;
	place->owner = p;
	place->ev = event_new(p->base, fd, EV_WRITE, on_done, place);
	if (!place->ev) {
		close(fd);
		return -ENOMEM;
	}
	if (event_add(place->ev, &tv)) {
		end(place);
		return -ENOMEM;
	}
	return 0;
}

struct sw_probes *sw_probes_new(struct event_base *base, sw_probe_fn fn, void *arg)
{
	struct sw_probes *p = calloc(1, sizeof(*p));

	if (p)
		*p = (struct sw_probes){.base = base, .answered = fn, .arg = arg};
	return p;
}

void sw_probes_free(struct sw_probes *p)
{
	for (int i = 0; p && i < SW_PROBES; i++)
		if (p->list[i].ev)
			end(&p->list[i]);
	free(p);
}
