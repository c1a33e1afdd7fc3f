// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A ring of shed events; see shed_ring.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/shed_ring.h"

#define BATCH 4096 /* events at a time, in case that a clock has jumped */

struct sw_shed_ring {
	struct ring_buffer *ring;
	uint32_t map; /* its id */
	sw_shed_ring_fn fn;
	void *arg;
	unsigned left; /* of the batch */
};

static uint32_t id_of(int map)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(map, &info, &size) ? 0 : info.id;
}

/* Negative ends the batch. */
static int take(void *arg, void *data, size_t size)
{
	struct sw_shed_ring *r = arg;

	if (size == sizeof(struct sw_shed_event))
		r->fn(r->arg, data);
	return --r->left ? 0 : -EAGAIN;
}

int sw_shed_ring_open(struct sw_shed_ring **out, int map, sw_shed_ring_fn fn, void *arg,
		      struct sw_error *err)
{
	struct sw_shed_ring *r = calloc(1, sizeof(*r));

	if (!r)
		return sw_fail(err, -ENOMEM, "no memory");
	*r = (struct sw_shed_ring){.map = id_of(map), .fn = fn, .arg = arg};
	r->ring = ring_buffer__new(map, take, r, NULL);
	if (!r->ring) {
		free(r);
		return sw_fail(err, -errno, "mapping the ring shed_events: %s", strerror(errno));
	}
	*out = r;
	return 0;
}

void sw_shed_ring_read(struct sw_shed_ring *r)
{
	r->left = BATCH;
	ring_buffer__consume(r->ring);
}

bool sw_shed_ring_reads(const struct sw_shed_ring *r, int map)
{
	return r->map && r->map == id_of(map);
}

void sw_shed_ring_close(struct sw_shed_ring *r)
{
	if (!r)
		return;
	ring_buffer__free(r->ring);
	free(r);
}
