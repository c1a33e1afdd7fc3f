/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The built-in path policy: which requests of an inference API may be shed at all. Everything that
 * is not listed passes: health, metrics, control and administration of every engine.
 */
#ifndef SPILLWAY_PATHS_H
#define SPILLWAY_PATHS_H

#include <stddef.h>

#include "sources/engine.h"
#include <spillway/abi.h>

struct sw_builtin_path {
	enum sw_method method;
	const char *path; /* the whole path, up to '?' or ' '; "{name}" is one segment */
	enum sw_family family;
	enum sw_api_endpoint endpoint;
};

/* The paths that may be shed on a listener in front of `engine`; static, *n gets how many. */
const struct sw_builtin_path *sw_builtin_paths(enum sw_engine engine, size_t *n);

/* "chat_completions" */
const char *sw_endpoint_name(enum sw_api_endpoint endpoint);
/* "POST"; "" of SW_METHOD_NONE. By number, from SW_METHOD_GET on, in a list that ends with NULL. */
const char *sw_method_name(enum sw_method method);
extern const char *const sw_method_names[];

#endif
