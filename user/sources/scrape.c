// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Periodic scraping, see scrape.h: a timer for each page, however many targets read it. A tick that
 * finds the last scrape still under way is passed over, so a scrape never overlaps itself. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "sources/curl_loop.h"
#include "sources/fetch.h"
#include "sources/scrape.h"
#include "sources/target.h"

#define DEFAULT_PERIOD_MS 250

/* After each transfer libcurl walks through all connections and names that a multi handle has, so
 * that a thousand pages on one would cost a million steps. */
#define PAGES_OF_A_LOOP 32

/* Pages become due together, in as many groups as this: to wake the loop for each of a thousand
 * costs as much as the page. */
#define STEPS_OF_A_PERIOD 20

struct page;

struct loop {
	LIST_ENTRY(loop) link;
	struct sw_curl_loop *curl;
	unsigned n_pages;
};

struct target {
	TAILQ_ENTRY(target) link;
	int id;
	struct page *page;
	enum sw_engine engine; /* with `guess`: as its page tells; SW_ENGINE_AUTO: not yet */
	bool guess;
	struct sw_engine_hints hints;
	sw_scrape_cb cb;
	void *arg;
};

struct page {
	LIST_ENTRY(page) link;
	struct sw_scraper *scraper;
	struct loop *loop;
	struct sw_target conf;	      /* how it is fetched; strings are owned */
	uint64_t period_us, phase_us; /* of the clock: when it is due */
	struct event *tick;
	TAILQ_ENTRY(page) due_link;
	bool due;
	struct sw_fetch *fetch;
	TAILQ_HEAD(targets, target) targets;
	struct target *next; /* to be told, while the others are */
	bool telling;
	struct sw_front *front; /* meanwhile, if there are workers of a front end among them */
};

struct sw_scraper {
	struct event_base *base;
	LIST_HEAD(, loop) loops;
	LIST_HEAD(, page) pages;
	TAILQ_HEAD(due, page) due; /* not asked for yet */
	struct event *ask;	   /* for the first of them */
	int last_id;
	double phase; /* of the next page, 0..1 */
};

/* ---- loops ---- */

/* One with room for another page; an empty one is kept for the next. NULL: no memory. */
static struct loop *find_loop(struct sw_scraper *s)
{
	struct loop *l;

	LIST_FOREACH (l, &s->loops, link)
		if (l->n_pages < PAGES_OF_A_LOOP)
			return l;
	l = calloc(1, sizeof(*l));
	if (!l || sw_curl_loop_new(&l->curl, s->base, sw_fetch_done)) {
		free(l);
		return NULL;
	}
	LIST_INSERT_HEAD(&s->loops, l, link);
	return l;
}

/* ---- pages ---- */

static void free_page(struct page *p)
{
	sw_fetch_free(p->fetch);
	if (p->due)
		TAILQ_REMOVE(&p->scraper->due, p, due_link);
	if (p->tick)
		event_free(p->tick);
	sw_target_free(&p->conf);
	free(p);
}

/* Lets go a page that no target reads any more. */
static void drop_page(struct page *p)
{
	if (p->telling || !TAILQ_EMPTY(&p->targets))
		return;
	LIST_REMOVE(p, link);
	sw_curl_loop_keep(p->loop->curl, --p->loop->n_pages);
	free_page(p);
}

/* ---- what becomes of a page ---- */

/* Every line names the page that it is about. */
static void report_failure(struct target *t, int ret, const struct sw_error *why)
{
	struct sw_error err;

	sw_fail(&err, ret, "%s: %s", sw_fetch_url(t->page->fetch), why->text);
	t->cb(t->arg, ret, NULL, &err); /* may remove the target */
}

/* What runs at an address may change; false: it did not, or is not known. */
static bool recognise(struct target *t, const char *text, size_t length)
{
	enum sw_engine found = sw_engine_recognise(text, length);

	if (found == SW_ENGINES || found == t->engine)
		return false;
	t->engine = found;
	sw_log(SW_INFO, "%s: its series are those of %s", sw_fetch_url(t->page->fetch),
	       sw_engine_name(found));
	return true;
}

/* A front end may have a thousand workers, each of which would read all of its page. */
static int read_as(const struct target *t, const char *text, size_t length,
		   struct sw_report *reports, struct sw_error *err)
{
	struct page *p = t->page;

	if (t->engine != SW_ENGINE_DYNAMO)
		return sw_engine_read(t->engine, &t->hints, text, length, reports, SW_MAX_RANKS,
				      err);
	if (!p->front)
		p->front = sw_front_new(text, length);
	return p->front ? sw_front_read(p->front, &t->hints, reports, SW_MAX_RANKS, err)
			: sw_fail(err, -ENOMEM, "out of memory");
}

static int read_page(struct target *t, const char *text, size_t length, struct sw_report *reports,
		     struct sw_error *err)
{
	int n = read_as(t, text, length, reports, err);

	if (n == -ENODATA && t->guess && recognise(t, text, length))
		n = read_as(t, text, length, reports, err);
	return n;
}

static void tell(struct target *t, int ret, const char *text, size_t length,
		 const struct sw_error *why)
{
	struct sw_report reports[SW_MAX_RANKS];
	struct sw_error err = {};
	int n;

	if (ret) {
		report_failure(t, ret, why);
		return;
	}
	n = read_page(t, text, length, reports, &err);
	if (n < 0)
		report_failure(t, n, &err);
	else
		t->cb(t->arg, n, reports, &err);
}

static void on_page(void *arg, int ret, const char *text, size_t length, const struct sw_error *why)
{
	struct page *p = arg;
	struct target *t;

	p->telling = true;
	for (t = TAILQ_FIRST(&p->targets); t; t = p->next) {
		p->next = TAILQ_NEXT(t, link);
		tell(t, ret, text, length, why);
	}
	p->telling = false;
	sw_front_free(p->front);
	p->front = NULL;
	drop_page(p);
}

/* ---- when a page is asked for ---- */

static const struct timeval at_once;

/* By the loop's own clock, or those of a group would not be due in the same turn of it. */
static void await_due(struct page *p)
{
	struct timeval tv;
	uint64_t us;

	event_base_gettimeofday_cached(p->scraper->base, &tv);
	us = tv.tv_sec * 1000000ULL + tv.tv_usec + p->period_us - p->phase_us;
	us = p->period_us - us % p->period_us;
	if (us < p->period_us / STEPS_OF_A_PERIOD / 2) /* the clock was set, by a little */
		us += p->period_us;
	tv = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
	evtimer_add(p->tick, &tv);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct page *p = arg;
	struct sw_scraper *s = p->scraper;

	(void)fd;
	(void)what;
	await_due(p);
	if (p->due)
		return;
	if (TAILQ_EMPTY(&s->due))
		evtimer_add(s->ask, &at_once);
	TAILQ_INSERT_TAIL(&s->due, p, due_link);
	p->due = true;
}

/* Asks for one page in each turn of the loop: what others have answered is read in between, and
 * does not wait until the last of a group is asked. */
static void on_ask(evutil_socket_t fd, short what, void *arg)
{
	struct sw_scraper *s = arg;
	struct page *p = TAILQ_FIRST(&s->due);
	struct sw_error err;
	int ret;

	(void)fd;
	(void)what;
	if (!p)
		return;
	TAILQ_REMOVE(&s->due, p, due_link);
	p->due = false;
	if (!TAILQ_EMPTY(&s->due))
		evtimer_add(s->ask, &at_once);
	ret = sw_fetch_start(p->fetch, &err);
	if (ret && ret != -EBUSY)
		on_page(p, ret, NULL, 0, &err);
}

/* ---- set up ---- */

int sw_scraper_new(struct sw_scraper **out, struct event_base *base, struct sw_error *err)
{
	struct sw_scraper *s = calloc(1, sizeof(*s));

	if (s) {
		s->base = base;
		LIST_INIT(&s->loops);
		LIST_INIT(&s->pages);
		TAILQ_INIT(&s->due);
		s->ask = evtimer_new(base, on_ask, s);
	}
	if (!s || !s->ask || !find_loop(s)) {
		sw_scraper_free(s);
		return sw_fail(err, -ENOMEM, "cannot set up scraping: out of memory");
	}
	*out = s;
	return 0;
}

/* A thousand pages that become due together would keep each other waiting. Multiples of the golden
 * ratio lie far apart, however many there are. */
static void spread(struct page *p, double *phase, unsigned period_ms)
{
	p->period_us = period_ms * 1000ULL;
	p->phase_us = (unsigned)(*phase * STEPS_OF_A_PERIOD) * p->period_us / STEPS_OF_A_PERIOD;
	*phase = fmod(*phase + 0.618033988749895, 1);
}

static int new_page(struct sw_scraper *s, const struct sw_target *conf, struct page **out,
		    struct sw_error *err)
{
	struct page *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return sw_fail(err, -ENOMEM, "out of memory");
	p->scraper = s;
	p->loop = find_loop(s);
	TAILQ_INIT(&p->targets);
	spread(p, &s->phase, conf->period_ms ? conf->period_ms : DEFAULT_PERIOD_MS);
	p->tick = evtimer_new(s->base, on_tick, p);
	ret = !sw_target_copy(&p->conf, conf) && p->tick && p->loop
		      ? sw_fetch_new(&p->fetch, p->loop->curl, conf, on_page, p, err)
		      : sw_fail(err, -ENOMEM, "out of memory");
	if (ret) {
		free_page(p);
		return ret;
	}
	LIST_INSERT_HEAD(&s->pages, p, link);
	sw_curl_loop_keep(p->loop->curl, ++p->loop->n_pages);
	*out = p;
	return 0;
}

/* A page that is fetched just so already. */
static struct page *find_page(struct sw_scraper *s, const struct sw_target *t)
{
	struct page *p;

	LIST_FOREACH (p, &s->pages, link)
		if (sw_target_same_page(&p->conf, t))
			return p;
	return NULL;
}

int sw_scraper_add(struct sw_scraper *s, const struct sw_target *conf, sw_scrape_cb cb, void *arg,
		   int *id, struct sw_error *err)
{
	struct page *p = find_page(s, conf);
	struct target *t;
	int ret;

	if (!p) {
		ret = new_page(s, conf, &p, err);
		if (ret)
			return ret;
	}
	t = calloc(1, sizeof(*t));
	if (!t || sw_engine_hints_copy(&t->hints, &conf->hints) || evtimer_add(p->tick, &at_once)) {
		if (t)
			sw_engine_hints_free(&t->hints);
		free(t);
		drop_page(p);
		return sw_fail(err, -ENOMEM, "out of memory");
	}
	t->page = p;
	t->engine = conf->engine;
	t->guess = conf->engine == SW_ENGINE_AUTO;
	t->cb = cb;
	t->arg = arg;
	*id = t->id = ++s->last_id;
	TAILQ_INSERT_HEAD(&p->targets, t, link);
	return 0;
}

static struct target *find_target(const struct sw_scraper *s, int id)
{
	struct target *t;
	struct page *p;

	LIST_FOREACH (p, &s->pages, link)
		TAILQ_FOREACH (t, &p->targets, link)
			if (t->id == id)
				return t;
	return NULL;
}

enum sw_engine sw_scraper_engine(const struct sw_scraper *s, int id)
{
	const struct target *t = find_target(s, id);

	return t ? t->engine : SW_ENGINE_AUTO;
}

static void remove_target(struct target *t)
{
	struct page *p = t->page;

	if (p->next == t)
		p->next = TAILQ_NEXT(t, link);
	TAILQ_REMOVE(&p->targets, t, link);
	sw_engine_hints_free(&t->hints);
	free(t);
	drop_page(p);
}

void sw_scraper_remove(struct sw_scraper *s, int id)
{
	struct target *t = find_target(s, id);

	if (t)
		remove_target(t);
}

void sw_scraper_free(struct sw_scraper *s)
{
	if (!s)
		return;
	while (!LIST_EMPTY(&s->pages))
		remove_target(TAILQ_FIRST(&LIST_FIRST(&s->pages)->targets));
	while (!LIST_EMPTY(&s->loops)) {
		struct loop *l = LIST_FIRST(&s->loops);

		LIST_REMOVE(l, link);
		sw_curl_loop_free(l->curl);
		free(l);
	}
	if (s->ask)
		event_free(s->ask);
	free(s);
}
