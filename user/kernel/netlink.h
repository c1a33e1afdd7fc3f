/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One netlink question and its answers, for the few things that libbpf does not ask. */
#ifndef SPILLWAY_NETLINK_H
#define SPILLWAY_NETLINK_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>

/* Called for each message of an answer; a value other than 0 ends the walk and is returned. */
typedef int (*sw_netlink_fn)(const struct nlmsghdr *nh, void *arg);

/* Sends a dump request of `type` with `body` to netlink `family` (NETLINK_ROUTE, ...), in the
 * calling thread's network namespace, and walks the answers. */
int sw_netlink_dump(int family, int type, const void *body, size_t size, sw_netlink_fn fn,
		    void *arg);

/* Sends a request of `type` whose only answer is whether it was carried out. */
int sw_netlink_order(int family, int type, const void *body, size_t size);

/* The attribute of this type among `size` bytes at `first`, or NULL. */
const struct rtattr *sw_netlink_attr(const struct rtattr *first, int size, unsigned short type);

#endif
