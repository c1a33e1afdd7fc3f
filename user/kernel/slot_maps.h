/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which maps of the BPF object are the host's, which are a plane's own, and how the host's are
 * shared. The others go with the programs that use them. */
#ifndef SPILLWAY_SLOT_MAPS_H
#define SPILLWAY_SLOT_MAPS_H

#include <stdbool.h>

#include "common/error.h"
#include "kernel/steer.h"

struct bpf_map;
struct bpf_object;

bool sw_is_slot_map(const struct bpf_map *map);
/* One that planes pin, or scratch of their programs. */
bool sw_is_plane_map(const struct bpf_map *map);
/* One that no plane's program uses. */
bool sw_is_steer_map(const struct bpf_map *map);
/* One that only sk_lookup and what is run beside it use. */
bool sw_is_lookup_map(const struct bpf_map *map);

/* Before loading: makes `obj` use these. */
int sw_slot_maps_share(const struct sw_slot_maps *maps, struct bpf_object *obj,
		       struct sw_error *err);

#endif
