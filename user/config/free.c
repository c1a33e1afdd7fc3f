// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frees a configuration, whole or half built. */
#include <stdlib.h>

#include "config/config.h"

static void free_pool(struct sw_pool_conf *p)
{
	for (size_t i = 0; i < p->n_workers; i++) {
		struct sw_worker_conf *w = &p->workers[i];

		free(w->name);
		free(w->source.url);
		free(w->source.bearer_token_file);
		free(w->source.ca_file);
		free(w->source.netns);
	}
	free(p->workers);
	free(p->steer.virtuals);
	free(p->steer.cgroup);
	free(p->steer.netns);
	for (int f = 0; f < SW_FAMILIES; f++)
		free((char *)p->answer.body[f]);
	free(p->name);
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
	for (size_t i = 0; i < c->n_interfaces; i++)
		free(c->interfaces[i]);
	for (size_t i = 0; i < c->n_pools; i++)
		free_pool(&c->pools[i]);
	for (size_t i = 0; i < c->n_listeners; i++)
		free_listener(&c->listeners[i]);
	free(c->interfaces);
	free(c->pools);
	free(c->listeners);
	free(c->file);
	free(c->control);
	free(c->pin_root);
	free(c);
}
