/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The canned responses of a listener, rendered once in user space: one for each cause, body family
 * and Retry-After variant, all of one length, so that the kernel can read the phase of a
 * conversation from an acknowledgement number alone.
 */
#ifndef SPILLWAY_ANSWER_H
#define SPILLWAY_ANSWER_H

#include <stdint.h>

#include "common/error.h"
#include <spillway/abi.h>

enum sw_api { /* the shape of SW_FAMILY_DEFAULT */
	      SW_API_DYNAMO,
	      SW_API_OPENAI,
	      SW_API_ANTHROPIC,
	      SW_API_VLLM,   /* vLLM's own words, openai shape with "Service Unavailable" */
	      SW_API_SGLANG, /* SGLang's own words */
	      SW_API_TGI,
	      SW_API_SMG,	  /* sgl-router: empty body */
	      SW_API_VLLM_TOKENS, /* vLLM's words for a full backlog of prompt tokens */
};

struct sw_answer_spec {
	uint16_t status;       /* saturated and no-slots, 200..999 */
	uint16_t drain_status; /* draining, default 503; unavailable is always 503 */
	enum sw_api api;
	uint16_t retry_after_min; /* whole seconds 1..60; 0: no Retry-After */
	uint16_t retry_after_max; /* >= min; several canned values in between, up to SW_VARIANTS */
	int retry_after_ms;	  /* 1: also `retry-after-ms` */
	uint16_t max_bytes; /* of a whole response: SW_ANSWER_DEFAULT, or up to SW_ANSWER_MAX */
	/* Operator's bodies by family, NULL: built in. "%s" is not special; "{status}" is replaced
	 * by the status and "{reason}" by saturated|no-slots|draining|unavailable. */
	const char *body[SW_FAMILIES];
};

/* Renders all SW_ANSWERS_PER_SET responses into `out`, index as SW_ANSWER_INDEX(0, ...), then
 * the same ones for connections that are kept (SW_ANSWERS_KEEP further), padded to
 * one even length with spaces behind the body inside Content-Length; an empty body stays empty and
 * a header x-spillway-pad takes the padding. `variants_mask` gets the number of distinct
 * Retry-After variants (a power of two) - 1; unused variant places repeat. On failure `out` is
 * untouched. -EMSGSIZE: a response is over max_bytes, the error says by how much and for which
 * body. -EINVAL: a status, Retry-After or max_bytes is out of range. */
int sw_answers_render(const struct sw_answer_spec *spec, struct sw_answer out[SW_ANSWERS_PER_SET],
		      uint8_t *variants_mask, struct sw_error *err);

const char *sw_cause_name(enum sw_cause cause); /* "saturated", "no-slots", ... */

#endif
