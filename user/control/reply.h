/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Answers of the control interface, all of them JSON. What they say is the routes' matter. */
#ifndef SPILLWAY_REPLY_H
#define SPILLWAY_REPLY_H

#include <event2/http.h>
#include <jansson.h>

/* Takes JSON as text over; NULL: there was no memory for it, 500. */
void sw_reply_text(struct evhttp_request *req, int status, char *json);
/* Takes `body` over; NULL: there was no memory for it, 500. */
void sw_reply_json(struct evhttp_request *req, int status, json_t *body);
/* {"error": text} */
void sw_reply_error(struct evhttp_request *req, int status, const char *text);

#endif
