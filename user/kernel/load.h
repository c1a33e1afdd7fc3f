/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads the programs that are wanted, over pinned maps where there are any. */
#ifndef SPILLWAY_LOAD_H
#define SPILLWAY_LOAD_H

#include "kernel/plane_impl.h"

/* Has the kernel what all programs need, and may we load any? */
int sw_load_check_kernel(struct sw_error *err);
/* Loading has failed with `ret`: says why. Returns what to return. */
int sw_load_refused(int ret, struct sw_error *err);

struct sw_wanted {
	bool xdp, xdp_redirect, xdp_generic; /* spillway_tc always is */
	bool lookup;			     /* and what is run beside it */
	bool keep; /* requests on established connections; left out where the kernel refuses it */
	unsigned answer_sets;
};

/* Loads into p->obj and p->maps, whose former contents (NULL: none) live on until all of it has
 * worked. On failure the error names the program and what the kernel lacks. */
int sw_load(struct sw_plane *p, const struct sw_wanted *want, struct sw_error *err);
void sw_unload(struct sw_plane *p);

/* The descriptor of a loaded program. */
int sw_program(const struct sw_plane *p, enum sw_hook hook);
int sw_tc_program(const struct sw_plane *p, enum sw_tc_place place);

#endif
