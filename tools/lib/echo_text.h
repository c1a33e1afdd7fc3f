/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the echo server answers, so that its client knows each byte of it beforehand. Bodies are
 * slices of one table that both make for themselves; where a slice begins depends on the request's
 * tag, so that no two are alike.
 *
 *   POST /v1/chat/completions?t=TAG&r=BYTES
 *
 * is answered by a line that says what was received, and then BYTES bytes.
 */
#ifndef TOOLS_ECHO_TEXT_H
#define TOOLS_ECHO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ECHO_BODY_MAX (1u << 20)
#define ECHO_LINE_MAX 96

/* Must be called once, before the others. */
void echo_init(void);
const char *echo_request_body(uint64_t tag);
const char *echo_response_body(uint64_t tag);
/* Is the response to this one in chunks, and how long are they? */
size_t echo_chunk(uint64_t tag);
/* The line. `intact`: the body was what it should be. */
size_t echo_line(char out[ECHO_LINE_MAX], uint64_t tag, const char *method, size_t length,
		 bool intact);

uint64_t echo_mix(uint64_t n); /* any other number, always the same */

#endif
