// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From events to workers, see hears.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/daemon.h"
#include "daemon/hears.h"
#include "sources/events.h"

#define SAY_EVERY_MS 60000 /* that somebody tells of workers which no pool has */

struct known {
	uint64_t id;
	struct sw_live_worker *worker;
};

struct sw_hears {
	struct sw_live *live;
	struct sw_events *events;
	char **told; /* endpoints that membership told, in order */
	size_t n_told;
	struct known *known; /* by id; a worker may be in several pools */
	size_t n_known;
	uint64_t roster;  /* live->rosters that `known` is of */
	uint64_t said_ms; /* that there are strangers */
};

/* ---- workers by id -------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct known *)a)->id, y = ((const struct known *)b)->id;

	return x < y ? -1 : x > y;
}

static void index_workers(struct sw_hears *h)
{
	const struct sw_live *live = h->live;
	size_t n = 0;

	for (size_t i = 0; i < live->n_pools; i++)
		n += live->pools[i].n_workers;
	free(h->known);
	h->n_known = 0;
	h->known = calloc(n + 1, sizeof(*h->known));
	if (!h->known)
		return; /* and tried again with the next event */
	for (size_t i = 0; i < live->n_pools; i++)
		for (size_t j = 0; j < live->pools[i].n_workers; j++) {
			struct sw_live_worker *w = live->pools[i].workers[j];

			if (w->conf->has_worker_id)
				h->known[h->n_known++] = (struct known){w->conf->worker_id, w};
		}
	qsort(h->known, h->n_known, sizeof(*h->known), by_id);
	h->roster = live->rosters;
}

/* The first one with that id; n_known: none. */
static size_t find(const struct sw_hears *h, uint64_t id)
{
	size_t low = 0, high = h->n_known;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (h->known[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < h->n_known && h->known[low].id == id ? low : h->n_known;
}

static void note_stranger(struct sw_hears *h, const struct sw_load_event *event)
{
	uint64_t now = sw_now_ms();

	h->live->strangers++;
	h->live->stranger = event->worker_id;
	if (h->said_ms && now - h->said_ms < SAY_EVERY_MS)
		return;
	h->said_ms = now;
	sw_log(SW_INFO,
	       "events tell of worker %" PRIu64 ", which no pool has; %" PRIu64
	       " such events so far were ignored",
	       event->worker_id, h->live->strangers);
}

/* What the configuration knows and events do not tell. */
static void add_hints(struct sw_report *r, const struct sw_engine_hints *hints)
{
	if (hints->kv_total && !(r->have & 1U << SW_SIG_KV_TOTAL)) {
		r->have |= 1U << SW_SIG_KV_TOTAL;
		r->value[SW_SIG_KV_TOTAL] = hints->kv_total;
	}
	if (hints->max_batched && !(r->have & 1U << SW_SIG_MAX_BATCHED)) {
		r->have |= 1U << SW_SIG_MAX_BATCHED;
		r->value[SW_SIG_MAX_BATCHED] = hints->max_batched;
	}
}

static void on_event(void *arg, const struct sw_load_event *event)
{
	const struct sw_error none = {""};
	struct sw_hears *h = arg;
	size_t i;

	if (!h->known || h->roster != h->live->rosters)
		index_workers(h);
	i = find(h, event->worker_id);
	if (i == h->n_known)
		note_stranger(h, event);
	for (; i < h->n_known && h->known[i].id == event->worker_id; i++) {
		struct sw_live_worker *w = h->known[i].worker;
		struct sw_report report = event->report;

		add_hints(&report, &w->conf->source.hints);
		sw_worker_told(w, SW_FEED_EVENTS, event->publisher, 1, &report, &none);
	}
}

/* ---- where to listen ------------------------------------------------------------------------ */

static bool is_configured(const struct sw_dynamo_conf *conf, const char *endpoint)
{
	for (size_t i = 0; i < conf->n_zmq; i++)
		if (!strcmp(conf->zmq[i], endpoint))
			return true;
	return false;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool holds(char *const *sorted, size_t n, const char *text)
{
	return bsearch(&text, sorted, n, sizeof(*sorted), by_text);
}

static void listen_to(struct sw_hears *h, const char *endpoint, bool broker)
{
	struct sw_error err = {""};

	if (sw_events_zmq(h->events, endpoint, broker, &err))
		sw_log(SW_WARN, "membership tells of events at %.200s: %s", endpoint, err.text);
}

void sw_hears_members(struct sw_hears *h, const struct sw_members *m,
		      const struct sw_dynamo_conf *conf)
{
	size_t n = 0, n_told = 0;
	struct sw_channel *channels = sw_members_channels(m, &n);
	char **told = calloc(n + 1, sizeof(*told));

	if (!channels || !told) {
		free(channels);
		free(told);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct sw_channel *c = &channels[i];

		if (c->kind == SW_CHANNEL_NATS || is_configured(conf, c->address))
			continue;
		if (!holds(h->told, h->n_told, c->address))
			listen_to(h, c->address, c->kind == SW_CHANNEL_ZMQ_BROKER);
		told[n_told] = strdup(c->address);
		n_told += told[n_told] != NULL;
	}
	qsort(told, n_told, sizeof(*told), by_text);
	for (size_t i = 0; i < h->n_told; i++) {
		if (!holds(told, n_told, h->told[i]))
			sw_events_zmq_drop(h->events, h->told[i]);
		free(h->told[i]);
	}
	free(h->told);
	free(channels);
	h->told = told;
	h->n_told = n_told;
}

int sw_hears_new(struct sw_hears **out, struct sw_live *live, struct event_base *base,
		 struct sw_error *err)
{
	const struct sw_dynamo_conf *c = &live->conf->dynamo;
	struct sw_hears *h = calloc(1, sizeof(*h));
	int e;

	if (!h)
		return sw_fail(err, -ENOMEM, "no memory");
	h->live = live;
	e = sw_events_new(&h->events, base, on_event, h, err);
	for (size_t i = 0; i < c->n_zmq && !e; i++)
		e = sw_events_zmq(h->events, c->zmq[i], c->zmq_broker, err);
	if (!e && c->n_nats)
		e = sw_events_nats(h->events, c->nats, c->n_nats, c->nats_credentials_file, err);
	if (e)
		sw_hears_free(h);
	else
		*out = h;
	return e;
}

void sw_hears_free(struct sw_hears *h)
{
	if (!h)
		return;
	sw_events_free(h->events);
	for (size_t i = 0; i < h->n_told; i++)
		free(h->told[i]);
	free(h->told);
	free(h->known);
	free(h);
}

bool sw_hears_show(const struct sw_hears *h, size_t index, struct sw_live_source *out)
{
	static const char *const states[] = {
		[SW_EVENTS_CONNECTING] = "connecting",
		[SW_EVENTS_OK] = "ok",
		[SW_EVENTS_FAILING] = "failing",
	};
	struct sw_events_status s;

	if (!sw_events_status(h->events, index, &s))
		return false;
	*out = (struct sw_live_source){
		.kind = s.kind,
		.name = s.name,
		.state = states[s.state],
		.at_ms = s.at_ms,
		.messages = s.messages,
		.dropped = s.dropped,
		.bad = s.bad,
		.errors = s.errors,
		.error = s.error,
		.last_error = s.last_error,
		.last_error_ms = s.last_error_ms,
	};
	return true;
}
