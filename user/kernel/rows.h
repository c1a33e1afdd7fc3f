/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contents of one map in memory, so that a table is built first, compared with what the kernel has,
 * and only differences are written. Rows are key and value side by side, sorted by key's bytes; an
 * array map is the same with all its keys present, in order.
 */
#ifndef SPILLWAY_ROWS_H
#define SPILLWAY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_rows {
	size_t key_size, value_size; /* key_size 0: an array map, the key is the index */
	size_t n, room;
	uint8_t *bytes;
};

static inline size_t sw_row_size(const struct sw_rows *t)
{
	return t->key_size + t->value_size;
}

static inline void *sw_row(const struct sw_rows *t, size_t i)
{
	return t->bytes + i * sw_row_size(t);
}

/* Reads a whole map. -ENOMEM or what the kernel says. */
int sw_rows_read(struct sw_rows *t, int map);
/* An array's content all zero, a hash's content empty; sizes as in `like`. */
int sw_rows_blank(struct sw_rows *t, const struct sw_rows *like);
int sw_rows_copy(struct sw_rows *t, const struct sw_rows *from);
void sw_rows_free(struct sw_rows *t);

/* Puts a row in its place, over one with the same key. -ENOMEM. */
int sw_rows_set(struct sw_rows *t, const void *key, const void *value);
/* The row of a key, or NULL. */
void *sw_rows_find(const struct sw_rows *t, const void *key);

/* Writes the rows of `want` that `have` lacks or has otherwise. */
int sw_rows_put(int map, const struct sw_rows *have, const struct sw_rows *want);
/* Deletes the rows of `have` that `want` lacks. Arrays: nothing. */
int sw_rows_drop(int map, const struct sw_rows *have, const struct sw_rows *want);

#endif
