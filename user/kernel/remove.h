/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes everything of Spillway off the host, whoever left it: planes and slots of all layouts. */
#ifndef SPILLWAY_REMOVE_H
#define SPILLWAY_REMOVE_H

#include <stddef.h>

#include "common/error.h"

/* Detaches all links and filters that are remembered under the pin root, and removes all pins.
 * Connections go on, but those on which requests were shed, which are reset; what was counted of
 * them is forgotten. No daemon may run on these pins. 0 too when there was nothing. */
int sw_host_remove(const char *pin_root, struct sw_error *err);

/* Takes off what an earlier daemon left in network namespaces that are not among these (NULL: the
 * host's own), as nobody would tell it ever again what to do. Slots stay. */
void sw_host_remove_others(const char *pin_root, const char *const *netns, size_t n);

#endif
