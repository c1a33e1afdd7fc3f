/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Thresholds that were set over the API. They belong to a model, go before what the configuration
 * says of the pools that serve it, and are kept in a file when one is configured. How they are
 * asked for is busy_threshold.c's matter.
 */
#ifndef SPILLWAY_THRESHOLDS_H
#define SPILLWAY_THRESHOLDS_H

#include <jansson.h>

#include "config/config.h"

struct sw_thresholds;

/* Those that the API sets, in the order in which it shows them; the others are the engines' own. */
#define SW_API_LIMITS 3
extern const enum sw_limit sw_api_limits[SW_API_LIMITS];

/* `state_file` NULL: they end with the daemon. A file that is none of ours is kept aside and
 * reported by one line; it is no failure. */
int sw_thresholds_new(struct sw_thresholds **out, const char *state_file, struct sw_error *err);
/* NULL is fine. */
void sw_thresholds_free(struct sw_thresholds *t);

/* What holds for a pool: what the configuration says, with what was set on top. */
struct sw_limits sw_thresholds_merge(const struct sw_thresholds *t,
				     const struct sw_pool_conf *pool);
/* Which were set, as bits (1 << enum sw_limit). */
uint32_t sw_thresholds_set_of(const struct sw_thresholds *t, const char *model);

/* Sets those that `given` has, and keeps the others. -ENOMEM. */
int sw_thresholds_set(struct sw_thresholds *t, const char *model, const struct sw_limits *given);
/* What was set is set no more: bits (1 << enum sw_limit). */
void sw_thresholds_clear(struct sw_thresholds *t, const char *model, uint32_t which);
/* Forgets models that no pool serves, each with one line. */
void sw_thresholds_prune(struct sw_thresholds *t, const struct sw_config *conf);

/* Thresholds as a JSON object's fields: numbers, or null for those that are not set. */
int sw_thresholds_show(json_t *to, const struct sw_limits *l);
/* And back; absent and null are not set. 0 or the HTTP status that says what is wrong: 422 a wrong
 * type, 400 out of range. */
int sw_thresholds_take(const json_t *from, struct sw_limits *out, struct sw_error *err);

#endif
