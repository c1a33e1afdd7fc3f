// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Numbers for sets of paths and of CIDRs; see sets.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "kernel/sets.h"

/* Where a key of either map has the number of its set, and how many bytes on the set ends. */
static size_t set_at(enum sw_table which)
{
	return which == SW_T_PATHS ? offsetof(struct sw_path, set)
				   : offsetof(struct sw_cidr_key, set) + 2;
}

static uint16_t in_key(enum sw_table which, uint16_t id)
{
	return which == SW_T_PATHS ? id : htons(id);
}

static size_t count_set(const struct sw_rows *t, size_t at, uint16_t key)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += !memcmp(sw_row(t, i) + at, &key, sizeof(key));
	return n;
}

/* Gives `set` this number and tells whether `t` holds exactly it. */
static bool holds_set(const struct sw_rows *t, size_t at, uint16_t key, struct sw_rows *set)
{
	for (size_t i = 0; i < set->n; i++) {
		const void *row;

		memcpy(sw_row(set, i) + at, &key, sizeof(key));
		row = sw_rows_find(t, sw_row(set, i));
		if (!row || memcmp(row, sw_row(set, i), sw_row_size(set)))
			return false;
	}
	return count_set(t, at, key) == set->n;
}

/* The number for `set`: that of an equal set, else one that neither image uses. */
static uint16_t number_set(const struct sw_image *from, const struct sw_image *to,
			   enum sw_table which, struct sw_rows *set)
{
	const struct sw_rows *old = &from->map[which], *new = &to->map[which];
	size_t at = set_at(which), seen = 0;
	uint16_t unused = NO_SET;

	/* All numbers in use have been looked at when all rows have been seen. */
	for (uint16_t id = 0; id < NO_SET && (seen < old->n + new->n || unused == NO_SET); id++) {
		uint16_t key = in_key(which, id);
		size_t n_old = count_set(old, at, key), n_new = count_set(new, at, key);

		seen += n_old + n_new;
		if (n_new ? holds_set(new, at, key, set) : n_old && holds_set(old, at, key, set))
			return id;
		if (!n_old && !n_new && unused == NO_SET)
			unused = id;
	}
	return unused;
}

int sw_sets_place(const struct sw_image *from, struct sw_image *to, enum sw_table which,
		  struct sw_rows *set, uint16_t *id)
{
	struct sw_rows *new = &to->map[which];
	uint16_t key;

	*id = NO_SET;
	if (!set->n)
		return 0;
	*id = number_set(from, to, which, set);
	key = in_key(which, *id);
	for (size_t i = 0; i < set->n; i++) {
		memcpy(sw_row(set, i) + set_at(which), &key, sizeof(key));
		if (sw_rows_set(new, sw_row(set, i), sw_row(set, i) + set->key_size))
			return -ENOMEM;
	}
	return 0;
}

uint8_t sw_sets_prefix(struct sw_image *to, const char *bytes, size_t length)
{
	struct sw_rows *prefixes = &to->map[SW_T_PREFIXES];
	struct sw_prefix want = {.length = length};

	memcpy(want.bytes, bytes, length);
	for (size_t i = 0; i < prefixes->n; i++) {
		struct sw_prefix *p = sw_row(prefixes, i);

		if (!p->length)
			*p = want;
		if (!memcmp(p, &want, sizeof(want)))
			return i + 1;
	}
	return 0;
}
