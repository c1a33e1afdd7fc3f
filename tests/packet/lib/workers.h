/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The workers of a steering test, in a process of their own outside its cgroup. */
#ifndef SPILLWAY_TEST_WORKERS_H
#define SPILLWAY_TEST_WORKERS_H

#include <stdint.h>

void workers_loopback_up(void);
/* Serves A, B and the responder on 127.0.0.1 and ::1: each connection is sent one letter, then what
 * comes is read until the client ends. Returns a pid. */
int workers_start(void);
/* A listening socket on 127.0.0.1 from which nobody accepts by itself. */
int workers_listen(uint16_t port);
/* A listening socket on 127.0.0.1 whose queue is full, so that SYNs to it stay unanswered. */
int workers_deaf(uint16_t port, int *filler, int n);

#endif
