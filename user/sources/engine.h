/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engines whose load Spillway can read: a table of series names for each, and the reader that
 * turns one metrics page into reports. Pure: text in, reports out. */
#ifndef SPILLWAY_ENGINE_H
#define SPILLWAY_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "policy/busy.h"

enum sw_engine {
	SW_ENGINE_VLLM,
	SW_ENGINE_SGLANG,
	SW_ENGINE_TGI,
	SW_ENGINE_LLAMACPP,
	SW_ENGINE_TRITON,
	SW_ENGINE_TRTLLM,
	SW_ENGINE_LMDEPLOY,
	SW_ENGINES
};

const char *sw_engine_name(enum sw_engine e);		    /* "vllm", ..., "trtllm-serve" */
int sw_engine_parse(const char *name, enum sw_engine *out); /* -EINVAL */

/* What the operator knows and the engine does not tell; 0: not given. */
struct sw_engine_hints {
	uint64_t kv_total;    /* KV cache blocks of a rank */
	uint64_t max_batched; /* max_num_batched_tokens */
};

/* Reads a page. Returns the number of reports stored (one a rank, at most `max`), or negative:
 * -EBADMSG the text is not Prometheus exposition format (HTML, JSON, binary): no data;
 * -ENODATA it is, but no series of this engine is in it. A series that is missing or NaN is absent
 * from the report, never 0. */
int sw_engine_read(enum sw_engine e, const struct sw_engine_hints *hints, const char *text,
		   size_t length, struct sw_report *out, size_t max, struct sw_error *err);

#endif
