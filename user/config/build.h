/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of building a configuration: build.c for the whole; pools.c, workers.c, steer.c and
 * listeners.c for what it consists of; tables.c and routes.c for what has to fit together. Errors
 * stay in the struct sw_build; nothing has to be checked in between. */
#ifndef SPILLWAY_CONFIG_BUILD_H
#define SPILLWAY_CONFIG_BUILD_H

#include "config/field.h"

/* Parses "ADDR:PORT" or "[ADDR6]:PORT", one address. -EINVAL. */
int sw_parse_endpoint(const char *text, struct sw_endpoint *out, struct sw_error *err);
/* Is it ::ffff:a.b.c.d? */
bool sw_is_ipv4(const uint8_t addr[16]);

struct sw_traits {     /* of a pool, what its listeners' paths depend on */
	int engine;    /* enum sw_engine, -1: not known */
	bool one_body; /* the same body for every path */
};

char *sw_build_control(const struct sw_place *top, const char *text);
char *sw_build_pin_root(const struct sw_place *top, const char *text);
enum sw_level sw_build_log_level(const struct sw_place *top, const char *text);
void sw_build_pools(const struct sw_place *top, const struct sw_doc *doc, struct sw_config *c,
		    struct sw_traits *traits);
/* An enum sw_engine; `absent` as for sw_take_choice(). */
int sw_take_engine(const struct sw_place *at, const char *text, int absent);
/* An engine as `series` and `rank_label` of a pool or worker describe it; NULL: they do not. The
 * caller drops it. */
struct sw_custom *sw_build_custom(const struct sw_place *at, const struct sw_doc_series *doc,
				  const char *rank_label);
/* What is known beforehand of the page of a worker, whose engine, URL and id are set; `pool_custom`
 * and `model` are the pool's. */
void sw_build_hints(const struct sw_place *at, const struct sw_doc_worker *d,
		    struct sw_custom *pool_custom, const char *model, struct sw_worker_conf *w);
/* The workers of a pool; `engine` is the pool's, -1: not given. */
void sw_build_workers(const struct sw_place *pool, const struct sw_doc_pool *doc, int engine,
		      struct sw_pool_conf *p);
/* How a pool is steered and counted. */
void sw_build_steer(const struct sw_place *pool, const struct sw_doc_pool *doc,
		    struct sw_steer_conf *s);
/* NVIDIA Dynamo's part of the daemon, and of a pool: its model, and what of it is discovered. */
void sw_build_dynamo(const struct sw_place *top, const struct sw_doc_dynamo *doc,
		     struct sw_dynamo_conf *c);
void sw_build_discover(const struct sw_place *pool, const struct sw_doc_pool *doc,
		       struct sw_pool_conf *p);
void sw_check_discover(const struct sw_place *top, const struct sw_config *c);
void sw_build_listeners(const struct sw_place *top, const struct sw_doc *doc, struct sw_config *c,
			const struct sw_traits *traits);
/* The complete table of one listener's paths: built-in ones and the operator's. */
void sw_build_paths(const struct sw_place *listener, const struct sw_doc_paths *doc,
		    const struct sw_traits *traits, struct sw_listener_conf *l);
/* Decides what is left to `count: auto`, and holds pools that are steered or counted against their
 * listeners and one another. */
void sw_check_steer(const struct sw_place *top, const struct sw_doc *doc, struct sw_config *c);
/* What all listeners need together fits in the maps. */
void sw_check_tables(const struct sw_place *top, const struct sw_config *c);

#endif
