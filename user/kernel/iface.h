/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Facts about network interfaces, all of the calling thread's network namespace. */
#ifndef SPILLWAY_IFACE_H
#define SPILLWAY_IFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spillway/abi.h>

struct sw_iface {
	char name[IF_NAMESIZE];
	int index;
	bool up, loopback, ethernet;
	unsigned mtu;
	uint8_t mac[6];
};

/* -ENODEV: there is no such interface. */
int sw_iface_get(const char *name, struct sw_iface *out);

void sw_iface_driver(const char *name, char out[32]); /* "none": not known */

/* All interfaces. *out is to be freed. Returns how many, or a negative errno. */
int sw_iface_list(struct sw_iface **out);

/* The one of this name in a list; NULL: none. */
const struct sw_iface *sw_iface_find(const struct sw_iface *list, size_t n, const char *name);

/* Packets sent so far, those of XDP included, wherever the driver counts them. */
uint64_t sw_iface_sent(const char *name);

/* The namespace's own addresses, IPv4 mapped; returns how many are stored, at most `max`. */
int sw_iface_addresses(struct sw_local *out, size_t max);

/* What the namespace's sysctls and the MTUs of the guarded interfaces allow on a connection that is
 * handed over. */
void sw_iface_levers(const struct sw_iface *guarded, size_t n, struct sw_levers *out);

/* A number under /proc/sys/net/ipv4, or `otherwise`. */
long sw_sysctl_ipv4(const char *name, long otherwise);

#endif
