/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steering for tests: a pin root and two cgroups of their own, in a network namespace of its own.
 * Connections are made by the test's own process from inside the first cgroup.
 */
#ifndef SPILLWAY_TEST_STEERS_H
#define SPILLWAY_TEST_STEERS_H

#include <stdint.h>
#include <sys/types.h>

#include "kernel/steer.h"

#define STEERS_VIRTUAL 8999 /* port on 127.0.0.9, of pool 3 */
#define STEERS_WORKER  7

extern char steers_root[64];
extern char steers_cgroup[2][128]; /* paths */

/* NULL, or why tests of this kind cannot be run here. */
const char *steers_impossible(void);

/* For cmocka: cgroups and no pins for each test; what a failed test left is removed. */
int steers_setup(void **state);
int steers_teardown(void **state);

struct sw_steer *steers_open(void);
/* Attaches to one cgroup, or the test fails. */
void steers_attach(struct sw_steer *s, unsigned cgroup, bool connect, bool accept);

/* A pool with one worker, who listens, with `cap` slots, behind a virtual address. */
void steers_pool(struct sw_steer *s, uint32_t cap);
/* A connection to the virtual address out of the first cgroup: its socket, or a negative errno. */
int steers_connect(void);
/* What the worker has accepted. */
int steers_accept(void);
/* A process in the first cgroup, which does nothing and has to be killed. */
pid_t steers_idler(void);
/* Waits until so many slots of the worker are in use. */
void steers_await(struct sw_steer *s, uint32_t inuse);
struct sw_slot steers_slot(const struct sw_steer *s); /* of the worker */

/* A row of a worker with four slots, at an address. */
struct sw_address steers_at(const char *addr, uint16_t port);
struct sw_worker_row steers_row(const char *addr, uint16_t port, uint16_t pool);
/* Writes a row of slots as only the kernel's programs do it in earnest. */
void steers_put_slot(const struct sw_steer *s, uint32_t id, struct sw_slot slot);

/* Loads a program for sockops as somebody else would. */
int steers_other_program(void);

/* The path of a pin; of a link when `hook` is given: its pin on a cgroup. */
const char *steers_pin(const char *name);
const char *steers_link(const char *hook, unsigned cgroup);
/* Ids of what is pinned, 0: nothing is. */
uint32_t steers_map_id(const char *path);
uint32_t steers_link_id(const char *path);

#endif
