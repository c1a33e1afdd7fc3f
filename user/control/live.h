/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the daemon knows at this moment: the running configuration and, beside each of its pools,
 * workers and network namespaces, what was measured, decided and told to the kernel. The daemon
 * writes it, the control interface reads it; both run on one thread.
 */
#ifndef SPILLWAY_LIVE_H
#define SPILLWAY_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "config/config.h"
#include "kernel/plane.h"
#include "policy/busy.h"
#include "policy/pool.h"
#include "policy/slots.h"
#include "policy/worst.h"
#include "sources/scrape.h"

struct sw_dynamo;
struct sw_history;
struct sw_hub;
struct sw_live;
struct sw_live_pool;
struct sw_shed;
struct sw_steering;
struct sw_thresholds;

#define SW_MAX_FEEDS 64 /* of one worker */

/* Checks of one worker, at most: the rank-level limits for each rank, the others once. */
#define SW_MAX_CHECKS (SW_MAX_RANKS * SW_LIMITS)

enum sw_feed_kind {
	SW_FEED_SCRAPE, /* its metrics page */
	SW_FEED_PUSH,	/* POST /v1/load */
	SW_FEED_EVENTS, /* Dynamo's event plane, one feed for each publisher */
	SW_FEEDS
};

/* Somebody who tells the load of a worker. */
struct sw_feed {
	enum sw_feed_kind kind;
	uint64_t publisher;	 /* of events; 0 otherwise */
	uint64_t told, failures; /* times that something came, and of those that it was no load */
	uint64_t at_ms;		 /* of the last load; 0: none yet */
	struct sw_error error;	 /* the last one that there was */
	uint64_t error_ms;	 /* its time; 0: none yet */
	int failing;		 /* negative errno of the last time, 0: a load came */
	struct sw_told *ranks;	 /* what it told, from the worker's first rank on */
	size_t n_ranks;
};

struct sw_live_worker {
	const struct sw_worker_conf *conf;
	struct sw_live_pool *pool;
	struct sw_worker load;
	int target;	       /* id of its scrape */
	struct sw_feed *feeds; /* in the order in which they were first heard */
	size_t n_feeds;
	bool crowded;		/* told that there are more of them than are heard */
	bool inert[SW_LIMITS];	/* told to be inert */
	bool near;		/* it measures nearly one of its limits */
	uint64_t busy_since_ms; /* of the last change to busy */
	bool claimed;		/* during a reload: the new configuration keeps it */

	uint64_t counted_cap, counted_load; /* its part in its pool's sums */

	int id;			 /* of its slot row; -1: it is neither steered nor counted */
	uint32_t cap;		 /* its slots as this host may use them; SW_NO_CAP */
	bool drain;		 /* an operator's word, or the configuration's */
	uint64_t drain_since_ms; /* when that began */
	bool drained;		 /* its last connection has ended since */
	bool suspect; /* a connection to it could not be made, and it has not answered since */
	uint64_t suspect_since_ms;
};

struct sw_live_pool {
	const struct sw_pool_conf *conf;
	struct sw_live *live;
	struct sw_limits limits; /* the configuration's, with what was set over the API on top */
	struct sw_live_worker **workers;
	size_t n_workers;
	enum sw_pool_state state;
	uint64_t since_ms; /* of the last change of state */
	enum sw_force force;
	uint64_t force_until_ms;
	bool drain;

	int row;		 /* id of a guarded pool's row; -1: it is not counted as a whole */
	uint64_t cap;		 /* the sum over its workers; UINT64_MAX: no limit */
	bool uncapped;		 /* counted only: who would be sent away may not be */
	bool passing;		 /* all its listeners leave new connections to the stack */
	bool near;		 /* a worker measures nearly one of its limits */
	bool full;		 /* no slot was free at the last heartbeat */
	struct sw_credit credit; /* with SW_COUNT_REPORTS */
	bool counted;		 /* and these are the sums over its workers */
	uint64_t counted_cap, counted_load;
	struct sw_steer_pool steer;	     /* as last told to the kernel */
	uint64_t answered[SW_API_ENDPOINTS]; /* requests that our responder has answered, by
					      * enum sw_api_endpoint */
};

/* A worker or row that the configuration has no more, and that has connections yet. */
struct sw_live_leaving {
	char name[80]; /* "pool/worker" */
	int id;
	uint64_t since_ms;
};

/* One pool in one namespace. */
struct sw_live_gate {
	struct sw_gate gate;
	bool used;	/* a listener in the namespace belongs to the pool */
	bool may_close; /* shedding would lose nothing that must pass */
	bool warned;	/* that it may not */
	bool passes;	/* a listener's new connections are left to the stack */
	bool said;	/* that they are, as they could not be handed over */
};

struct sw_live_plane {
	const char *netns;	    /* NULL: the daemon's own; owned by the configuration */
	struct sw_plane *plane;	    /* NULL: nothing is guarded there now, `error` says why */
	struct sw_error error;	    /* why it is not attached as it should be, or empty */
	int failing;		    /* negative errno of the last write of a gate */
	int expire_failing;	    /* and of the last look for connections that have ended */
	bool is_new;		    /* opened, and nothing was counted or written since */
	size_t n_named;		    /* configured interfaces that it is attached to */
	struct sw_live_gate *gates; /* by pool */
};

enum sw_server {		  /* what listens behind a listener */
		 SW_SERVER_TCP,	  /* what is assumed until it was looked for */
		 SW_SERVER_MPTCP, /* the kernel hands no connection over to it */
		 SW_SERVER_NONE,
};

/* Counters of one listener. */
struct sw_listener_counts {
	struct sw_counts xdp, tc, keep;
	struct sw_shed_counts shed;
};

/* Where workers or their load are told for the whole fleet. Texts are valid until the next turn. */
struct sw_live_source {
	const char *kind, *name; /* "etcd", "file", "zmq", "nats"; its address */
	const char *state;	 /* "ok", "connecting", "failing" */
	uint64_t at_ms;		 /* it was heard last; 0: never */
	uint64_t messages;	 /* keys or events that it told */
	uint64_t dropped;	 /* of these, those that were not taken in */
	uint64_t bad;		 /* and those that could not be understood */
	uint64_t errors;	 /* times that it failed */
	const char *error;	 /* what is wrong now; "": nothing */
	const char *last_error;	 /* the last failure or bad message */
	uint64_t last_error_ms;	 /* its time; 0: none yet */
};

struct sw_live {
	struct sw_config *conf;
	struct sw_scraper *scraper;
	struct sw_live_pool *pools; /* by index in conf->pools */
	size_t n_pools;
	uint64_t rosters;	  /* times that `pools` were exchanged */
	struct sw_dynamo *dynamo; /* what is followed of NVIDIA Dynamo; NULL: nothing */
	bool members_known;	  /* its membership has been read; before, no pool that discovers
				   * is unavailable for want of workers */
	/* Fills in the source at `index`, from 0 on; false: there are no more. NULL: there are
	 * none. */
	bool (*source)(const struct sw_live *live, size_t index, struct sw_live_source *out);
	uint64_t strangers, stranger; /* events about workers that no pool has; the last one's id */
	struct sw_live_plane *planes;
	size_t n_planes;
	enum sw_server *servers; /* by index in conf->listeners: what was found behind it */
	struct sw_listener_counts *offsets; /* by the same index: see totals.h */
	struct sw_steer *steer;		    /* NULL: nothing is steered or counted */
	struct sw_steering *steering;	    /* what the daemon has for that */
	struct sw_hub *hub;		    /* who follows events; NULL: nobody can */
	struct sw_history *history;	    /* of the last ten minutes; NULL: none */
	struct sw_thresholds *thresholds;   /* set over the API; NULL: nothing is */
	struct sw_shed *shed;		    /* what the daemon knows of requests that are shed */
	struct sw_live_leaving *leaving;
	size_t n_leaving;
	struct sw_recount recount; /* the last one that corrected something */
	uint64_t recounts;
	uint64_t started_ms;
	uint64_t beat_ns;	 /* the last heartbeat */
	int64_t least_margin_ns; /* the least time that was left to a deadline when it was moved, in
				  * this minute and the one before; of each of them: */
	int64_t margins_ns[2];
	uint64_t minute_ns; /* when this minute began */
	uint64_t reloads, reload_failures;
};

/* The plane that guards `l`, or NULL. */
const struct sw_live_plane *sw_live_plane_of(const struct sw_live *live,
					     const struct sw_listener_conf *l);
/* Why requests to the listener at `index` that must pass would be lost if new connections were
 * intercepted there, as none could be handed over; NULL: they would not. */
const char *sw_live_danger(const struct sw_live *live, size_t index);
/* Are its new connections left to the stack? Only where it is guarded. */
bool sw_live_passes_new(const struct sw_live *live, size_t index);
/* What the last failure of any feed of a worker says; empty while all go well. */
const char *sw_live_worker_error(const struct sw_live_worker *w);
/* The name of the engine whose page is read for it; with `auto` the one that was recognised, "auto"
 * before. NULL: no page is read. */
const char *sw_live_engine(const struct sw_live_worker *w);
const char *sw_feed_kind_name(enum sw_feed_kind kind); /* "scrape", "push", "events" */
/* The pool of that name, or NULL. */
struct sw_live_pool *sw_live_find_pool(const struct sw_live *live, const char *name);

/* Does an operator's force hold at this time? */
bool sw_live_forced(const struct sw_live_pool *pool, uint64_t now_ms);

/* Both NULL, or equal. */
bool sw_same_text(const char *a, const char *b);

#endif
