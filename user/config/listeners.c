// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Listeners of a configuration: where, for which pool, who is exempt. Which of their paths may be
 * shed is in paths.c. Whether something listens there is for the daemon to find out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"

#define SYN_RATE 50000 /* SYN-ACKs a second and source prefix */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Would a packet find both? A listener on one address goes before one on any, so these two may
 * share a port. */
static bool collide(const struct sw_listener_conf *a, const struct sw_listener_conf *b)
{
	return a->port == b->port && same_text(a->netns, b->netns) &&
	       !memcmp(a->addr, b->addr, sizeof(a->addr)) && ((a->v4 && b->v4) || (a->v6 && b->v6));
}

static void build_exempt(const struct sw_place *at, const struct sw_doc_listener *d,
			 struct sw_listener_conf *l)
{
	l->exempt = sw_take_array(at, d->exempt_count, sizeof(*l->exempt));
	l->n_exempt = l->exempt ? d->exempt_count : 0;
	for (size_t i = 0; i < l->n_exempt; i++) {
		struct sw_place place = sw_part(at, "exempt[%zu]", i);
		struct sw_error error;

		if (sw_parse_cidr(d->exempt[i], &l->exempt[i], &error))
			sw_bad(&place, NULL, "%s", error.text);
	}
}

static size_t find_pool(const struct sw_place *at, const char *name, const struct sw_config *c)
{
	char names[160] = "";
	size_t used = 0;

	if (!name && c->n_pools == 1)
		return 0;
	for (size_t i = 0; i < c->n_pools; i++) {
		if (name && !strcmp(name, c->pools[i].name))
			return i;
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 i ? ", " : "", c->pools[i].name);
	}
	if (name)
		sw_bad(at, "pool", "there is no pool '%.100s'; allowed: %s", name, names);
	else
		sw_bad(at, "pool", "missing; allowed: %s", names);
	return 0;
}

static enum sw_intercept take_intercept(const struct sw_place *at, const char *text)
{
	static const char *const choices[] = {[SW_INTERCEPT_NEW] = "new",
					      [SW_INTERCEPT_ESTABLISHED] = "established",
					      [SW_INTERCEPT_BOTH] = "both",
					      [SW_INTERCEPT_AUTO] = "auto",
					      NULL};

	return (enum sw_intercept)sw_take_choice(at, "intercept", text, choices, SW_INTERCEPT_AUTO);
}

static void build_listener(const struct sw_place *at, const struct sw_doc_listener *d,
			   const struct sw_config *c, const struct sw_traits *traits,
			   struct sw_listener_conf *l)
{
	struct sw_error error;

	if (sw_parse_listener(d->listen, l->addr, &l->v4, &l->v6, &l->port, &error))
		sw_bad(at, "listen", "%s", error.text);
	l->pool = find_pool(at, d->pool, c);
	l->netns = sw_take_netns(at, d->netns);
	l->syn_rate = (uint32_t)sw_take_uint(at, "syn_rate", d->syn_rate, 0, UINT32_MAX, SYN_RATE);
	l->intercept = take_intercept(at, d->intercept);
	build_exempt(at, d, l);
	sw_build_paths(at, &d->paths, &traits[l->pool], l);
}

static bool any_connects(const struct sw_config *c)
{
	for (size_t i = 0; i < c->n_pools; i++)
		if (c->pools[i].steer.by == SW_STEER_CONNECT)
			return true;
	return false;
}

void sw_build_listeners(const struct sw_place *top, const struct sw_doc *doc, struct sw_config *c,
			const struct sw_traits *traits)
{
	if (!doc->listeners_count && !any_connects(c))
		sw_bad(top, "listeners",
		       "none; allowed: 1 to %d, or none where a pool has steer: connect",
		       SW_MAX_LISTENERS - 1);
	if (doc->listeners_count >= SW_MAX_LISTENERS)
		sw_bad(top, "listeners", "%u entries; allowed: up to %d", doc->listeners_count,
		       SW_MAX_LISTENERS - 1);
	if (top->build->err)
		return;
	c->listeners = sw_take_array(top, doc->listeners_count, sizeof(*c->listeners));
	c->n_listeners = c->listeners ? doc->listeners_count : 0;
	for (size_t i = 0; i < c->n_listeners && !top->build->err; i++) {
		struct sw_place place = sw_part(top, "listeners[%zu]", i);

		build_listener(&place, &doc->listeners[i], c, traits, &c->listeners[i]);
		for (size_t j = 0; j < i; j++)
			if (collide(&c->listeners[i], &c->listeners[j]))
				sw_bad(&place, "listen",
				       "'%.100s' is covered by listeners[%zu] already; allowed: "
				       "once for an address, port and netns",
				       doc->listeners[i].listen, j);
	}
}
