/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counted connections in the world of a packet test: sk_lookup on its namespace, sockops on a
 * cgroup of its own, and the pool POOL_MAIN with rows or workers. Maps are filled by a writer of
 * its own.
 */
#ifndef SPILLWAY_TEST_COUNTING_H
#define SPILLWAY_TEST_COUNTING_H

#include "world.h"

enum { ID_ROW = 70 };					/* of a pool that is counted as a whole */
enum { WORKERS = 8, ID_FIRST = 60, PORT_FIRST = 9101 }; /* worker i; two words of the sets */

struct counting {
	struct world *w;
	char cgroup[200];
	int lookup, sockops;	       /* links */
	struct sw_steer_counts counts; /* as they were at the reset */
};

/* For a group of tests in place of world_up and world_down; the state is the world's. */
int counting_up(void **state);
int counting_down(void **state);
/* For one test: nothing is counted, no worker is a member; all must be back to 0 at its end. */
#define counting_test(f) cmocka_unit_test_setup_teardown(f, counting_reset, counting_settle)
int counting_reset(void **state);
int counting_settle(void **state);
extern struct counting *const counting;

/* Takes sockops off for a while. */
void counting_hears_nothing(bool on);

/* ---- what the daemon writes --------------------------------------------------------------- */

/* A row for all of the pool. */
void count_row(uint32_t cap);
/* A worker that may listen on `addr` of a family, on the any-address too: IPv4-mapped for 4. */
void count_worker(unsigned id, int family, uint16_t port, uint32_t cap);
void count_member(unsigned id, bool on);
void count_busy(unsigned id, bool on);
void count_pool(uint32_t flags, uint32_t half_open, int64_t deadline_ms);
/* Lets its row say that it is in another namespace. */
void count_worker_elsewhere(unsigned id);
void count_responder(int family, int socket);

/* ---- what the kernel wrote ------------------------------------------------------------------ */

struct sw_slot count_slot(unsigned id); /* all zero at the reset */
struct sw_slot count_all(void);		/* summed up; `most` is the highest */
struct sw_pool_use count_use(unsigned pool);
void count_set_use(const struct sw_pool_use *use);
struct sw_steer_counts count_steers(void); /* since the reset */
bool count_suspect(unsigned id);
bool count_listens(unsigned id); /* its listening socket is known */
unsigned count_reservations(void);
/* Makes the only reservation look as old as that, and as if of another namespace. */
void count_age_reservation(int64_t seconds, bool elsewhere);
/* Waits until so many slots are in use, and half open. */
void count_await(uint32_t inuse, uint32_t half_open);

/* ---- what the daemon runs -------------------------------------------------------------------- */

int count_sweep(void);
int count_find(void);

/* Writes a sysctl below /proc/sys/net/ipv4; returns what it was. */
int count_sysctl(const char *name, int value);

#endif
