// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The numbers by which the kernel knows pools: on a reload a pool keeps its own wherever it is
 * written now, so that nothing that is under way is taken for another pool's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

static size_t find(const struct sw_config *c, const char *name)
{
	size_t i = 0;

	while (i < c->n_pools && strcmp(c->pools[i].name, name))
		i++;
	return i;
}

/* Where each pool of `next` is to be. What is new, or had a number that is too high now, gets the
 * lowest free ones. */
static void choose(const struct sw_config *now, const struct sw_config *next, size_t *place)
{
	bool taken[SW_MAX_POOLS] = {false};
	size_t n = next->n_pools, lowest = 0;

	for (size_t i = 0; i < n; i++) {
		place[i] = find(now, next->pools[i].name);
		if (place[i] < now->n_pools && place[i] < n)
			taken[place[i]] = true;
		else
			place[i] = n;
	}
	for (size_t i = 0; i < n; i++) {
		while (lowest < n && taken[lowest])
			lowest++;
		if (place[i] == n)
			place[i] = lowest++;
	}
}

int sw_keep_numbers(const struct sw_config *now, struct sw_config *next, struct sw_error *err)
{
	struct sw_pool_conf *pools = calloc(next->n_pools + 1, sizeof(*pools));
	size_t place[SW_MAX_POOLS];

	if (!pools)
		return sw_fail(err, -ENOMEM, "no memory");
	choose(now, next, place);
	for (size_t i = 0; i < next->n_pools; i++)
		pools[place[i]] = next->pools[i];
	for (size_t i = 0; i < next->n_listeners; i++)
		next->listeners[i].pool = place[next->listeners[i].pool];
	free(next->pools);
	next->pools = pools;
	return 0;
}
