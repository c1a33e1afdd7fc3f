/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of a guard without its programs, what is written to them, and what they hold then. */
#ifndef SPILLWAY_TEST_MAPS_H
#define SPILLWAY_TEST_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/tables.h"

#define MAPS_SETS 2 /* room for answers in these maps */
#define NOW	  1000000000ULL

struct spillway;

struct world {
	struct spillway *obj;
	struct sw_maps maps;
};

/* For cmocka: *state is a world, fresh for each test. */
int maps_set_up(void **state);
int maps_tear_down(void **state);

/* ---- configurations ------------------------------------------------------------------------- */

struct sw_pool_conf maps_pool(uint16_t status);
struct sw_listener_conf maps_any(uint16_t port);
struct sw_listener_conf maps_one4(const char *addr, uint16_t port);
struct sw_cidr maps_cidr4(const char *addr, int bits);

/* Writes them, or the test fails; or has to fail, with a line that says why. */
void maps_write(struct world *w, struct sw_pool_conf *pools, size_t n_pools,
		struct sw_listener_conf *listeners, size_t n, uint64_t now);
int maps_write_bad(struct world *w, struct sw_pool_conf *pools, size_t n_pools,
		   struct sw_listener_conf *listeners, size_t n, struct sw_error *err);

/* ---- what the maps hold --------------------------------------------------------------------- */

struct sw_listener maps_listener(struct world *w, uint32_t id);
void maps_assert_port(struct world *w, uint32_t port, int any4, int any6, int single);
size_t maps_rows(int map);
/* The action of a path in a set, 0: it is not there. `prefix`: its number, 0 for a whole path. */
int maps_action(struct world *w, int set, int method, int prefix, const char *path);
bool maps_is_exempt(struct world *w, int set, const char *addr);
struct sw_answer maps_answer(struct world *w, int set);

#endif
