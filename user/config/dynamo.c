// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* NVIDIA Dynamo's membership and event plane in a configuration: where workers are registered,
 * where their load is published. Whether anything answers there is for the sources to find out. */
#include <limits.h>
#include <string.h>

#include "config/build.h"

static char **take_texts(const struct sw_place *at, const char *key, char **texts, unsigned n,
			 const char *const *schemes, size_t *count)
{
	char **out = sw_take_array(at, n, sizeof(*out));

	*count = out ? n : 0;
	for (size_t i = 0; i < *count; i++) {
		struct sw_place place = sw_part(at, "%s[%zu]", key, i);
		const char *const *s = schemes;

		while (*s && strncmp(texts[i], *s, strlen(*s)))
			s++;
		if (!*s || !texts[i][strlen(*s)])
			sw_bad(&place, NULL, "'%.100s' is no address; allowed: %s...%s%s%s",
			       texts[i], schemes[0], schemes[1] ? " or " : "",
			       schemes[1] ? schemes[1] : "", schemes[1] ? "..." : "");
		out[i] = sw_take_text(&place, NULL, texts[i]);
	}
	return out;
}

/* What is said about a thing means nothing without it. */
static void check_unused(const struct sw_place *at, const struct sw_doc_dynamo *d,
			 enum sw_store store)
{
	const struct {
		const char *key;
		bool given, used;
		const char *with;
	} fields[] = {
		{"etcd", d->etcd_count, store == SW_STORE_ETCD, "store: etcd"},
		{"etcd_user", d->etcd_user, store == SW_STORE_ETCD, "store: etcd"},
		{"etcd_password_file", d->etcd_password_file, d->etcd_user, "etcd_user"},
		{"etcd_ca_file", d->etcd_ca_file, store == SW_STORE_ETCD, "store: etcd"},
		{"store_path", d->store_path, store == SW_STORE_FILE, "store: file"},
		{"zmq_broker", d->zmq_broker, d->zmq_count, "zmq"},
		{"nats_credentials_file", d->nats_credentials_file, d->nats_count, "nats"},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].given && !fields[i].used)
			sw_bad(at, fields[i].key, "never used; allowed: with %s", fields[i].with);
}

void sw_build_dynamo(const struct sw_place *top, const struct sw_doc_dynamo *d,
		     struct sw_dynamo_conf *c)
{
	static const char *const stores[] = {"none", "etcd", "file", NULL};
	static const char *const http[] = {"http://", "https://", NULL};
	static const char *const zmq[] = {"tcp://", "ipc://", NULL};
	static const char *const nats[] = {"nats://", "tls://", NULL};
	struct sw_place at = sw_part(top, "dynamo");

	c->store = (enum sw_store)sw_take_choice(&at, "store", d->store, stores, SW_STORE_NONE);
	c->etcd = take_texts(&at, "etcd", d->etcd, d->etcd_count, http, &c->n_etcd);
	c->zmq = take_texts(&at, "zmq", d->zmq, d->zmq_count, zmq, &c->n_zmq);
	c->nats = take_texts(&at, "nats", d->nats, d->nats_count, nats, &c->n_nats);
	c->zmq_broker = sw_take_bool(&at, "zmq_broker", d->zmq_broker);
	c->etcd_user = sw_take_text(&at, "etcd_user", d->etcd_user);
	c->etcd_password_file =
		sw_take_path(&at, "etcd_password_file", d->etcd_password_file, PATH_MAX);
	c->etcd_ca_file = sw_take_path(&at, "etcd_ca_file", d->etcd_ca_file, PATH_MAX);
	c->store_path = sw_take_path(&at, "store_path", d->store_path, PATH_MAX / 2);
	c->nats_credentials_file =
		sw_take_path(&at, "nats_credentials_file", d->nats_credentials_file, PATH_MAX);
	check_unused(&at, d, c->store);
	if (c->store == SW_STORE_ETCD && !c->n_etcd)
		sw_bad(&at, "etcd", "missing; it has to be given with store: etcd");
	if (c->store == SW_STORE_FILE && !c->store_path)
		sw_bad(&at, "store_path", "missing; it has to be given with store: file");
}

void sw_build_discover(const struct sw_place *pool, const struct sw_doc_pool *d,
		       struct sw_pool_conf *p)
{
	struct sw_place at = sw_part(pool, "discover");

	p->model = sw_take_text(pool, "model", d->model ? d->model : p->name);
	if (!d->discover)
		return;
	p->discover = sw_take_array(&at, 1, sizeof(*p->discover));
	if (!p->discover)
		return;
	p->discover->namespace = sw_take_text(&at, "namespace", d->discover->namespace);
	p->discover->component = sw_take_text(&at, "component", d->discover->component);
	p->discover->endpoint = sw_take_text(&at, "endpoint", d->discover->endpoint);
}

void sw_check_discover(const struct sw_place *top, const struct sw_config *c)
{
	for (size_t i = 0; i < c->n_pools; i++) {
		struct sw_place at = sw_part(top, "pools[%zu]", i);

		if (c->pools[i].discover && c->dynamo.store == SW_STORE_NONE)
			sw_bad(&at, "discover", "never used; allowed: with dynamo.store");
	}
}
