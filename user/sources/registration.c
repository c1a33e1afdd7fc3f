// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Keys and values of Dynamo's membership, see registration.h. Anybody who can reach the store can
 * write them, so everything is bounded and nothing is believed before it was looked at. */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "sources/registration.h"

#define NAME_MAX_BYTES	100	     /* of a namespace, component or endpoint */
#define MODEL_MAX_BYTES 256	     /* and of a model */
#define TEXT_MAX_BYTES	256	     /* and of an address */
#define RANKS_MAX	64	     /* of a worker */
#define NUMBER_MAX	(1ULL << 53) /* what a double holds exactly */

static int bad(struct sw_error *err, const char *key, const char *what)
{
	return sw_fail(err, -EBADMSG, "%.200s: %s", key, what);
}

/* ---- keys --------------------------------------------------------------------------------- */

/* The rest of `key` after `bucket`, or NULL. */
static const char *after(const char *key, const char *bucket)
{
	size_t length = strlen(bucket);

	return strncmp(key, bucket, length) ? NULL : key + length;
}

/* Will it do as part of a name that people read? */
static bool is_name(const char *text, size_t max)
{
	size_t n = 0;

	while (isgraph((unsigned char)text[n]) && !strchr("\"\\", text[n]))
		n++;
	return n && !text[n] && n <= max;
}

static bool take_id(const char *hex, uint64_t *id)
{
	size_t n = hex ? strspn(hex, "0123456789abcdefABCDEF") : 0;

	if (!n || n > 16 || hex[n])
		return false;
	*id = strtoull(hex, NULL, 16);
	return true;
}

/* NAMESPACE/COMPONENT/ENDPOINT/ID. More behind that is an adapter of the model: not a worker. */
static int take_worker_path(struct sw_registration *r, const char *key, struct sw_error *err)
{
	char *rest = r->path, *id;

	r->namespace = strsep(&rest, "/");
	r->component = strsep(&rest, "/");
	r->endpoint = strsep(&rest, "/");
	id = strsep(&rest, "/");
	if (rest && r->kind == SW_REG_MODEL)
		return -ENOENT;
	if (rest || !take_id(id, &r->id))
		return bad(err, key, "not of the form NAMESPACE/COMPONENT/ENDPOINT/ID");
	if (!is_name(r->namespace, NAME_MAX_BYTES) || !is_name(r->component, NAME_MAX_BYTES) ||
	    !is_name(r->endpoint, NAME_MAX_BYTES))
		return bad(err, key, "a name in it is empty, too long or not printable");
	return 0;
}

/* SCOPE/topic/TOPIC/ID. */
static int take_channel_path(struct sw_registration *r, const char *key, struct sw_error *err)
{
	static const char topic[] = "/topic/";
	const char *at = strstr(r->path, topic), *id;

	if (!at)
		return bad(err, key, "names no topic");
	id = after(at + strlen(topic), "kv_metrics/");
	if (!id)
		return -ENOENT;
	return take_id(id, &r->id) ? 0 : bad(err, key, "does not end with a publisher's id");
}

static int take_key(struct sw_registration *r, const char *key, struct sw_error *err)
{
	static const char *const buckets[] = {
		[SW_REG_INSTANCE] = SW_KEY_ROOT "instances/",
		[SW_REG_MODEL] = SW_KEY_ROOT "mdc/",
		[SW_REG_CHANNEL] = SW_KEY_ROOT "event_channels/",
	};
	const char *rest = NULL;

	for (unsigned i = 0; i < sizeof(buckets) / sizeof(buckets[0]) && !rest; i++) {
		rest = after(key, buckets[i]);
		r->kind = (enum sw_registered)i;
	}
	if (!rest)
		return -ENOENT;
	if (strlen(key) > SW_KEY_MAX)
		return bad(err, key,
			   "over "
			   "512 bytes long");
	r->path = strdup(rest);
	if (!r->path)
		return -ENOMEM;
	return r->kind == SW_REG_CHANNEL ? take_channel_path(r, key, err)
					 : take_worker_path(r, key, err);
}

/* ---- values ------------------------------------------------------------------------------- */

/* A number that is told and can be true; 0: it is not. Integers are read as doubles, since ids go
 * beyond what the library takes as an integer. */
static uint64_t number(const json_t *of, const char *key)
{
	double v = json_number_value(json_object_get(of, key));

	return v >= 1 && v <= (double)NUMBER_MAX ? (uint64_t)v : 0;
}

static char *text(const json_t *of, const char *key, size_t max)
{
	const char *t = json_string_value(json_object_get(of, key));

	return t && is_name(t, max) ? strdup(t) : NULL;
}

/* "HOST:PORT" of "tcp://HOST:PORT/MORE"; whether HOST is an address is the user's matter. */
static void take_instance(struct sw_registration *r, const json_t *value)
{
	const json_t *transport = json_object_get(value, "transport");
	char *tcp = text(transport, "tcp", TEXT_MAX_BYTES);
	const char *host = tcp ? after(tcp, "tcp://") : NULL;

	if (tcp)
		r->address = strndup(host ? host : tcp, strcspn(host ? host : tcp, "/"));
	free(tcp);
}

/* What is told of its engine is a hint: a worker is taken without it. */
static int take_model(struct sw_registration *r, const json_t *value, const char *key,
		      struct sw_error *err)
{
	const json_t *card = json_object_get(value, "card_json");
	const json_t *config = json_object_get(card, "runtime_config");
	uint64_t start = number(config, "data_parallel_start_rank");
	uint64_t size = number(config, "data_parallel_size");

	r->model = text(card, "display_name", MODEL_MAX_BYTES);
	if (!r->model)
		return bad(err, key, "card_json.display_name is missing or no name");
	r->kv_blocks = number(config, "total_kv_blocks");
	r->max_batched = number(config, "max_num_batched_tokens");
	r->start_rank = start <= INT32_MAX ? (uint32_t)start : 0;
	r->dp_size = size && size <= RANKS_MAX ? (int32_t)size : -1;
	return 0;
}

static void add_channel(struct sw_registration *r, const json_t *address)
{
	const char *t = json_string_value(address);

	if (t && is_name(t, TEXT_MAX_BYTES) && r->n_channels < SW_CHANNELS_MAX)
		r->channels[r->n_channels] = strdup(t);
	if (r->channels[r->n_channels])
		r->n_channels++;
}

static int take_channel(struct sw_registration *r, const json_t *value, const char *key,
			struct sw_error *err)
{
	const json_t *transport = json_object_get(value, "transport");
	const json_t *config = json_object_get(transport, "config"), *addresses, *a;
	const char *kind = json_string_value(json_object_get(transport, "kind"));
	size_t i;

	if (kind && !strcmp(kind, "Zmq")) {
		r->channel = SW_CHANNEL_ZMQ;
		add_channel(r, json_object_get(config, "endpoint"));
	} else if (kind && !strcmp(kind, "ZmqBroker")) {
		r->channel = SW_CHANNEL_ZMQ_BROKER;
		addresses = json_object_get(config, "xpub_endpoints");
		json_array_foreach (addresses, i, a)
			if (i < SW_CHANNELS_MAX)
				add_channel(r, a);
	} else if (kind && !strcmp(kind, "Nats")) {
		r->channel = SW_CHANNEL_NATS;
		add_channel(r, json_object_get(config, "subject_prefix"));
	}
	return r->n_channels ? 0 : bad(err, key, "transport has no kind or address that is known");
}

static int take_value(struct sw_registration *r, const char *key, const char *value, size_t length,
		      struct sw_error *err)
{
	const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL;
	json_error_t why;
	json_t *json;
	int e = 0;

	if (length > SW_VALUE_MAX)
		return bad(err, key, "the value is over 64 kB long");
	json = json_loadb(value, length, flags, &why);
	if (!json_is_object(json)) {
		json_decref(json);
		return sw_fail(err, -EBADMSG, "%.200s: the value is no JSON object: %.100s", key,
			       json ? "another type" : why.text);
	}
	switch (r->kind) {
	case SW_REG_INSTANCE: take_instance(r, json); break;
	case SW_REG_MODEL: e = take_model(r, json, key, err); break;
	case SW_REG_CHANNEL: e = take_channel(r, json, key, err); break;
	}
	json_decref(json);
	return e;
}

int sw_registration_read(const char *key, const char *value, size_t length,
			 struct sw_registration **out, struct sw_error *err)
{
	struct sw_registration *r = calloc(1, sizeof(*r));
	int e = r ? take_key(r, key, err) : -ENOMEM;

	if (!e)
		e = take_value(r, key, value, length, err);
	if (e == -ENOMEM)
		sw_fail(err, e, "%.200s: no memory", key);
	if (e)
		sw_registration_free(r);
	else
		*out = r;
	return e;
}

/* ---- comparison ---------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool sw_registration_same(const struct sw_registration *a, const struct sw_registration *b)
{
	if (a->kind != b->kind || a->id != b->id || !same_text(a->namespace, b->namespace) ||
	    !same_text(a->component, b->component) || !same_text(a->endpoint, b->endpoint) ||
	    !same_text(a->address, b->address) || !same_text(a->model, b->model) ||
	    a->kv_blocks != b->kv_blocks || a->max_batched != b->max_batched ||
	    a->start_rank != b->start_rank || a->dp_size != b->dp_size ||
	    a->channel != b->channel || a->n_channels != b->n_channels)
		return false;
	for (size_t i = 0; i < a->n_channels; i++)
		if (strcmp(a->channels[i], b->channels[i]))
			return false;
	return true;
}

void sw_registration_free(struct sw_registration *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_channels; i++)
		free(r->channels[i]);
	free(r->address);
	free(r->model);
	free(r->path);
	free(r);
}
