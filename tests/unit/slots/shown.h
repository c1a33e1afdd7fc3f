/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A made-up daemon that steers and counts, served by a child, and the `spillway` command that asks
 * it. The kernel's rows are shared with that child, so that a test can have connections come and
 * go. Takes the kernel's place: test_slots_shown* are linked with it and no other test is. */
#ifndef SPILLWAY_TEST_SLOTS_SHOWN_H
#define SPILLWAY_TEST_SLOTS_SHOWN_H

#include "../lib/asking.h"
#include "control/status.h"

/* How long some have been what they are, shown in minutes: a slow machine changes nothing. */
#define BUSY_MS	   ((2 * 3600 + 5 * 60 + 30) * 1000ull)
#define DRAIN_MS   ((3 * 3600 + 10 * 60 + 30) * 1000ull)
#define SUSPECT_MS ((4 * 3600 + 30) * 1000ull)

/* The pool "chat" has A, B, who is suspect, and C, who drains; "local" has D; "guard" and "reports"
 * are counted in rows of their own; "plain" is neither. OLD has left. */
enum { A, B, C, D, GUARD, REPORTS, OLD, ROWS };

enum { POOLS = 5 };

extern struct sw_slot *rows;
extern struct sw_live live;
extern struct sw_live_pool pools[POOLS];

/* For cmocka_run_group_tests(); and rows as they are at the beginning of a test. */
int shown_up(void **state);
int shown_down(void **state);
int shown_fill(void **state);
#define SHOWN_TEST(f) cmocka_unit_test_setup(f, shown_fill)

void make_live(void);

extern char output[16384];

/* `spillway ARGUMENTS`, in the background. */
pid_t run(const char *arguments);
/* Its exit code; what it printed is in `output`. */
int finished(pid_t pid);
/* Waits until it has printed that, and for a while longer, in which it must not end. */
void goes_on(pid_t pid, const char *part);
/* A part of the output; the same of a command that ends with this exit code. */
void prints(const char *part);
void says(const char *arguments, int code, const char *part);

/* A pool in a status. */
const json_t *pool_of(const json_t *status, size_t i);
/* Each key's value as JSON text. */
void has(const json_t *object, const char *const (*pairs)[2], size_t n);
#define HAS(object, ...)                                                                           \
	has(object, (const char *const[][2]){__VA_ARGS__},                                         \
	    sizeof((const char *const[][2]){__VA_ARGS__}) / sizeof(char *[2]))

#endif
