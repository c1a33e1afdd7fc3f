// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who tells the load of workers, and what they told last. What a load means for a worker is
 * pools.c's matter. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/daemon.h"

static struct sw_feed *find_feed(struct sw_live_worker *w, enum sw_feed_kind kind,
				 uint64_t publisher)
{
	struct sw_feed *feeds;

	for (size_t i = 0; i < w->n_feeds; i++)
		if (w->feeds[i].kind == kind && w->feeds[i].publisher == publisher)
			return &w->feeds[i];
	feeds = reallocarray(w->feeds, w->n_feeds + 1, sizeof(*feeds));
	if (!feeds)
		return NULL;
	w->feeds = feeds;
	memset(&feeds[w->n_feeds], 0, sizeof(*feeds));
	feeds[w->n_feeds].kind = kind;
	feeds[w->n_feeds].publisher = publisher;
	return &feeds[w->n_feeds++];
}

static void note_failure(const struct sw_live_worker *w, struct sw_feed *f, int err,
			 const struct sw_error *why)
{
	f->failures++;
	f->error = *why;
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
	f->error.text[0] = '\0';
	f->at_ms = now_ms;
}

void sw_worker_told(struct sw_live_worker *w, enum sw_feed_kind kind, uint64_t publisher, int n,
		    const struct sw_report *reports, const struct sw_error *err)
{
	struct sw_feed *f = find_feed(w, kind, publisher);
	uint64_t now_ms = sw_now_ms();

	if (!f)
		return; /* no memory: the load goes stale, which opens */
	f->told++;
	if (n < 0)
		note_failure(w, f, n, err);
	else
		note_success(w, f, now_ms);
	sw_worker_take(w, n < 0 ? 0 : (size_t)n, reports, now_ms);
}

void sw_worker_scraped(void *arg, int n, const struct sw_report *reports,
		       const struct sw_error *err)
{
	sw_worker_told(arg, SW_FEED_SCRAPE, 0, n, reports, err);
}

void sw_feeds_free(struct sw_live_worker *w)
{
	for (size_t i = 0; i < w->n_feeds; i++) {
		free(w->feeds[i].ranks);
		free(w->feeds[i].rank_ms);
	}
	free(w->feeds);
}
