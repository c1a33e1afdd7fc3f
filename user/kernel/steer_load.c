// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loads what steering consists of: its maps, and its programs over them when they are wanted. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "kernel/bpflog.h"
#include "kernel/load.h"
#include "kernel/pindir.h"
#include "kernel/slot_maps.h"
#include "kernel/steer_impl.h"
#include "spillway.skel.h"

static int open_object(struct spillway **out, struct sw_error *err)
{
	int ret;

	sw_bpflog_start();
	*out = spillway__open();
	if (*out)
		return 0;
	ret = -errno;
	return sw_fail(err, ret, "opening the BPF object: %s", strerror(-ret));
}

static int load_object(struct spillway *obj, struct sw_error *err)
{
	int ret = bpf_object__load(obj->obj);

	return ret ? sw_load_refused(ret, err) : 0;
}

static bool is_named(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name))
		names++;
	return *names;
}

static void choose(struct spillway *obj, const char *const *programs, sw_pindir_which *maps)
{
	struct bpf_program *program;
	struct bpf_map *map;

	bpf_object__for_each_program (program, obj->obj)
		bpf_program__set_autoload(program, is_named(bpf_program__name(program), programs));
	bpf_object__for_each_map (map, obj->obj)
		bpf_map__set_autocreate(map, maps(map));
}

/* Descriptors of our own, which outlive the object that made them. */
static int copy_maps(struct sw_steer *s, const struct bpf_object *obj)
{
#define X(name)                                                                                    \
	s->maps.name = fcntl(bpf_object__find_map_fd_by_name(obj, #name), F_DUPFD_CLOEXEC, 0);     \
	if (s->maps.name < 0)                                                                      \
		return -errno;
	SW_SLOT_MAPS(X)
#undef X
	return 0;
}

int sw_steer_load_maps(struct sw_steer *s, struct sw_error *err)
{
	static const char *const nothing[] = {NULL};
	struct spillway *obj;
	int ret = open_object(&obj, err);

	if (ret)
		return ret;
	choose(obj, nothing, sw_is_slot_map);
	ret = sw_pindir_reuse(s->dir, obj->obj, sw_is_slot_map, err);
	if (!ret)
		ret = load_object(obj, err);
	if (!ret)
		ret = sw_pindir_publish(s->dir, obj->obj, sw_is_slot_map, err);
	if (!ret)
		ret = copy_maps(s, obj->obj);
	spillway__destroy(obj);
	return ret;
}

static bool is_not_a_plane_s(const struct bpf_map *map)
{
	return !sw_is_plane_map(map);
}

int sw_steer_load(const struct sw_steer *s, const char *const *programs, struct spillway **out,
		  struct sw_error *err)
{
	struct spillway *obj;
	int ret = open_object(&obj, err);

	if (ret)
		return ret;
	choose(obj, programs, is_not_a_plane_s);
	/* Nobody loads it where the kernel cannot. */
	obj->rodata->have_sock_destroy = is_named("spillway_close_idle", programs);
	ret = sw_slot_maps_share(&s->maps, obj->obj, err);
	if (!ret)
		ret = load_object(obj, err);
	if (ret)
		spillway__destroy(obj);
	else
		*out = obj;
	return ret;
}

void sw_steer_unload(struct spillway *programs)
{
	if (programs)
		spillway__destroy(programs);
}

int sw_steer_program(const struct spillway *programs, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(programs->obj, name));
}

int sw_steer_map(const struct spillway *programs, const char *name)
{
	return bpf_object__find_map_fd_by_name(programs->obj, name);
}
