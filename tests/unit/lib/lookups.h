/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A plane that looks up: slots of the host under it, a pool with one worker, and a client in the
 * other namespace of nets.h. */
#ifndef SPILLWAY_TEST_LOOKUPS_H
#define SPILLWAY_TEST_LOOKUPS_H

#include "kernel/steer.h"
#include "nets.h"

#define LOOKUPS_POOL   3
#define LOOKUPS_WORKER 7
#define LOOKUPS_PORT   8000 /* that the pool listens on */
#define WORKER_PORT    9000 /* that its worker listens on */

extern struct sw_steer *lookups_steer;

/* For cmocka: nets_setup() and slots that are open. */
int lookups_setup(void **state);
int lookups_teardown(void **state);

/* A plane on the guarded namespace, which is to look up or not. */
struct sw_plane *lookups_open(bool lookup);
/* Makes the pool and its worker; has the plane guard the pool's port. */
void lookups_pool(void);
void lookups_configure(struct sw_plane *p);

/* A socket of the guarded namespace that listens on 192.0.2.1. */
int lookups_listen(uint16_t port);
/* What a client in the other namespace gets: 0 or a negative errno. */
int lookups_connect(void);

#endif
