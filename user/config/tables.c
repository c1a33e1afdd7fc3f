// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the listeners need together, held against the size of the kernel's maps. Listeners with the
 * same paths, or the same CIDRs, share one set. */
#include <string.h>

#include "config/build.h"

static bool same_paths(const struct sw_listener_conf *a, const struct sw_listener_conf *b)
{
	if (a->n_paths != b->n_paths)
		return false;
	for (size_t i = 0; i < a->n_paths; i++) {
		const struct sw_path_conf *p = &a->paths[i], *q = &b->paths[i];

		if (p->method != q->method || p->action != q->action || p->family != q->family ||
		    strcmp(p->path, q->path))
			return false;
	}
	return true;
}

static bool same_exempt(const struct sw_listener_conf *a, const struct sw_listener_conf *b)
{
	for (size_t i = 0; i < a->n_exempt && a->n_exempt == b->n_exempt; i++)
		if (a->exempt[i].bits != b->exempt[i].bits ||
		    memcmp(a->exempt[i].addr, b->exempt[i].addr, sizeof(a->exempt[i].addr)))
			return false;
	return a->n_exempt == b->n_exempt;
}

/* Is there an earlier listener with the same set? */
static bool shares(const struct sw_config *c, size_t i,
		   bool (*same)(const struct sw_listener_conf *, const struct sw_listener_conf *))
{
	for (size_t j = 0; j < i; j++)
		if (same(&c->listeners[i], &c->listeners[j]))
			return true;
	return false;
}

/* Takes the prefixes of a listener's patterns into `known`; returns how many there are then. */
static size_t collect_prefixes(const struct sw_listener_conf *l, const char *known[], size_t n)
{
	for (size_t i = 0; i < l->n_paths; i++) {
		const char *path = l->paths[i].path, *name = strchr(path, '{');
		size_t length = name ? (size_t)(name - path) + 1 : 0, k = 0;

		while (k < n && strncmp(known[k], path, length))
			k++;
		if (name && k == n && n <= SW_MAX_PREFIXES)
			known[n++] = path;
	}
	return n;
}

void sw_check_tables(const struct sw_place *top, const struct sw_config *c)
{
	const char *prefixes[SW_MAX_PREFIXES + 1];
	size_t n_paths = 0, n_exempt = 0, n_prefixes = 0;

	for (size_t i = 0; i < c->n_listeners && !top->build->err; i++) {
		const struct sw_listener_conf *l = &c->listeners[i];
		struct sw_place at = sw_part(top, "listeners[%zu]", i);

		n_paths += shares(c, i, same_paths) ? 0 : l->n_paths;
		n_exempt += shares(c, i, same_exempt) ? 0 : l->n_exempt;
		n_prefixes = collect_prefixes(l, prefixes, n_prefixes);
		if (n_paths > SW_MAX_PATHS)
			sw_bad(&at, "paths", "%zu paths up to this listener; allowed: %d in all",
			       n_paths, SW_MAX_PATHS);
		if (n_exempt > SW_MAX_EXEMPT)
			sw_bad(&at, "exempt", "%zu CIDRs up to this listener; allowed: %d in all",
			       n_exempt, SW_MAX_EXEMPT);
		if (n_prefixes > SW_MAX_PREFIXES)
			sw_bad(&at, "paths",
			       "over %d different texts before a {name}; allowed: %d in all",
			       SW_MAX_PREFIXES, SW_MAX_PREFIXES);
	}
}
