/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of a data plane; their keys and values are in include/spillway/abi.h, docs/maps.md
 * explains them to the reader of a dump. User space writes all but `recent`, `flood`, the
 * events and the counters. __weak: each hook is an object of its own, and the linker keeps one of
 * each.
 */
#ifndef SPILLWAY_BPF_MAPS_H
#define SPILLWAY_BPF_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <spillway/abi.h>

/* Who guards a TCP port: one array access for every packet that is not ours. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct sw_port);
} ports SEC(".maps") __weak;

/* Listeners bound to one address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SW_MAX_LISTENERS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sw_address);
	__type(value, __u32);
} addresses SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_MAX_LISTENERS);
	__type(key, __u32);
	__type(value, struct sw_listener);
} listeners SEC(".maps") __weak;

/* Addresses of the namespace; value __u32 1. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SW_MAX_LOCAL);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sw_local);
	__type(value, __u32);
} local SEC(".maps") __weak;

/* Levers: open or shedding, and until when that is to be believed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_MAX_POOLS);
	__type(key, __u32);
	__type(value, struct sw_pool);
} pools SEC(".maps") __weak;

/* Canned responses; the loader sets max_entries to the number of answer sets it has. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_ANSWERS_PER_SET);
	__type(key, __u32);
	__type(value, struct sw_answer);
} answers SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SW_MAX_PATHS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sw_path);
	__type(value, struct sw_path_value);
} paths SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_MAX_PREFIXES);
	__type(key, __u32);
	__type(value, struct sw_prefix);
} prefixes SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, SW_MAX_EXEMPT);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct sw_cidr_key);
	__type(value, __u32);
} exempt SEC(".maps") __weak;

/* Cookie keys: a secret, no tool prints it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sw_secrets);
} secrets SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sw_levers);
} levers SEC(".maps") __weak;

/* Conversations answered a moment ago: best effort, direct mapped, nothing depends on a hit. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_RECENT);
	__type(key, __u32);
	__type(value, struct sw_recent);
} recent SEC(".maps") __weak;

/* SYNs of this second by source prefix, direct mapped. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_FLOOD);
	__type(key, __u32);
	__type(value, struct sw_flood);
} flood SEC(".maps") __weak;

/* What is being read: the key to look up, its text seen as words too. */
struct request {
	union {
		struct sw_path path;
		struct {
			__u32 head; /* set, method, prefix */
			__u32 text[SW_PATH_MAX / 4];
		};
	};
	__u32 target, end; /* of the path and of the segment, in the window */
	__u16 family;	   /* of the answer, when it is shed */
	__u16 endpoint;	   /* enum sw_api_endpoint */
};

/* Scratch of a CPU: the segment at hand, see window.h, what request.h makes of it, and the name of
 * its connection where that is counted. */
struct window {
	__u8 bytes[640];
	struct request request;
	struct sw_tuple tuple;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct window);
} window SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SW_MAX_LISTENERS);
	__type(key, __u32);
	__type(value, struct sw_counts);
} counts_xdp SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SW_MAX_LISTENERS);
	__type(key, __u32);
	__type(value, struct sw_counts);
} counts_tc SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SW_MAX_LISTENERS);
	__type(key, __u32);
	__type(value, struct sw_counts);
} counts_keep SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SW_MAX_LISTENERS);
	__type(key, __u32);
	__type(value, struct sw_shed_counts);
} counts_shed SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} shed_events SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} shed_sample SEC(".maps") __weak;

#endif
