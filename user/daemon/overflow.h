/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where connections go that a pool has nothing free for: a responder for each steered or counted
 * pool in each network namespace that it takes connections in.
 */
#ifndef SPILLWAY_OVERFLOW_H
#define SPILLWAY_OVERFLOW_H

#include <event2/event.h>

#include "control/live.h"
#include "daemon/responder.h"
#include "kernel/netns.h"

struct sw_overflow {
	struct sw_live *live;
	char *pool, *netns;		/* netns NULL: the daemon's own */
	struct sw_responder *responder; /* NULL: the namespace is not there now */
	struct sw_netns_id id;		/* of the namespace that it listens in */
	struct sw_answer *answers;	/* a whole set, rendered when the first is needed */
	uint8_t variants_mask;
	unsigned answered;
};

struct sw_overflows {
	struct sw_overflow **list;
	size_t n;
};

/* Makes what the pools of `c` need, out of the running ones where they are the same. A namespace
 * that is not there is no failure: it is waited for. */
int sw_overflows_build(struct sw_live *live, struct event_base *base, const struct sw_config *c,
		       const struct sw_overflows *running, struct sw_overflows *out,
		       struct sw_error *err);
/* Forgets a list, and closes those that `kept` (may be NULL) does not go on with. */
void sw_overflows_free(struct sw_overflows *o, const struct sw_overflows *kept);
/* The configuration changed: so may have the answers. */
void sw_overflows_renew(struct sw_overflows *o);
/* Once a second: closes those whose namespace is gone, and opens those whose namespace came. True:
 * some were opened. */
bool sw_overflows_tick(struct sw_overflows *o, struct event_base *base);

/* The one of a pool in a namespace, or NULL. */
const struct sw_overflow *sw_overflow_find(const struct sw_overflows *o, const char *pool,
					   const char *netns);

/* The shape of the answer to a request and what kind of request it is: as the pool's listeners have
 * it, else as built in. */
enum sw_family sw_overflow_family(const struct sw_config *c, size_t pool, enum sw_method method,
				  const char *path, enum sw_api_endpoint *endpoint);

#endif
