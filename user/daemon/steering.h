/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of steering and counting in the daemon share; the others see daemon.h. Each part
 * owns the members under its name.
 */
#ifndef SPILLWAY_STEERING_H
#define SPILLWAY_STEERING_H

#include <event2/event.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/daemon.h"
#include "daemon/ids.h"
#include "daemon/overflow.h"
#include "daemon/probes.h"

struct sw_cgroup_use { /* a cgroup as it was last found */
	char path[PATH_MAX];
	ino_t ino; /* one of the same name that was made anew is another one */
	bool connect, accept, upstreams;
};

struct sw_cgroup_uses {
	struct sw_cgroup_use *list;
	size_t n;
};

struct sw_virtuals {
	struct sw_virtual *list;
	size_t n;
};

struct sw_slots_plan { /* rows for pools that were built */
	int *ids;      /* of all pools, one after the other: of the workers, then of the pool */
	size_t n;
	struct sw_live_leaving *leaving;
	size_t n_leaving;
};

struct sw_steering {
	struct sw_live *live;
	struct event_base *base;
	bool found;   /* a former daemon had left something */
	bool settled; /* the running configuration is what the kernel was told */

	struct sw_worker_row rows[SW_MAX_WORKERS]; /* slots.c: as they stand in the kernel */
	struct sw_cgroup_uses cgroups;		   /* cgroups.c: what is attached */
	struct sw_error cgroups_error;		   /* why that is not as it should be, or empty */
	struct sw_overflows overflows;
	struct sw_virtuals virtuals; /* virtuals.c: as they stand in the kernel */

	struct event *tick, *again, *ended; /* watch.c */
	struct sw_probes *probes;
	unsigned ticks;
	uint64_t recount_at_ms;
	int sweep_failing, recount_failing;
	bool cannot_close;		   /* this kernel closes no idle connections */
	uint64_t close_from_ns;		   /* before that it is not looked for any */
	const struct sw_steer *listens_to; /* whose ends of responses `ended` is */
};

/* A change of configuration under way. */
struct sw_steering_change {
	const struct sw_config *conf;
	bool opened; /* there was no steering before */
	struct sw_slots_plan slots;
	struct sw_overflows overflows;
	struct sw_cgroup_uses cgroups;
	struct sw_virtuals virtuals;
};

/* ---- wants.c: what a configuration asks for ------------------------------------------------ */

/* What this host may hold of a worker at once. */
uint32_t sw_pool_worker_cap(const struct sw_pool_conf *p, size_t worker);
/* What new connections to a pool may hold at once; UINT64_MAX: no limit. */
uint64_t sw_pool_cap(const struct sw_pool_conf *p);
/* Is a guarded pool counted as a whole? */
bool sw_pool_has_row(const struct sw_pool_conf *p);
/* Is it neither steered nor counted? */
bool sw_pool_is_plain(const struct sw_live_pool *p);

/* ---- slots_plan.c: which row stands for whom ----------------------------------------------- */

/* Finds rows for all of `pools`; -ENOSPC. Nothing is written. */
int sw_slots_plan(const struct sw_steering *s, const struct sw_live_pool *pools, size_t n_pools,
		  struct sw_slots_plan *out, struct sw_error *err);
void sw_slots_plan_free(struct sw_slots_plan *plan);
/* Who has left and has the row still; NULL: nobody. */
const struct sw_live_leaving *sw_slots_leaving(const struct sw_live *live, int id);

/* ---- slots.c: rows ------------------------------------------------------------------------ */

/* Reads the rows that a former daemon left. */
void sw_slots_read(struct sw_steering *s);
/* Gives the running pools, for which it was made, what was planned. */
void sw_slots_commit(struct sw_steering *s, struct sw_slots_plan *plan);
/* Writes caps and addresses of all rows, where they changed. */
void sw_slots_write(struct sw_steering *s);
/* Refills the credits of a pool that is counted by reports. */
void sw_slots_credit(struct sw_steering *s, struct sw_live_pool *pool, uint64_t now_ms);
/* The same after a report of one worker, without a look at all the others. */
void sw_slots_credit_worker(struct sw_steering *s, struct sw_live_worker *w, uint64_t now_ms);
/* Lets go the rows of those that have left, and says when a drained worker is empty. */
void sw_slots_beat(struct sw_steering *s, uint64_t now_ms);

/* ---- steer.c: who may be given new connections --------------------------------------------- */

/* Takes from pools the members that they are not to have under the plan, before their numbers mean
 * others; `listeners_only`: from pools of listeners, as virtual addresses are thinned out instead.
 */
void sw_steer_narrow(struct sw_steering *s, const struct sw_live_pool *pools, size_t n_pools,
		     const struct sw_slots_plan *plan, bool listeners_only);
/* Writes sets of workers, then what each pool is told, with a new deadline. */
void sw_steer_write(struct sw_steering *s);
/* Nobody has the numbers above those of the running pools. */
void sw_steer_clear(struct sw_steering *s);
/* The last word of a daemon that goes: nobody is busy or drained, nobody answers. */
void sw_steer_farewell(struct sw_steering *s);

/* ---- virtuals.c: addresses that routers connect to ----------------------------------------- */

int sw_virtuals_list(const struct sw_config *c, struct sw_virtuals *out, struct sw_error *err);
/* Takes off those that would lead to a pool with another name while numbers change hands. */
int sw_virtuals_thin(struct sw_steering *s, const struct sw_config *next,
		     const struct sw_virtuals *then, struct sw_error *err);
int sw_virtuals_write(struct sw_steering *s, struct sw_virtuals *v, struct sw_error *err);

/* ---- cgroups.c: where programs are attached ------------------------------------------------ */

/* What the pools of `c` ask for and what there is of it; says what is missing if `aloud`. */
int sw_cgroups_list(const struct sw_config *c, struct sw_cgroup_uses *out, bool aloud,
		    struct sw_error *err);
int sw_cgroups_attach(struct sw_live *live, const struct sw_cgroup_uses *uses,
		      struct sw_error *err);
/* Attaches to those and to what is attached already. */
int sw_cgroups_widen(struct sw_steering *s, const struct sw_cgroup_uses *uses,
		     struct sw_error *err);
/* They are attached. */
void sw_cgroups_take(struct sw_steering *s, struct sw_cgroup_uses *uses);
/* Once a second: a unit that was restarted has a new cgroup. */
void sw_cgroups_tick(struct sw_steering *s);

/* ---- watch.c: timers ----------------------------------------------------------------------- */

int sw_watch_start(struct sw_steering *s, struct sw_error *err);
void sw_watch_stop(struct sw_steering *s);
/* Once a second: looks for listening workers. */
void sw_watch_second(struct sw_steering *s);

#endif
