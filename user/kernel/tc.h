/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The TC side of attaching: a TCX link where there is TCX, else a filter under a clsact qdisc, with
 * a priority and a handle of our own. What others have there is left as it is. */
#ifndef SPILLWAY_TC_H
#define SPILLWAY_TC_H

#include "kernel/plane_impl.h"

/* What the pin of a place's link is called before its interface. */
const char *sw_tc_pin(enum sw_tc_place place);

/* Fills one place of `hold`; an older attachment of ours is replaced in place. */
int sw_tc_attach(const struct sw_plane *p, const struct sw_iface *iface, enum sw_tc_place place,
		 bool tcx, struct sw_hold *hold, struct sw_error *err);

/* Is our filter still there? */
bool sw_tc_filter_present(int ifindex, enum sw_tc_place place);
/* Takes our filters off; with the last one the mark and, if it was made by us and nothing else is
 * under it, the qdisc. */
void sw_tc_remove_filter(const struct sw_plane *p, const char *interface, enum sw_tc_place place);
void sw_tc_remove_filters(const struct sw_plane *p, const char *interface);

#endif
