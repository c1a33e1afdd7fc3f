// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A ring of shed events on the event loop; see events.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/events.h"

#define BATCH 256 /* events in a turn of the loop */

struct sw_events {
	struct ring_buffer *ring;
	struct event *readable;
	uint32_t map; /* its id */
	sw_events_fn fn;
	void *arg;
	unsigned left; /* in this turn */
};

static uint32_t id_of(int map)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(map, &info, &size) ? 0 : info.id;
}

/* Negative ends the turn; the loop comes back as long as something is left. */
static int take(void *arg, void *data, size_t size)
{
	struct sw_events *e = arg;

	if (size == sizeof(struct sw_shed_event))
		e->fn(e->arg, data);
	return --e->left ? 0 : -EAGAIN;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct sw_events *e = arg;

	(void)fd;
	(void)what;
	e->left = BATCH;
	ring_buffer__consume(e->ring);
}

int sw_events_open(struct sw_events **out, int map, struct event_base *base, sw_events_fn fn,
		   void *arg, struct sw_error *err)
{
	struct sw_events *e = calloc(1, sizeof(*e));

	if (!e)
		return sw_fail(err, -ENOMEM, "no memory");
	*e = (struct sw_events){.map = id_of(map), .fn = fn, .arg = arg};
	e->ring = ring_buffer__new(map, take, e, NULL);
	if (!e->ring) {
		free(e);
		return sw_fail(err, -errno, "mapping the ring shed_events: %s", strerror(errno));
	}
	e->readable = event_new(base, ring_buffer__epoll_fd(e->ring), EV_READ | EV_PERSIST,
				on_readable, e);
	if (!e->readable || event_add(e->readable, NULL)) {
		sw_events_close(e);
		return sw_fail(err, -ENOMEM, "no memory");
	}
	*out = e;
	return 0;
}

bool sw_events_reads(const struct sw_events *e, int map)
{
	return e->map && e->map == id_of(map);
}

void sw_events_close(struct sw_events *e)
{
	if (!e)
		return;
	if (e->readable)
		event_free(e->readable);
	ring_buffer__free(e->ring);
	free(e);
}
