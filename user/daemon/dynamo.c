// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Dynamo wired into the daemon, see dynamo.h: a store fills the table of members; the table says
 * which workers pools get, and where events are published; events go to workers by their id. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/daemon.h"
#include "daemon/discover.h"
#include "daemon/dynamo.h"
#include "daemon/hears.h"
#include "sources/etcd.h"
#include "sources/filestore.h"

#define RETRY_S 10 /* after workers could not be taken in */

struct sw_dynamo {
	struct sw_live *live;
	struct sw_members *members; /* NULL: no store */
	struct sw_etcd *etcd;
	struct sw_filestore *files;
	bool known; /* the store has been read */
	struct sw_found *found;
	struct sw_hears *hears;
	struct sw_error said; /* why workers were not taken in, or are left out */
	unsigned retry_s;     /* seconds until it is tried again; 0: no need */
};

/* ---- members to workers --------------------------------------------------------------------- */

static void say_once(struct sw_dynamo *d, enum sw_level level, const struct sw_error *err)
{
	if (err->text[0] && strcmp(err->text, d->said.text))
		sw_log(level, "%s", err->text);
	d->said = *err;
}

static size_t count_discovered(const struct sw_config *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_pools; i++)
		for (size_t j = 0; j < c->pools[i].n_workers; j++)
			n += c->pools[i].workers[j].discovered;
	return n;
}

/* Gives the running configuration other discovered workers. */
static int exchange(struct sw_dynamo *d, const struct sw_additions *a, struct sw_error *err)
{
	struct sw_live *live = d->live;
	size_t before = count_discovered(live->conf);
	struct sw_config *next = NULL;
	int e = sw_config_with(live->conf, a->workers, a->n, &next, err);

	sw_gates_beat(live); /* a large configuration takes a while to apply */
	if (!e)
		e = sw_switch(live, next, err);
	if (e)
		sw_config_free(next);
	else
		sw_log(SW_INFO, "membership: workers discovered: %zu, before %zu", a->n, before);
	return e;
}

static void take_workers(struct sw_dynamo *d)
{
	struct sw_found *found = sw_found_take(d->members);
	struct sw_additions a = {0};
	struct sw_error err = {""}, why;
	int e = found ? sw_additions_choose(found, d->live->conf, &a) : -ENOMEM;

	if (e)
		sw_fail(&why, e, "no memory");
	else if (!sw_additions_are_in(&a, d->live->conf))
		e = exchange(d, &a, &why);
	if (e) {
		sw_fail(&err, e, "discovered workers: %.400s; those that run stay", why.text);
		d->retry_s = RETRY_S;
	}
	say_once(d, e ? SW_ERROR : SW_WARN, e ? &err : &a.error);
	sw_additions_free(&a);
	sw_found_free(d->found);
	d->found = found;
}

static const struct sw_store_status *store_status(const struct sw_dynamo *d)
{
	return d->etcd ? sw_etcd_status(d->etcd) : sw_filestore_status(d->files);
}

static void on_members(void *arg)
{
	struct sw_dynamo *d = arg;

	d->known |= store_status(d)->state == SW_STORE_OK;
	if (!d->known)
		return; /* the beginning of a list is not the list */
	take_workers(d);
	d->live->members_known = true;
	sw_hears_members(d->hears, d->members, &d->live->conf->dynamo);
}

void sw_dynamo_second(struct sw_live *live)
{
	struct sw_dynamo *d = live->dynamo;

	if (!d || !d->members)
		return;
	if ((!d->known && store_status(d)->state == SW_STORE_OK) || (d->retry_s && !--d->retry_s))
		on_members(d);
}

int sw_dynamo_extend(const struct sw_live *live, struct sw_config **conf, struct sw_error *err)
{
	const struct sw_dynamo *d = live->dynamo;
	struct sw_config *next = NULL;
	struct sw_additions a;
	struct sw_error why;
	int e;

	if (!d || !d->found || (*conf)->dynamo.store == SW_STORE_NONE)
		return 0;
	e = sw_additions_choose(d->found, *conf, &a);
	if (e)
		return sw_fail(err, e, "no memory");
	if (a.n)
		e = sw_config_with(*conf, a.workers, a.n, &next, &why);
	sw_additions_free(&a);
	if (e)
		return sw_fail(err, e, "with the workers that are discovered: %.450s", why.text);
	if (next) {
		sw_config_free(*conf);
		*conf = next;
	}
	return 0;
}

/* ---- what is shown -------------------------------------------------------------------------- */

static void show_store(const struct sw_dynamo *d, struct sw_live_source *out)
{
	static const char *const states[] = {
		[SW_STORE_CONNECTING] = "connecting",
		[SW_STORE_OK] = "ok",
		[SW_STORE_FAILING] = "failing",
	};
	const struct sw_members_counts *counts = sw_members_counts(d->members);
	const struct sw_store_status *s = store_status(d);
	bool store_last = s->error_ms > counts->error_ms;

	*out = (struct sw_live_source){
		.kind = d->etcd ? "etcd" : "file",
		.name = s->name,
		.state = states[s->state],
		.at_ms = s->at_ms,
		.messages = counts->told,
		.dropped = counts->dropped,
		.bad = counts->bad,
		.errors = s->errors,
		.error = s->state == SW_STORE_FAILING ? s->error.text : counts->error.text,
		.last_error = store_last ? s->error.text : counts->error.text,
		.last_error_ms = store_last ? s->error_ms : counts->error_ms,
	};
}

static bool show(const struct sw_live *live, size_t index, struct sw_live_source *out)
{
	const struct sw_dynamo *d = live->dynamo;

	if (!d)
		return false;
	if (d->members && index == 0) {
		show_store(d, out);
		return true;
	}
	return sw_hears_show(d->hears, index - (d->members ? 1 : 0), out);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static int open_store(struct sw_dynamo *d, struct event_base *base, struct sw_error *err)
{
	const struct sw_dynamo_conf *c = &d->live->conf->dynamo;
	const struct sw_etcd_conf etcd = {
		.endpoints = c->etcd,
		.n = c->n_etcd,
		.user = c->etcd_user,
		.password_file = c->etcd_password_file,
		.ca_file = c->etcd_ca_file,
	};

	if (c->store == SW_STORE_NONE)
		return 0;
	d->members = sw_members_new(base, on_members, d);
	if (!d->members)
		return sw_fail(err, -ENOMEM, "no memory");
	return c->store == SW_STORE_ETCD
		       ? sw_etcd_new(&d->etcd, base, &etcd, d->members, err)
		       : sw_filestore_new(&d->files, base, c->store_path, d->members, err);
}

int sw_dynamo_open(struct sw_live *live, struct event_base *base, struct sw_error *err)
{
	const struct sw_dynamo_conf *c = &live->conf->dynamo;
	struct sw_dynamo *d;
	int e;

	live->source = show;
	if (c->store == SW_STORE_NONE && !c->n_zmq && !c->n_nats)
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return sw_fail(err, -ENOMEM, "no memory");
	d->live = live;
	live->dynamo = d;
	e = sw_hears_new(&d->hears, live, base, err);
	if (!e)
		e = open_store(d, base, err);
	if (e)
		sw_dynamo_close(live);
	return e;
}

void sw_dynamo_close(struct sw_live *live)
{
	struct sw_dynamo *d = live->dynamo;

	if (!d)
		return;
	sw_etcd_free(d->etcd);
	sw_filestore_free(d->files);
	sw_members_free(d->members);
	sw_hears_free(d->hears);
	sw_found_free(d->found);
	free(d);
	live->dynamo = NULL;
}

int sw_dynamo_reopen(struct sw_live *live, struct event_base *base, struct sw_error *err)
{
	struct sw_found *found = NULL;
	int e;

	if (live->dynamo) {
		found = live->dynamo->found;
		live->dynamo->found = NULL;
	}
	sw_dynamo_close(live);
	e = sw_dynamo_open(live, base, err);
	if (live->dynamo)
		live->dynamo->found = found;
	else
		sw_found_free(found);
	return e;
}

static bool same_texts(char *const *a, size_t n_a, char *const *b, size_t n_b)
{
	for (size_t i = 0; i < n_a && n_a == n_b; i++)
		if (strcmp(a[i], b[i]))
			return false;
	return n_a == n_b;
}

bool sw_dynamo_same(const struct sw_dynamo_conf *a, const struct sw_dynamo_conf *b)
{
	return a->store == b->store && a->zmq_broker == b->zmq_broker &&
	       same_texts(a->etcd, a->n_etcd, b->etcd, b->n_etcd) &&
	       same_texts(a->zmq, a->n_zmq, b->zmq, b->n_zmq) &&
	       same_texts(a->nats, a->n_nats, b->nats, b->n_nats) &&
	       sw_same_text(a->etcd_user, b->etcd_user) &&
	       sw_same_text(a->etcd_password_file, b->etcd_password_file) &&
	       sw_same_text(a->etcd_ca_file, b->etcd_ca_file) &&
	       sw_same_text(a->store_path, b->store_path) &&
	       sw_same_text(a->nats_credentials_file, b->nats_credentials_file);
}
