// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Map contents in memory; see rows.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/rows.h"

static int reserve(struct sw_rows *t, size_t n)
{
	size_t room = t->room ? t->room : 16;
	uint8_t *more;

	if (n <= t->room)
		return 0;
	while (room < n)
		room *= 2;
	more = realloc(t->bytes, room * sw_row_size(t));
	if (!more)
		return -ENOMEM;
	t->bytes = more;
	t->room = room;
	return 0;
}

static int read_array(struct sw_rows *t, int map, uint32_t n)
{
	uint32_t *keys = calloc(n, sizeof(*keys)), last, count = n;
	int err = keys ? reserve(t, n) : -ENOMEM;

	t->n = n;
	if (!err && bpf_map_lookup_batch(map, NULL, &last, keys, t->bytes, &count, NULL) &&
	    errno != ENOENT) /* which only says that the end was reached */
		err = -errno;
	free(keys);
	return err;
}

static int read_hash(struct sw_rows *t, int map)
{
	uint8_t key[128], value[128];
	void *previous = NULL;

	if (t->key_size > sizeof(key) || t->value_size > sizeof(value))
		return -E2BIG;
	while (!bpf_map_get_next_key(map, previous, key)) {
		previous = key;
		if (bpf_map_lookup_elem(map, key, value))
			return -errno;
		if (sw_rows_set(t, key, value))
			return -ENOMEM;
	}
	if (errno != ENOENT)
		return -errno;
	return 0;
}

int sw_rows_read(struct sw_rows *t, int map)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	*t = (struct sw_rows){0};
	if (bpf_obj_get_info_by_fd(map, &info, &size))
		return -errno;
	t->value_size = info.value_size;
	if (info.type == BPF_MAP_TYPE_ARRAY)
		return read_array(t, map, info.max_entries);
	t->key_size = info.key_size;
	return read_hash(t, map);
}

int sw_rows_blank(struct sw_rows *t, const struct sw_rows *like)
{
	int err;

	*t = (struct sw_rows){.key_size = like->key_size, .value_size = like->value_size};
	if (t->key_size)
		return 0;
	err = reserve(t, like->n);
	if (!err) {
		t->n = like->n;
		memset(t->bytes, 0, t->n * sw_row_size(t));
	}
	return err;
}

int sw_rows_copy(struct sw_rows *t, const struct sw_rows *from)
{
	int err;

	*t = (struct sw_rows){.key_size = from->key_size, .value_size = from->value_size};
	err = reserve(t, from->n);
	if (!err && from->n) {
		t->n = from->n;
		memcpy(t->bytes, from->bytes, t->n * sw_row_size(t));
	}
	return err;
}

void sw_rows_free(struct sw_rows *t)
{
	free(t->bytes);
	*t = (struct sw_rows){0};
}

/* Where the key is, or where it would have to go. */
static size_t place_of(const struct sw_rows *t, const void *key, bool *found)
{
	size_t low = 0, high = t->n;

	*found = false;
	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = memcmp(sw_row(t, mid), key, t->key_size);

		if (order < 0) {
			low = mid + 1;
		} else {
			high = mid;
			*found |= !order;
		}
	}
	return low;
}

int sw_rows_set(struct sw_rows *t, const void *key, const void *value)
{
	size_t size = sw_row_size(t), at;
	uint8_t *row;
	bool found;

	if (reserve(t, t->n + 1))
		return -ENOMEM;
	at = place_of(t, key, &found);
	row = sw_row(t, at);
	if (!found)
		memmove(row + size, row, size * (t->n++ - at));
	memcpy(row, key, t->key_size);
	memcpy(row + t->key_size, value, t->value_size);
	return 0;
}

void *sw_rows_find(const struct sw_rows *t, const void *key)
{
	bool found;
	size_t at = place_of(t, key, &found);

	return found ? sw_row(t, at) : NULL;
}

int sw_rows_put(int map, const struct sw_rows *have, const struct sw_rows *want)
{
	for (size_t i = 0; i < want->n; i++) {
		uint8_t *row = sw_row(want, i), *old;
		uint32_t index = i;

		if (want->key_size)
			old = sw_rows_find(have, row);
		else
			old = i < have->n ? sw_row(have, i) : NULL;
		if (old && !memcmp(old, row, sw_row_size(want)))
			continue;
		if (bpf_map_update_elem(map, want->key_size ? (void *)row : &index,
					row + want->key_size, BPF_ANY))
			return -errno;
	}
	return 0;
}

int sw_rows_drop(int map, const struct sw_rows *have, const struct sw_rows *want)
{
	if (!have->key_size)
		return 0;
	for (size_t i = 0; i < have->n; i++)
		if (!sw_rows_find(want, sw_row(have, i)) &&
		    bpf_map_delete_elem(map, sw_row(have, i)) && errno != ENOENT)
			return -errno;
	return 0;
}
