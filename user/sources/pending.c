// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events that wait to be handed on, see pending.h: a hash table over a fixed set of entries, which
 * are in a queue or free. */
#include <stdlib.h>
#include <sys/queue.h>

#include "sources/pending.h"

#define BUCKETS SW_PENDING

struct entry {
	LIST_ENTRY(entry) same; /* of its bucket */
	TAILQ_ENTRY(entry) link;
	struct sw_load_event event;
};

LIST_HEAD(bucket, entry);
TAILQ_HEAD(queue, entry);

struct sw_pending {
	struct bucket buckets[BUCKETS];
	struct queue waiting, unused;
	struct entry entries[SW_PENDING];
};

struct sw_pending *sw_pending_new(void)
{
	struct sw_pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	TAILQ_INIT(&p->waiting);
	TAILQ_INIT(&p->unused);
	for (size_t i = 0; i < SW_PENDING; i++)
		TAILQ_INSERT_TAIL(&p->unused, &p->entries[i], link);
	return p;
}

void sw_pending_free(struct sw_pending *p)
{
	free(p);
}

static struct bucket *bucket_of(struct sw_pending *p, const struct sw_load_event *e)
{
	uint64_t h = e->worker_id * 0x9e3779b97f4a7c15 ^ e->publisher * 0xc2b2ae3d27d4eb4f ^
		     (uint64_t)e->report.rank * 0x165667b19e3779f9;

	return &p->buckets[(h >> 32) % BUCKETS];
}

static void replace(struct sw_report *old, const struct sw_report *new)
{
	for (int s = 0; s < SW_SIGNALS; s++)
		if (new->have & 1u << s)
			old->value[s] = new->value[s];
	old->have |= new->have;
}

enum sw_pended sw_pending_put(struct sw_pending *p, const struct sw_load_event *event)
{
	struct bucket *bucket = bucket_of(p, event);
	struct entry *e;

	LIST_FOREACH (e, bucket, same) {
		if (e->event.worker_id == event->worker_id &&
		    e->event.publisher == event->publisher &&
		    e->event.report.rank == event->report.rank) {
			replace(&e->event.report, &event->report);
			return SW_PENDED_REPLACED;
		}
	}
	e = TAILQ_FIRST(&p->unused);
	if (!e)
		return SW_PENDED_FULL;
	TAILQ_REMOVE(&p->unused, e, link);
	TAILQ_INSERT_TAIL(&p->waiting, e, link);
	LIST_INSERT_HEAD(bucket, e, same);
	e->event = *event;
	return SW_PENDED;
}

bool sw_pending_take(struct sw_pending *p, struct sw_load_event *out)
{
	struct entry *e = TAILQ_FIRST(&p->waiting);

	if (!e)
		return false;
	*out = e->event;
	LIST_REMOVE(e, same);
	TAILQ_REMOVE(&p->waiting, e, link);
	TAILQ_INSERT_TAIL(&p->unused, e, link);
	return true;
}
