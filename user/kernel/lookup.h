/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A plane's part in steering and counting: sk_lookup, on the namespace itself, which outlives the
 * daemon and what guards the interfaces. All but sw_lookup_remove() inside the namespace. */
#ifndef SPILLWAY_LOOKUP_H
#define SPILLWAY_LOOKUP_H

#include "kernel/plane_impl.h"

/* Attaches where the plane is to count or steer: in place where a program is attached already.
 * Sets p->lookup_link, and p->lookup_is_new when it was made by us. */
int sw_lookup_attach(struct sw_plane *p, struct sw_error *err);
/* Puts the programs that were loaded last where the former ones are. */
int sw_lookup_renew(struct sw_plane *p, struct sw_error *err);
/* Takes it off, that of an earlier daemon too. */
void sw_lookup_remove(struct sw_plane *p);
/* Is all as it was attached? */
bool sw_lookup_holds(const struct sw_plane *p);

#endif
