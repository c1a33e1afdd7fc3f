/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The directory of a plane in the bpf file system: PIN_ROOT/vLAYOUT/SCOPE. Maps are pinned by name,
 * links as link_HOOK_INTERFACE. A clsact filter cannot be pinned; a symbolic link clsact_INTERFACE
 * remembers whether the qdisc under it was made by us ("qdisc") or found ("filter"), and one named
 * netns tells which namespace a scope is, in the operator's words.
 */
#ifndef SPILLWAY_PINS_H
#define SPILLWAY_PINS_H

#include "kernel/plane_impl.h"

struct bpf_object;

/* Makes the directory (mounting the bpf file system where it belongs, if nobody has) and moves
 * links of a daemon with another layout into it. */
int sw_pins_open(struct sw_plane *p, struct sw_error *err);

/* Around loading: sw_pindir_reuse() and sw_pindir_publish() of the plane's own maps. */
int sw_pins_reuse_maps(struct sw_plane *p, struct bpf_object *obj, struct sw_error *err);
int sw_pins_publish_maps(struct sw_plane *p, struct bpf_object *obj, struct sw_error *err);

/* The path of a hook's pin for an interface. bpffs refuses dots, which interface names may have;
 * they become colons, which those may not. */
void sw_pins_path(const struct sw_plane *p, const char *hook, const char *interface, char *out,
		  size_t size);
/* Takes the path's last part apart again; false: it is not a pin of this hook. */
bool sw_pins_interface(const char *name, const char *hook, char interface[IF_NAMESIZE]);

/* Calls `fn` with the name of each entry. */
void sw_pins_each(struct sw_plane *p, void (*fn)(struct sw_plane *p, const char *name));

/* Is anything still attached by a pin here, or a filter remembered? */
bool sw_pins_hold_links(struct sw_plane *p);
/* Removes directories of other layouts, whose links we have by now. */
void sw_pins_forget_others(struct sw_plane *p);
/* Removes all, and the directories that are empty then. */
void sw_pins_remove(struct sw_plane *p);

#endif
