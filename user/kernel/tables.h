/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the checked configuration to what the maps hold: listeners, ports, addresses, answers, path
 * sets, CIDR sets. Works on map descriptors alone, so that packet tests fill their maps with the
 * very same code. Knows nothing of interfaces, pins and programs.
 */
#ifndef SPILLWAY_TABLES_H
#define SPILLWAY_TABLES_H

#include <stdint.h>

#include "common/error.h"
#include "config/config.h"

/* Every map by the name it has in bpf/maps.h. */
#define SW_MAPS(X)                                                                                 \
	X(ports)                                                                                   \
	X(addresses)                                                                               \
	X(listeners)                                                                               \
	X(local)                                                                                   \
	X(pools)                                                                                   \
	X(answers)                                                                                 \
	X(paths)                                                                                   \
	X(prefixes)                                                                                \
	X(exempt)                                                                                  \
	X(secrets)                                                                                 \
	X(levers)                                                                                  \
	X(recent)                                                                                  \
	X(flood)                                                                                   \
	X(counts_xdp)                                                                              \
	X(counts_tc)                                                                               \
	X(counts_shed)                                                                             \
	X(shed_events)

struct sw_maps { /* file descriptors */
#define X(name) int name;
	SW_MAPS(X)
#undef X
};

struct bpf_object;

/* Finds the maps of a loaded object (skeleton->obj). -ENOENT: one is missing. */
int sw_maps_find(const struct bpf_object *obj, struct sw_maps *out);

/* How many answer sets `answers` should have room for when `pools` pools are configured. */
unsigned sw_answer_sets(size_t pools);

/* Makes the maps hold the listeners of `c` whose netns equals `netns` (both NULL, or the same
 * text). Reads what they hold and writes the differences, in an order in which no packet meets a
 * reference to what is not there yet. A replaced answer's length stays valid for one cookie
 * lifetime from `now_ns` (CLOCK_MONOTONIC). On failure the old contents are put back. */
int sw_tables_write(const struct sw_maps *maps, const struct sw_config *c, const char *netns,
		    uint64_t now_ns, struct sw_error *err);

/* Makes `local` hold the addresses of the calling thread's network namespace. */
int sw_tables_write_local(const struct sw_maps *maps, struct sw_error *err);

#endif
