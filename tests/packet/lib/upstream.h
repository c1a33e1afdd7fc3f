/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A router's connections to its servers, for tests of what is idle: real sockets over the loopback
 * of a namespace of its own, in a cgroup of its own with the programs of bpf/upstream.bpf.c, and a
 * gate that loses packets. Stands in for the connect hook: it writes the rows of `sockets` itself.
 */
#ifndef SPILLWAY_TEST_UPSTREAM_H
#define SPILLWAY_TEST_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spillway/abi.h>

enum { UP_WORKER = 77 };

struct upstream_pair { /* one connection; the router's end and the server's */
	int router, server;
};

struct spillway;

struct upstreams {
	struct spillway *skel;
	char home[256], cgroup[256]; /* cgroup.procs of where we were; our own directory */
	int link[5], gate;
	int listener[2]; /* IPv4, IPv6 */
};

int upstreams_up(void **state);
int upstreams_down(void **state);

/* A row as the connect hook writes it. */
struct sw_socket upstream_row(unsigned worker);
void upstream_set_row(struct upstreams *u, int fd, const struct sw_socket *row);
/* Connects a socket that has that row (NULL: none); IPv6 when v6. */
int upstream_connect(struct upstreams *u, const struct sw_socket *row, bool v6);
/* The same, with the server's end. */
struct upstream_pair upstream_open(struct upstreams *u, const struct sw_socket *row, bool v6);
void upstream_end(struct upstream_pair *p);

/* Sends all of it, in one segment where it fits. */
void upstream_send(int fd, const void *data, size_t len);
/* Reads so many bytes, with patience. */
void upstream_take(int fd, size_t len);

/* Closes what is idle among the connections to UP_WORKER: how many. */
int upstream_close(struct upstreams *u, unsigned idle_ms);
/* Makes the worker one to leave, or not. */
void upstream_avoid(struct upstreams *u, bool avoid);
/* Has the socket been closed under its owner? */
bool upstream_gone(int fd);
/* What the owner is told when it asks: SO_ERROR. */
int upstream_error(int fd);

/* What the two programs have cost so far, while statistics are enabled. */
struct upstream_cost {
	double out, out_ns, in, in_ns; /* packets, nanoseconds */
};
struct upstream_cost upstream_cost(struct upstreams *u);

/* What the socket sends is lost from now on, or what comes to it; after the programs saw it. */
enum upstream_gate { GATE_OUT, GATE_IN };
void upstream_lose(struct upstreams *u, enum upstream_gate gate, int fd);
void upstream_lose_nothing(struct upstreams *u);

/* Loses what the wire brings to the socket, before the programs see it, until the descriptor is
 * closed. IPv4. */
int upstream_cut(int fd);

#endif
