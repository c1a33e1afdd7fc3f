// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies of what the operator knows of an engine, see engine.h: a configuration goes, and what runs
 * by it stays. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sources/custom.h"

int sw_engine_hints_copy(struct sw_engine_hints *to, const struct sw_engine_hints *from)
{
	*to = *from;
	to->model = from->model ? strdup(from->model) : NULL;
	to->custom = sw_custom_hold(from->custom);
	return from->model && !to->model ? -ENOMEM : 0;
}

void sw_engine_hints_free(struct sw_engine_hints *h)
{
	free((char *)h->model);
	sw_custom_drop(h->custom);
}

bool sw_engine_hints_same(const struct sw_engine_hints *a, const struct sw_engine_hints *b)
{
	return a->kv_total == b->kv_total && a->max_batched == b->max_batched &&
	       a->has_worker_id == b->has_worker_id && a->worker_id == b->worker_id &&
	       !a->model == !b->model && (!a->model || !strcmp(a->model, b->model)) &&
	       sw_custom_same(a->custom, b->custom);
}
