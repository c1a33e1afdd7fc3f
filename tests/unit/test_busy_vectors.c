// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Busy evaluation at one moment, as the shared conformance vectors have it: workers, statuses and
 * what is valid as a threshold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "lib/rig.h"

static json_t *load_vectors(void)
{
	const char *folder = getenv("SPILLWAY_VECTORS");
	char path[4096];
	json_error_t error;
	json_t *root;

	snprintf(path, sizeof(path), "%s/busy.json", folder ? folder : "../shared/vectors");
	if (access(path, R_OK) != 0) {
		print_message("skipped: no vectors at %s (set SPILLWAY_VECTORS)\n", path);
		return NULL;
	}
	/* 2^64 - 1 is among them and no JSON integer of jansson's, so all are read as reals. */
	root = json_load_file(path, JSON_DECODE_INT_AS_REAL, &error);
	if (!root)
		fail_msg("%s:%d: %s", path, error.line, error.text);
	return root;
}

static uint64_t to_u64(const json_t *value)
{
	double real = json_real_value(value);

	return real >= 0x1p64 ? UINT64_MAX : (uint64_t)real;
}

static struct sw_limits vector_limits(const json_t *thr)
{
	struct sw_limits l = {.release_ratio = 1.0};
	const json_t *value;

	value = json_object_get(thr, "decode");
	if (json_is_real(value)) {
		l.set |= 1u << SW_LIM_DECODE;
		l.decode = json_real_value(value);
	}
	value = json_object_get(thr, "prefill");
	if (json_is_real(value)) {
		l.set |= 1u << SW_LIM_PREFILL;
		l.count[SW_LIM_PREFILL] = to_u64(value);
	}
	value = json_object_get(thr, "prefill_frac");
	if (json_is_real(value)) {
		l.set |= 1u << SW_LIM_PREFILL_FRAC;
		l.prefill_frac = json_real_value(value);
	}
	return l;
}

static void add_signal(struct sw_report *r, const json_t *from, const char *key,
		       enum sw_signal signal)
{
	const json_t *value = json_object_get(from, key);

	if (!json_is_real(value))
		return;
	r->have |= 1u << signal;
	r->value[signal] = to_u64(value);
}

static void run_vector(const json_t *vector)
{
	const struct sw_ageing a = {.stale_after_ms = 5000};
	const char *name = json_string_value(json_object_get(vector, "name"));
	struct sw_limits l = vector_limits(json_object_get(vector, "thr"));
	struct sw_worker w;
	uint64_t now = 1000;
	const json_t *step;
	size_t i;

	sw_worker_init(&w, to_u64(json_object_get(vector, "start_rank")),
		       to_u64(json_object_get(vector, "dp_size")));
	json_array_foreach (json_object_get(vector, "steps"), i, step) {
		bool want = json_is_true(json_object_get(step, "busy"));
		struct sw_report r = {.rank = to_u64(json_object_get(step, "rank"))};

		add_signal(&r, vector, "T", SW_SIG_KV_TOTAL);
		add_signal(&r, vector, "M", SW_SIG_MAX_BATCHED);
		add_signal(&r, step, "D", SW_SIG_DECODE_BLOCKS);
		add_signal(&r, step, "K", SW_SIG_KV_USED);
		add_signal(&r, step, "P", SW_SIG_PREFILL_TOKENS);
		sw_worker_report(&w, &l, &r, now);
		if (sw_worker_eval(&w, &l, &a, now) != want)
			fail_msg("%s, step %zu: busy should be %d", name, i, want);
		now += 100;
	}
}

static void vectors(void **state)
{
	json_t *root = load_vectors();
	const json_t *list, *vector;
	size_t i;

	(void)state;
	if (!root)
		skip();
	list = json_object_get(root, "cases");
	assert_true(json_array_size(list) > 0);
	json_array_foreach (list, i, vector)
		run_vector(vector);
	json_decref(root);
}

static void vectors_of_status(void **state)
{
	json_t *root = load_vectors();
	const json_t *list, *vector;
	size_t i;

	(void)state;
	if (!root)
		skip();
	list = json_object_get(root, "overload_status");
	assert_true(json_array_size(list) > 0);
	json_array_foreach (list, i, vector) {
		const char *in = json_string_value(json_object_get(vector, "in"));
		unsigned want = to_u64(json_object_get(vector, "out"));

		if (sw_overload_status(in) != want)
			fail_msg("\"%s\" gives %u, not %u", in ? in : "(null)",
				 sw_overload_status(in), want);
	}
	json_decref(root);
}

static void check_validity(const json_t *list, enum sw_limit limit)
{
	const json_t *pair;
	size_t i;

	assert_true(json_array_size(list) > 0);
	json_array_foreach (list, i, pair) {
		const json_t *in = json_array_get(pair, 0);
		double value = json_is_string(in) ? strtod(json_string_value(in), NULL)
						  : json_real_value(in);

		if (sw_limit_valid(limit, value) != json_is_true(json_array_get(pair, 1)))
			fail_msg("%s %g is judged wrongly", sw_limit_name(limit), value);
	}
}

static void vectors_of_validity(void **state)
{
	json_t *root = load_vectors();
	const json_t *valid;

	(void)state;
	if (!root)
		skip();
	valid = json_object_get(root, "threshold_valid");
	check_validity(json_object_get(valid, "decode"), SW_LIM_DECODE);
	check_validity(json_object_get(valid, "prefill_frac"), SW_LIM_PREFILL_FRAC);
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(vectors_of_status),
		cmocka_unit_test(vectors_of_validity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
