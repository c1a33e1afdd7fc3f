// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Repeats, see repeats.h: a hash table over a fixed set of entries. The one that has been silent
 * longest makes room: to forget it costs a repeat at worst. */
#include <stdlib.h>
#include <sys/queue.h>

#include "sources/repeats.h"

#define BUCKETS SW_REPEATS

struct entry {
	LIST_ENTRY(entry) same; /* of its bucket */
	TAILQ_ENTRY(entry) link;
	bool used;
	uint64_t publisher;
	uint64_t sequence, published_ms; /* of the newest event */
	uint64_t at_ms;			 /* when that came */
};

LIST_HEAD(bucket, entry);
TAILQ_HEAD(queue, entry);

struct sw_repeats {
	struct bucket buckets[BUCKETS];
	struct queue queue; /* those last heard at the end */
	struct entry entries[SW_REPEATS];
};

struct sw_repeats *sw_repeats_new(void)
{
	struct sw_repeats *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	TAILQ_INIT(&r->queue);
	for (size_t i = 0; i < SW_REPEATS; i++)
		TAILQ_INSERT_TAIL(&r->queue, &r->entries[i], link);
	return r;
}

void sw_repeats_free(struct sw_repeats *r)
{
	free(r);
}

static struct entry *find(struct bucket *bucket, uint64_t publisher)
{
	struct entry *e;

	LIST_FOREACH (e, bucket, same)
		if (e->publisher == publisher)
			return e;
	return NULL;
}

static bool is_old(const struct entry *e, uint64_t sequence, uint64_t published_ms, uint64_t now_ms)
{
	return sequence <= e->sequence && published_ms <= e->published_ms &&
	       now_ms - e->at_ms < SW_REPEATS_QUIET_MS;
}

bool sw_repeats_knows(struct sw_repeats *r, uint64_t publisher, uint64_t sequence,
		      uint64_t published_ms, uint64_t now_ms)
{
	struct bucket *bucket = &r->buckets[(publisher * 0x9e3779b97f4a7c15 >> 32) % BUCKETS];
	struct entry *e = find(bucket, publisher);

	if (e && is_old(e, sequence, published_ms, now_ms))
		return true;
	if (!e) {
		e = TAILQ_FIRST(&r->queue);
		if (e->used)
			LIST_REMOVE(e, same);
		LIST_INSERT_HEAD(bucket, e, same);
	}
	TAILQ_REMOVE(&r->queue, e, link);
	TAILQ_INSERT_TAIL(&r->queue, e, link);
	e->used = true;
	e->publisher = publisher;
	e->sequence = sequence;
	e->published_ms = published_ms;
	e->at_ms = now_ms;
	return false;
}
