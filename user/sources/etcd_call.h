/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One request at a time to etcd's JSON gateway over HTTP. What to ask, and what the answer means,
 * is left to etcd.c. */
#ifndef SPILLWAY_ETCD_CALL_H
#define SPILLWAY_ETCD_CALL_H

#include <stdbool.h>

#include "common/error.h"
#include "sources/curl_loop.h"

#define SW_ETCD_ANSWER_MAX (16u << 20) /* bytes of an answer, or of a line of a stream */

struct sw_etcd_call;

/* What a request came to. 0: the answer is there; else a negative errno, and `err` says why. May
 * start the next request. */
typedef void (*sw_etcd_done)(void *arg, int ret, const char *text, size_t length,
			     const struct sw_error *err);
/* A line of a stream; other than 0 ends the stream with that, and with what is in `err`. */
typedef int (*sw_etcd_line)(void *arg, const char *text, size_t length, struct sw_error *err);

/* `line` NULL: the answer comes as a whole. `loop` has to be one whose `done` is
 * sw_etcd_call_done(). NULL: no memory. */
struct sw_etcd_call *sw_etcd_call_new(struct sw_curl_loop *loop, const char *ca_file,
				      sw_etcd_done done, sw_etcd_line line, void *arg);
void sw_etcd_call_free(struct sw_etcd_call *c);

/* Asks `path` at an endpoint; takes `body` over. `token` NULL: without one. A whole answer has
 * 5 s. */
int sw_etcd_call_start(struct sw_etcd_call *c, const char *endpoint, const char *path, char *body,
		       const char *token, struct sw_error *err);
/* Ends a request under way without a word. */
void sw_etcd_call_stop(struct sw_etcd_call *c);

void sw_etcd_call_done(CURL *easy, CURLcode result);

#endif
