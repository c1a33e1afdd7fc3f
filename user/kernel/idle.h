/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Closes idle upstream connections, by the iterator of bpf/upstream.bpf.c. Whose, when and in which
 * namespaces is the caller's business.
 */
#ifndef SPILLWAY_IDLE_H
#define SPILLWAY_IDLE_H

#include <stdbool.h>

#include <spillway/abi.h>

/* Can this kernel close a socket from an iterator (6.5)? Found out by loading a tiny program; the
 * answer belongs in the rodata `have_sock_destroy` before the programs are loaded. */
bool sw_idle_supported(void);

/* Closes the connections to any of `workers` that have been idle for `idle_ms`, among the sockets
 * of the network namespace that the calling thread is in, and no other. `program` is
 * spillway_close_idle, `orders` the map close_orders. Returns how many, or a negative errno. Takes
 * about a microsecond for each of the namespace's TCP sockets. */
int sw_idle_close(int program, int orders, const struct sw_bits *workers, unsigned idle_ms);

#endif
