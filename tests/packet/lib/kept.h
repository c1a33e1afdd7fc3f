/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The world of a test of established connections: a server's and a client's network namespace with
 * a veth pair between them, the two programs on the server's end, and a wire that loses what it is
 * told to. Maps are filled by a writer of its own, an independent reading of abi.h.
 */
#ifndef SPILLWAY_TEST_KEPT_H
#define SPILLWAY_TEST_KEPT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <spillway/abi.h>
#include "loss_rule.h"

enum side { CLIENT, SERVER, SIDES };
enum { KEPT_PORT = 8000, KEPT_ID = 5, KEPT_POOL = 3, KEPT_SET = 1, KEPT_FLOWS = 256 };
enum { KEPT_ANSWER = 228 }; /* bytes of each answer */

struct kept {
	struct spillway *skel;
	struct loss *loss;
	int netns[SIDES];
	bool ipv6;
};

extern struct kept kept;

/* A group of tests with the programs loaded once. */
int kept_up(void **state);
int kept_down(void **state);
/* Before and after each test: defaults (an open pool, all paths, nothing lost), counters noted; no
 * socket and no flow left. */
int kept_reset(void **state);
int kept_settle(void **state);
#define kept_test(f) cmocka_unit_test_setup_teardown(f, kept_reset, kept_settle)

void kept_defaults(void);

/* Runs the rest of the calling thread's life, sockets it makes above all, in one of the two. */
void kept_enter(enum side side);
/* A shell command in one of the two; the test fails when it does. */
void kept_run(enum side side, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void kept_sysctl(enum side side, const char *name, const char *value);

struct bpf_map;
void kept_put(struct bpf_map *map, const void *key, const void *value);

/* ---- levers */
void pool_open(void);  /* and nobody is followed */
void pool_armed(void); /* open, but connections are followed */
void pool_sheds(enum sw_cause cause);
void pool_finishes(void);
void pool_overdue(void); /* sheds, but the heartbeat is */
void listener_flags(uint32_t flags);
void path_is(enum sw_method method, const char *path, enum sw_path_action action,
	     enum sw_family family);
void exempt_client(int family, bool on);

/* ---- what is seen */
/* How often, since the test began. */
uint64_t counted_kept(enum sw_reason reason);
uint32_t flows_used(void);
uint32_t flows_held(void); /* entries, counted one by one */
void fill_flows(void);	   /* with connections that there are not; they are not in flows_used() */
/* Text of an answer that keeps the connection, KEPT_ANSWER bytes; no two are alike. */
const char *kept_answer(enum sw_cause cause, enum sw_family family);
/* Rewrites all of them, as a reload does. */
void rewrite_answers(const char *word);
void cut_answers(void); /* to another length */

/* ---- a wire that loses: after `skip` segments with so much payload at least, `count` of them */
void lose(enum loss_way way, uint32_t payload, uint32_t skip, uint32_t count);
void was_lost(enum loss_way way, uint32_t n); /* since then */
/* From now on so many of all segments, by chance. How many were lost until then? */
uint32_t lose_some(enum loss_way way, uint32_t permille);

#endif
