/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Directories of pins, PIN_ROOT/vLAYOUT/NAME in the bpf file system, and maps that are pinned there
 * under their own names. What is in which directory is known to pins.h (planes) and steer.h
 * (slots).
 */
#ifndef SPILLWAY_PINDIR_H
#define SPILLWAY_PINDIR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct bpf_map;
struct bpf_object;

/* Makes the directory under `root`, and mounts the bpf file system where it belongs if nobody has.
 */
int sw_pindir_make(const char *root, const char *dir, struct sw_error *err);

/* Removes all that is in it, and it; the ones above it too, as far as they are empty then. */
void sw_pindir_remove(const char *dir);
/* The same, but only if nothing is in it. */
void sw_pindir_remove_empty(const char *dir);

/* Calls `fn` for each entry; its path is DIR/NAME. */
void sw_pindir_each(const char *dir, void (*fn)(void *arg, const char *dir, const char *name),
		    void *arg);

/* Calls `fn` for ROOT/v*\/NAME of all layouts but this one, where it exists. */
void sw_pindir_each_other(const char *root, const char *name,
			  void (*fn)(void *arg, const char *dir), void *arg);

/* Before loading: makes `obj` use those of the pinned maps that `which` chooses and that have the
 * same shape; `answers` may have more room than asked for. After loading: pins the others, over
 * what stood there. */
typedef bool sw_pindir_which(const struct bpf_map *map);
int sw_pindir_reuse(const char *dir, struct bpf_object *obj, sw_pindir_which *which,
		    struct sw_error *err);
int sw_pindir_publish(const char *dir, struct bpf_object *obj, sw_pindir_which *which,
		      struct sw_error *err);

#endif
