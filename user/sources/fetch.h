/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fetches the page of one target over HTTP or HTTPS, again and again on demand. When to do so, and
 * what the page says, is left to scrape.c. */
#ifndef SPILLWAY_FETCH_H
#define SPILLWAY_FETCH_H

#include "sources/curl_loop.h"
#include "sources/scrape.h"

struct sw_fetch;

/* Called on the loop when a page has arrived (ret 0; the text is gone on return), or
 * failed to (negative errno, and err->text says why and what to do). May free the fetch. */
typedef void (*sw_fetch_cb)(void *arg, int ret, const char *text, size_t length,
			    const struct sw_error *err);

/* Uses what `target` says about url, time-out, token, certificate and namespace. Strings are
 * copied. `loop` has to be one whose `done` is sw_fetch_done(). */
int sw_fetch_new(struct sw_fetch **out, struct sw_curl_loop *loop, const struct sw_target *target,
		 sw_fetch_cb cb, void *arg, struct sw_error *err);
/* The URL without a password, for messages. */
const char *sw_fetch_url(const struct sw_fetch *f);
/* Ends a transfer under way without a call back. */
void sw_fetch_free(struct sw_fetch *f);

/* Negative errno: not started, and there will be no call back. -EBUSY: under way already. */
int sw_fetch_start(struct sw_fetch *f, struct sw_error *err);

void sw_fetch_done(CURL *easy, CURLcode result);

#endif
