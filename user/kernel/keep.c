// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps of what sheds on established connections, and the sweeps over them; see keep.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "kernel/attach.h"
#include "kernel/counters.h"
#include "kernel/keep.h"
#include "spillway.skel.h"

#define CHUNKS 32 /* of SW_EXPIRE_KEYS connections, at most, in a call: some 10 ms */

bool sw_is_keep_map(const struct bpf_map *map)
{
	static const char *const names[] = {"flows",	    "flow_use",	   "counts_keep",
					    "keep_scratch", "expire_keys", "pipelining"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(bpf_map__name(map), names[i]))
			return true;
	return false;
}

/* ---- what is pinned ------------------------------------------------------------------------- */

static int open_pinned(const struct sw_plane *p, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", p->dir, name);
	return bpf_obj_get(path);
}

static void unpin(const struct sw_plane *p, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", p->dir, name);
	unlink(path);
}

static uint32_t room_of(int map)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(map, &info, &size) ? 0 : info.max_entries;
}

static unsigned read_use(int map)
{
	uint32_t zero = 0, n = 0;

	return bpf_map_lookup_elem(map, &zero, &n) ? 0 : n;
}

unsigned sw_keep_use(const struct sw_plane *p)
{
	int map;
	unsigned n;

	if (p->keep.on)
		return read_use(p->keep.flow_use);
	map = open_pinned(p, "flow_use");
	n = map < 0 ? 0 : read_use(map);
	if (map >= 0)
		close(map);
	return n;
}

static void stop_in(int listeners)
{
	for (uint32_t id = 1; id < SW_MAX_LISTENERS; id++) {
		struct sw_listener l;

		if (bpf_map_lookup_elem(listeners, &id, &l) || !(l.flags & SW_LF_KEEP))
			continue;
		l.flags &= ~SW_LF_KEEP;
		bpf_map_update_elem(listeners, &id, &l, BPF_ANY);
	}
}

void sw_keep_stop(const struct sw_plane *p)
{
	stop_in(p->maps.listeners);
}

/* One of another layout has rows of another size, which are not for us to write. */
void sw_keep_stop_pinned(const struct sw_plane *p)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	int map = open_pinned(p, "listeners");

	if (map < 0)
		return;
	if (!bpf_obj_get_info_by_fd(map, &info, &size) &&
	    info.value_size == sizeof(struct sw_listener))
		stop_in(map);
	close(map);
}

/* A map of another size takes the place of the pinned one only when that holds nothing, and the
 * programs that run put nothing more into it. */
static bool is_in_use(const struct sw_plane *p)
{
	sw_keep_stop_pinned(p);
	return sw_keep_use(p);
}

int sw_keep_size(struct sw_plane *p, struct spillway *obj, struct sw_error *err)
{
	unsigned room = p->keep.room ? p->keep.room : SW_DEFAULT_FLOWS;
	int map = open_pinned(p, "flows"), ret;
	uint32_t has = map < 0 ? room : room_of(map);

	if (map >= 0)
		close(map);
	if (has != room && is_in_use(p)) {
		sw_log(SW_INFO,
		       "connections are translated already, with room for %u of them: that stays "
		       "until all have ended",
		       has);
		room = has;
	} else if (has != room) {
		unpin(p, "flows");
		unpin(p, "flow_use");
	}
	ret = bpf_map__set_max_entries(obj->maps.flows, room);
	return ret ? sw_fail(err, ret, "the size of the map flows: %s", strerror(-ret)) : 0;
}

/* ---- while they are loaded ------------------------------------------------------------------ */

int sw_keep_bind(struct sw_plane *p, struct sw_error *err)
{
	struct sw_keep *k = &p->keep;
	void *keys = mmap(NULL, SW_EXPIRE_KEYS * sizeof(*k->keys), PROT_READ | PROT_WRITE,
			  MAP_SHARED, bpf_map__fd(p->obj->maps.expire_keys), 0);

	if (keys == MAP_FAILED)
		return sw_fail(err, -errno, "mapping expire_keys: %s", strerror(errno));
	k->keys = keys;
	k->flows = bpf_map__fd(p->obj->maps.flows);
	k->flow_use = bpf_map__fd(p->obj->maps.flow_use);
	k->counts = bpf_map__fd(p->obj->maps.counts_keep);
	k->midway = false;
	k->on = true;
	return 0;
}

void sw_keep_unbind(struct sw_plane *p)
{
	if (p->keep.keys)
		munmap(p->keep.keys, SW_EXPIRE_KEYS * sizeof(*p->keep.keys));
	p->keep.keys = NULL;
	p->keep.on = false;
}

bool sw_plane_can_keep(const struct sw_plane *p, const char **why)
{
	if (why)
		*why = p->keep.why_not;
	return p->keep.on;
}

unsigned sw_plane_flows(const struct sw_plane *p, unsigned *room)
{
	*room = p->keep.on ? room_of(p->keep.flows) : 0;
	return p->keep.on ? read_use(p->keep.flow_use) : 0;
}

int sw_plane_pass_new(struct sw_plane *p, unsigned listener, bool pass)
{
	struct sw_listener l;
	uint32_t flags;

	if (bpf_map_lookup_elem(p->maps.listeners, &listener, &l))
		return -errno;
	flags = pass ? l.flags | SW_LF_PASS_NEW : l.flags & ~SW_LF_PASS_NEW;
	if (flags == l.flags)
		return 0;
	l.flags = flags;
	return bpf_map_update_elem(p->maps.listeners, &listener, &l, BPF_ANY) ? -errno : 0;
}

/* ---- sweeps --------------------------------------------------------------------------------- */

/* Has the program look at the first `n` keys. Returns how many connections it has forgotten. */
static int expire(const struct sw_plane *p, uint32_t n, bool translated_only)
{
	struct __sk_buff ctx = {.cb = {n, translated_only}};
	char frame[ETH_ZLEN] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame),
		    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx));

	return bpf_prog_test_run_opts(bpf_program__fd(p->obj->progs.spillway_expire), &opts)
		       ? -errno
		       : (int)opts.retval;
}

/* The next part of the map. */
static int sweep_chunk(struct sw_plane *p, void *values, bool translated_only)
{
	struct sw_keep *k = &p->keep;
	uint32_t n = SW_EXPIRE_KEYS;
	int err = bpf_map_lookup_batch(k->flows, k->midway ? &k->cursor : NULL, &k->cursor, k->keys,
				       values, &n, NULL)
			  ? -errno
			  : 0;

	k->midway = !err;
	if (err && err != -ENOENT)
		return err;
	return n ? expire(p, n, translated_only) : 0;
}

static int sweep_chunks(struct sw_plane *p, unsigned chunks, bool translated_only)
{
	void *values = malloc(SW_EXPIRE_KEYS * (size_t)bpf_map__value_size(p->obj->maps.flows));
	int former, removed = 0, ret = values ? sw_netns_enter(p->netns, &former, NULL) : -ENOMEM;

	if (ret) {
		free(values);
		return ret;
	}
	do {
		ret = sweep_chunk(p, values, translated_only);
		removed += ret > 0 ? ret : 0;
	} while (ret >= 0 && p->keep.midway && --chunks);
	sw_netns_leave(former);
	free(values);
	return ret < 0 ? ret : removed;
}

/* Nothing is translated any more: what this plane does not want can go. */
static int end_unwanted(struct sw_plane *p)
{
	int former, ret;

	if (p->keep.room && !p->keep.left)
		return 0;
	ret = sw_netns_enter(p->netns, &former, NULL);
	if (ret)
		return ret;
	if (p->keep.room)
		sw_attach_sweep(p);
	else
		sw_attach_end_keep(p);
	sw_netns_leave(former);
	return 0;
}

int sw_plane_expire_flows(struct sw_plane *p, bool calm)
{
	if (!sw_keep_use(p))
		return end_unwanted(p);
	return p->keep.on ? sweep_chunks(p, CHUNKS, calm) : 0;
}

unsigned sw_keep_wait(struct sw_plane *p, unsigned ms)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	uint64_t end = sw_now_ms() + ms;
	unsigned left;

	for (;;) {
		p->keep.midway = false;
		if (p->keep.on && sw_keep_use(p))
			sweep_chunks(p, SW_MAX_FLOWS, true);
		left = sw_keep_use(p);
		if (!left || sw_now_ms() >= end)
			return left;
		nanosleep(&pause, NULL);
	}
}
