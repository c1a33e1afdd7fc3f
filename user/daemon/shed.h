/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts about shed requests in the daemon share; the others see daemon.h. */
#ifndef SPILLWAY_SHED_H
#define SPILLWAY_SHED_H

#include "daemon/daemon.h"
#include "kernel/shed_ring.h"

enum sw_shed_way { /* how a request was turned away */
		   SW_SHED_SATURATED,
		   SW_SHED_NO_SLOTS,
		   SW_SHED_DRAINING,
		   SW_SHED_UNAVAILABLE,
		   SW_SHED_NO_HANDOVER,
		   SW_SHED_STEERED, /* answered by our responder, or connect() failed */
		   SW_SHED_WAYS
};

#define SW_SOURCES 8

struct sw_sources { /* who asks most, of the events that came: the heaviest stay in */
	struct {
		uint8_t prefix[16];
		unsigned n;
	} list[SW_SOURCES];
};

/* A time in which a pool sheds, without a longer pause. */
struct sw_spell {
	char *pool;
	bool known;		     /* what comes next was counted when it was last looked */
	uint64_t seen[SW_SHED_WAYS]; /* in all */
	uint64_t untold;
	uint64_t own_untold; /* answered by our responder, beyond the rate of events */
	uint64_t since_ms;   /* 0: nothing is shed */
	uint64_t last_ms, said_ms;
	uint64_t all[SW_SHED_WAYS], lately[SW_SHED_WAYS]; /* since it began; since it was said */
	struct sw_sources sources;
};

struct sw_shed_reader {
	struct sw_shed *shed;
	char *netns; /* of its plane; NULL: the daemon's own */
	struct sw_shed_ring *ring;
};

struct sw_shed {
	struct sw_live *live;
	struct sw_shed_reader **readers;
	size_t n_readers;
	struct sw_spell *spells;
	size_t n_spells;
	uint64_t until_ns; /* the rate of our responders' events is used up until then */
};

/* ---- shed_log.c: spells, in the log and as events "dropped" -------------------------------- */

/* The pool's spell, made when there is none; NULL: no memory. */
struct sw_spell *sw_spell_of(struct sw_shed *s, const char *pool);
/* Looks at what pools have shed since the last time, and says what is to be said. */
void sw_spells_look(struct sw_shed *s, uint64_t now_ms);
void sw_spells_free(struct sw_shed *s);

void sw_sources_add(struct sw_sources *s, const uint8_t prefix[16]);
/* "192.0.2.0/24" or "2001:db8::/64". */
void sw_source_text(const uint8_t prefix[16], char *out, size_t size);

#endif
