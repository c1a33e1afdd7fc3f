/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engines whose load Spillway can read, and the reader that turns one metrics page into
 * reports. Pure: text in, reports out. Which series there are is in engines.c and custom.c. */
#ifndef SPILLWAY_ENGINE_H
#define SPILLWAY_ENGINE_H

#include <stdbool.h>
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
	SW_ENGINE_DYNAMO, /* a front end's page, which names many workers */
	SW_ENGINE_CUSTOM, /* the hints say which series there are */
	SW_ENGINE_AUTO,	  /* any of the above but custom: its page tells which */
	SW_ENGINES
};

/* What a series tells. */
enum sw_field {
	SW_FIELD_RUNNING,
	SW_FIELD_WAITING,
	SW_FIELD_PREFILL, /* pending prefill tokens */
	SW_FIELD_QUEUED,  /* queued prompt tokens */
	SW_FIELD_DECODE,  /* active decode blocks */
	SW_FIELD_RATIO,	  /* of the KV cache in use, 0..1 */
	SW_FIELD_USED,	  /* KV blocks in use */
	SW_FIELD_TOTAL,	  /* KV blocks */
	SW_FIELD_PAGE,	  /* tokens in a block, where TOTAL is in tokens */
	SW_FIELD_BATCHED, /* max_num_batched_tokens */
	SW_FIELDS
};

const char *sw_engine_name(enum sw_engine e);		    /* "vllm", ..., "auto" */
int sw_engine_parse(const char *name, enum sw_engine *out); /* -EINVAL */

struct sw_custom; /* custom.h */
struct sw_front;

/* What the operator knows and the engine does not tell. */
struct sw_engine_hints {
	uint64_t kv_total;    /* KV cache blocks of a rank; 0: not given */
	uint64_t max_batched; /* max_num_batched_tokens; 0: not given */
	bool has_worker_id;   /* on a page of many workers this is the one */
	uint64_t worker_id;
	const char *model;	  /* and this is what it serves; NULL: not known */
	struct sw_custom *custom; /* with SW_ENGINE_CUSTOM */
};

/* Reads a page. Returns the number of reports stored (one a rank, at most `max`), or negative:
 * -EBADMSG the text is not Prometheus exposition format (HTML, JSON, binary): no data;
 * -ENODATA it is, but no series of this engine, or of this worker, is in it. A series that is
 * missing or NaN is absent from the report, never 0. SW_ENGINE_AUTO has no series. */
int sw_engine_read(enum sw_engine e, const struct sw_engine_hints *hints, const char *text,
		   size_t length, struct sw_report *out, size_t max, struct sw_error *err);

/* A page of SW_ENGINE_DYNAMO, taken apart once for all its workers; it points into the text, which
 * has to stay. NULL: no memory. */
struct sw_front *sw_front_new(const char *text, size_t length);
/* NULL is fine. */
void sw_front_free(struct sw_front *f);
/* The same as sw_engine_read() of that page. */
int sw_front_read(const struct sw_front *f, const struct sw_engine_hints *hints,
		  struct sw_report *out, size_t max, struct sw_error *err);

/* The engine whose series are on the page; SW_ENGINES: none that is known. */
enum sw_engine sw_engine_recognise(const char *text, size_t length);

/* A copy that is good for as long as it is needed; -ENOMEM. */
int sw_engine_hints_copy(struct sw_engine_hints *to, const struct sw_engine_hints *from);
void sw_engine_hints_free(struct sw_engine_hints *h);
bool sw_engine_hints_same(const struct sw_engine_hints *a, const struct sw_engine_hints *b);

#endif
