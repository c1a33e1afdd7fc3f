/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a plane is made of, for the files that implement plane.h. */
#ifndef SPILLWAY_PLANE_IMPL_H
#define SPILLWAY_PLANE_IMPL_H

#include "kernel/iface.h"
#include "kernel/netns.h"
#include "kernel/plane.h"
#include "kernel/tables.h"

struct spillway; /* the skeleton */

enum sw_tc_place {
	SW_TC_GUARD,  /* ingress: new connections */
	SW_TC_KEEP,   /* ingress, behind the guard: requests on established connections */
	SW_TC_EGRESS, /* what servers send on those */
	SW_TC_PLACES
};

struct sw_tc_hold {
	int link;    /* -1: none */
	bool filter; /* a clsact filter, which holds itself */
	bool is_new; /* made by this plane, not taken over */
};

struct sw_hold { /* what holds one attachment, beside its struct sw_attachment */
	struct sw_tc_hold tc[SW_TC_PLACES];
	int xdp_link; /* -1: none */
	bool xdp_is_new;
};

/* Requests on established connections; keep.c. */
struct sw_keep {
	unsigned room; /* connections that are to be followed at most; 0: it is not wanted */
	bool on;       /* the programs are loaded */
	bool left;     /* there are attachments of them that this plane does not use */
	char why_not[160];
	int flows, flow_use, counts; /* of the maps, while `on` */
	struct sw_tuple *keys;	     /* expire_keys, mapped */
	uint32_t cursor;	     /* of the walk over `flows` */
	bool midway;
};

struct sw_plane {
	char *netns; /* NULL: the daemon's own */
	char **interfaces;
	size_t n_interfaces;
	enum sw_attach attach;
	struct sw_netns_id id;
	char root[128], dir[192]; /* the pin root, and the scope's own directory under it */

	struct spillway *obj;
	struct sw_maps maps;
	struct sw_attachment *at;
	struct sw_hold *hold; /* one for each `at` */
	size_t n;

	const struct sw_slot_maps *slots; /* NULL: private ones, with the programs */
	bool lookup;			  /* count or steer new connections */
	int lookup_link;		  /* -1: none */
	bool lookup_is_new;		  /* made by this plane, not taken over */
	struct sw_keep keep;

	unsigned pools, listeners; /* 1 + the highest index written */
	struct sw_levers levers;   /* as written */
	bool kfunc;		   /* the kernel has what a hand-over needs */
	const char *why_not;	   /* why connections cannot be handed over here, or NULL */
};

/* For plane.h's files among each other. */
int sw_plane_load(struct sw_plane *p, unsigned answer_sets, struct sw_error *err);
int sw_plane_write_levers(struct sw_plane *p, const struct sw_iface *guarded, size_t n,
			  struct sw_error *err);
void sw_plane_ask_hand_over(struct sw_plane *p);
void sw_plane_free(struct sw_plane *p);

#endif
