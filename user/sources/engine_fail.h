/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is wrong with a page that is no load, and what to do about it, in words for the operator.
 * Private to user/sources; engine.c finds out. */
#ifndef SPILLWAY_ENGINE_FAIL_H
#define SPILLWAY_ENGINE_FAIL_H

#include "sources/engine.h"
#include "sources/promtext.h"

/* -EBADMSG: `p` has stopped at what is no exposition format. */
int sw_engine_fail_format(enum sw_engine e, const struct sw_prom *p, const char *text,
			  size_t length, struct sw_error *err);
/* -ENODATA: none of the samples is load of this engine, or of this worker. */
int sw_engine_fail_no_load(enum sw_engine e, const struct sw_engine_hints *hints, const char *text,
			   size_t length, unsigned samples, struct sw_error *err);
/* -ENODATA: the page is that of a front end, and this worker is not on it. */
int sw_engine_fail_worker(const struct sw_engine_hints *hints, struct sw_error *err);

#endif
