// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools that are steered or counted, held against their listeners, their workers and one another:
 * who counts, which addresses go together, whether slot rows suffice. */
#include <stdio.h>
#include <string.h>

#include "config/build.h"
#include "policy/slots.h"

static const uint8_t any_addr[16];

struct route { /* a pool and what it was written as */
	struct sw_place at;
	const struct sw_doc_pool *doc;
	struct sw_pool_conf *pool;
	size_t index;
};

static struct route route_of(const struct sw_place *top, const struct sw_doc *doc,
			     const struct sw_config *c, size_t i)
{
	return (struct route){
		.at = sw_part(top, "pools[%zu]", i),
		.doc = &doc->pools[i],
		.pool = &c->pools[i],
		.index = i,
	};
}

static bool steered(const struct sw_pool_conf *p)
{
	return p->steer.by != SW_STEER_NONE;
}

static bool same_endpoint(const struct sw_endpoint *a, const struct sw_endpoint *b)
{
	return a->port == b->port && !memcmp(a->addr, b->addr, sizeof(a->addr));
}

static bool same_netns(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_loopback(const uint8_t addr[16])
{
	static const uint8_t six[16] = {[15] = 1};

	return (sw_is_ipv4(addr) && addr[12] == 127) || !memcmp(addr, six, sizeof(six));
}

/* Which field a worker's address comes from. */
static const char *address_key(const struct route *r, size_t worker)
{
	return r->doc->workers[worker].address ? "address" : "scrape";
}

static uint32_t cap_of(const struct sw_pool_conf *p, const struct sw_worker_conf *w)
{
	return sw_slots_cap(&p->limits, w->engine_limit, w->queue_limit, w->share);
}

/* Has every worker one? Otherwise the pool as a whole has none. */
static bool has_cap(const struct sw_pool_conf *p)
{
	for (size_t i = 0; i < p->n_workers; i++)
		if (cap_of(p, &p->workers[i]) == SW_NO_CAP)
			return false;
	return p->n_workers;
}

static const struct sw_listener_conf *first_listener(const struct sw_config *c, size_t pool)
{
	for (size_t i = 0; i < c->n_listeners; i++)
		if (c->listeners[i].pool == pool)
			return &c->listeners[i];
	return NULL;
}

/* ---- who counts --------------------------------------------------------------------------- */

/* Is the listener the worker itself? What is known of a listener on any address is that loopback
 * leads to it. */
static bool listens_as(const struct sw_listener_conf *l, const struct sw_worker_conf *w)
{
	char netns[64] = "";
	const char *own = l->netns;

	if (own && !strncmp(own, "pid:", 4)) {
		snprintf(netns, sizeof(netns), "/proc/%.10s/ns/net", own + 4);
		own = netns;
	}
	if (l->port != w->at.port || (w->source.url && !same_netns(own, w->source.netns)))
		return false;
	if (memcmp(l->addr, any_addr, sizeof(any_addr)))
		return !memcmp(l->addr, w->at.addr, sizeof(l->addr));
	return is_loopback(w->at.addr) && (sw_is_ipv4(w->at.addr) ? l->v4 : l->v6);
}

static bool all_listen(const struct sw_config *c, const struct route *r)
{
	for (size_t i = 0; i < r->pool->n_workers; i++) {
		bool found = false;

		for (size_t j = 0; j < c->n_listeners; j++)
			found |= c->listeners[j].pool == r->index &&
				 listens_as(&c->listeners[j], &r->pool->workers[i]);
		if (!found)
			return false;
	}
	return true;
}

/* Connections where they are the requests of the workers, reports elsewhere. */
static void resolve_count(const struct sw_config *c, const struct route *r)
{
	struct sw_steer_conf *s = &r->pool->steer;

	if (s->count == SW_COUNT_AUTO &&
	    (steered(r->pool) || (has_cap(r->pool) && all_listen(c, r))))
		s->count = SW_COUNT_CONNECTIONS;
	if (s->count == SW_COUNT_CONNECTIONS && r->doc->report_lag_ms)
		sw_bad(&r->at, "report_lag_ms",
		       "never used, since this pool counts connections; allowed: with count: "
		       "reports");
	if (s->count == SW_COUNT_CONNECTIONS)
		return;
	s->count = SW_COUNT_REPORTS;
	if (r->doc->cgroup)
		sw_bad(&r->at, "cgroup", "never used; allowed: with steer, or count: connections");
	if (r->doc->report_lag_ms && !has_cap(r->pool) && !r->pool->discover)
		sw_bad(&r->at, "report_lag_ms",
		       "never used; allowed: where every worker has a limit, such as "
		       "engine_request_limit");
	for (size_t i = 0; i < r->pool->n_workers; i++) {
		const struct sw_worker_conf *w = &r->pool->workers[i];
		struct sw_place at = sw_part(&r->at, "workers[%zu]", i);

		if (!w->source.url && !w->has_worker_id && w->at.port)
			sw_bad(&at, "scrape",
			       "missing; without it or worker_id this pool would have to be "
			       "steered, or count connections");
	}
}

/* ---- a steered pool ----------------------------------------------------------------------- */

static void check_addresses(const struct route *r)
{
	const struct sw_pool_conf *p = r->pool;

	for (size_t i = 0; i < p->n_workers; i++) {
		struct sw_place at = sw_part(&r->at, "workers[%zu]", i);

		if (!p->workers[i].at.port && !p->workers[i].source.url)
			sw_bad(&at, p->workers[i].has_worker_id ? "worker_id" : "name",
			       "without an address nothing can be steered to it; give address: "
			       "ADDR:PORT beside it");
		else if (!p->workers[i].at.port)
			sw_bad(&at, "scrape",
			       "'%.100s' has no address to steer to, but a name; give address: "
			       "ADDR:PORT beside it",
			       p->workers[i].source.url);
		for (size_t j = 0; j < i && !at.build->err; j++)
			if (same_endpoint(&p->workers[i].at, &p->workers[j].at))
				sw_bad(&at, address_key(r, i),
				       "the same address as workers[%zu]; allowed: one worker for "
				       "an address",
				       j);
	}
}

/* A router that connects to an IPv4 address has an IPv4 socket. */
static void check_families(const struct route *r)
{
	const struct sw_pool_conf *p = r->pool;
	size_t six = 0;

	for (size_t i = 0; i < p->n_workers; i++)
		six += !sw_is_ipv4(p->workers[i].at.addr);
	for (size_t i = 0; six && i < p->steer.n_virtuals; i++) {
		struct sw_place at = sw_part(&r->at, "virtual[%zu]", i);

		if (!sw_is_ipv4(p->steer.virtuals[i].addr))
			continue;
		if (six == p->n_workers)
			sw_bad(&at, NULL,
			       "'%s' is IPv4 and all workers are IPv6, which its connections cannot "
			       "reach; allowed: an IPv6 address",
			       r->doc->virtuals[i]);
		else
			sw_warn(&at, NULL,
				"'%s' is IPv4, so its connections cannot reach the %zu of %zu "
				"workers that are IPv6; an IPv6 address reaches all",
				r->doc->virtuals[i], six, p->n_workers);
	}
}

/* What comes to a listener is steered away from it, so no worker can be there. */
static void check_taken(const struct route *r, const struct sw_listener_conf *l, size_t listener)
{
	bool any = !memcmp(l->addr, any_addr, sizeof(any_addr));

	for (size_t i = 0; i < r->pool->n_workers; i++) {
		const struct sw_endpoint *w = &r->pool->workers[i].at;
		struct sw_place at = sw_part(&r->at, "workers[%zu]", i);

		if (l->port == w->port && (any || !memcmp(l->addr, w->addr, sizeof(l->addr))))
			sw_bad(&at, address_key(r, i),
			       "taken by listeners[%zu], whose connections are steered; allowed: an "
			       "address and port of the worker's own",
			       listener);
	}
}

static void check_local(const struct sw_place *top, const struct sw_config *c,
			const struct route *r)
{
	const struct sw_listener_conf *first = first_listener(c, r->index);

	if (!first)
		sw_bad(&r->at, "steer",
		       "local steers what comes to listeners, and the pool has none; allowed: with "
		       "a listener");
	for (size_t i = 0; i < c->n_listeners; i++) {
		const struct sw_listener_conf *l = &c->listeners[i];
		struct sw_place at = sw_part(top, "listeners[%zu]", i);

		if (l->pool != r->index)
			continue;
		if (!same_netns(l->netns, first->netns))
			sw_bad(&at, "netns",
			       "not that of the pool's other listeners; allowed: one network "
			       "namespace for a pool with steer: local");
		check_taken(r, l, i);
	}
}

/* ---- pools together ----------------------------------------------------------------------- */

/* Is the virtual address taken: by another one, or by a worker? */
static void check_virtual(const struct sw_place *at, const char *text, const struct sw_config *c,
			  size_t pool, size_t index)
{
	const struct sw_endpoint *v = &c->pools[pool].steer.virtuals[index];

	for (size_t i = 0; i < c->n_pools && !at->build->err; i++) {
		const struct sw_pool_conf *p = &c->pools[i];

		for (size_t j = 0;
		     j < p->steer.n_virtuals && (i < pool || (i == pool && j < index)); j++)
			if (same_endpoint(v, &p->steer.virtuals[j]))
				sw_bad(at, NULL,
				       "'%s' is pools[%zu].virtual[%zu] already; allowed: once",
				       text, i, j);
		for (size_t j = 0; j < p->n_workers; j++)
			if (same_endpoint(v, &p->workers[j].at))
				sw_bad(at, NULL,
				       "'%s' is the address of pools[%zu].workers[%zu]; allowed: one "
				       "that nothing else uses",
				       text, i, j);
	}
}

static void check_virtuals(const struct sw_place *top, const struct sw_doc *doc,
			   const struct sw_config *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_pools; i++) {
		struct route r = route_of(top, doc, c, i);

		n += r.pool->steer.n_virtuals;
		if (n > SW_MAX_VIRTUALS)
			sw_bad(&r.at, "virtual",
			       "%zu virtual addresses up to this pool; allowed: %d in all", n,
			       SW_MAX_VIRTUALS);
		for (size_t j = 0; j < r.pool->steer.n_virtuals && !top->build->err; j++) {
			struct sw_place at = sw_part(&r.at, "virtual[%zu]", j);

			check_virtual(&at, r.doc->virtuals[j], c, i, j);
		}
	}
}

struct row { /* a worker that has a slot row */
	const struct sw_worker_conf *worker;
	const struct sw_pool_conf *pool;
	size_t index; /* of the pool */
};

/* The network namespace in which a pool's worker addresses mean something. */
static const char *scope_of(const struct sw_config *c, const struct row *row)
{
	return row->pool->steer.by == SW_STEER_LOCAL ? first_listener(c, row->index)->netns
						     : row->pool->steer.netns;
}

/* Two pools name one address: that is one worker with one row. */
static void check_shared(const struct sw_place *at, const char *key, const struct sw_config *c,
			 const struct row *a, const struct row *b)
{
	bool local = a->pool->steer.by == SW_STEER_LOCAL || b->pool->steer.by == SW_STEER_LOCAL;

	if ((local || is_loopback(a->worker->at.addr)) &&
	    !same_netns(scope_of(c, a), scope_of(c, b)))
		sw_bad(at, key,
		       "pools[%zu] has a worker with this address in another network namespace; "
		       "allowed: an address that no other worker has",
		       b->index);
	if (cap_of(a->pool, a->worker) != cap_of(b->pool, b->worker) ||
	    a->worker->engine_limit != b->worker->engine_limit)
		sw_bad(at, key,
		       "pools[%zu] has the same worker with other limits (%u slots, here %u); "
		       "allowed: the same limits and share",
		       b->index, cap_of(b->pool, b->worker), cap_of(a->pool, a->worker));
}

static bool counted_as_a_whole(const struct sw_pool_conf *p)
{
	return !steered(p) && (p->steer.count == SW_COUNT_CONNECTIONS || has_cap(p));
}

/* Slot rows: one for each address that is steered to, one for each guarded pool that is counted. */
static void check_rows(const struct sw_place *top, const struct sw_doc *doc,
		       const struct sw_config *c)
{
	struct row rows[SW_MAX_WORKERS + 1];
	size_t n = 0;

	for (size_t i = 0; i < c->n_pools; i++) {
		struct route r = route_of(top, doc, c, i);

		if (counted_as_a_whole(r.pool))
			rows[n++] = (struct row){NULL, r.pool, i};
		for (size_t j = 0; steered(r.pool) && j < r.pool->n_workers && n <= SW_MAX_WORKERS;
		     j++) {
			struct row row = {&r.pool->workers[j], r.pool, i};
			struct sw_place at = sw_part(&r.at, "workers[%zu]", j);
			size_t k = 0;

			while (k < n && !(rows[k].worker &&
					  same_endpoint(&rows[k].worker->at, &row.worker->at)))
				k++;
			if (k == n)
				rows[n++] = row;
			else
				check_shared(&at, address_key(&r, j), c, &row, &rows[k]);
		}
		if (n > SW_MAX_WORKERS) {
			sw_bad(&r.at, "workers",
			       "over %d workers and counted pools up to this pool; allowed: %d in "
			       "all",
			       SW_MAX_WORKERS, SW_MAX_WORKERS);
			return;
		}
	}
}

void sw_check_steer(const struct sw_place *top, const struct sw_doc *doc, struct sw_config *c)
{
	for (size_t i = 0; i < c->n_pools && !top->build->err; i++) {
		struct route r = route_of(top, doc, c, i);

		resolve_count(c, &r);
		if (!steered(r.pool))
			continue;
		check_addresses(&r);
		if (r.pool->steer.by == SW_STEER_LOCAL)
			check_local(top, c, &r);
		else
			check_families(&r);
	}
	if (!top->build->err)
		check_virtuals(top, doc, c);
	if (!top->build->err)
		check_rows(top, doc, c);
}
