// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Answers of the control interface; see reply.h. */
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "control/json.h"
#include "control/reply.h"

void sw_reply_text(struct evhttp_request *req, int status, char *json)
{
	struct evbuffer *out = evbuffer_new();

	if (!out || !json) {
		evhttp_send_error(req, 500, NULL);
	} else {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
				  "application/json");
		evbuffer_add(out, json, strlen(json));
		evhttp_send_reply(req, status, NULL, out);
	}
	free(json);
	if (out)
		evbuffer_free(out);
}

void sw_reply_json(struct evhttp_request *req, int status, json_t *body)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	json_decref(body);
	sw_reply_text(req, status, text);
}

void sw_reply_error(struct evhttp_request *req, int status, const char *text)
{
	sw_reply_json(req, status, json_pack("{s:o}", "error", sw_json_text(text)));
}
