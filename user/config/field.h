/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes single fields out of a document: text in, checked value out. The first error is kept with
 * the place of its field, and what is taken after it does not matter: callers look at `err` once,
 * at the end. */
#ifndef SPILLWAY_CONFIG_FIELD_H
#define SPILLWAY_CONFIG_FIELD_H

#include "config/doc.h"

struct sw_build {
	const struct sw_origin *origin;
	struct sw_error *error;
	int err; /* the first error, 0: none */
};

struct sw_place { /* a mapping of the document, "" or "pools[0].workers[1]" */
	struct sw_build *build;
	char path[96];
};

/* The place of a part, as "workers[1]", of `at`. */
__attribute__((format(printf, 2, 3))) struct sw_place sw_part(const struct sw_place *at,
							      const char *fmt, ...);

/* Fails, or warns, about the field `key` of `at` (NULL: `at` itself): "PLACE: message". */
__attribute__((format(printf, 3, 4))) void sw_bad(const struct sw_place *at, const char *key,
						  const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void sw_warn(const struct sw_place *at, const char *key,
						   const char *fmt, ...);

/* Each checks `text`, the value of the field `key`; NULL gives `absent`. */
uint64_t sw_take_uint(const struct sw_place *at, const char *key, const char *text, uint64_t min,
		      uint64_t max, uint64_t absent);
double sw_take_real(const struct sw_place *at, const char *key, const char *text, double absent);
bool sw_take_bool(const struct sw_place *at, const char *key, const char *text);
/* `names` ends with NULL; the value is the index. Absent SW_MUST: it has to be given. */
#define SW_MUST (-2)
int sw_take_choice(const struct sw_place *at, const char *key, const char *text,
		   const char *const *names, int absent);
/* A copy, NULL for NULL. */
char *sw_take_text(const struct sw_place *at, const char *key, const char *text);
/* A copy of an absolute path shorter than `size` bytes. */
char *sw_take_path(const struct sw_place *at, const char *key, const char *text, size_t size);

/* A copy of a network namespace, an absolute path or "pid:N", from the field "netns". */
char *sw_take_netns(const struct sw_place *at, const char *text);
/* A copy of a name that can be printed everywhere. */
char *sw_take_name(const struct sw_place *at, const char *key, const char *text);

/* calloc() that is remembered as -ENOMEM in the build; NULL for no members. */
void *sw_take_array(const struct sw_place *at, size_t n, size_t size);

/* How many letters have to change to make `a` of `b`. */
unsigned sw_distance(const char *a, const char *b);

#endif
