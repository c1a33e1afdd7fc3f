/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The default path policy, written down once more from the engines' documents: what tests expect,
 * not what the daemon happens to write. */
#ifndef SPILLWAY_TEST_PATHS_H
#define SPILLWAY_TEST_PATHS_H

#include <spillway/abi.h>

struct known_path {
	const char *path; /* with {name} for a pattern */
	enum sw_family family;
};

/* POST to these is inference and may be shed; each table ends with a NULL path. */
extern const struct known_path shed_paths[];
/* Never shed, whatever the method. `{name}` stands for any name. */
extern const char *const never_shed_paths[];

/* The prefix of the patterns in shed_paths. */
#define MODEL_PREFIX "/v2/models/"

/* The key of a path in map `paths`; `prefix` is 0 or index + 1 in `prefixes`. */
struct sw_path path_key(unsigned set, enum sw_method method, unsigned prefix, const char *text);

#endif
