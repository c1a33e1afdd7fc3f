/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network namespaces by path or "pid:N". They are entered by the calling thread for the time of one
 * task and never held open: a namespace that somebody holds outlives its container.
 */
#ifndef SPILLWAY_NETNS_H
#define SPILLWAY_NETNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

#define SW_OWN_NETNS	"/proc/thread-self/ns/net"
#define SW_NETNS_STAYED -1 /* what there is to leave when `netns` was NULL */

struct sw_netns_id { /* inode numbers come back soon, the cookie (5.14) never does */
	dev_t dev;
	ino_t ino;
	uint64_t cookie;
};

/* Enters `netns` (NULL: stays). *former is for sw_netns_leave(). */
int sw_netns_enter(const char *netns, int *former, struct sw_error *err);
void sw_netns_leave(int former);

/* Which namespace the calling thread is in. */
int sw_netns_identify(struct sw_netns_id *out);
bool sw_netns_same(const struct sw_netns_id *a, const struct sw_netns_id *b);

#endif
