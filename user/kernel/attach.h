/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which interfaces a plane guards, and by which hooks: XDP where it brings something, TC on all. */
#ifndef SPILLWAY_ATTACH_H
#define SPILLWAY_ATTACH_H

#include "kernel/plane_impl.h"

/* The interfaces to guard, lo among them, by the plane's settings and what is there now. *out is to
 * be freed. Returns how many; -ENODEV, -EPFNOSUPPORT: one that was named is not there, or is of a
 * kind that cannot be guarded. */
int sw_attach_list(const struct sw_plane *p, struct sw_iface **out, struct sw_error *err);

/* Decides which XDP hook to try on each of `n` interfaces, before anything is loaded: fills p->at
 * and p->hold. */
int sw_attach_plan(struct sw_plane *p, const struct sw_iface *ifaces, size_t n,
		   struct sw_error *err);

/* Attaches as planned; what is attached already gets the new programs in place. Then takes off what
 * an earlier daemon left and this one does not use. On failure what this call attached is gone. */
int sw_attach_all(struct sw_plane *p, const struct sw_iface *ifaces, struct sw_error *err);

/* Puts newly loaded programs where the plane is attached. */
int sw_attach_renew(struct sw_plane *p, struct sw_error *err);

/* Takes everything off, but what translates only when nothing has to be translated any more. */
void sw_attach_none(struct sw_plane *p);

/* Takes off what an earlier daemon left here and this plane does not use. */
void sw_attach_sweep(struct sw_plane *p);
/* Takes off what sheds on established connections, wherever it is. */
void sw_attach_end_keep(struct sw_plane *p);

/* Is everything still attached to the interfaces in `ifaces`, and are they all? */
bool sw_attach_holds(const struct sw_plane *p, const struct sw_iface *ifaces, size_t n);

/* Frees p->at and p->hold. */
void sw_attach_free(struct sw_plane *p);

#endif
