// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frees a configuration, whole or half built. */
#include <stdlib.h>

#include "config/config.h"
#include "sources/custom.h"

static void free_pool(struct sw_pool_conf *p)
{
	for (size_t i = 0; i < p->n_workers; i++) {
		struct sw_worker_conf *w = &p->workers[i];

		free(w->name);
		free(w->source.url);
		free(w->source.bearer_token_file);
		free(w->source.ca_file);
		free(w->source.netns);
		sw_custom_drop(w->source.hints.custom);
	}
	free(p->workers);
	free(p->steer.virtuals);
	free(p->steer.cgroup);
	free(p->steer.netns);
	for (int f = 0; f < SW_FAMILIES; f++)
		free((char *)p->answer.body[f]);
	if (p->discover) {
		free(p->discover->namespace);
		free(p->discover->component);
		free(p->discover->endpoint);
	}
	free(p->discover);
	free(p->model);
	free(p->name);
}

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	free(texts);
}

static void free_dynamo(struct sw_dynamo_conf *d)
{
	free_texts(d->etcd, d->n_etcd);
	free_texts(d->zmq, d->n_zmq);
	free_texts(d->nats, d->n_nats);
	free(d->etcd_user);
	free(d->etcd_password_file);
	free(d->etcd_ca_file);
	free(d->store_path);
	free(d->nats_credentials_file);
}

static void free_listener(struct sw_listener_conf *l)
{
	for (size_t i = 0; i < l->n_paths; i++)
		free(l->paths[i].path);
	free(l->paths);
	free(l->exempt);
	free(l->netns);
}

void sw_config_free(struct sw_config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_pools; i++)
		free_pool(&c->pools[i]);
	for (size_t i = 0; i < c->n_listeners; i++)
		free_listener(&c->listeners[i]);
	free_texts(c->interfaces, c->n_interfaces);
	free_dynamo(&c->dynamo);
	free(c->pools);
	free(c->listeners);
	free(c->file);
	free(c->text);
	free(c->control);
	free(c->control_token_file);
	free(c->state_file);
	free(c->pin_root);
	free(c);
}
