// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The virtual addresses, and how they come from one configuration to the next without leading to
 * the wrong pool for a moment; see steering.h. */
#include <errno.h>
#include <string.h>

#include "daemon/steering.h"

int sw_virtuals_list(const struct sw_config *c, struct sw_virtuals *out, struct sw_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_pools; i++)
		n += c->pools[i].steer.n_virtuals;
	*out = (struct sw_virtuals){.list = calloc(n + 1, sizeof(*out->list))};
	if (!out->list)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < c->n_pools; i++)
		for (size_t j = 0; j < c->pools[i].steer.n_virtuals; j++) {
			const struct sw_endpoint *at = &c->pools[i].steer.virtuals[j];
			struct sw_virtual *v = &out->list[out->n++];

			v->pool = (uint32_t)i;
			v->at.port = at->port;
			memcpy(v->at.addr, at->addr, sizeof(at->addr));
		}
	return 0;
}

/* Does its number still mean the right pool when members have changed and addresses not yet? */
static bool holds(const struct sw_virtual *v, const struct sw_live *live,
		  const struct sw_config *next, const struct sw_virtuals *then)
{
	bool found = false;

	for (size_t i = 0; i < then->n; i++) {
		if (memcmp(&then->list[i].at, &v->at, sizeof(v->at)))
			continue;
		if (then->list[i].pool == v->pool)
			return true;
		found = true;
	}
	return found && (v->pool >= next->n_pools ||
			 !strcmp(live->conf->pools[v->pool].name, next->pools[v->pool].name));
}

int sw_virtuals_thin(struct sw_steering *s, const struct sw_config *next,
		     const struct sw_virtuals *then, struct sw_error *err)
{
	struct sw_virtuals thin = {0};
	int e;

	if (!s->settled)
		return 0; /* of what a former daemon left nothing is known */
	thin.list = calloc(s->virtuals.n + 1, sizeof(*thin.list));
	if (!thin.list)
		return sw_fail(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < s->virtuals.n; i++)
		if (holds(&s->virtuals.list[i], s->live, next, then))
			thin.list[thin.n++] = s->virtuals.list[i];
	e = sw_steer_virtuals(s->live->steer, thin.list, thin.n, err);
	free(thin.list);
	return e;
}

int sw_virtuals_write(struct sw_steering *s, struct sw_virtuals *v, struct sw_error *err)
{
	int e = sw_steer_virtuals(s->live->steer, v->list, v->n, err);

	free(s->virtuals.list);
	s->virtuals = *v;
	*v = (struct sw_virtuals){0};
	return e;
}
