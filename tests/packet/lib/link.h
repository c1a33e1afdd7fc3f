/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A veth pair in the test's namespace: one end is the host with the server's addresses, the other
 * the client's. What happens on it is in wire.h. */
#ifndef SPILLWAY_TEST_LINK_H
#define SPILLWAY_TEST_LINK_H

#include <stdbool.h>

#define LINK_HOST   "spwire0"
#define LINK_CLIENT "spwire1"

int link_make(void); /* 0 or a negative errno */
void link_configure(bool ipv6);
void link_large_frames(void); /* MTU 9000 */
void link_remove(void);

#endif
