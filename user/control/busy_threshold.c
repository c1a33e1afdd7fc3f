// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* /busy_threshold, as NVIDIA Dynamo's frontend has it: thresholds of a model, read and set. DELETE
 * is ours. What is set, and where it is kept, is thresholds.c's matter. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "control/json.h"
#include "control/reply.h"
#include "control/serve.h"
#include "control/thresholds.h"

static const struct sw_live_pool *find_pool(const struct sw_live *live, const char *model)
{
	for (size_t i = 0; i < live->n_pools; i++)
		if (sw_same_text(live->pools[i].conf->model, model))
			return &live->pools[i];
	return NULL;
}

/* `pool` NULL: nobody serves the model, so nothing is set. */
static json_t *model_json(const char *model, const struct sw_live_pool *pool)
{
	static const struct sw_limits none;
	json_t *out = json_pack("{s:o}", "model", sw_json_text(model));

	sw_thresholds_show(out, pool ? &pool->limits : &none);
	return out;
}

static void reply(struct evhttp_request *req, json_t *body)
{
	char *text = sw_json_dump(body);

	json_decref(body);
	sw_reply_text(req, 200, text);
}

static void not_found(struct evhttp_request *req, const char *model)
{
	struct sw_error err;

	sw_fail(&err, 404,
		"Model '%s' not found. Thresholds can only be set for discovered models.", model);
	sw_reply_error(req, 404, err.text);
}

void sw_get_busy_threshold(struct sw_control *c, struct evhttp_request *req)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->live->n_pools; i++) {
		const struct sw_live_pool *p = &c->live->pools[i];

		if (find_pool(c->live, p->conf->model) == p)
			json_array_append_new(list, model_json(p->conf->model, p));
	}
	reply(req, json_pack("{s:o}", "thresholds", list));
}

/* application/json or application/SOMETHING+json, whatever the parameters. */
static bool is_json(struct evhttp_request *req)
{
	static const char json[] = "application/json", any[] = "application/", plus[] = "+json";
	const char *type =
		evhttp_find_header(evhttp_request_get_input_headers(req), "Content-Type");
	size_t n = type ? strcspn(type, "; \t") : 0;

	if (n == strlen(json) && !strncasecmp(type, json, n))
		return true;
	return n > strlen(any) + strlen(plus) && !strncasecmp(type, any, strlen(any)) &&
	       !strncasecmp(type + n - strlen(plus), plus, strlen(plus));
}

/* A change takes effect before it is answered. */
static void refresh(struct sw_control *c, const char *model)
{
	for (size_t i = 0; i < c->live->n_pools; i++) {
		struct sw_live_pool *p = &c->live->pools[i];

		if (!sw_same_text(p->conf->model, model))
			continue;
		p->limits = sw_thresholds_merge(c->live->thresholds, p->conf);
		c->changed(p);
	}
}

/* "NAME 0.9, NAME 1000" */
static void list_limits(const struct sw_limits *l, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < SW_API_LIMITS && used < size; i++) {
		enum sw_limit limit = sw_api_limits[i];
		double v = limit == SW_LIM_DECODE	  ? l->decode
			   : limit == SW_LIM_PREFILL_FRAC ? l->prefill_frac
							  : (double)l->count[limit];

		if (l->set & 1U << limit)
			used += (size_t)snprintf(out + used, size - used, "%s%s %.10g",
						 used ? ", " : "", sw_limit_name(limit), v);
	}
}

static void post(struct sw_control *c, struct evhttp_request *req, const json_t *body)
{
	const char *model = json_string_value(json_object_get(body, "model"));
	const struct sw_live_pool *pool;
	struct sw_error err = {""};
	struct sw_limits given;
	char text[256];
	int status;

	if (!json_is_object(body))
		return sw_reply_error(req, 422, "the request is not a JSON object");
	if (!model)
		return sw_reply_error(req, 422, "\"model\" must be the name of a model");
	status = sw_thresholds_take(body, &given, &err);
	if (status)
		return sw_reply_error(req, status, err.text);
	pool = find_pool(c->live, model);
	if (given.set && !pool)
		return not_found(req, model);
	if (given.set && sw_thresholds_set(c->live->thresholds, model, &given))
		return sw_reply_error(req, 500, "no memory");
	if (given.set) {
		list_limits(&given, text, sizeof(text));
		sw_log(SW_INFO, "model %s: set over the API: %s", model, text);
		refresh(c, model);
	}
	reply(req, model_json(model, pool));
}

void sw_post_busy_threshold(struct sw_control *c, struct evhttp_request *req)
{
	json_t *body;

	if (!is_json(req))
		return sw_reply_error(req, 415,
				      "the request's Content-Type must be application/json");
	body = sw_serve_body(req);
	if (!body)
		return;
	post(c, req, body);
	json_decref(body);
}

/* The threshold of that name, or all for NULL. 0: there is none. */
static uint32_t which_of(const char *name)
{
	uint32_t which = 0;

	for (size_t i = 0; i < SW_API_LIMITS; i++)
		if (!name || !strcmp(name, sw_limit_name(sw_api_limits[i])))
			which |= 1U << sw_api_limits[i];
	return which;
}

void sw_delete_busy_threshold(struct sw_control *c, struct evhttp_request *req)
{
	struct evkeyvalq query = {0};
	const char *model, *name;

	sw_serve_query(req, &query);
	model = evhttp_find_header(&query, "model");
	name = evhttp_find_header(&query, "threshold");
	if (!model) {
		sw_reply_error(req, 422, "\"model\" must be the name of a model");
	} else if (!which_of(name)) {
		sw_reply_error(req, 422, "\"threshold\" must be the name of a threshold");
	} else if (!find_pool(c->live, model)) {
		not_found(req, model);
	} else {
		sw_thresholds_clear(c->live->thresholds, model, which_of(name));
		sw_log(SW_INFO, "model %s: no longer set over the API: %s", model,
		       name ? name : "any threshold");
		refresh(c, model);
		reply(req, model_json(model, find_pool(c->live, model)));
	}
	evhttp_clear_headers(&query);
}
