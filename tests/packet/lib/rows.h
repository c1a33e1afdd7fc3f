/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pools and slot rows of a test: the programs of slots.bpf.c with maps of their own, filled here
 * as the daemon would.
 */
#ifndef SPILLWAY_TEST_ROWS_H
#define SPILLWAY_TEST_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "slots_ask.h"
#include <spillway/abi.h>

/* The pool that is asked for, unless a test says otherwise. */
enum { ROWS_POOL = 7 };
/* What a pick gives when it gives no worker, and what it may be asked to do. */
enum { NO_SLOT = -1, ALL_BUSY = -2, NONE = -3, CLOSED = -4, HALF_OPEN = -5 };
enum { ONLY4 = 1, IGNORE_BUSY = 2, NOT_ESTABLISHED = 4 };

struct slots;

struct rows {
	struct slots *skel;
	struct ask *ask;
	struct sw_slot *slot; /* what follows is the kernel's own memory */
	struct sw_bits *members, *nonbusy, *reach4, *suspect, *notfull;
};

/* NULL, with a line that says why: it could not be loaded. */
struct rows *rows_load(void);
void rows_free(struct rows *r);

/* For cmocka: *state is the rows, cleared for each test. */
int rows_up(void **state);
int rows_down(void **state);
int rows_fresh(void **state);
#define rows_test(f) cmocka_unit_test_setup(f, rows_fresh)

/* No pool, no worker, nothing in use. */
void rows_clear(struct rows *r);
void rows_worker(struct rows *r, unsigned id, uint32_t cap, uint32_t flags);
/* Makes a worker one of a pool: not busy, and with an IPv4 address. */
void rows_join(struct rows *r, unsigned pool, unsigned id);
void rows_set_pool(struct rows *r, unsigned pool, uint32_t flags, uint32_t half_open);
/* `n` workers of ROWS_POOL: ids 3, 3 + step, 3 + 2 * step ... */
void rows_pool(struct rows *r, unsigned n, unsigned step, uint32_t cap);
/* As if `inuse` slots had been taken: the hint goes along. */
void rows_fill(struct rows *r, unsigned id, uint32_t inuse, uint32_t cap);

void rows_set(struct sw_bits *b, unsigned id, bool on);
bool rows_get(const struct sw_bits *b, unsigned id);

/* Runs a program `repeat` times: ns each. `last`, if any, gets what it gave the last time. */
unsigned rows_run(int program, unsigned repeat, int *last);
/* One call: what it gave. */
int rows_call(struct rows *r, enum ask_function function, unsigned id);
/* Who is picked out of the pool; may anybody be? */
int rows_pick(struct rows *r, uint32_t how);
int rows_room(struct rows *r, uint32_t how);
/* Who is picked, `n` times; what is taken is given back unless `keep`. */
const uint64_t *rows_pick_many(struct rows *r, uint32_t how, unsigned n, bool keep);

#endif
