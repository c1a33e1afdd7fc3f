/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The world of a steering test: a network namespace and a cgroup of its own with the programs on
 * it, workers that say who they are, and a pool of them behind virtual addresses that do not exist.
 * Its writer of maps is its own too, an independent reading of abi.h.
 */
#ifndef SPILLWAY_TEST_STEERING_H
#define SPILLWAY_TEST_STEERING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <cmocka.h>

#include <spillway/abi.h>

enum { POOL = 5 };
enum { LONG = 600000 }; /* ms of a deadline that no test lives to see, in guests neither */
/* Worker ids, in two words of the sets. Nobody listens at ID_DEAD, and nobody who asks ID_DEAF gets
 * a SYN-ACK; they and ID_FAR, which no route leads to, are not members unless a test wants it. */
enum { ID_A = 70, ID_B = 130, ID_DEAD = 71, ID_DEAF = 72, ID_FAR = 73 };
enum { VIRTUAL = 80, RESPONDER = 9090, PORT_A = 9001, PORT_B, PORT_DEAD, PORT_DEAF };

/* How a client may ask for the virtual address: its own family and the address's. */
enum way { V4, V6, MAPPED, WAYS };

struct spillway;

enum { ATTACHED = 6 }; /* programs on a cgroup */

struct steering {
	struct spillway *skel;
	char cgroup[200], inner[220]; /* one in the other; the test runs in the outer one */
	int links[ATTACHED];	      /* on the outer one */
	int server;		      /* pid */
	int deaf, filler[8];	      /* the listener that does not answer, and what fills it */
	bool ipv6, walk;	      /* of the storage of all sockets */
	struct sw_slot before[SW_MAX_WORKERS];
	struct sw_steer_counts counts;
};

extern struct steering *const world;

#define steering_test(f)    cmocka_unit_test_setup_teardown(f, steering_reset, steering_settle)
#define steering_run(tests) cmocka_run_group_tests(tests, steering_up, steering_down)
int steering_up(void **state);
int steering_down(void **state);
int steering_reset(void **state);  /* caps 4, not busy; notes the counters */
int steering_settle(void **state); /* every slot must be free again */

/* ---- what the daemon writes --------------------------------------------------------------- */

void set_worker(unsigned id, enum way way, uint16_t port, uint32_t cap);
void set_member(unsigned id, bool on);
void set_only_member(unsigned id); /* among those from ID_A to ID_B */
void set_busy(unsigned id, bool on);
void set_steer(uint32_t flags, uint32_t error, uint16_t responder, int64_t deadline_ms);

/* ---- what the kernel wrote ------------------------------------------------------------------ */

struct sw_slot slot_of(unsigned id);
uint64_t taken(unsigned id); /* takes and gives since the test began */
uint64_t given(unsigned id);
bool suspected(unsigned id);
/* What was counted since the test began. */
struct sw_steer_counts counted(void);
/* Waits until the worker has so many in use; fails when that does not come. */
void await_inuse(unsigned id, uint32_t want);

/* ---- sockets -------------------------------------------------------------------------------- */

struct sockaddr_storage virtual_address(enum way way, uint16_t port);
struct sockaddr_storage local_address(enum way way, uint16_t port); /* on the loopback interface */
socklen_t address_size(const struct sockaddr_storage *a);
int socket_for(enum way way, int type);
/* connect(): 0 or a negative errno. */
int connect_to(int fd, struct sockaddr_storage to);
/* A connection to the virtual address; fails the test when there is none. */
int connected(enum way way);
/* Who answers: 'A', 'B', 'R' for the responder; 0: nobody. */
char who(int fd);

/* ---- programs ---------------------------------------------------------------------------------
 */

/* Loads them once more, over the maps of `of`. */
struct spillway *steering_load(const struct spillway *of);
/* Puts these in the place of what is attached to the outer cgroup. */
void steering_swap(struct spillway *skel);
void steering_unload(struct spillway *skel);

/* ---- cgroups -------------------------------------------------------------------------------- */

void enter(const char *cgroup); /* moves this process */
void attach(const char *cgroup, int links[ATTACHED]);
void detach(int links[ATTACHED]);

#endif
