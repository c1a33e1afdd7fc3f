/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A real wire for what a test run cannot show: hand-over, drivers, skbs in fragments. A veth pair
 * in the test's namespace; programs are attached to one end, a packet socket plays the client on
 * the other.
 */
#ifndef SPILLWAY_TEST_WIRE_H
#define SPILLWAY_TEST_WIRE_H

#include "lane.h"

struct wire {
	struct world *w;
	int host, client; /* interface indices */
	int fd;		  /* the client's packet socket */
	size_t linear;	  /* bytes of what is sent that arrive in the skb's first piece; 0: all */
	int tc, xdp;	  /* what is attached: a link or -1; XDP flags or 0 */
	bool clsact;	  /* TC is attached to this, in place of a link */
};

/* False: there can be no wire here, and the reason is printed. */
bool wire_up(struct wire *wire, struct world *w);
void wire_down(struct wire *wire);

/* Attaches the lane's program; to XDP also TC behind it, as they are in use. */
void wire_attach(struct wire *wire, struct lane *l);

/* Sends a frame. With `gso_size` it arrives as one super-segment; it must have a partial checksum
 * then. Only what is larger than a page is ever in pieces. */
void wire_send(struct wire *wire, const struct frame *f, struct packet *p, unsigned gso_size);
/* The next TCP frame to the client's port, tags put back in; false: none came in time. */
bool wire_receive(struct wire *wire, uint16_t port, struct result *r, int timeout_ms);

#endif
