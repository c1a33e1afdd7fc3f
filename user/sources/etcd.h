/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps a table of members as etcd has it: reads all keys, then watches what changes. While etcd
 * is away the table stays as it was. What the members mean is left to the caller. */
#ifndef SPILLWAY_ETCD_H
#define SPILLWAY_ETCD_H

#include <stddef.h>

#include "sources/members.h"
#include "sources/store.h"

struct sw_etcd;

struct sw_etcd_conf {
	char *const *endpoints; /* base URLs of the members' JSON gateways, tried in turn */
	size_t n;
	const char *user, *password_file; /* NULL: no login; the file is read at each */
	const char *ca_file;		  /* NULL: the system's */
};

/* Connects in the background, again and again. Strings are copied. */
int sw_etcd_new(struct sw_etcd **out, struct event_base *base, const struct sw_etcd_conf *conf,
		struct sw_members *members, struct sw_error *err);
/* NULL is fine. */
void sw_etcd_free(struct sw_etcd *e);

const struct sw_store_status *sw_etcd_status(const struct sw_etcd *e);

#endif
