/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ends connections whose numbers are translated: without the translation they would hang. */
#ifndef SPILLWAY_DESTROY_H
#define SPILLWAY_DESTROY_H

/* Destroys the sockets, in the calling thread's network namespace, of all connections in the map
 * `flows` that is pinned in `dir` and on which a request was shed. Both ends see a reset, which
 * still is translated. Returns how many there were, or a negative errno. */
int sw_flows_destroy(const char *dir);

#endif
