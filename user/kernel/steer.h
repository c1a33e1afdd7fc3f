/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots and steering in the kernel: one for the whole host. Owns the maps of bpf/slot_maps.h, which
 * planes share, and the programs on cgroups. Knows nothing of load, policy or configuration.
 *
 * All of it is pinned under PIN_ROOT/vLAYOUT/slots and outlives the daemon: connections go on being
 * steered and counted, with the caps last written. The next daemon takes over in place.
 */
#ifndef SPILLWAY_STEER_H
#define SPILLWAY_STEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include <spillway/abi.h>

#define SW_SLOT_MAPS(X)                                                                            \
	X(workers)                                                                                 \
	X(slots)                                                                                   \
	X(members)                                                                                 \
	X(nonbusy)                                                                                 \
	X(reach4)                                                                                  \
	X(suspect)                                                                                 \
	X(notfull)                                                                                 \
	X(steers)                                                                                  \
	X(pool_use)                                                                                \
	X(virtuals)                                                                                \
	X(reservations)                                                                            \
	X(pending)                                                                                 \
	X(picks)                                                                                   \
	X(sockets)                                                                                 \
	X(upstreams)                                                                               \
	X(ended)                                                                                   \
	X(listens)                                                                                 \
	X(listening)                                                                               \
	X(counts_steer)

struct sw_slot_maps { /* file descriptors */
#define X(name) int name;
	SW_SLOT_MAPS(X)
#undef X
};

struct sw_steer;

/* Opens the maps, those of an earlier daemon where there are any. Attaches nothing. -EEXIST: pins
 * of another layout hold connections; the error says how to go on. */
int sw_steer_open(struct sw_steer **out, const char *pin_root, struct sw_error *err);
/* Frees, and leaves all that is pinned as it is. NULL is fine. */
void sw_steer_leave(struct sw_steer *s);
/* Takes off all programs and removes the pins. NULL is fine. */
void sw_steer_remove(struct sw_steer *s);

const struct sw_slot_maps *sw_steer_maps(const struct sw_steer *s);

struct sw_steer_cgroup {
	const char *path; /* of a cgroup v2 directory */
	bool connect;	  /* its processes are routers: steer what they connect to */
	bool accept;	  /* it holds servers: count what they accept */
	bool upstreams; /* with `connect`: follow HTTP on steered connections, to know idle ones */
};
/* Attaches to exactly these cgroups: in place where programs are attached already, anew where not,
 * off where they no longer belong. On failure what was attached before stays. */
int sw_steer_attach(struct sw_steer *s, const struct sw_steer_cgroup *list, size_t n,
		    struct sw_error *err);

struct sw_virtual {
	struct sw_address at; /* IPv4-mapped where IPv4, port in host order */
	uint32_t pool;
};
/* Makes `virtuals` hold exactly these. */
int sw_steer_virtuals(struct sw_steer *s, const struct sw_virtual *list, size_t n,
		      struct sw_error *err);

/* Each writes one value, only when it differs from what was written last. Negative errno. */
int sw_steer_set_pool(struct sw_steer *s, unsigned pool, const struct sw_steer_pool *v);
int sw_steer_set_worker(struct sw_steer *s, unsigned id, const struct sw_worker_row *v);
int sw_steer_get_worker(const struct sw_steer *s, unsigned id, struct sw_worker_row *out);
/* Word by word: a reader sees each bit old or new. */
void sw_steer_set_members(struct sw_steer *s, unsigned pool, const struct sw_bits *v);
void sw_steer_set_nonbusy(struct sw_steer *s, const struct sw_bits *v);
void sw_steer_set_reach4(struct sw_steer *s, const struct sw_bits *v);

bool sw_steer_suspect(const struct sw_steer *s, unsigned id);
void sw_steer_clear_suspect(struct sw_steer *s, unsigned id);

/* A row as it stands. */
void sw_steer_slot(const struct sw_steer *s, unsigned id, struct sw_slot *out);
/* Makes the row of an id that no pool has had for a second, and with nothing in use, new: all
 * zero, not suspect, not full. -EBUSY: something is in use. */
int sw_steer_renew(struct sw_steer *s, unsigned id);
/* Sums a pool's counters over CPUs. */
int sw_steer_counts(const struct sw_steer *s, unsigned pool, struct sw_steer_counts *out);
/* What a pool's connections hold that are not established yet; SW_MAX_POOLS: of all pools. */
int sw_steer_use(const struct sw_steer *s, unsigned pool, struct sw_pool_use *out);

struct sw_recount {
	unsigned rows;	    /* that were wrong */
	uint64_t corrected; /* slots, added up without sign */
	uint64_t took_ns;
};
/* Holds `inuse` of all rows against the sockets and reservations that there are, and puts right
 * what two recounts in a row found wrong. Cheap enough for every few seconds. -EOPNOTSUPP: this
 * kernel refuses iterators, now and ever. */
int sw_steer_recount(struct sw_steer *s, struct sw_recount *out);

/* Closes the connections to these workers that have no request under way and nothing in flight for
 * at least `idle_ms`, of cgroups attached with `upstreams`. Returns how many. -EOPNOTSUPP: this
 * kernel cannot (6.5). */
int sw_steer_close_idle(struct sw_steer *s, const struct sw_bits *workers, unsigned idle_ms);
/* A descriptor that becomes readable when a response has ended on a connection to a worker that is
 * busy, draining or removed, which makes it idle as soon as the router has read it. */
int sw_steer_ended_fd(struct sw_steer *s);
/* Makes it unreadable until that happens again. */
void sw_steer_ended_clear(struct sw_steer *s);

/* ---- cgroups ---------------------------------------------------------------------------- */

/* The directory of a cgroup v2 by "/path", "pid:N" or "unit:NAME" (systemd); NULL: the root of the
 * hierarchy. -ENOENT; -EOPNOTSUPP: only cgroup v1 is mounted. */
int sw_cgroup_resolve(const char *text, char *path, size_t size, struct sw_error *err);

#endif
