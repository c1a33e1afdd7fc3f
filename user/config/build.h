/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of building a configuration: build.c for the whole, pools.c and listeners.c for what
 * it consists of. Errors stay in the struct sw_build; nothing has to be checked in between. */
#ifndef SPILLWAY_CONFIG_BUILD_H
#define SPILLWAY_CONFIG_BUILD_H

#include "config/field.h"

struct sw_traits {     /* of a pool, what its listeners' paths depend on */
	int engine;    /* enum sw_engine, -1: not known */
	bool one_body; /* the same body for every path */
};

char *sw_build_control(const struct sw_place *top, const char *text);
enum sw_level sw_build_log_level(const struct sw_place *top, const char *text);
void sw_build_pools(const struct sw_place *top, const struct sw_doc *doc, struct sw_config *c,
		    struct sw_traits *traits);
void sw_build_listeners(const struct sw_place *top, const struct sw_doc *doc, struct sw_config *c,
			const struct sw_traits *traits);
/* The complete table of one listener's paths: built-in ones and the operator's. */
void sw_build_paths(const struct sw_place *listener, const struct sw_doc_paths *doc,
		    const struct sw_traits *traits, struct sw_listener_conf *l);
/* What all listeners need together fits in the maps. */
void sw_check_tables(const struct sw_place *top, const struct sw_config *c);

#endif
