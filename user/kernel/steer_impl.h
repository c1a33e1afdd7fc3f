/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What steering is made of, for the files that implement steer.h. */
#ifndef SPILLWAY_STEER_IMPL_H
#define SPILLWAY_STEER_IMPL_H

#include "kernel/steer.h"

struct spillway; /* the skeleton */

struct sw_steer_link { /* one program on one cgroup, pinned as link_HOOK_CGROUPID */
	uint64_t cgroup;
	unsigned hook;
	int fd;
	bool is_new, wanted; /* of the attaching under way */
};

struct sw_steer {
	char root[128], dir[192]; /* the pin root, and the directory of slots under it */
	struct sw_slot_maps maps;

	/* Memory of the maps themselves. */
	struct sw_slot *slots;
	struct sw_bits *members, *nonbusy, *reach4, *suspect, *notfull;

	/* What was written last, by us or by the daemon before. */
	struct sw_worker_row workers[SW_MAX_WORKERS];
	struct sw_steer_pool pools[SW_MAX_POOLS];

	struct spillway *programs; /* on cgroups; NULL: none is loaded */
	unsigned hooks;		   /* which of them, a bit each */
	struct sw_steer_link *links;
	size_t n_links;

	struct spillway *closer;   /* of idle connections; NULL: not loaded */
	int closer_refused;	   /* loading it has failed with this, and would again */
	struct ring_buffer *ended; /* NULL: nobody has asked */
	char **routers;		   /* cgroups attached with `upstreams` */
	size_t n_routers;

	struct sw_recounter *recounter; /* NULL: nothing was recounted yet */
};

/* Loads the programs that are named, NULL last, and no others, over the maps of `s` (pinned ones
 * and those that only these programs use). On failure the error names what the kernel lacks. */
int sw_steer_load(const struct sw_steer *s, const char *const *programs, struct spillway **out,
		  struct sw_error *err);
void sw_steer_unload(struct spillway *programs);
/* The descriptors of a loaded program and of a map, or -ENOENT. */
int sw_steer_program(const struct spillway *programs, const char *name);
int sw_steer_map(const struct spillway *programs, const char *name);

/* Takes over the pinned maps, makes and pins what is not there. */
int sw_steer_load_maps(struct sw_steer *s, struct sw_error *err);

/* Slots that connections hold, of all workers. */
uint64_t sw_steer_held(const struct sw_steer *s);

void sw_recounter_free(struct sw_recounter *r);

/* Frees what is known of links, and leaves them where they are. */
void sw_steer_drop_links(struct sw_steer *s);

#endif
