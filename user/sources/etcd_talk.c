// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests and answers of etcd's JSON gateway, see etcd_talk.h. Keys and values are base64 in them,
 * and 64-bit numbers are text. */
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sources/etcd_talk.h"

#define ROOT_END  "v10" /* the first key that does not begin with SW_KEY_ROOT: '0' follows '/' */
#define PAGE_KEYS 100	/* a page is far under what etcd.c takes, unless values are absurd */

/* ---- requests ----------------------------------------------------------------------------- */

static json_t *encoded(const char *text)
{
	size_t length = strlen(text), room = length / 3 * 4 + 8;
	char *out = malloc(room);
	json_t *json = NULL;

	if (out && b64_ntop((const unsigned char *)text, length, out, room) >= 0)
		json = json_string(out);
	free(out);
	return json;
}

static char *dump(json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	return text;
}

char *sw_etcd_ask_token(const char *user, const char *password)
{
	return dump(json_pack("{s:s, s:s}", "name", user, "password", password));
}

char *sw_etcd_ask_range(const char *from, int64_t revision)
{
	return dump(json_pack("{s:o, s:o, s:o, s:i}", "key", encoded(from ? from : SW_KEY_ROOT),
			      "range_end", encoded(ROOT_END), "revision",
			      json_sprintf("%lld", (long long)revision), "limit", PAGE_KEYS));
}

char *sw_etcd_ask_watch(int64_t revision)
{
	return dump(json_pack("{s:{s:o, s:o, s:o}}", "create_request", "key", encoded(SW_KEY_ROOT),
			      "range_end", encoded(ROOT_END), "start_revision",
			      json_sprintf("%lld", (long long)revision)));
}

char *sw_etcd_ask_alive(void)
{
	return dump(json_pack("{s:o, s:b}", "key", encoded(SW_KEY_ROOT), "count_only", 1));
}

/* ---- answers ------------------------------------------------------------------------------ */

static json_t *parse(const char *text, size_t length, struct sw_error *err)
{
	json_error_t why;
	json_t *json = json_loadb(text, length, 0, &why);

	if (json_is_object(json))
		return json;
	json_decref(json);
	sw_fail(err, -EBADMSG, "the answer is no JSON object (%.80s): does etcd v3 answer there?",
		json ? "another type" : why.text);
	return NULL;
}

static int64_t number(const json_t *of, const char *key)
{
	const json_t *v = json_object_get(of, key);
	const char *text = json_string_value(v);

	return text ? strtoll(text, NULL, 10) : json_integer_value(v);
}

/* The decoded bytes, ended by a NUL, to be freed; "" for what is absent. NULL: it is not base64, or
 * no memory. */
static char *decoded(const json_t *of, const char *key, size_t *length)
{
	const json_t *v = json_object_get(of, key);
	size_t room = json_string_length(v) / 4 * 3 + 4;
	unsigned char *out = malloc(room);
	int n = !v ? 0 : -1;

	if (out && json_is_string(v))
		n = b64_pton(json_string_value(v), out, room - 1);
	if (!out || n < 0) {
		free(out);
		return NULL;
	}
	out[n] = '\0';
	*length = (size_t)n;
	return (char *)out;
}

/* A pair of key and value; a key with a NUL in it is nobody's. */
static int take_pair(const json_t *kv, bool deleted, struct sw_members *m, struct sw_error *err)
{
	size_t key_length = 0, length = 0;
	char *key = decoded(kv, "key", &key_length), *value = decoded(kv, "value", &length);
	int e = 0;

	if (!key || !value || !key_length)
		e = sw_fail(err, -EBADMSG, "a key or value in the answer is not base64");
	else if (strlen(key) == key_length && deleted)
		sw_members_delete(m, key);
	else if (strlen(key) == key_length)
		sw_members_put(m, key, value, length);
	free(key);
	free(value);
	return e;
}

int sw_etcd_take_token(const char *text, size_t length, char **token, struct sw_error *err)
{
	json_t *json = parse(text, length, err);
	const char *t = json_string_value(json_object_get(json, "token"));
	int e = 0;

	if (!json)
		return -EBADMSG;
	if (t && *t && !strpbrk(t, "\r\n"))
		*token = strdup(t);
	else
		e = sw_fail(err, -EBADMSG, "the answer to the login has no token");
	json_decref(json);
	return e;
}

/* Where to go on after the last key of the page. Between the two are only keys with a NUL in them.
 */
static char *key_after(const json_t *kvs)
{
	const json_t *last = json_array_get(kvs, json_array_size(kvs) - 1);
	size_t length = 0;
	char *key = decoded(last, "key", &length), *next = NULL;

	if (key && asprintf(&next, "%s\x01", key) < 0)
		next = NULL;
	free(key);
	return next;
}

int sw_etcd_take_range(const char *text, size_t length, struct sw_members *m,
		       struct sw_etcd_page *out, struct sw_error *err)
{
	json_t *json = parse(text, length, err), *kvs, *kv;
	size_t i;
	int e = json ? 0 : -EBADMSG;

	*out = (struct sw_etcd_page){0};
	kvs = json_object_get(json, "kvs");
	json_array_foreach (kvs, i, kv)
		if (!e)
			e = take_pair(kv, false, m, err);
	out->revision = number(json_object_get(json, "header"), "revision");
	if (!e && out->revision <= 0)
		e = sw_fail(err, -EBADMSG, "the answer has no revision");
	if (!e && json_is_true(json_object_get(json, "more"))) {
		out->next = json_array_size(kvs) ? key_after(kvs) : NULL;
		if (!out->next)
			e = sw_fail(err, -EBADMSG, "the answer is a page without keys");
	}
	json_decref(json);
	return e;
}

static int take_result(const json_t *result, struct sw_members *m, struct sw_error *err)
{
	const json_t *events = json_object_get(result, "events"), *event;
	const char *reason = json_string_value(json_object_get(result, "cancel_reason")), *type;
	size_t i;
	int e = 0;

	if (number(result, "compact_revision") > 0)
		return sw_fail(err, -ESTALE, "the revision to watch from was compacted");
	if (json_is_true(json_object_get(result, "canceled")))
		return sw_fail(err, -ECANCELED, "the watch was cancelled: %.200s",
			       reason && *reason ? reason : "no reason is given");
	json_array_foreach (events, i, event) {
		type = json_string_value(json_object_get(event, "type"));
		e = take_pair(json_object_get(event, "kv"), type && !strcmp(type, "DELETE"), m,
			      err);
		if (e)
			break;
	}
	return e;
}

int sw_etcd_take_watch(const char *text, size_t length, struct sw_members *m, struct sw_error *err)
{
	json_t *json = parse(text, length, err);
	const json_t *result = json_object_get(json, "result");
	int e;

	if (!json)
		return -EBADMSG;
	if (json_is_object(result)) {
		e = take_result(result, m, err);
	} else {
		sw_etcd_explain(text, length, err);
		e = -EPROTO;
	}
	json_decref(json);
	return e;
}

/* NULL: it says nothing. */
static const char *words(const json_t *v)
{
	const char *text = json_string_value(v);

	return text && *text ? text : NULL;
}

void sw_etcd_explain(const char *text, size_t length, struct sw_error *err)
{
	json_t *json = json_loadb(text, length, 0, NULL);
	const json_t *error = json_object_get(json, "error");
	const char *message = words(error);

	if (!message)
		message = words(json_object_get(error, "message"));
	if (!message)
		message = words(json_object_get(json, "message"));
	sw_fail(err, -EPROTO, "%.300s", message ? message : "the answer says no more");
	json_decref(json);
}
