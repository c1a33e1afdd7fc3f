// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the configuration of a pool asks for in slots; see steering.h. Looks at nothing that runs.
 */
#include "daemon/steering.h"

uint32_t sw_pool_worker_cap(const struct sw_pool_conf *p, size_t worker)
{
	const struct sw_worker_conf *w = &p->workers[worker];

	return sw_slots_cap(&p->limits, w->engine_limit, w->queue_limit, w->share);
}

uint64_t sw_pool_cap(const struct sw_pool_conf *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->n_workers; i++) {
		uint32_t cap = sw_pool_worker_cap(p, i);

		if (cap == SW_NO_CAP)
			return UINT64_MAX;
		sum += cap;
	}
	return p->n_workers ? sum : UINT64_MAX;
}

bool sw_pool_has_row(const struct sw_pool_conf *p)
{
	return p->steer.by == SW_STEER_NONE &&
	       (p->steer.count == SW_COUNT_CONNECTIONS || sw_pool_cap(p) != UINT64_MAX);
}

bool sw_pool_is_plain(const struct sw_live_pool *p)
{
	return p->conf->steer.by == SW_STEER_NONE && p->row < 0;
}
