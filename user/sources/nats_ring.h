/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the loop and the thread that talks to NATS share: to connect there is to wait, and the loop
 * must not. A ring of messages, the newest ones, and what became of the connection; a descriptor
 * wakes the loop. Whoever ends last frees it, as the loop does not wait for the thread either.
 * Private to nats.c and nats_ring.c.
 */
#ifndef SPILLWAY_NATS_RING_H
#define SPILLWAY_NATS_RING_H

#include <nats/nats.h>
#include <pthread.h>

#include "sources/events_impl.h"

#define SW_NATS_RING 4096

struct sw_nats_ring {
	pthread_mutex_t lock; /* for all that changes */
	pthread_cond_t wake;  /* of the thread */
	unsigned users;
	int fd; /* readable: there is news for the loop */
	bool stop;
	char **servers;
	int n_servers;
	char *credentials_file;

	natsMsg *messages[SW_NATS_RING];
	unsigned first, n;
	uint64_t lost;	/* messages that newer ones have pushed out */
	uint64_t large; /* and those that were not taken */
	bool news;	/* about the connection: */
	bool up;
	struct sw_error why; /* it is not */
};

/* NULL: no memory. */
struct sw_nats_ring *sw_nats_ring_new(char *const *servers, size_t n, const char *credentials);
/* Begins to connect. False: no thread. */
bool sw_nats_ring_start(struct sw_nats_ring *s);
void sw_nats_ring_leave(struct sw_nats_ring *s);

#endif
