/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of slots and steering: one set for the whole host, which every plane and the programs on
 * cgroups share. Keys and values are in include/spillway/abi_slots.h, docs/maps.md explains them.
 * Written by the daemon: workers, members, nonbusy, reach4, steers, virtuals, listens; it also
 * clears bits of `suspect`. All else is the kernel's.
 */
#ifndef SPILLWAY_BPF_SLOT_MAPS_H
#define SPILLWAY_BPF_SLOT_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <spillway/abi.h>

#define SLOT_ARRAY(name, entry, entries, flags)                                                    \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(max_entries, entries);                                                      \
		__uint(map_flags, flags);                                                          \
		__type(key, __u32);                                                                \
		__type(value, entry);                                                              \
	} name SEC(".maps") __weak

SLOT_ARRAY(workers, struct sw_worker_row, SW_MAX_WORKERS, 0);
SLOT_ARRAY(slots, struct sw_slot, SW_MAX_WORKERS, BPF_F_MMAPABLE);
SLOT_ARRAY(members, struct sw_bits, SW_MAX_POOLS, BPF_F_MMAPABLE);
SLOT_ARRAY(nonbusy, struct sw_bits, 1, BPF_F_MMAPABLE);
SLOT_ARRAY(reach4, struct sw_bits, 1, BPF_F_MMAPABLE);
SLOT_ARRAY(suspect, struct sw_bits, 1, BPF_F_MMAPABLE);
SLOT_ARRAY(notfull, struct sw_bits, 1, BPF_F_MMAPABLE);
SLOT_ARRAY(steers, struct sw_steer_pool, SW_MAX_POOLS, 0);
SLOT_ARRAY(pool_use, struct sw_pool_use, SW_MAX_POOLS + 1, 0);
SLOT_ARRAY(picks, struct sw_pick, SW_PICKS, 0);

/* Where a router connects to. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SW_MAX_VIRTUALS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sw_address);
	__type(value, __u32);
} virtuals SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SW_MAX_RESERVATIONS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sw_tuple);
	__type(value, struct sw_reservation);
} reservations SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sw_pending);
} pending SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sw_socket);
} sockets SEC(".maps") __weak;

/* Who may listen on this host: worker ids by address, the any-addresses too. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SW_MAX_WORKERS * 2);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sw_address);
	__type(value, __u32);
} listens SEC(".maps") __weak;

/* Listening sockets by worker id; the kernel takes a socket out when it is closed. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, SW_MAX_WORKERS);
	__type(key, __u32);
	__type(value, __u64);
} listening SEC(".maps") __weak;

/* Listening sockets of the daemon's responder in this namespace, by pool * 2 + (1 for IPv6): a
 * plane's own, unlike the others. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, SW_MAX_POOLS * 2);
	__type(key, __u32);
	__type(value, __u64);
} responding SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SW_MAX_POOLS);
	__type(key, __u32);
	__type(value, struct sw_steer_counts);
} counts_steer SEC(".maps") __weak;

#endif
