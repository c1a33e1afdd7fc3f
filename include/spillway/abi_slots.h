/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys and values of the maps of slots and steering: one set for the whole host, shared by all
 * planes. Included by abi.h, whose rules hold here too.
 */
#ifndef SPILLWAY_ABI_SLOTS_H
#define SPILLWAY_ABI_SLOTS_H

#include <linux/types.h>

#define SW_ASSERT(x) _Static_assert(x, #x)

/* A slot is a connection that a worker holds. Worker ids are 0..1023, given by the daemon and not
 * given anew while connections are counted under them. A guarded pool whose server is not steered
 * has one row for all of it, under an id of the same kind.
 *
 * True of every SW_LAYOUT, so that the next one can tell whether a former one still holds
 * connections: the maps `slots` and `workers` are arrays by worker id, `slots` begins with `inuse`,
 * and `workers` with what stands before `tag` here. */
#define SW_MAX_WORKERS	    1024
#define SW_WORDS	    (SW_MAX_WORKERS / 64)
#define SW_NO_CAP	    0x7fffffffU
#define SW_MAX_VIRTUALS	    1024
#define SW_MAX_RESERVATIONS 16384

struct sw_bits { /* a set of worker ids: bit id % 64 of word id / 64 */
	__u64 word[SW_WORDS];
};

#define SW_WF_ROW (1U << 0) /* not a worker: the row of a guarded pool */
#define SW_WF_CREDIT                                                                               \
	(1U << 1) /* what is taken is not given back at the end of a connection; `cap`             \
		   * moves instead, and is compared as a sequence number is */

/* workers[id]: written by the daemon only. */
struct sw_worker_row {
	__u8 addr[16]; /* where the worker listens; all zero for a row */
	__u16 port;
	__u16 pool;   /* for the reader of a dump */
	__u32 cap;    /* N + Q, or SW_NO_CAP; a slot is free while (__s32)(cap - inuse) > 0 */
	__u32 engine; /* N, 0: no limit; the first N in flight count as the engine's */
	__u32 flags;  /* SW_WF_* */
	__u64 tag;    /* of a row: hash of the pool's name, by which the next daemon knows it; of a
		       * worker of this host: cookie of the namespace it listens in, 0: any */
};

/* listens[{addr, port}]: value __u32 worker id, for workers of this host whose listening sockets go
 * to `listening`. Written by the daemon, two keys a worker: its own address, and the any-address of
 * its family (::ffff:0.0.0.0 or ::), as a server may listen on either. Key: struct sw_address. */

/* slots[id]: written by the kernel only. */
struct sw_slot {
	__u32 inuse;
	__u32 most;	 /* the highest `inuse` there was */
	__u64 takes;	 /* slots taken */
	__u64 gives;	 /* slots given back */
	__u64 moves;	 /* reservations that became connections */
	__u64 refusals;	 /* times it was full, or gone, when it was to be taken */
	__u64 failures;	 /* connections to it that could not be made: it became suspect */
	__u64 corrected; /* added up, what recounts have put right */
	__u64 pad;
};

/* members[pool]: workers that may be given new connections: neither draining nor removed.
 * nonbusy[0], reach4[0]: not busy; with an IPv4 address. Written by the daemon.
 * notfull[0]: a hint, written by the kernel. suspect[0]: set by the kernel when a connection could
 * not be made, cleared by the daemon when the worker answers again. All four can be mapped. */

#define SW_SF_COUNT  (1U << 0) /* new connections to its listeners take a slot */
#define SW_SF_ASSIGN (1U << 1) /* and go to the listening socket of the worker that was picked */
#define SW_SF_REFUSE (1U << 2) /* connect: nothing free makes connect() fail with `error` */
#define SW_SF_CLOSED (1U << 3) /* drained, or saturated by force: nothing is free */
#define SW_SF_CREDIT                                                                               \
	(1U << 4) /* its rows are credits: each request takes one, not only the first              \
		   * of a connection */

/* steers[pool]: written by the daemon. */
struct sw_steer_pool {
	__u64 deadline_ns;  /* CLOCK_MONOTONIC; past it busy workers count as not busy, and nobody
			     * answers at `responder` */
	__u32 flags;	    /* SW_SF_* */
	__u32 error;	    /* a positive errno, below 4096 */
	__u32 half_open;    /* most reservations of connections not established yet */
	__u16 responder;    /* port on 127.0.0.1 and ::1 that gives the answers; 0: none */
	__u16 first, words; /* words of members[pool] in use: `first` and as many as `words` */
	__u16 pad[3];
};

/* pool_use[pool]: written by the kernel. pool_use[SW_MAX_POOLS]: all pools together. */
struct sw_pool_use {
	__u64 refused_ns; /* CLOCK_MONOTONIC of the last SYN that we answered for want of a slot */
	__u32 half_open;  /* slots pending and reserved */
	__u32 reread;	  /* the tick in which full rows were last looked at again */
};

/* virtuals[{addr, port}]: value __u32 pool. Key: struct sw_address. */

struct sw_tuple {    /* a connection, seen from this host */
	__u64 netns; /* the namespace's cookie */
	__u8 peer[16], local[16];
	__u16 peer_port, local_port; /* host order */
	__u32 pad;
};

/* reservations[tuple]: a slot taken for a connection that is not established yet. */
struct sw_reservation {
	__u64 since_ns; /* 0: gone; who moves it there has what was reserved */
	__u32 slot;	/* worker id + 1; 0: let in without a slot */
	__u32 pool;
	__u32 missing; /* sweeps in a row that found no socket for it */
	__u32 pad;
};

/* pending[0], per CPU: what a lookup has just taken, until the stack says what becomes of it. */
struct sw_pending {
	struct sw_tuple tuple;
	__u64 since_ns; /* 0: nothing; who moves it there has what was taken */
	__u32 slot;	/* worker id + 1 */
	__u32 pool;
	__u32 asking; /* enum sw_asking: why this CPU looks a socket up right now */
	__u32 place;  /* in `picks` */
};

enum sw_asking {
	SW_ASKING_STACK = 0, /* the stack's own lookup of a new connection: take */
	SW_ASKING_ANY,	     /* is there a listener? any will do, take nothing */
	SW_ASKING_HAND_OVER, /* take, or give nothing */
	SW_ASKING_PASS,	     /* for a request that must pass: a worker's listener, take nothing */
	SW_ASKING_NOTHING,   /* a sweep: leave the lookup alone */
};

/* picks[hash]: which worker a connection was given for which there is no reservation: the stack has
 * answered with a SYN cookie, and only the same listening socket takes the ACK of that. Read and
 * written as one 64-bit word. */
#define SW_PICKS 4096 /* places, a power of two */
struct sw_pick {
	__u32 mark; /* of the connection */
	__u16 slot; /* worker id + 1; 0: nothing */
	__u16 when; /* in periods of 2^30 ns */
};

/* Bound to a socket by sk_storage (map `sockets`). */
struct sw_socket {
	__u32 slot; /* worker id + 1; 0: none (any more); goes to 0 by an atomic exchange */
	__u32 pool;
	__u8 addr[16]; /* connect: the virtual address that was asked for */
	__u16 port;    /* and its port, 0: not steered */
	__u8 moving;   /* 1: a slot is being taken or given back, a recount must wait */
	__u8 followed; /* 1: the end of the connection will be heard of */
	__u32 pad;
};

/* seen[id]: __u64, written by a recount: how many hold a slot of this worker. The last element:
 * sockets that were `moving`. */
#define SW_SEEN_MOVING SW_MAX_WORKERS

/* Argument of the program spillway_correct. */
struct sw_correction {
	__u32 slot; /* worker id */
	__s32 delta;
};

/* What became of a new connection that was to be steered or counted. Numbers are never reused.
 * counts_steer[pool], per CPU. */
#define SW_STEERS(X)                                                                               \
	X(0, steered, "given to a worker, or counted")                                             \
	X(1, answered, "nothing free: sent to the responder")                                      \
	X(2, refused, "nothing free: connect() failed, or the SYN was dropped")                    \
	X(3, no_slot, "no worker had a free slot")                                                 \
	X(4, all_busy, "every worker was busy")                                                    \
	X(5, unavailable, "the pool had no worker")                                                \
	X(6, closed, "the pool was drained, or saturated by force")                                \
	X(7, half_open_limit, "too many connections were not established yet")                     \
	X(8, no_storage, "the kernel had no memory to bind a slot to the socket")                  \
	X(9, no_listener, "the worker that was picked does not listen")                            \
	X(10, suspected, "a connection to a worker could not be made")                             \
	X(11, passed, "let in without a slot: a path that must pass")                              \
	X(12, overdue, "the daemon's heartbeat was overdue: busy workers counted as not busy")     \
	X(13, swept, "a reservation whose connection never came to be was given back")

struct sw_steer_counts {
#define X(n, name, text) __u64 name;
	SW_STEERS(X)
#undef X
};

SW_ASSERT(sizeof(struct sw_bits) == 128);
SW_ASSERT(sizeof(struct sw_worker_row) == 40);
SW_ASSERT(sizeof(struct sw_slot) == 64);
SW_ASSERT(sizeof(struct sw_steer_pool) == 32);
SW_ASSERT(sizeof(struct sw_pool_use) == 16);
SW_ASSERT(sizeof(struct sw_tuple) == 48);
SW_ASSERT(sizeof(struct sw_reservation) == 24);
SW_ASSERT(sizeof(struct sw_pending) == 72);
SW_ASSERT(sizeof(struct sw_pick) == 8);
SW_ASSERT(sizeof(struct sw_socket) == 32);
SW_ASSERT(sizeof(struct sw_correction) == 8);

#endif
