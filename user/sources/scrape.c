// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Periodic scraping, see scrape.h: a timer for each target. A tick that finds the last scrape still
 * under way is passed over, so a scrape never overlaps itself. */
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "sources/curl_loop.h"
#include "sources/fetch.h"
#include "sources/scrape.h"

#define DEFAULT_PERIOD_MS 250

struct target {
	LIST_ENTRY(target) link;
	int id;
	enum sw_engine engine;
	struct sw_engine_hints hints;
	struct timeval period;
	struct event *tick;
	struct sw_fetch *fetch;
	sw_scrape_cb cb;
	void *arg;
};

struct sw_scraper {
	struct event_base *base;
	struct sw_curl_loop *loop;
	LIST_HEAD(, target) targets;
	unsigned n;
	int last_id;
};

/* Every line names the page that it is about. */
static void report_failure(struct target *t, int ret, const struct sw_error *why)
{
	struct sw_error err;

	sw_fail(&err, ret, "%s: %s", sw_fetch_url(t->fetch), why->text);
	t->cb(t->arg, ret, NULL, &err); /* may remove the target */
}

static void on_page(void *arg, int ret, const char *text, size_t length, const struct sw_error *why)
{
	struct sw_report reports[SW_MAX_RANKS];
	struct sw_error err = {};
	struct target *t = arg;
	int n;

	if (ret) {
		report_failure(t, ret, why);
		return;
	}
	n = sw_engine_read(t->engine, &t->hints, text, length, reports, SW_MAX_RANKS, &err);
	if (n < 0)
		report_failure(t, n, &err);
	else
		t->cb(t->arg, n, reports, &err);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct target *t = arg;
	struct sw_error err;
	int ret;

	(void)fd;
	(void)what;
	evtimer_add(t->tick, &t->period);
	ret = sw_fetch_start(t->fetch, &err);
	if (ret && ret != -EBUSY)
		report_failure(t, ret, &err);
}

static void free_target(struct target *t)
{
	sw_fetch_free(t->fetch);
	if (t->tick)
		event_free(t->tick);
	free(t);
}

int sw_scraper_new(struct sw_scraper **out, struct event_base *base, struct sw_error *err)
{
	struct sw_scraper *s = calloc(1, sizeof(*s));

	if (!s || sw_curl_loop_new(&s->loop, base, sw_fetch_done)) {
		free(s);
		return sw_fail(err, -ENOMEM, "cannot set up scraping: out of memory");
	}
	s->base = base;
	LIST_INIT(&s->targets);
	*out = s;
	return 0;
}

int sw_scraper_add(struct sw_scraper *s, const struct sw_target *conf, sw_scrape_cb cb, void *arg,
		   int *id, struct sw_error *err)
{
	unsigned period = conf->period_ms ? conf->period_ms : DEFAULT_PERIOD_MS;
	static const struct timeval at_once;
	struct target *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return sw_fail(err, -ENOMEM, "out of memory");
	t->engine = conf->engine;
	t->hints = conf->hints;
	t->period = (struct timeval){.tv_sec = period / 1000, .tv_usec = period % 1000 * 1000};
	t->cb = cb;
	t->arg = arg;
	ret = sw_fetch_new(&t->fetch, s->loop, conf, on_page, t, err);
	if (ret)
		goto fail;
	t->tick = evtimer_new(s->base, on_tick, t);
	if (!t->tick || evtimer_add(t->tick, &at_once)) {
		ret = sw_fail(err, -ENOMEM, "out of memory");
		goto fail;
	}
	*id = t->id = ++s->last_id;
	LIST_INSERT_HEAD(&s->targets, t, link);
	sw_curl_loop_keep(s->loop, ++s->n);
	return 0;
fail:
	free_target(t);
	return ret;
}

static void remove_target(struct sw_scraper *s, struct target *t)
{
	LIST_REMOVE(t, link);
	sw_curl_loop_keep(s->loop, --s->n);
	free_target(t);
}

void sw_scraper_remove(struct sw_scraper *s, int id)
{
	struct target *t;

	LIST_FOREACH (t, &s->targets, link) {
		if (t->id == id) {
			remove_target(s, t);
			return;
		}
	}
}

void sw_scraper_free(struct sw_scraper *s)
{
	if (!s)
		return;
	while (!LIST_EMPTY(&s->targets))
		remove_target(s, LIST_FIRST(&s->targets));
	sw_curl_loop_free(s->loop);
	free(s);
}
