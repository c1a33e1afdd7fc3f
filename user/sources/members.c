// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of keys, see members.h: a tree, as thousands of them come and go one by one. What a key
 * says is registration.c's matter. */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "sources/members.h"

#define QUIET_MS     100   /* a change is told when nothing has followed for this long, */
#define LONGEST_MS   1000  /* or after this time */
#define SAY_EVERY_MS 10000 /* malformed keys are said that often */

struct item {
	char *key;
	struct sw_registration *says;
	bool seen; /* since the last beginning */
};

struct sw_members {
	void *tree; /* of struct item, by key */
	size_t n;
	struct event *timer;
	uint64_t changed_ms; /* the first change that was not told yet; 0: none */
	uint64_t said_ms;
	sw_members_cb cb;
	void *arg;
	struct sw_members_counts counts;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->key, ((const struct item *)b)->key);
}

static struct item *find(const struct sw_members *m, const char *key)
{
	struct item wanted = {.key = (char *)key}, **at = tfind(&wanted, &m->tree, by_key);

	return at ? *at : NULL;
}

static void free_item(void *arg)
{
	struct item *e = arg;

	sw_registration_free(e->says);
	free(e->key);
	free(e);
}

/* ---- changes ------------------------------------------------------------------------------- */

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct sw_members *m = arg;

	(void)fd;
	(void)what;
	m->changed_ms = 0;
	m->cb(m->arg);
}

static void changed(struct sw_members *m)
{
	uint64_t now = sw_now_ms(), left;
	struct timeval tv = {0};

	if (!m->changed_ms)
		m->changed_ms = now;
	left = m->changed_ms + LONGEST_MS > now ? m->changed_ms + LONGEST_MS - now : 0;
	tv.tv_usec = (left < QUIET_MS ? left : QUIET_MS) * 1000;
	evtimer_add(m->timer, &tv);
}

static void note_bad(struct sw_members *m, const struct sw_error *err)
{
	uint64_t now = sw_now_ms();

	m->counts.bad++;
	m->counts.error = *err;
	m->counts.error_ms = now;
	if (m->said_ms && now - m->said_ms < SAY_EVERY_MS)
		return;
	m->said_ms = now;
	sw_log(SW_WARN, "membership: %s; this key is passed over", err->text);
}

static int add(struct sw_members *m, const char *key, struct sw_registration *says)
{
	struct item *e = m->n < SW_MEMBERS_MAX ? calloc(1, sizeof(*e)) : NULL;

	if (!e)
		return -ENOSPC;
	e->key = strdup(key);
	e->says = says;
	e->seen = true;
	if (!e->key || !tsearch(e, &m->tree, by_key)) {
		free(e->key);
		free(e);
		return -ENOMEM;
	}
	m->n++;
	return 0;
}

static void drop(struct sw_members *m, struct item *e)
{
	tdelete(e, &m->tree, by_key);
	free_item(e);
	m->n--;
	changed(m);
}

void sw_members_put(struct sw_members *m, const char *key, const char *value, size_t length)
{
	struct item *e = find(m, key);
	struct sw_registration *says = NULL;
	struct sw_error err;
	int ret = sw_registration_read(key, value, length, &says, &err);

	if (e)
		e->seen = true;
	if (ret == -ENOENT)
		return;
	m->counts.told++;
	if (ret) {
		note_bad(m, &err);
	} else if (!e && add(m, key, says)) {
		m->counts.dropped++;
		sw_registration_free(says);
	} else if (e && sw_registration_same(e->says, says)) {
		sw_registration_free(says);
	} else {
		if (e) {
			sw_registration_free(e->says);
			e->says = says;
		}
		changed(m);
	}
}

void sw_members_delete(struct sw_members *m, const char *key)
{
	struct item *e = find(m, key);

	if (!e)
		return;
	m->counts.told++;
	drop(m, e);
}

/* ---- all of them --------------------------------------------------------------------------- */

struct all {
	struct item **items;
	size_t n;
};

static void collect(const void *node, VISIT visit, void *arg)
{
	struct all *all = arg;

	if (visit == postorder || visit == leaf)
		all->items[all->n++] = *(struct item *const *)node;
}

/* All items by key; the array is the caller's to free. */
static struct all list(const struct sw_members *m)
{
	struct all all = {.items = calloc(m->n + 1, sizeof(struct item *))};

	if (all.items)
		twalk_r(m->tree, collect, &all);
	return all;
}

void sw_members_begin(struct sw_members *m)
{
	struct all all = list(m);

	for (size_t i = 0; i < all.n; i++)
		all.items[i]->seen = false;
	free(all.items);
}

void sw_members_end(struct sw_members *m)
{
	struct all all = list(m);

	for (size_t i = 0; i < all.n; i++)
		if (!all.items[i]->seen)
			drop(m, all.items[i]);
	free(all.items);
}

static const struct sw_registration *instance_of(const struct sw_members *m,
						 const struct item *model)
{
	char key[SW_KEY_MAX + 16];
	const struct item *e;

	snprintf(key, sizeof(key), SW_KEY_ROOT "instances/%s",
		 model->key + strlen(SW_KEY_ROOT "mdc/"));
	e = find(m, key);
	return e ? e->says : NULL;
}

struct sw_member *sw_members_list(const struct sw_members *m, size_t *n)
{
	struct sw_member *out = calloc(m->n + 1, sizeof(*out));
	struct all all = list(m);

	*n = 0;
	for (size_t i = 0; out && i < all.n; i++) {
		const struct item *e = all.items[i];
		const struct sw_registration *instance =
			e->says->kind == SW_REG_MODEL ? instance_of(m, e) : NULL;

		if (instance)
			out[(*n)++] = (struct sw_member){instance, e->says};
	}
	free(all.items);
	return out;
}

struct sw_channel *sw_members_channels(const struct sw_members *m, size_t *n)
{
	struct sw_channel *out = calloc(m->n * SW_CHANNELS_MAX + 1, sizeof(*out));
	struct all all = list(m);

	*n = 0;
	for (size_t i = 0; out && i < all.n; i++) {
		const struct sw_registration *r = all.items[i]->says;

		for (size_t j = 0; r->kind == SW_REG_CHANNEL && j < r->n_channels; j++)
			out[(*n)++] = (struct sw_channel){r->channel, r->channels[j]};
	}
	free(all.items);
	return out;
}

const struct sw_members_counts *sw_members_counts(const struct sw_members *m)
{
	return &m->counts;
}

struct sw_members *sw_members_new(struct event_base *base, sw_members_cb cb, void *arg)
{
	struct sw_members *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->cb = cb;
	m->arg = arg;
	m->timer = evtimer_new(base, on_timer, m);
	if (!m->timer) {
		free(m);
		return NULL;
	}
	return m;
}

void sw_members_free(struct sw_members *m)
{
	if (!m)
		return;
	event_free(m->timer);
	tdestroy(m->tree, free_item);
	free(m);
}
