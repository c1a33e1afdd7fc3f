/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of spillwayd and what they owe each other. All run on one event loop; struct sw_live
 * (control/live.h) is what they share. main.c owns the loop.
 */
#ifndef SPILLWAY_DAEMON_H
#define SPILLWAY_DAEMON_H

#include <event2/event.h>

#include "control/live.h"

/* ---- pools.c: workers' load in, states of pools out --------------------------------------- */

/* Takes a worker's load in and decides anew over its pool. */
void sw_worker_take(struct sw_live_worker *w, size_t n, const struct sw_report *reports,
		    uint64_t now_ms);
/* Decides anew over one pool and, when that changed something, tells the kernel. */
void sw_pool_update(struct sw_live_pool *pool);
/* The same, after all its workers were judged anew: a threshold may have changed. */
void sw_pool_judge(struct sw_live_pool *pool);
/* Once a second: ageing, expiry of forces, all decisions. */
void sw_pools_tick(struct sw_live *live);

/* ---- feeds.c: who tells a worker's load ---------------------------------------------------- */

/* Somebody told the load of a worker: n reports, at most SW_MAX_RANKS, or (n < 0, a negative errno)
 * something that is no load, as `err` says. Of several that tell the same the worst counts; one
 * that is silent for stale_after counts no more when the next load comes from another. */
void sw_worker_told(struct sw_live_worker *w, enum sw_feed_kind kind, uint64_t publisher, int n,
		    const struct sw_report *reports, const struct sw_error *err);
/* The scraper's callback; `arg` is the struct sw_live_worker. */
void sw_worker_scraped(void *arg, int n, const struct sw_report *reports,
		       const struct sw_error *err);
/* Once a second: forgets publishers that are gone. */
void sw_feeds_tick(struct sw_live_worker *w, uint64_t now_ms);
void sw_feeds_free(struct sw_live_worker *w);

/* ---- roster.c: which pools and workers there are ------------------------------------------ */

/* Makes the pools of `conf` and starts to read their workers. Workers that live->pools reads
 * already from the same source are taken as they are, with what is known of them. Nothing of the
 * running pools changes before sw_pools_replace(). */
int sw_pools_build(struct sw_live *live, const struct sw_config *conf, struct sw_live_pool **out,
		   struct sw_error *err);
/* Puts pools that were built in the place of the running ones, and lets go what they do not
 * need. State, force and drain of pools of the same name are kept. */
void sw_pools_replace(struct sw_live *live, struct sw_live_pool *pools, size_t n);
/* Reads no worker's load any more, and closes the connections for that. */
void sw_pools_stop_reading(struct sw_live *live);
/* Lets go pools that were built and are not wanted after all. */
void sw_pools_discard(struct sw_live *live, struct sw_live_pool *pools, size_t n);

/* ---- gates.c: states of pools to modes in the kernel -------------------------------------- */

/* Gates for the plane's pools under `conf`; those of pools known in `live` go on where they were.
 * NULL: no memory. */
struct sw_live_gate *sw_gates_make(const struct sw_live *live, const struct sw_live_plane *plane,
				   const struct sw_config *conf);
/* Asks the plane what may be closed, and says so when something may not. */
void sw_gates_permit(struct sw_live *live, struct sw_live_plane *plane);
/* Writes all gates of a plane. */
void sw_gates_write(struct sw_live *live, struct sw_live_plane *plane);
/* Moves one pool's gates in all planes and writes those that changed. */
void sw_gates_apply(struct sw_live_pool *pool);
/* Nothing new is shed in a plane until its gates are written again; conversations go on. */
void sw_gates_pause(struct sw_live *live, struct sw_live_plane *plane);
/* Any pool of a plane may have conversations of a former daemon under way. */
void sw_gates_adopt(struct sw_live_plane *plane, size_t n_pools);
/* Is nothing shed in a plane, nor about to be? */
bool sw_gates_are_calm(const struct sw_live_plane *plane, size_t n_pools);
/* The heartbeat: moves all gates and writes all of them with a new deadline. */
void sw_gates_beat(struct sw_live *live);

/* ---- planes.c: one data plane for each network namespace ---------------------------------- */

/* Opens the planes of the running configuration. A namespace that does not exist is waited for;
 * anything else that fails undoes all. */
int sw_planes_open(struct sw_live *live, struct sw_error *err);
/* Takes off what a former daemon left in namespaces that are not configured any more. */
void sw_planes_remove_others(const struct sw_live *live);
/* Asks all planes what may be closed and writes all gates. */
void sw_planes_settle(struct sw_live *live);
/* Once a second: opens again what changed or was missing. */
void sw_planes_tick(struct sw_live *live);
void sw_planes_rotate_keys(struct sw_live *live);
/* Stops shedding, gives conversations `linger_ms` to end, detaches; what steers and counts goes on
 * where it stays. */
void sw_planes_close(struct sw_live *live, unsigned linger_ms);

/* The planes that `c` asks for, none opened, or NULL. */
struct sw_live_plane *sw_planes_list(const struct sw_config *c, size_t *n);
/* How the plane of a namespace is to be opened. */
struct sw_plane_conf sw_planes_conf(const struct sw_live *live, const struct sw_config *c,
				    const char *netns);
/* Opens one and gives it its tables. */
int sw_planes_open_one(const struct sw_live *live, struct sw_live_plane *plane,
		       const struct sw_config *c, struct sw_error *err);
/* The same, but a namespace that does not exist is no failure: it is waited for. */
int sw_planes_try(const struct sw_live *live, struct sw_live_plane *plane,
		  const struct sw_config *c, struct sw_error *err);
/* Are new connections in a namespace steered or counted? */
bool sw_planes_look_up(const struct sw_config *c, const char *netns);
/* "on this host" or "in network namespace X". */
const char *sw_plane_where(const char *netns, char *out, size_t size);

/* ---- servers.c: what is behind guarded ports ----------------------------------------------- */

/* Says which listeners have no server behind them, when that changed. */
void sw_planes_look_for_servers(struct sw_live *live);

/* ---- steering.c: where new connections go, and how many (steering.h has its parts) --------- */

struct sw_steering_change;

/* Nothing is steered or counted yet; timers are set up. */
int sw_steering_new(struct sw_live *live, struct event_base *base, struct sw_error *err);
/* Does all for `c`, whose pools were built, that can fail. Until the change is committed or undone
 * new connections to listeners go only to workers that both configurations have in a pool of the
 * same number. */
int sw_steering_prepare(struct sw_live *live, const struct sw_config *c,
			const struct sw_live_pool *pools, struct sw_steering_change **out,
			struct sw_error *err);
void sw_steering_undo(struct sw_live *live, struct sw_steering_change *ch);
/* To be called when live->conf and live->pools are what was prepared for. */
void sw_steering_commit(struct sw_live *live, struct sw_steering_change *ch);
/* Tells the kernel what changed about one pool: a busy worker, a drain, a force, a report. */
void sw_steering_apply(struct sw_live_pool *pool);
/* The same about one worker whose report changed nothing but what it has in flight. */
void sw_steering_report(struct sw_live_worker *w);
/* Gives an open plane its responders and finds workers there. */
void sw_steering_plane(struct sw_live *live, struct sw_live_plane *plane);
/* Pools' answers are other ones now. */
void sw_steering_answers(struct sw_live *live);
/* The heartbeat, and once a second what may have come or gone. */
void sw_steering_beat(struct sw_live *live);
void sw_steering_second(struct sw_live *live);
/* Is steering to go on when the daemon ends? */
bool sw_steering_stays(const struct sw_live *live);
/* Leaves programs and counts in place where they stay. */
void sw_steering_free(struct sw_live *live);

/* ---- numbers.c: what the kernel calls pools ------------------------------------------------ */

/* Puts the pools of `next` in such an order that those of `now` keep their places, as far as there
 * are as many. */
int sw_keep_numbers(const struct sw_config *now, struct sw_config *next, struct sw_error *err);

/* ---- switch.c: from one configuration to another ------------------------------------------ */

/* Applies `next`, which the daemon then owns. On failure all is as it was, and `next` is the
 * caller's. */
int sw_switch(struct sw_live *live, struct sw_config *next, struct sw_error *err);

/* ---- say.c: one line for each change, with the measured value and the limit --------------- */

void sw_say_pool(const struct sw_live_pool *pool, enum sw_pool_state was, uint64_t for_ms,
		 uint64_t now_ms);
/* Who made a pool with workers what it is: the last one that became busy, or the first one that is
 * free. */
const struct sw_live_worker *sw_pool_decisive(const struct sw_live_pool *pool);
void sw_say_worker_busy(const struct sw_live_worker *w, uint64_t now_ms);
void sw_say_worker_stale(const struct sw_live_worker *w, uint64_t now_ms);
void sw_say_inert(const struct sw_live_worker *w, const struct sw_check *c, bool inert);

/* ---- words.c: what a saturated pool says -------------------------------------------------- */

/* Where there are two wordings, has the kernel and the responders answer in the one that fits what
 * made the pool saturated. */
void sw_words_choose(struct sw_live_pool *pool);

/* ---- shed.c: requests that were shed, one by one ------------------------------------------ */

int sw_shed_new(struct sw_live *live, struct sw_error *err);
/* The heartbeat: reads what has come. */
void sw_shed_beat(struct sw_live *live);
/* Once a second, and when planes have been opened: finds the rings of all that are open, and says
 * when shedding begins, goes on and ends. */
void sw_shed_second(struct sw_live *live);
/* The configuration changed: what was counted for a pool may have been of other listeners. */
void sw_shed_renew(struct sw_live *live);
/* Our responder has answered a request on this connection. */
void sw_shed_answered(struct sw_live_pool *pool, int connection, enum sw_method method,
		      enum sw_api_endpoint endpoint, enum sw_cause cause);
/* The last word about what is still being shed. */
void sw_shed_free(struct sw_live *live);

/* ---- tell.c: the same to whoever follows events ------------------------------------------- */

void sw_tell_pool(const struct sw_live_pool *pool, enum sw_pool_state was, uint64_t for_ms,
		  const char *cause);
/* `change`: "busy", "free", "stale", "fresh", "inert", "active", "suspect", "answers". `c`: the
 * check that tells most about it, or NULL. */
void sw_tell_worker(const struct sw_live_worker *w, const char *change, const struct sw_check *c);
/* Which workers have "left" and "joined" from one configuration to the next, by their names. */
void sw_tell_roster(const struct sw_live *live, const struct sw_config *was,
		    const struct sw_config *is);

#endif
