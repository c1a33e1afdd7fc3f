/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where cgroups are, beside sw_cgroup_resolve() of steer.h: facts that it is made of. */
#ifndef SPILLWAY_CGROUP_H
#define SPILLWAY_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* sw_cgroup_resolve() with another directory for /proc, for tests. */
int sw_cgroup_resolve_in(const char *proc, const char *text, char *path, size_t size,
			 struct sw_error *err);

/* Opens a cgroup v2 directory. Returns its descriptor and in *id the kernel's number for it, which
 * no other cgroup ever gets; or a negative errno. */
int sw_cgroup_open(const char *path, uint64_t *id, struct sw_error *err);

/* Is the directory with this number gone? Connections may live on in it. False where it cannot be
 * told. */
bool sw_cgroup_is_removed(uint64_t id);

/* Calls `fn` for each process in a cgroup and those under it. */
void sw_cgroup_each_process(const char *path, void (*fn)(void *arg, long pid), void *arg);

/* Is this the top of what we can see, and yet not of the host: in a container? */
bool sw_cgroup_is_container_top(const char *path, uint64_t id);

#endif
