/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which slot row stands for which worker or guarded pool. Pure: rows come in as they stand in the
 * kernel, where the next daemon finds them again. Writing them is slots.c's matter.
 */
#ifndef SPILLWAY_IDS_H
#define SPILLWAY_IDS_H

#include <stdbool.h>
#include <stddef.h>

#include <spillway/abi.h>

/* Whom a row stands for: a worker by its address alone, a pool by its tag and how it is counted. */
struct sw_id_key {
	__u8 addr[16];
	__u16 port; /* 0: a pool */
	__u16 pad;
	__u32 flags; /* SW_WF_* */
	__u64 tag;   /* of a pool; 0: a worker */
};

struct sw_id_key sw_id_of_worker(const __u8 addr[16], __u16 port);
struct sw_id_key sw_id_of_pool(const char *name, bool credit);

/* Does nobody have this row? */
bool sw_id_free(const struct sw_worker_row *row);
bool sw_id_matches(const struct sw_worker_row *row, const struct sw_id_key *key);

/* Gives each key the row that stands for it already, else the lowest free one; equal keys get the
 * same. Nothing in `rows` changes. -ENOSPC: there are not enough rows. */
int sw_ids_assign(const struct sw_worker_row rows[SW_MAX_WORKERS], const struct sw_id_key *keys,
		  size_t n, int *ids);

#endif
