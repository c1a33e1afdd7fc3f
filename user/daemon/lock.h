/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One daemon at a time on one set of pinned maps: two would undo each other's work. */
#ifndef SPILLWAY_LOCK_H
#define SPILLWAY_LOCK_H

#include "common/error.h"

struct sw_lock {
	char path[256];
	int fd; /* -1: not held */
};

/* Takes the lock of a pin root. It ends with the process, however that ends. -EBUSY: another daemon
 * holds it. */
int sw_lock_take(struct sw_lock *lock, const char *pin_root, struct sw_error *err);
void sw_lock_drop(struct sw_lock *lock);

#endif
