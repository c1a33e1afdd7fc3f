/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the page of a target is fetched: what a page keeps of its first target, and compares with the
 * next ones. What the page says, and to whom, is not part of it. */
#ifndef SPILLWAY_TARGET_H
#define SPILLWAY_TARGET_H

#include <stdbool.h>

#include "sources/scrape.h"

/* Copies all but engine and hints. -ENOMEM: sw_target_free() frees what there is. */
int sw_target_copy(struct sw_target *to, const struct sw_target *from);
void sw_target_free(struct sw_target *t);

/* Would the same page be fetched, in the same way and as often? */
bool sw_target_same_page(const struct sw_target *a, const struct sw_target *b);

#endif
