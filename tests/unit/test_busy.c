// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Busy evaluation at one moment: the shared conformance vectors, each threshold at its boundary,
 * ranks, recomputation. What time does is in test_busy_time.c, what explain shows in
 * test_explain.c.
 */
#include <errno.h>
#include <math.h>
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

/* ---- conformance vectors ---- */

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

/* ---- thresholds ---- */

static void rank_limits_are_strict(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.29); /* 0.29 x 100 is below 29 in floating point, 29 / 100 is not over */
	TELL(&r, 0, TOTAL(100), USED(28));
	assert_false(rig_busy(&r));
	TELL(&r, 0, USED(29));
	assert_true(rig_busy(&r));

	rig_init(&r, 0, 1);
	rig_count(&r, SW_LIM_PREFILL, UINT64_MAX - 1); /* exact where a double is not */
	TELL(&r, 0, PREFILL(UINT64_MAX - 1));
	assert_false(rig_busy(&r));
	TELL(&r, 0, PREFILL(UINT64_MAX));
	assert_true(rig_busy(&r));

	rig_init(&r, 0, 1);
	rig_frac(&r, 0.9); /* 900.9, truncated */
	TELL(&r, 0, BATCHED(1001), PREFILL(900));
	assert_false(rig_busy(&r));
	TELL(&r, 0, PREFILL(901));
	assert_true(rig_busy(&r));
	r.l.prefill_frac = 1e300; /* more than any count */
	assert_false(rig_busy(&r));
}

static void worker_limits(void **state)
{
	static const struct {
		const char *what;
		enum sw_limit limit;
		uint64_t max, running, waiting, queued;
		bool busy;
	} rows[] = {
		{"vLLM, one place left", SW_LIM_QUEUED_REQS, 8, 5, 2, 0, false},
		{"vLLM, no place left", SW_LIM_QUEUED_REQS, 8, 5, 3, 0, true},
		{"vLLM, 0 rejects all", SW_LIM_QUEUED_REQS, 0, 0, 0, 0, true},
		{"vLLM, unreachable", SW_LIM_QUEUED_REQS, UINT64_MAX, 1, 1, 0, false},
		{"vLLM, sum past 64 bits", SW_LIM_QUEUED_REQS, 9, UINT64_MAX, 2, 0, true},
		{"vLLM tokens, below", SW_LIM_QUEUED_TOKENS, 4096, 99, 99, 4095, false},
		{"vLLM tokens, at it", SW_LIM_QUEUED_TOKENS, 4096, 0, 0, 4096, true},
		{"vLLM tokens, 0", SW_LIM_QUEUED_TOKENS, 0, 0, 0, 0, true},
		{"SGLang, running do not count", SW_LIM_QUEUED_REQUESTS, 4, 99, 3, 0, false},
		{"SGLang, queue full", SW_LIM_QUEUED_REQUESTS, 4, 0, 4, 0, true},
		{"SGLang, 0", SW_LIM_QUEUED_REQUESTS, 0, 0, 0, 0, true},
		{"TGI, one permit left", SW_LIM_CONCURRENT_REQUESTS, 128, 100, 27, 0, false},
		{"TGI, none left", SW_LIM_CONCURRENT_REQUESTS, 128, 100, 28, 0, true},
	};
	struct rig r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rig_init(&r, 0, 1);
		rig_count(&r, rows[i].limit, rows[i].max);
		TELL(&r, 0, RUNNING(rows[i].running), WAITING(rows[i].waiting),
		     QUEUED(rows[i].queued));
		if (rig_busy(&r) != rows[i].busy)
			fail_msg("%s: busy should be %d", rows[i].what, rows[i].busy);
		assert_false(r.w.rank[0].busy);
	}
}

/* Counts of one worker add up over its ranks, and what is not known adds nothing. */
static void worker_limits_sum_ranks(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 2, 3);
	rig_count(&r, SW_LIM_CONCURRENT_REQUESTS, 10);
	TELL(&r, 2, RUNNING(3), WAITING(1));
	TELL(&r, 3, RUNNING(3), WAITING(2));
	assert_false(rig_busy(&r));
	TELL(&r, 4, WAITING(1)); /* 4 + 5 + 1 */
	assert_true(rig_busy(&r));
	r.now += 3000;
	TELL(&r, 2, RUNNING(3), WAITING(1));
	TELL(&r, 3, RUNNING(3), WAITING(2));
	assert_true(rig_busy(&r));
	assert_false(rig_busy_after(&r, 2001)); /* rank 4 is stale, 9 are left */
}

static void any_check_makes_busy(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.5);
	rig_count(&r, SW_LIM_PREFILL, 100);
	rig_count(&r, SW_LIM_QUEUED_REQUESTS, 10);
	TELL(&r, 0, TOTAL(100), USED(10), PREFILL(10), WAITING(1));
	assert_false(rig_busy(&r));
	TELL(&r, 0, PREFILL(101));
	assert_true(rig_busy(&r));
	TELL(&r, 0, PREFILL(0), USED(51));
	assert_true(rig_busy(&r));
	TELL(&r, 0, USED(0), WAITING(10));
	assert_true(rig_busy(&r));
	TELL(&r, 0, WAITING(9));
	assert_false(rig_busy(&r));
}

static void validity(void **state)
{
	(void)state;
	assert_true(sw_limit_valid(SW_LIM_DECODE, 0.0));
	assert_true(sw_limit_valid(SW_LIM_DECODE, 1.0));
	assert_false(sw_limit_valid(SW_LIM_DECODE, 1.0000001));
	assert_false(sw_limit_valid(SW_LIM_DECODE, NAN));
	assert_true(sw_limit_valid(SW_LIM_PREFILL_FRAC, 64.0));
	assert_false(sw_limit_valid(SW_LIM_PREFILL_FRAC, INFINITY));
	assert_false(sw_limit_valid(SW_LIM_PREFILL_FRAC, -0.1));
	assert_true(sw_limit_valid(SW_LIM_PREFILL, 0.0));
	assert_true(sw_limit_valid(SW_LIM_QUEUED_REQS, 128.0));
	assert_false(sw_limit_valid(SW_LIM_QUEUED_REQS, 1.5));
	assert_false(sw_limit_valid(SW_LIM_QUEUED_REQS, -1.0));
	assert_false(sw_limit_valid(SW_LIM_QUEUED_REQS, 0x1p64));
	assert_false(sw_limit_valid(SW_LIM_QUEUED_REQS, NAN));
}

static void overload_status(void **state)
{
	static const struct {
		const char *text;
		unsigned want;
	} rows[] = {
		{"503", 503},	{"\t503\n", 503},    {"+503", 503},  {"0503", 503},
		{"200", 200},	{"999", 999},	     {"199", 529},   {"1000", 529},
		{"50 3", 529},	{"503x", 529},	     {"0x1f7", 529}, {"-503", 529},
		{"66039", 529}, {"4294967799", 529}, {"+", 529},     {" ", 529},
	};

	(void)state;
	assert_int_equal(sw_overload_status(NULL), 529);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (sw_overload_status(rows[i].text) != rows[i].want)
			fail_msg("\"%s\" gives %u", rows[i].text, sw_overload_status(rows[i].text));
	}
}

/* ---- ranks ---- */

static void ranks_declared_or_seen(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 2); /* a declared rank that never reported is free */
	rig_count(&r, SW_LIM_PREFILL, 0);
	TELL(&r, 1, PREFILL(1));
	assert_false(rig_busy(&r));
	TELL(&r, 0, PREFILL(1));
	assert_true(rig_busy(&r));

	rig_init(&r, 4, -1); /* not declared: the ranks seen so far */
	rig_count(&r, SW_LIM_PREFILL, 0);
	assert_false(rig_busy(&r));
	TELL(&r, 6, PREFILL(1));
	assert_true(rig_busy(&r));
	rig_tell(&r, 4, NULL, 0); /* it exists, and nothing is known of it */
	assert_false(rig_busy(&r));

	rig_init(&r, 0, SW_MAX_RANKS + 1); /* one more than can report */
	rig_count(&r, SW_LIM_PREFILL, 0);
	for (uint32_t i = 0; i < SW_MAX_RANKS; i++)
		TELL(&r, i, PREFILL(1));
	assert_false(rig_busy(&r));
}

static void other_ranks_are_dropped(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 3, 2);
	rig_count(&r, SW_LIM_CONCURRENT_REQUESTS, 1);
	assert_int_equal(TELL(&r, 2, RUNNING(9)), -ERANGE);
	assert_int_equal(TELL(&r, 5, RUNNING(9)), -ERANGE);
	assert_int_equal(TELL(&r, UINT32_MAX, RUNNING(9)), -ERANGE);
	assert_int_equal(r.w.dropped, 3);
	assert_int_equal(r.w.reported_ms, 0);
	assert_false(rig_busy(&r));
	assert_int_equal(TELL(&r, 3, RUNNING(1)), 0);
	assert_int_equal(TELL(&r, 4, RUNNING(0)), 0);
	assert_int_equal(r.w.dropped, 3);
	assert_true(rig_busy(&r));

	rig_init(&r, UINT32_MAX - 1, -1);
	assert_int_equal(TELL(&r, 0, RUNNING(1)), -ERANGE);
	rig_init(&r, 3, -1);
	assert_int_equal(TELL(&r, 3 + SW_MAX_RANKS - 1, RUNNING(1)), 0);
	assert_int_equal(TELL(&r, 3 + SW_MAX_RANKS, RUNNING(1)), -ERANGE);
	assert_int_equal(r.w.dropped, 1);
}

/* ---- recomputation ---- */

static void changes_count_without_a_report(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	TELL(&r, 0, TOTAL(100), USED(70), PREFILL(50), WAITING(5));
	assert_false(rig_busy(&r)); /* no threshold at all */
	rig_decode(&r, 0.6);
	assert_true(rig_busy(&r));
	r.l.decode = 0.8;
	assert_false(rig_busy(&r));
	assert_false(r.w.rank[0].latched);
	r.l.decode = 0.6;
	assert_true(rig_busy(&r));
	r.l.set = 0;
	assert_false(rig_busy(&r));
	rig_count(&r, SW_LIM_PREFILL, 49);
	assert_true(rig_busy(&r));
	r.l.set = 0;
	rig_count(&r, SW_LIM_QUEUED_REQUESTS, 5);
	assert_true(rig_busy(&r));
	r.l.set = 0;
	assert_false(rig_busy(&r));
}

static void total_comes_late_or_goes(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, 0, 1);
	rig_decode(&r, 0.6);
	TELL(&r, 0, DECODE(90));
	assert_false(rig_busy(&r));
	TELL(&r, 0, TOTAL(100));
	assert_true(rig_busy(&r));
	TELL(&r, 0, TOTAL(0));
	assert_false(rig_busy(&r));
	TELL(&r, 0, TOTAL(1000));
	assert_false(rig_busy(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(vectors_of_status),
		cmocka_unit_test(vectors_of_validity),
		cmocka_unit_test(rank_limits_are_strict),
		cmocka_unit_test(worker_limits),
		cmocka_unit_test(worker_limits_sum_ranks),
		cmocka_unit_test(any_check_makes_busy),
		cmocka_unit_test(validity),
		cmocka_unit_test(overload_status),
		cmocka_unit_test(ranks_declared_or_seen),
		cmocka_unit_test(other_ranks_are_dropped),
		cmocka_unit_test(changes_count_without_a_report),
		cmocka_unit_test(total_comes_late_or_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
