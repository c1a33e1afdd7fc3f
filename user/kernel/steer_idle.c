// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where idle connections of routers are: in the network namespaces of the processes in their
 * cgroups, each of which is gone through by itself. What is idle is idle.h's matter. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "kernel/cgroup.h"
#include "kernel/idle.h"
#include "kernel/netns.h"
#include "kernel/steer_impl.h"

#define SPACES_MAX 64 /* network namespaces with routers */

struct closing {
	int program, orders;
	const struct sw_bits *workers;
	unsigned idle_ms;
	struct stat seen[SPACES_MAX];
	size_t n;
	int closed;
	int failed; /* the first error, 0: none */
};

static int prepare(struct sw_steer *s)
{
	static const char *const names[] = {"spillway_close_idle", NULL};
	struct sw_error err = {0};

	if (s->closer || s->closer_refused)
		return s->closer_refused;
	s->closer_refused =
		sw_idle_supported() ? sw_steer_load(s, names, &s->closer, &err) : -EOPNOTSUPP;
	if (err.text[0])
		sw_log(SW_WARN, "idle connections cannot be closed: %s", err.text);
	return s->closer_refused;
}

/* Is it the first process that we meet in its namespace? */
static bool is_new(struct closing *c, const char *netns)
{
	struct stat st;

	if (c->n == SPACES_MAX || stat(netns, &st))
		return false; /* the process has just ended */
	for (size_t i = 0; i < c->n; i++)
		if (c->seen[i].st_dev == st.st_dev && c->seen[i].st_ino == st.st_ino)
			return false;
	c->seen[c->n++] = st;
	return true;
}

static void close_where(void *arg, long pid)
{
	struct closing *c = arg;
	char netns[64];
	int former, n;

	snprintf(netns, sizeof(netns), "/proc/%ld/ns/net", pid);
	if (!is_new(c, netns))
		return;
	n = sw_netns_enter(netns, &former, NULL);
	if (!n) {
		n = sw_idle_close(c->program, c->orders, c->workers, c->idle_ms);
		sw_netns_leave(former);
	}
	if (n > 0)
		c->closed += n;
	else if (n < 0 && !c->failed)
		c->failed = n;
}

int sw_steer_close_idle(struct sw_steer *s, const struct sw_bits *workers, unsigned idle_ms)
{
	struct closing c = {.workers = workers, .idle_ms = idle_ms};
	int ret = prepare(s);

	if (ret)
		return ret;
	c.program = sw_steer_program(s->closer, "spillway_close_idle");
	c.orders = sw_steer_map(s->closer, "close_orders");
	for (size_t i = 0; i < s->n_routers; i++)
		sw_cgroup_each_process(s->routers[i], close_where, &c);
	return c.closed || !c.failed ? c.closed : c.failed;
}

/* ---- when to look -------------------------------------------------------------------------- */

/* Which worker it was does not matter: the next look is at all that are avoided. */
static int forget(void *arg, void *data, size_t size)
{
	(void)arg, (void)data, (void)size;
	return 0;
}

int sw_steer_ended_fd(struct sw_steer *s)
{
	if (!s->ended)
		s->ended = ring_buffer__new(s->maps.ended, forget, NULL, NULL);
	return s->ended ? ring_buffer__epoll_fd(s->ended) : -errno;
}

void sw_steer_ended_clear(struct sw_steer *s)
{
	if (s->ended)
		ring_buffer__consume(s->ended);
}
