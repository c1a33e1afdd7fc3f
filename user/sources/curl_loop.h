/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Drives libcurl's multi interface from a libevent loop, so that no transfer ever blocks it. What a
 * transfer fetches, and what its outcome means, is left to the caller. */
#ifndef SPILLWAY_CURL_LOOP_H
#define SPILLWAY_CURL_LOOP_H

#include <curl/curl.h>
#include <event2/event.h>

struct sw_curl_loop;

/* Called on the loop when a transfer has ended, with its handle already taken off the loop: it may
 * be started again, or cleaned up. */
typedef void (*sw_curl_done)(CURL *easy, CURLcode result);

int sw_curl_loop_new(struct sw_curl_loop **out, struct event_base *base, sw_curl_done done);
/* Not from within `done`. Transfers under way have to be stopped before. */
void sw_curl_loop_free(struct sw_curl_loop *l);

/* -EBUSY: this handle's transfer is under way already. */
int sw_curl_loop_start(struct sw_curl_loop *l, CURL *easy);
/* Ends a transfer without calling `done`; its connection is closed. */
void sw_curl_loop_stop(struct sw_curl_loop *l, CURL *easy);

/* How many idle connections may be kept for the next transfers; the oldest is closed first. */
void sw_curl_loop_keep(struct sw_curl_loop *l, unsigned connections);

#endif
