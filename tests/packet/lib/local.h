/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets on the loopback interface: workers, their clients, and clients of the virtual port
 * PORT_DEAF, on which nobody listens. All of them are this process's. */
#ifndef SPILLWAY_TEST_LOCAL_H
#define SPILLWAY_TEST_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

/* Worker i listens on its port PORT_FIRST + i: on loopback or on any address. */
void worker_listen(unsigned i, int family, bool any);
void worker_listen_short(unsigned i, int backlog); /* IPv4, with a short queue */
void worker_close(unsigned i);
void workers_close(void);
/* The next connection of any worker, whose number is stored; negative: none came. */
int worker_accept(int *worker);
/* Ends what workers or a listening socket have been given. */
void workers_end_all(void);
void end_all_of(int listener);

/* Serves the workers and a responder (or -1) in a process of its own until that is killed: what
 * comes is sent back. Returns a pid. */
int workers_serve(int responder);

int listen_on_loopback(int family, uint16_t port);
/* connect(): a socket, or a negative errno. */
int ask_loopback(int family, uint16_t port);
int ask_virtual(int family);
int begin_asking_virtual(int family); /* does not wait */
/* A whole connection to a worker, seen to its end on both sides. */
void ask_and_close(int family);

#endif
