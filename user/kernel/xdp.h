/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The XDP side of attaching: is the hook free, does the driver take programs, does it transmit? */
#ifndef SPILLWAY_XDP_H
#define SPILLWAY_XDP_H

#include "kernel/plane_impl.h"

/* The id of the program on the interface, 0: none. *generic: in which mode. */
uint32_t sw_xdp_program(int ifindex, bool *generic);

/* Attaches, or takes a pinned link over. Returns the link's descriptor, *is_new tells which. On
 * failure `why` gets the driver's reason. */
int sw_xdp_attach(const struct sw_plane *p, const struct sw_iface *iface, enum sw_hook hook,
		  bool *is_new, char *why, size_t size);

/* Why was attaching `prog` refused with `err`? A link is refused without a word; the older way of
 * attaching is told the driver's reason. */
void sw_xdp_ask_reason(int ifindex, int prog, uint32_t flags, int err, char *why, size_t size);

/* Sends real frames out of the interface by XDP and looks whether they were sent. A veth drops
 * them while its peer has neither GRO nor an XDP program, and tells nobody. Ask while a program is
 * attached: drivers set up their rings for it. */
bool sw_xdp_transmits(const struct sw_iface *iface);

#endif
