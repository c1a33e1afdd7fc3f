// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sorts the maps of the BPF object; see slot_maps.h. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "kernel/slot_maps.h"
#include "kernel/tables.h"

static bool is_one_of(const struct bpf_map *map, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(bpf_map__name(map), names[i]))
			return true;
	return false;
}

#define NAME(name)	     #name,
#define IS_ONE_OF(map, list) is_one_of(map, list, sizeof(list) / sizeof(*(list)))

bool sw_is_slot_map(const struct bpf_map *map)
{
	static const char *const names[] = {SW_SLOT_MAPS(NAME)};

	return IS_ONE_OF(map, names);
}

bool sw_is_plane_map(const struct bpf_map *map)
{
	static const char *const names[] = {
		SW_MAPS(NAME) "window", "responding",	"left_alone",  "flows",	      "flow_use",
		"counts_keep",		"keep_scratch", "expire_keys", "shed_sample", "pipelining"};

	return IS_ONE_OF(map, names);
}

bool sw_is_steer_map(const struct bpf_map *map)
{
	static const char *const names[] = {"virtuals", "sockets", "upstreams",
					    "ended",	"seen",	   "close_orders"};

	return IS_ONE_OF(map, names);
}

bool sw_is_lookup_map(const struct bpf_map *map)
{
	static const char *const names[] = {"listening", "listens", "responding", "left_alone",
					    "counts_steer"};

	return IS_ONE_OF(map, names);
}

int sw_slot_maps_share(const struct sw_slot_maps *maps, struct bpf_object *obj,
		       struct sw_error *err)
{
	const struct {
		const char *name;
		int fd;
	} list[] = {
#define X(name) {#name, maps->name},
		SW_SLOT_MAPS(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(obj, list[i].name);
		int ret = map ? bpf_map__reuse_fd(map, list[i].fd) : -ENOENT;

		if (ret)
			return sw_fail(err, ret, "the map %s cannot be shared: %s", list[i].name,
				       strerror(-ret));
	}
	return 0;
}
