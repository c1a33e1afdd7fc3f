// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Workers that are not in the file: written into its document as if they were, so that they pass
 * the same checks. Where they come from is the daemon's matter. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/doc.h"

static char *number(uint64_t n)
{
	char *text = NULL;

	return asprintf(&text, "%" PRIu64, n) < 0 ? NULL : text;
}

static int write_worker(const struct sw_added_worker *w, struct sw_doc_worker *d)
{
	d->name = strdup(w->name);
	d->worker_id = number(w->worker_id);
	d->data_parallel_start_rank = number(w->start_rank);
	if (w->address)
		d->address = strdup(w->address);
	if (w->kv_total)
		d->kv_total = number(w->kv_total);
	if (w->max_batched)
		d->max_num_batched_tokens = number(w->max_batched);
	if (w->dp_size > 0)
		d->data_parallel_size = number((uint64_t)w->dp_size);
	return d->name && d->worker_id && d->data_parallel_start_rank &&
			       !d->address == !w->address && !d->kv_total == !w->kv_total &&
			       !d->max_num_batched_tokens == !w->max_batched &&
			       !d->data_parallel_size == !(w->dp_size > 0)
		       ? 0
		       : -ENOMEM;
}

static int add(struct sw_doc_pool *pool, const struct sw_added_worker *w)
{
	struct sw_doc_worker *grown =
		reallocarray(pool->workers, pool->workers_count + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	pool->workers = grown;
	memset(&grown[pool->workers_count], 0, sizeof(*grown));
	return write_worker(w, &grown[pool->workers_count++]);
}

int sw_doc_add(struct sw_doc *doc, const struct sw_added_worker *added, size_t n,
	       struct sw_error *err)
{
	for (size_t i = 0; i < n; i++)
		for (unsigned j = 0; j < doc->pools_count; j++)
			if (!strcmp(doc->pools[j].name, added[i].pool) &&
			    add(&doc->pools[j], &added[i]))
				return sw_fail(err, -ENOMEM, "out of memory");
	return 0;
}

void sw_mark_added(struct sw_config *c, const struct sw_added_worker *added, size_t n)
{
	for (size_t i = 0; i < c->n_pools; i++) {
		struct sw_pool_conf *p = &c->pools[i];
		size_t at = p->n_workers;

		for (size_t j = 0; j < n; j++)
			if (!strcmp(p->name, added[j].pool))
				p->workers[--at].discovered = true;
	}
}
