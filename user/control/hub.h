/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events to whoever follows them over GET /v1/events, as server-sent events. Knows nothing of what
 * they tell. */
#ifndef SPILLWAY_HUB_H
#define SPILLWAY_HUB_H

#include <event2/event.h>
#include <event2/http.h>
#include <jansson.h>
#include <stdbool.h>

#include "common/error.h"

struct sw_hub;

#define SW_HUB_FOLLOWERS 64 /* at once, at most */
#define SW_HUB_BACKLOG                                                                             \
	(256 * 1024) /* bytes that wait for a slow one before events are left out                  \
		      */

int sw_hub_new(struct sw_hub **out, struct event_base *base, struct sw_error *err);
/* Ends all followers' streams. NULL is fine. */
void sw_hub_free(struct sw_hub *h);

/* Is anybody there to hear? What costs something to tell can be left out otherwise. NULL: no. */
bool sw_hub_followed(const struct sw_hub *h);
/* "event: TYPE", "data: JSON" to all. Takes `data` over. A follower that cannot keep up misses
 * events, and is told how many by an event "missed". NULL is fine. */
void sw_hub_send(struct sw_hub *h, const char *type, json_t *data);
/* Answers a request with the stream from now on, or with 503 when there are too many. The hub has
 * the request from then on. */
void sw_hub_join(struct sw_hub *h, struct evhttp_request *req);

#endif
