/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is shared by tests of what the daemon tells the kernel about workers and pools: a daemon
 * with two steered pools and a guarded one, and a kernel that is a few arrays. Takes the kernel's
 * place: test_slots_live* are linked with it and no other test is. */
#ifndef SPILLWAY_TEST_SLOTS_LIVE_H
#define SPILLWAY_TEST_SLOTS_LIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/steering.h"

#define POOLS	3
#define WORKERS 3

struct kernel {
	struct sw_worker_row workers[SW_MAX_WORKERS];
	struct sw_slot slots[SW_MAX_WORKERS];
	struct sw_bits members[SW_MAX_POOLS], nonbusy, reach4;
	struct sw_steer_pool steers[SW_MAX_POOLS];
	unsigned writes; /* of rows */
};
extern struct kernel kernel;

/* A bit of a set. */
bool has(const struct sw_bits *b, int id);

extern struct sw_worker_conf worker_confs[POOLS][WORKERS];
extern struct sw_pool_conf pool_confs[POOLS];
extern struct sw_config conf;
extern struct sw_live_worker workers[POOLS][WORKERS];
extern struct sw_live_pool pools[POOLS];
extern struct sw_live live;
extern struct sw_steering steering;

/* A fresh daemon that has told the kernel nothing yet, each pool with all of its workers. */
int live_setup(void **state);
#define LIVE_TEST(f) cmocka_unit_test_setup(f, live_setup)

/* Takes the configuration as it stands now. */
void apply(void);
/* A heartbeat, at a later time. */
void beat(uint64_t later_ms);

#endif
