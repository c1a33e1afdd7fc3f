// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The life of steering: its maps are opened, left to the next daemon, or removed; see steer.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/link.h"
#include "kernel/load.h"
#include "kernel/pindir.h"
#include "kernel/steer_impl.h"

#define DIR_NAME "slots"

/* ---- pins of another layout ----------------------------------------------------------------- */

/* The beginning of a row, whose size may be another one than ours. */
static bool read_start(int map, __u32 id, void *out, size_t n)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	bool found;
	void *row;

	if (bpf_obj_get_info_by_fd(map, &info, &size) || info.value_size < n)
		return false;
	row = malloc(info.value_size);
	found = row && !bpf_map_lookup_elem(map, &id, row);
	if (found)
		memcpy(out, row, n);
	free(row);
	return found;
}

/* By what abi_slots.h says of all layouts. Credits are not given back, so they hold nothing. */
static uint64_t sum_held(int slots, int workers)
{
	uint64_t held = 0;
	__u32 inuse;

	for (__u32 id = 0; read_start(slots, id, &inuse, sizeof(inuse)); id++) {
		struct sw_worker_row row = {0};

		read_start(workers, id, &row, offsetof(struct sw_worker_row, tag));
		if (!(row.flags & SW_WF_CREDIT))
			held += inuse;
	}
	return held;
}

uint64_t sw_steer_held(const struct sw_steer *s)
{
	return sum_held(s->maps.slots, s->maps.workers);
}

static int open_pin(const char *dir, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return bpf_obj_get(path);
}

/* Connections that are counted in the directory. */
static uint64_t held_in(const char *dir)
{
	int slots = open_pin(dir, "slots"), workers = open_pin(dir, "workers");
	uint64_t held = slots < 0 ? 0 : sum_held(slots, workers);

	if (slots >= 0)
		close(slots);
	if (workers >= 0)
		close(workers);
	return held;
}

struct verdict {
	struct sw_error *err;
	int ret;
};

static void retire(void *arg, const char *dir)
{
	struct verdict *v = arg;
	uint64_t held = held_in(dir);

	if (held) {
		v->ret = sw_fail(v->err, -EEXIST,
				 "%s, of another version of Spillway, still counts %llu "
				 "connections: start again when they have ended, or give their "
				 "count up with spillwayd --remove",
				 dir, (unsigned long long)held);
		return;
	}
	sw_link_remove_all(dir);
	sw_pindir_remove(dir);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void *view(int map, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

#define SLOTS_BYTES   (SW_MAX_WORKERS * sizeof(struct sw_slot))
#define MEMBERS_BYTES (SW_MAX_POOLS * sizeof(struct sw_bits))
#define BITS_BYTES    sizeof(struct sw_bits)

static int open_memory(struct sw_steer *s)
{
	s->slots = view(s->maps.slots, SLOTS_BYTES);
	s->members = view(s->maps.members, MEMBERS_BYTES);
	s->nonbusy = view(s->maps.nonbusy, BITS_BYTES);
	s->reach4 = view(s->maps.reach4, BITS_BYTES);
	s->suspect = view(s->maps.suspect, BITS_BYTES);
	s->notfull = view(s->maps.notfull, BITS_BYTES);
	return s->slots && s->members && s->nonbusy && s->reach4 && s->suspect && s->notfull
		       ? 0
		       : -errno;
}

static void close_memory(struct sw_steer *s)
{
	struct {
		void *at;
		size_t bytes;
	} views[] = {
		{s->slots, SLOTS_BYTES}, {s->members, MEMBERS_BYTES}, {s->nonbusy, BITS_BYTES},
		{s->reach4, BITS_BYTES}, {s->suspect, BITS_BYTES},    {s->notfull, BITS_BYTES},
	};

	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++)
		if (views[i].at)
			munmap(views[i].at, views[i].bytes);
}

/* What the daemon before us wrote. */
static int read_written(struct sw_steer *s)
{
	for (__u32 id = 0; id < SW_MAX_WORKERS; id++)
		if (bpf_map_lookup_elem(s->maps.workers, &id, &s->workers[id]))
			return -errno;
	for (__u32 pool = 0; pool < SW_MAX_POOLS; pool++)
		if (bpf_map_lookup_elem(s->maps.steers, &pool, &s->pools[pool]))
			return -errno;
	return 0;
}

/* ---- the life of it ------------------------------------------------------------------------- */

static int open_all(struct sw_steer *s, struct sw_error *err)
{
	struct verdict others = {.err = err};
	int ret = sw_load_check_kernel(err);

	if (!ret) {
		sw_pindir_each_other(s->root, DIR_NAME, retire, &others);
		ret = others.ret;
	}
	if (!ret)
		ret = sw_pindir_make(s->root, s->dir, err);
	if (!ret)
		ret = sw_steer_load_maps(s, err);
	if (!ret)
		ret = open_memory(s);
	return ret ? ret : read_written(s);
}

int sw_steer_open(struct sw_steer **out, const char *pin_root, struct sw_error *err)
{
	struct sw_steer *s = calloc(1, sizeof(*s));
	struct sw_error why = {0};
	int ret;

	if (!s)
		return sw_fail(err, -ENOMEM, "no memory");
#define X(name) s->maps.name = -1;
	SW_SLOT_MAPS(X)
#undef X
	snprintf(s->root, sizeof(s->root), "%s", pin_root);
	snprintf(s->dir, sizeof(s->dir), "%s/v%d/" DIR_NAME, pin_root, SW_LAYOUT);
	ret = open_all(s, &why);
	if (!ret) {
		*out = s;
		return 0;
	}
	sw_pindir_remove_empty(s->dir);
	sw_steer_leave(s);
	return sw_fail(err, ret, "%s%s",
		       why.text[0] ? "" : "slots: ", why.text[0] ? why.text : strerror(-ret));
}

void sw_steer_leave(struct sw_steer *s)
{
	if (!s)
		return;
	sw_steer_drop_links(s);
	sw_steer_unload(s->programs);
	sw_steer_unload(s->closer);
	ring_buffer__free(s->ended);
	sw_recounter_free(s->recounter);
	close_memory(s);
#define X(name)                                                                                    \
	if (s->maps.name >= 0)                                                                     \
		close(s->maps.name);
	SW_SLOT_MAPS(X)
#undef X
	free(s);
}

void sw_steer_remove(struct sw_steer *s)
{
	if (!s)
		return;
	sw_link_remove_all(s->dir);
	sw_pindir_remove(s->dir);
	sw_steer_leave(s);
}

const struct sw_slot_maps *sw_steer_maps(const struct sw_steer *s)
{
	return &s->maps;
}
