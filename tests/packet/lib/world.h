/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The world of a packet test: a network namespace of its own with real listening sockets, the
 * loaded programs, and maps filled by a small writer of its own, an independent reading of abi.h.
 */
#ifndef SPILLWAY_TEST_WORLD_H
#define SPILLWAY_TEST_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <spillway/abi.h>

enum hook { HOOK_XDP, HOOK_XDP_REDIRECT, HOOK_XDP_GENERIC, HOOK_TC, HOOKS };

enum { /* listener ids */
       ID_NONE,
       ID_MAIN,	   /* any address */
       ID_SINGLE4, /* one address each, on the same port */
       ID_SINGLE6,
       ID_DEAF, /* guarded, but no socket listens */
       IDS
};

enum { PORT_MAIN = 8000, PORT_SINGLE = 8001, PORT_DEAF = 8002, PORT_PLAIN = 9000 };
enum { POOL_MAIN = 3 };			   /* not 0, so that an index is seen to be used */
enum { SET_PATHS = 7, SET_TGI = 8 };	   /* path sets */
enum { SET_EXEMPT = 5 };		   /* CIDR set */
enum { SET_ANSWERS = 1, ANSWER_SETS };	   /* answer sets */
enum { LENGTH = 230, OTHER_LENGTH = 316 }; /* bytes of the answers of set 1 and set 0 */

enum map {
	MAP_PORTS,
	MAP_ADDRESSES,
	MAP_LISTENERS,
	MAP_LOCAL,
	MAP_POOLS,
	MAP_ANSWERS,
	MAP_PATHS,
	MAP_PREFIXES,
	MAP_EXEMPT,
	MAP_SECRETS,
	MAP_LEVERS,
	MAP_RECENT,
	MAP_FLOOD,
	MAP_COUNTS_XDP,
	MAP_COUNTS_TC,
	MAPS
};

struct spillway;

struct world {
	struct spillway *skel;
	bool hand_over; /* the kernel can take a connection over */
	bool ipv6;
	const char *finder; /* counted: the program that looks for listening sockets, or NULL */
	int program[HOOKS];
	int map[MAPS];
	int n_cpus;
	int listener[7];		 /* by family: the socket on PORT_MAIN */
	struct sw_counts counts[2][IDS]; /* as last read: XDP, TC */
	uint16_t next_port;		 /* each conversation comes from a fresh client port */
	bool noisy;			 /* counters also move by themselves, between runs */
	char what[160];			 /* what is being tried, for messages */
	int failures;
	bool mute; /* failures are counted but not told */
};

/* The addresses of packets: `last` is the client's last byte. */
void world_addresses(int family, uint8_t last, uint8_t src[16], uint8_t dst[16]);

/* What user space writes. */
void world_write(struct world *w, enum map map, const void *key, const void *value);
void world_listener(struct world *w, unsigned id, const struct sw_listener *l);
struct sw_listener world_default_listener(unsigned id);
void world_pool(struct world *w, enum sw_mode mode, enum sw_cause cause, int64_t deadline_ms);
void world_secrets(struct world *w, uint64_t key, uint64_t previous, int64_t previous_ms);
void world_path(struct world *w, const struct sw_path *key, enum sw_path_action action,
		enum sw_family family);
void world_exempt(struct world *w, int family, const char *cidr, bool on);
void world_local(struct world *w, int family, const uint8_t *addr, bool on);
void world_forget(struct world *w); /* empties `recent` and `flood` */
uint64_t world_now(void);	    /* CLOCK_MONOTONIC, ns */

/* The text of a canned answer, LENGTH or OTHER_LENGTH bytes; never the same twice. */
size_t world_answer(unsigned set, unsigned cause, unsigned family, unsigned variant, char *out);

const char *world_reason(enum sw_reason reason);

/* Which counter has moved since the last call: its hook map (0 XDP, 1 TC), listener and reason.
 * False unless exactly one moved, and by one. */
bool world_moved(struct world *w, unsigned *which, unsigned *listener, enum sw_reason *reason);

/* The counters of a listener as they stand, over all CPUs; map is MAP_COUNTS_XDP or _TC. */
void world_counts(struct world *w, enum map map, uint32_t id, struct sw_counts *sum);

/* Notes a failure with what was being tried; the test goes on and fails at its end. */
void world_complain(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Runs a file's tests: one world for all of them, put back to its defaults before each. */
#define packet_test(f)	 cmocka_unit_test_setup_teardown(f, world_reset, world_settle)
#define world_run(tests) cmocka_run_group_tests(tests, world_up, world_down)
int world_up(void **state);
/* The same, also with the programs that count connections, see counting.h. */
int world_up_counted(void **state);
int world_down(void **state);
int world_reset(void **state);
int world_settle(void **state);

#endif
