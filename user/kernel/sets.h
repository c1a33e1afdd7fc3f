/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets of paths and of CIDRs: listeners with equal ones share one, and a set that is in use never
 * changes, so that a listener goes from its old set to its new one at once. */
#ifndef SPILLWAY_SETS_H
#define SPILLWAY_SETS_H

#include "kernel/image.h"

#define NO_SET 0xffff /* a set with nothing in it */

/* Puts `set` (rows of SW_T_PATHS or SW_T_EXEMPT, any number in their keys) into `to` under the
 * number of an equal set there or in `from`, else under one that neither uses. -ENOMEM. */
int sw_sets_place(const struct sw_image *from, struct sw_image *to, enum sw_table which,
		  struct sw_rows *set, uint16_t *id);

/* The number that stands for what precedes a {name} in a path, 0: there is no room for one more. */
uint8_t sw_sets_prefix(struct sw_image *to, const char *bytes, size_t length);

#endif
