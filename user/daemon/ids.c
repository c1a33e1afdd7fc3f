// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Slot rows for workers and pools; see ids.h. */
#include <errno.h>
#include <string.h>

#include "daemon/ids.h"

/* FNV-1a; never 0, which is no tag. */
static __u64 hash(const char *s)
{
	__u64 h = 0xcbf29ce484222325ULL;

	for (; *s; s++)
		h = (h ^ (__u8)*s) * 0x100000001b3ULL;
	return h ? h : 1;
}

struct sw_id_key sw_id_of_worker(const __u8 addr[16], __u16 port)
{
	struct sw_id_key key = {.port = port};

	memcpy(key.addr, addr, sizeof(key.addr));
	return key;
}

struct sw_id_key sw_id_of_pool(const char *name, bool credit)
{
	return (struct sw_id_key){.tag = hash(name),
				  .flags = SW_WF_ROW | (credit ? SW_WF_CREDIT : 0)};
}

bool sw_id_free(const struct sw_worker_row *row)
{
	return !row->port && !(row->flags & SW_WF_ROW);
}

bool sw_id_matches(const struct sw_worker_row *row, const struct sw_id_key *key)
{
	return !sw_id_free(row) && row->port == key->port && row->flags == key->flags &&
	       (row->port || row->tag == key->tag) &&
	       !memcmp(row->addr, key->addr, sizeof(row->addr));
}

static bool same(const struct sw_id_key *a, const struct sw_id_key *b)
{
	return a->port == b->port && a->flags == b->flags && a->tag == b->tag &&
	       !memcmp(a->addr, b->addr, sizeof(a->addr));
}

/* The row of keys[i] as it is known without taking a new one, or -1. */
static int find(const struct sw_worker_row *rows, const struct sw_id_key *keys, size_t i,
		const int *ids)
{
	for (size_t j = 0; j < i; j++)
		if (same(&keys[j], &keys[i]))
			return ids[j];
	for (int id = 0; id < SW_MAX_WORKERS; id++)
		if (sw_id_matches(&rows[id], &keys[i]))
			return id;
	return -1;
}

int sw_ids_assign(const struct sw_worker_row rows[SW_MAX_WORKERS], const struct sw_id_key *keys,
		  size_t n, int *ids)
{
	int next = 0; /* rows below it are taken */

	for (size_t i = 0; i < n; i++) {
		ids[i] = find(rows, keys, i, ids);
		if (ids[i] >= 0)
			continue;
		while (next < SW_MAX_WORKERS && !sw_id_free(&rows[next]))
			next++;
		if (next == SW_MAX_WORKERS)
			return -ENOSPC;
		ids[i] = next++;
	}
	return 0;
}
