// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What can be asked of the control interface, and short answers. What a route shows is in status.c,
 * metrics.c, history.c and hub.c, what it changes in operate.c and thresholds.c. */
#include <event2/buffer.h>
#include <string.h>

#include "common/clock.h"
#include "control/history.h"
#include "control/hub.h"
#include "control/metrics.h"
#include "control/operate.h"
#include "control/push.h"
#include "control/reply.h"
#include "control/serve.h"
#include "control/status.h"
#include "control/web.h"

json_t *sw_serve_body(struct evhttp_request *req)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t n = evbuffer_get_length(in);
	const char *text = (const char *)evbuffer_pullup(in, -1);
	struct sw_error err;
	json_error_t bad;
	json_t *body = json_loadb(text ? text : "", n, JSON_REJECT_DUPLICATES, &bad);

	if (!body) {
		sw_fail(&err, 400, "the request's body is not JSON that can be read (%s)",
			n ? bad.text : "it is empty");
		sw_reply_error(req, 400, err.text);
	}
	return body;
}

void sw_serve_query(struct evhttp_request *req, struct evkeyvalq *query)
{
	const char *q = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));

	evhttp_parse_query_str(q ? q : "", query);
}

static void get_status(struct sw_control *c, struct evhttp_request *req)
{
	sw_reply_json(req, 200, sw_status_json(c->live, sw_now_ms()));
}

/* What is shown of the pool that the query names, or of all. */
static void show(struct sw_control *c, struct evhttp_request *req,
		 json_t *(*json)(const struct sw_live *live, const struct sw_live_pool *pool,
				 uint64_t now_ms))
{
	struct evkeyvalq query = {0};
	const struct sw_live_pool *pool = NULL;
	const char *name;

	sw_serve_query(req, &query);
	name = evhttp_find_header(&query, "pool");
	if (name)
		pool = sw_live_find_pool(c->live, name);
	if (name && !pool)
		sw_reply_error(req, 404, "no pool has that name");
	else
		sw_reply_json(req, 200, json(c->live, pool, sw_now_ms()));
	evhttp_clear_headers(&query);
}

static void get_explain(struct sw_control *c, struct evhttp_request *req)
{
	show(c, req, sw_explain_json);
}

static void get_workers(struct sw_control *c, struct evhttp_request *req)
{
	show(c, req, sw_workers_json);
}

static void get_pools(struct sw_control *c, struct evhttp_request *req)
{
	sw_reply_json(req, 200, sw_pools_json(c->live, sw_now_ms()));
}

static void get_health(struct sw_control *c, struct evhttp_request *req)
{
	(void)c;
	sw_reply_json(req, 200, json_pack("{s:s}", "status", "ok"));
}

static void get_metrics(struct sw_control *c, struct evhttp_request *req)
{
	struct evbuffer *out = evbuffer_new();

	if (!out)
		return evhttp_send_error(req, 500, NULL);
	sw_metrics_write(c->live, sw_now_ms(), out);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
			  "text/plain; version=0.0.4");
	evhttp_send_reply(req, 200, NULL, out);
	evbuffer_free(out);
}

static void get_history(struct sw_control *c, struct evhttp_request *req)
{
	struct evbuffer *out = evbuffer_new();

	if (!out)
		return evhttp_send_error(req, 500, NULL);
	sw_history_write(c->live->history, out);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
			  "application/json");
	evhttp_send_reply(req, 200, NULL, out);
	evbuffer_free(out);
}

static void get_events(struct sw_control *c, struct evhttp_request *req)
{
	sw_hub_join(c->live->hub, req);
}

/* Carries a change of pools out and answers with what they are now. */
static void operate(struct sw_control *c, struct evhttp_request *req, bool force)
{
	json_t *body = sw_serve_body(req);
	struct sw_live_pool *first = NULL;
	struct sw_error err = {0};
	size_t n = 0;
	int status;

	if (!body)
		return;
	status = force ? sw_operate_force(c->live, body, sw_now_ms(), &first, &n, &err)
		       : sw_operate_drain(c->live, body, sw_now_ms(), &first, &n, &err);
	json_decref(body);
	if (status)
		return sw_reply_error(req, status, err.text);
	for (size_t i = 0; i < n; i++)
		c->changed(&first[i]);
	sw_reply_json(req, 200, sw_explain_json(c->live, n == 1 ? first : NULL, sw_now_ms()));
}

static void get_page(struct sw_control *c, struct evhttp_request *req)
{
	(void)c;
	sw_web_page(req);
}

static void post_load(struct sw_control *c, struct evhttp_request *req)
{
	json_t *body = sw_serve_body(req);
	struct sw_push *loads = NULL;
	struct sw_error err = {0};
	size_t n = 0;
	int status;

	if (!body)
		return;
	status = sw_push_read(c->live, body, &loads, &n, &err);
	json_decref(body);
	for (size_t i = 0; i < n && !status && c->told; i++)
		c->told(loads[i].worker, loads[i].n, loads[i].reports);
	sw_push_free(loads, n);
	if (status)
		return sw_reply_error(req, status, err.text);
	sw_reply_json(req, 200, json_pack("{s:I}", "loads", (json_int_t)n));
}

static void post_force(struct sw_control *c, struct evhttp_request *req)
{
	operate(c, req, true);
}

static void post_drain(struct sw_control *c, struct evhttp_request *req)
{
	operate(c, req, false);
}

enum access {
	GUARDED, /* over TCP the token is needed */
	OPEN,	 /* to everyone who reaches it */
};

static const struct route {
	enum evhttp_cmd_type method;
	const char *path;
	void (*serve)(struct sw_control *c, struct evhttp_request *req);
	enum access access;
	size_t limit; /* of the body */
} routes[] = {
	{EVHTTP_REQ_GET, "/", get_page, OPEN, SW_BODY_LIMIT},
	{EVHTTP_REQ_GET, "/health", get_health, OPEN, SW_BODY_LIMIT},
	{EVHTTP_REQ_GET, "/metrics", get_metrics, OPEN, SW_BODY_LIMIT},
	{EVHTTP_REQ_GET, "/v1/status", get_status, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_GET, "/v1/explain", get_explain, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_GET, "/v1/pools", get_pools, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_GET, "/v1/workers", get_workers, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_GET, "/v1/history", get_history, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_GET, "/v1/events", get_events, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_POST, "/v1/load", post_load, GUARDED, SW_LOAD_LIMIT},
	{EVHTTP_REQ_POST, "/v1/force", post_force, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_POST, "/v1/drain", post_drain, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_GET, "/busy_threshold", sw_get_busy_threshold, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_POST, "/busy_threshold", sw_post_busy_threshold, GUARDED, SW_BODY_LIMIT},
	{EVHTTP_REQ_DELETE, "/busy_threshold", sw_delete_busy_threshold, GUARDED, SW_BODY_LIMIT},
};

/* The route, or NULL; *known: there is another method for the path. */
static const struct route *find(struct evhttp_request *req, bool *known)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));

	*known = false;
	for (size_t i = 0; path && i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strcmp(path, routes[i].path))
			continue;
		*known = true;
		if (routes[i].method == evhttp_request_get_command(req))
			return &routes[i];
	}
	return NULL;
}

static void serve(struct sw_control *c, struct evhttp_request *req, bool trusted)
{
	bool known;
	const struct route *r = find(req, &known);
	size_t length = evbuffer_get_length(evhttp_request_get_input_buffer(req));
	struct sw_error err;

	/* who may not ask does not learn what there is */
	if (!trusted && !(r && r->access == OPEN) && !sw_auth_passes(c, req))
		return;
	if (!r)
		return sw_reply_error(req, known ? 405 : 404,
				      known ? "wrong method for this path"
					    : "no such path; see docs/control.md");
	if (length > r->limit) {
		sw_fail(&err, 413, "the request's body is over %zu bytes", r->limit);
		return sw_reply_error(req, 413, err.text);
	}
	r->serve(c, req);
}

void sw_serve(struct evhttp_request *req, void *control)
{
	serve(control, req, true);
}

void sw_serve_tcp(struct evhttp_request *req, void *control)
{
	serve(control, req, false);
}
