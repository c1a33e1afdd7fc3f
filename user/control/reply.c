// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Answers of the control interface; see reply.h. */
#include <event2/buffer.h>
#include <stdlib.h>

#include "control/reply.h"

void sw_reply_json(struct evhttp_request *req, int status, json_t *body)
{
	struct evbuffer *out = evbuffer_new();
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	json_decref(body);
	if (!out || !text) {
		evhttp_send_error(req, 500, NULL);
	} else {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
				  "application/json");
		evbuffer_add_printf(out, "%s\n", text);
		evhttp_send_reply(req, status, NULL, out);
	}
	free(text);
	if (out)
		evbuffer_free(out);
}

void sw_reply_error(struct evhttp_request *req, int status, const char *text)
{
	sw_reply_json(req, status, json_pack("{s:s}", "error", text));
}
