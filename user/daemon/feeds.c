// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who tells the load of workers, what they told last, and what that is together. What a load means
 * for a worker is pools.c's matter. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/daemon.h"

/* A publisher that says nothing for so long is shown no more; it stopped to count long before. */
#define FORGET_MS 60000

/* ---- feeds ---------------------------------------------------------------------------------- */

static struct sw_feed *find_feed(struct sw_live_worker *w, enum sw_feed_kind kind,
				 uint64_t publisher)
{
	for (size_t i = 0; i < w->n_feeds; i++)
		if (w->feeds[i].kind == kind && w->feeds[i].publisher == publisher)
			return &w->feeds[i];
	return NULL;
}

static void forget_feed(struct sw_live_worker *w, size_t i)
{
	free(w->feeds[i].ranks);
	w->n_feeds--;
	memmove(&w->feeds[i], &w->feeds[i + 1], (w->n_feeds - i) * sizeof(*w->feeds));
}

/* Forgets publishers that have been silent for longer than `ms`. */
static void forget_silent(struct sw_live_worker *w, uint64_t ms, uint64_t now_ms)
{
	for (size_t i = w->n_feeds; i-- > 0;)
		if (w->feeds[i].kind == SW_FEED_EVENTS && now_ms - w->feeds[i].at_ms > ms)
			forget_feed(w, i);
}

void sw_feeds_tick(struct sw_live_worker *w, uint64_t now_ms)
{
	uint32_t stale_ms = w->pool->conf->ageing.stale_after_ms;

	forget_silent(w, stale_ms > FORGET_MS ? stale_ms : FORGET_MS, now_ms);
}

static struct sw_feed *add_feed(struct sw_live_worker *w, enum sw_feed_kind kind,
				uint64_t publisher, uint64_t now_ms)
{
	struct sw_feed *feeds;

	if (w->n_feeds == SW_MAX_FEEDS)
		forget_silent(w, w->pool->conf->ageing.stale_after_ms, now_ms);
	if (w->n_feeds == SW_MAX_FEEDS) {
		if (!w->crowded)
			sw_log(SW_WARN,
			       "pool %s: worker %s: more than %d publishers tell its load; those "
			       "that came last are not heard",
			       w->pool->conf->name, w->conf->name, SW_MAX_FEEDS);
		w->crowded = true;
		return NULL;
	}
	feeds = reallocarray(w->feeds, w->n_feeds + 1, sizeof(*feeds));
	if (!feeds)
		return NULL;
	w->feeds = feeds;
	feeds[w->n_feeds] = (struct sw_feed){.kind = kind, .publisher = publisher};
	return &feeds[w->n_feeds++];
}

static void note_failure(const struct sw_live_worker *w, struct sw_feed *f, int err,
			 const struct sw_error *why, uint64_t now_ms)
{
	f->failures++;
	f->error = *why;
	f->error_ms = now_ms;
	if (f->failing != err)
		sw_log(SW_WARN, "pool %s: worker %s: no load: %s", w->pool->conf->name,
		       w->conf->name, why->text);
	f->failing = err;
}

static void note_success(const struct sw_live_worker *w, struct sw_feed *f, uint64_t now_ms)
{
	if (f->failing && f->kind == SW_FEED_SCRAPE)
		sw_log(SW_INFO, "pool %s: worker %s: load is read again from %s",
		       w->pool->conf->name, w->conf->name, w->conf->source.url);
	else if (f->failing)
		sw_log(SW_INFO, "pool %s: worker %s: load comes again by %s", w->pool->conf->name,
		       w->conf->name, sw_feed_kind_name(f->kind));
	f->failing = 0;
	f->at_ms = now_ms;
}

/* ---- loads ---------------------------------------------------------------------------------- */

/* Where a feed keeps what it tells of a rank; NULL: the worker has no such rank, or no memory. */
static struct sw_told *told_of(const struct sw_live_worker *w, struct sw_feed *f, uint32_t rank)
{
	uint32_t index = rank - w->load.start_rank;
	struct sw_told *ranks;

	if (rank < w->load.start_rank || index >= SW_MAX_RANKS)
		return NULL;
	if (index >= f->n_ranks) {
		ranks = reallocarray(f->ranks, index + 1, sizeof(*ranks));
		if (!ranks)
			return NULL;
		memset(&ranks[f->n_ranks], 0, (index + 1 - f->n_ranks) * sizeof(*ranks));
		f->ranks = ranks;
		f->n_ranks = index + 1;
	}
	if (f->ranks[index].rank != rank) /* ranks begin elsewhere now */
		f->ranks[index] = (struct sw_told){.rank = rank};
	return &f->ranks[index];
}

/* Notes what a feed told of a rank, and gives what all feeds together tell of it. */
static struct sw_report put_together(struct sw_live_worker *w, struct sw_feed *f,
				     const struct sw_report *r, uint64_t now_ms)
{
	const struct sw_told *told[SW_MAX_FEEDS];
	struct sw_told *own = told_of(w, f, r->rank);

	if (!own)
		return *r;
	sw_told_note(own, r, now_ms);
	for (size_t i = 0; i < w->n_feeds; i++) {
		const struct sw_feed *other = &w->feeds[i];
		size_t index = r->rank - w->load.start_rank;

		told[i] = index < other->n_ranks && other->ranks[index].rank == r->rank
				  ? &other->ranks[index]
				  : NULL;
	}
	return sw_worst(told, w->n_feeds, r, w->pool->conf->ageing.stale_after_ms, now_ms);
}

void sw_worker_told(struct sw_live_worker *w, enum sw_feed_kind kind, uint64_t publisher, int n,
		    const struct sw_report *reports, const struct sw_error *err)
{
	struct sw_report together[SW_MAX_RANKS];
	struct sw_feed *f = find_feed(w, kind, publisher);
	uint64_t now_ms = sw_now_ms();

	if (!f)
		f = add_feed(w, kind, publisher, now_ms);
	if (!f)
		return; /* the load goes stale, which opens */
	f->told++;
	if (n < 0)
		note_failure(w, f, n, err, now_ms);
	else
		note_success(w, f, now_ms);
	if (n > SW_MAX_RANKS)
		n = SW_MAX_RANKS;
	for (int i = 0; i < n; i++)
		together[i] = put_together(w, f, &reports[i], now_ms);
	sw_worker_take(w, n < 0 ? 0 : (size_t)n, together, now_ms);
}

void sw_worker_scraped(void *arg, int n, const struct sw_report *reports,
		       const struct sw_error *err)
{
	sw_worker_told(arg, SW_FEED_SCRAPE, 0, n, reports, err);
}

void sw_feeds_free(struct sw_live_worker *w)
{
	while (w->n_feeds)
		forget_feed(w, w->n_feeds - 1);
	free(w->feeds);
}
