// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Thresholds by model; see thresholds.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/json.h"
#include "control/live.h"
#include "control/state_file.h"
#include "control/thresholds.h"

#define STATE_VERSION 1

struct entry {
	char *model;
	struct sw_limits limits;
};

struct sw_thresholds {
	struct entry *entries;
	size_t n;
	struct sw_state_file *state; /* NULL: they are not kept */
};

const enum sw_limit sw_api_limits[SW_API_LIMITS] = {SW_LIM_DECODE, SW_LIM_PREFILL,
						    SW_LIM_PREFILL_FRAC};

/* ---- as JSON ------------------------------------------------------------------------------ */

/* Where a limit that is no whole number is; NULL: it is one. */
static double *real_of(struct sw_limits *l, enum sw_limit limit)
{
	return limit == SW_LIM_DECODE	      ? &l->decode
	       : limit == SW_LIM_PREFILL_FRAC ? &l->prefill_frac
					      : NULL;
}

static void copy_limit(struct sw_limits *to, const struct sw_limits *from, enum sw_limit limit)
{
	to->set |= 1U << limit;
	to->count[limit] = from->count[limit];
	if (limit == SW_LIM_DECODE)
		to->decode = from->decode;
	if (limit == SW_LIM_PREFILL_FRAC)
		to->prefill_frac = from->prefill_frac;
}

int sw_thresholds_show(json_t *to, const struct sw_limits *l)
{
	struct sw_limits copy = *l;
	int e = 0;

	for (size_t i = 0; i < SW_API_LIMITS; i++) {
		const double *real = real_of(&copy, sw_api_limits[i]);
		uint64_t count = l->count[sw_api_limits[i]];
		json_t *v = !(l->set & 1U << sw_api_limits[i]) ? json_null()
			    : real			       ? json_real(*real)
			    : count > INT64_MAX		       ? json_real((double)count)
							       : json_integer((json_int_t)count);

		e |= json_object_set_new(to, sw_limit_name(sw_api_limits[i]), v);
	}
	return e;
}

static int take_real(enum sw_limit limit, const json_t *v, double *out, struct sw_error *err)
{
	char digits[32];

	if (!json_is_number(v))
		return sw_fail(err, 422, "%s must be a number", sw_limit_name(limit));
	*out = json_number_value(v);
	if (sw_limit_valid(limit, *out))
		return 0;
	sw_json_digits(*out, digits);
	return sw_fail(err, 400,
		       limit == SW_LIM_DECODE
			       ? "%s must be between 0.0 and 1.0, got %s"
			       : "%s must be a finite value greater than or equal to 0.0, got %s",
		       sw_limit_name(limit), digits);
}

static int take_limit(const json_t *v, enum sw_limit limit, struct sw_limits *out,
		      struct sw_error *err)
{
	double *real = real_of(out, limit);

	if (!v || json_is_null(v))
		return 0;
	out->set |= 1U << limit;
	if (real)
		return take_real(limit, v, real, err);
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return sw_fail(err, 422, "%s must be a whole number from 0", sw_limit_name(limit));
	out->count[limit] = (uint64_t)json_integer_value(v);
	return 0;
}

/* A wrong type anywhere goes before a wrong value. */
int sw_thresholds_take(const json_t *from, struct sw_limits *out, struct sw_error *err)
{
	int status = 0;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < SW_API_LIMITS && status != 422; i++) {
		struct sw_error why = {""};
		int one = take_limit(json_object_get(from, sw_limit_name(sw_api_limits[i])),
				     sw_api_limits[i], out, &why);

		if (one && (!status || one == 422)) {
			status = one;
			*err = why;
		}
	}
	return status;
}

/* ---- the store ---------------------------------------------------------------------------- */

static struct entry *find(const struct sw_thresholds *t, const char *model)
{
	for (size_t i = 0; t && i < t->n; i++)
		if (sw_same_text(t->entries[i].model, model))
			return &t->entries[i];
	return NULL;
}

static void drop(struct sw_thresholds *t, struct entry *e)
{
	free(e->model);
	*e = t->entries[--t->n];
}

struct sw_limits sw_thresholds_merge(const struct sw_thresholds *t, const struct sw_pool_conf *pool)
{
	const struct entry *e = find(t, pool->model);
	struct sw_limits l = pool->limits;

	for (size_t i = 0; e && i < SW_API_LIMITS; i++)
		if (e->limits.set & 1U << sw_api_limits[i])
			copy_limit(&l, &e->limits, sw_api_limits[i]);
	return l;
}

uint32_t sw_thresholds_set_of(const struct sw_thresholds *t, const char *model)
{
	const struct entry *e = find(t, model);

	return e ? e->limits.set : 0;
}

static int merge_entry(struct sw_thresholds *t, const char *model, const struct sw_limits *given)
{
	struct entry *e = find(t, model), *more;

	if (!e) {
		more = reallocarray(t->entries, t->n + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		t->entries = more;
		e = &more[t->n];
		*e = (struct entry){.model = strdup(model)};
		if (!e->model)
			return -ENOMEM;
		t->n++;
	}
	for (size_t i = 0; i < SW_API_LIMITS; i++)
		if (given->set & 1U << sw_api_limits[i])
			copy_limit(&e->limits, given, sw_api_limits[i]);
	return 0;
}

/* ---- the file ----------------------------------------------------------------------------- */

static void save(struct sw_thresholds *t)
{
	json_t *list = json_array(), *doc;
	char *text;

	for (size_t i = 0; i < t->n; i++) {
		json_t *one = json_pack("{s:s}", "model", t->entries[i].model);

		sw_thresholds_show(one, &t->entries[i].limits);
		json_array_append_new(list, one);
	}
	doc = json_pack("{s:i, s:o}", "version", STATE_VERSION, "thresholds", list);
	text = sw_json_dump(doc);
	json_decref(doc);
	if (!text)
		sw_log(SW_ERROR, "state_file: no memory to write it");
	sw_state_file_write(t->state, text);
}

static int take_document(struct sw_thresholds *t, const json_t *doc, struct sw_error *err)
{
	const json_t *version = json_object_get(doc, "version"), *one;
	const json_t *list = json_object_get(doc, "thresholds");
	size_t i;

	if (!json_is_integer(version))
		return sw_fail(err, -EINVAL, "is not written by spillwayd");
	if (json_integer_value(version) != STATE_VERSION)
		return sw_fail(err, -EINVAL, "is of version %lld, this spillwayd knows %d",
			       (long long)json_integer_value(version), STATE_VERSION);
	if (!json_is_array(list))
		return sw_fail(err, -EINVAL, "has no list of thresholds");
	json_array_foreach (list, i, one) {
		const char *model = json_string_value(json_object_get(one, "model"));
		struct sw_limits limits;
		struct sw_error why;

		if (!model)
			return sw_fail(err, -EINVAL, "has thresholds of no model");
		if (sw_thresholds_take(one, &limits, &why))
			return sw_fail(err, -EINVAL, "is wrong about model '%.100s': %.200s", model,
				       why.text);
		if (merge_entry(t, model, &limits))
			return sw_fail(err, -ENOMEM, "no memory");
	}
	return 0;
}

static int load(struct sw_thresholds *t, const char *path, struct sw_error *err)
{
	json_error_t bad;
	json_t *doc;
	char *text;
	size_t n;
	int e = sw_state_file_read(path, &text, &n, err);

	if (e || !text)
		return e;
	doc = json_loadb(text, n, JSON_REJECT_DUPLICATES, &bad);
	e = doc ? take_document(t, doc, err)
		: sw_fail(err, -EINVAL, "is not JSON (line %d: %.200s)", bad.line, bad.text);
	json_decref(doc);
	free(text);
	return e;
}

/* What is there and cannot be read is kept aside; where even that fails, nothing is written. */
static int open_state(struct sw_thresholds *t, const char *path, struct sw_error *err)
{
	struct sw_error why = {""}, why_not = {""};

	if (!load(t, path, &why))
		return sw_state_file_new(&t->state, path, err);
	while (t->n)
		drop(t, t->entries);
	if (sw_state_file_set_aside(path, &why_not)) {
		sw_log(SW_ERROR,
		       "state_file %s %s, and %s: thresholds that were set over the API are lost, "
		       "and none will be kept",
		       path, why.text, why_not.text);
		return 0;
	}
	sw_log(SW_ERROR,
	       "state_file %s %s: thresholds that were set over the API are lost; the file is kept "
	       "as %s.bad",
	       path, why.text, path);
	return sw_state_file_new(&t->state, path, err);
}

int sw_thresholds_new(struct sw_thresholds **out, const char *state_file, struct sw_error *err)
{
	struct sw_thresholds *t = calloc(1, sizeof(*t));
	int e = t ? 0 : sw_fail(err, -ENOMEM, "no memory");

	if (!e && state_file)
		e = open_state(t, state_file, err);
	if (e) {
		sw_thresholds_free(t);
		return e;
	}
	*out = t;
	return 0;
}

void sw_thresholds_free(struct sw_thresholds *t)
{
	if (!t)
		return;
	while (t->n)
		drop(t, t->entries);
	sw_state_file_free(t->state);
	free(t->entries);
	free(t);
}

/* ---- changes ------------------------------------------------------------------------------ */

int sw_thresholds_set(struct sw_thresholds *t, const char *model, const struct sw_limits *given)
{
	int e = merge_entry(t, model, given);

	if (!e)
		save(t);
	return e;
}

void sw_thresholds_clear(struct sw_thresholds *t, const char *model, uint32_t which)
{
	struct entry *e = find(t, model);

	if (!e || !(e->limits.set & which))
		return;
	e->limits.set &= ~which;
	if (!e->limits.set)
		drop(t, e);
	save(t);
}

static bool is_served(const struct sw_config *conf, const char *model)
{
	for (size_t i = 0; i < conf->n_pools; i++)
		if (sw_same_text(conf->pools[i].model, model))
			return true;
	return false;
}

void sw_thresholds_prune(struct sw_thresholds *t, const struct sw_config *conf)
{
	size_t before = t->n, i = 0;

	while (i < t->n) {
		if (is_served(conf, t->entries[i].model)) {
			i++;
			continue;
		}
		sw_log(SW_WARN,
		       "model %s: thresholds that were set over the API are dropped, as no pool "
		       "serves it",
		       t->entries[i].model);
		drop(t, &t->entries[i]);
	}
	if (t->n != before)
		save(t);
}
