/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A plane's part in shedding requests on established connections: its maps, its sweeps, and what of
 * it has to stay. Where its programs are attached is attach.c's matter. */
#ifndef SPILLWAY_KEEP_H
#define SPILLWAY_KEEP_H

#include "kernel/plane_impl.h"

struct bpf_map;
struct spillway;

/* One that only these programs use. */
bool sw_is_keep_map(const struct bpf_map *map);

/* Before loading: gives `flows` its size. One that is pinned and in use keeps its own. */
int sw_keep_size(struct sw_plane *p, struct spillway *obj, struct sw_error *err);
/* When it is loaded, into p->obj. */
int sw_keep_bind(struct sw_plane *p, struct sw_error *err);
void sw_keep_unbind(struct sw_plane *p);

/* How many connections are followed or translated; of an earlier daemon's, too. */
unsigned sw_keep_use(const struct sw_plane *p);

/* Nothing is shed on established connections any more, until the tables are written again. */
void sw_keep_stop(const struct sw_plane *p);
/* The same of a plane that is not loaded but pinned: a daemon's that was killed a moment ago. */
void sw_keep_stop_pinned(const struct sw_plane *p);
/* After that: waits up to `ms` for connections that are translated to end. Returns how many are
 * left. */
unsigned sw_keep_wait(struct sw_plane *p, unsigned ms);

#endif
