/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Values of the daemon as JSON that is always valid. What they stand for is the caller's matter. */
#ifndef SPILLWAY_CONTROL_JSON_H
#define SPILLWAY_CONTROL_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

/* A measured value: null when it is not finite, an integer where it is one. */
json_t *sw_json_number(double v);
/* Names and error texts come from outside; what is no UTF-8 must not cost the whole answer. Null
 * for NULL. */
json_t *sw_json_text(const char *text);
/* Milliseconds; UINT64_MAX: null. */
json_t *sw_json_age(uint64_t age_ms);
/* For how long something is the case; null: it is not. */
json_t *sw_json_lasting(bool is, uint64_t since_ms, uint64_t now_ms);
/* Into "last_error" and "last_error_ms": an error of that time, 0: none yet, and its age; null
 * where it is an hour old. */
void sw_json_last_error(json_t *to, const char *text, uint64_t at_ms, uint64_t now_ms);
/* "ADDR:PORT"; null: not known. */
json_t *sw_json_endpoint(const struct sw_endpoint *at);

/* With as few digits as tell the value: "0.85". */
void sw_json_digits(double v, char out[32]);
/* A whole document in one line, its numbers likewise; to be freed. NULL: no memory. */
char *sw_json_dump(const json_t *j);

#endif
