/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Dynamo's membership as last told: a table of keys that a store fills, and what it comes to, the
 * workers with their models and the channels on which load is published. */
#ifndef SPILLWAY_MEMBERS_H
#define SPILLWAY_MEMBERS_H

#include <event2/event.h>

#include "sources/registration.h"

#define SW_MEMBERS_MAX 10000 /* keys that are kept, at most */

struct sw_members;

struct sw_member { /* an instance that serves a model */
	const struct sw_registration *instance, *model;
};

struct sw_channel { /* where load is published */
	enum sw_channel_kind kind;
	const char *address;
};

struct sw_members_counts {
	uint64_t told;	       /* keys that were put or deleted */
	uint64_t bad;	       /* that were malformed */
	uint64_t dropped;      /* that found no room */
	struct sw_error error; /* of the last that was malformed; empty: none yet */
	uint64_t error_ms;     /* when that was; 0: none yet */
};

/* Told on the loop a moment after something has changed, once for all that changed until then. */
typedef void (*sw_members_cb)(void *arg);

/* NULL: no memory. */
struct sw_members *sw_members_new(struct event_base *base, sw_members_cb cb, void *arg);
void sw_members_free(struct sw_members *m);

/* A key has this value now. What is none of Dynamo's is passed over. A malformed value is counted
 * and said, and what the key said before stays. */
void sw_members_put(struct sw_members *m, const char *key, const char *value, size_t length);
void sw_members_delete(struct sw_members *m, const char *key);
/* Everything is put anew between the two; keys that were not put are deleted then. Begun again
 * without an end, it begins anew. */
void sw_members_begin(struct sw_members *m);
void sw_members_end(struct sw_members *m);

/* All members or channels, in the order of their keys; the array is the caller's to free, what it
 * points to is good until the table changes. NULL: none, or no memory. */
struct sw_member *sw_members_list(const struct sw_members *m, size_t *n);
struct sw_channel *sw_members_channels(const struct sw_members *m, size_t *n);

const struct sw_members_counts *sw_members_counts(const struct sw_members *m);

#endif
