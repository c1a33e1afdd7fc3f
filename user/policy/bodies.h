/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The built-in bodies of canned responses, as templates: "{status}" stands for the status of the
 * response, "{reason}" for its cause. Private to user/policy; answer.c makes responses of them.
 */
#ifndef SPILLWAY_BODIES_H
#define SPILLWAY_BODIES_H

#include "policy/answer.h"

/* The template for a cause in the shape of `api`; empty for a full SW_API_SMG. */
const char *sw_builtin_body(enum sw_api api, enum sw_cause cause);

#endif
