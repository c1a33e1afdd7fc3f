// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loads told over the API: whose they are, what is wrong with them, and that all are taken or none.
 */
#include "lib/asking.h"

#include <stdlib.h>
#include <string.h>

#include "control/push.h"

static struct sw_worker_conf worker_confs[4] = {
	{.name = (char *)"w0"},
	{.name = (char *)"w1", .has_worker_id = true, .worker_id = UINT64_MAX},
	{.name = (char *)"w0"},
	{.name = (char *)"w3", .has_worker_id = true, .worker_id = 7},
};
static struct sw_pool_conf pool_confs[2] = {{.name = (char *)"a"}, {.name = (char *)"b"}};
static struct sw_live_pool pools[2];
static struct sw_live_worker workers[4];
static struct sw_live_worker *lists[2][2] = {{&workers[0], &workers[1]},
					     {&workers[2], &workers[3]}};
static struct sw_live live = {.pools = pools, .n_pools = 2};
static struct sw_push *loads;
static size_t n_loads;
static struct sw_error error;

static int start(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++)
		pools[i] = (struct sw_live_pool){
			.conf = &pool_confs[i], .live = &live, .workers = lists[i], .n_workers = 2};
	for (size_t i = 0; i < 4; i++)
		workers[i] =
			(struct sw_live_worker){.conf = &worker_confs[i], .pool = &pools[i / 2]};
	return 0;
}

static int stop(void **state)
{
	(void)state;
	sw_push_free(loads, n_loads);
	loads = NULL;
	n_loads = 0;
	return 0;
}

static int push(const char *text)
{
	json_t *body = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	int status;

	assert_non_null(body);
	sw_push_free(loads, n_loads);
	error.text[0] = '\0';
	status = sw_push_read(&live, body, &loads, &n_loads, &error);
	json_decref(body);
	return status;
}

static void one_worker_with_all_signals(void **state)
{
	const struct sw_report *r;

	(void)state;
	assert_int_equal(
		push("{\"pool\":\"a\",\"worker\":\"w0\",\"more\":1,\"ranks\":[{\"rank\":3,"
		     "\"running\":1,\"waiting\":2,\"active_decode_blocks\":3,"
		     "\"kv_used_blocks\":4,\"kv_total_blocks\":5,\"active_prefill_tokens\":6,"
		     "\"max_num_batched_tokens\":7,\"queued_tokens\":9223372036854775807},"
		     "{\"rank\":0,\"running\":0,\"waiting\":null}]}"),
		0);
	assert_int_equal(n_loads, 1);
	assert_ptr_equal(loads[0].worker, &workers[0]);
	assert_int_equal(loads[0].n, 2);
	r = &loads[0].reports[0];
	assert_int_equal(r->rank, 3);
	assert_int_equal(r->have, (1U << SW_SIGNALS) - 1);
	assert_int_equal(r->value[SW_SIG_RUNNING], 1);
	assert_int_equal(r->value[SW_SIG_WAITING], 2);
	assert_int_equal(r->value[SW_SIG_DECODE_BLOCKS], 3);
	assert_int_equal(r->value[SW_SIG_KV_USED], 4);
	assert_int_equal(r->value[SW_SIG_KV_TOTAL], 5);
	assert_int_equal(r->value[SW_SIG_PREFILL_TOKENS], 6);
	assert_int_equal(r->value[SW_SIG_MAX_BATCHED], 7);
	assert_int_equal(r->value[SW_SIG_QUEUED_TOKENS], INT64_MAX);
	/* 0 is told, null is not */
	assert_int_equal(loads[0].reports[1].rank, 0);
	assert_int_equal(loads[0].reports[1].have, 1U << SW_SIG_RUNNING);
}

#define RANKS "\"ranks\":[{\"rank\":0,\"running\":1}]"

static void whose_it_is(void **state)
{
	static const struct {
		const char *text;
		int worker; /* or the status */
	} rows[] = {
		{"{\"worker\":\"w1\"," RANKS "}", 1},
		{"{\"worker\":\"w3\",\"pool\":null," RANKS "}", 3},
		{"{\"worker\":\"w0\",\"pool\":\"b\"," RANKS "}", 2},
		{"{\"worker_id\":7," RANKS "}", 3},
		{"{\"worker_id\":\"7\"," RANKS "}", 3},
		{"{\"worker_id\":\"18446744073709551615\"," RANKS "}", 1},
		{"{\"worker_id\":7,\"worker\":\"w3\",\"pool\":\"b\"," RANKS "}", 3},
		{"{\"worker_id\":7,\"worker\":\"w1\"," RANKS "}", 404},
		{"{\"worker_id\":0," RANKS "}", 404}, /* no id is not 0 */
		{"{\"worker_id\":7,\"pool\":\"a\"," RANKS "}", 404},
		{"{\"worker\":\"w0\"," RANKS "}", 422}, /* there are two */
		{"{\"worker\":\"none\"," RANKS "}", 404},
		{"{\"worker\":\"w0\",\"pool\":\"none\"," RANKS "}", 404},
		{"{\"pool\":\"a\"," RANKS "}", 422},
		{"{\"worker\":0," RANKS "}", 422},
		{"{\"worker\":\"w1\",\"pool\":1," RANKS "}", 422},
		{"{\"worker_id\":-1," RANKS "}", 422},
		{"{\"worker_id\":7.0," RANKS "}", 422},
		{"{\"worker_id\":\"7x\"," RANKS "}", 422},
		{"{\"worker_id\":\"\"," RANKS "}", 422},
		{"{\"worker_id\":\"18446744073709551616\"," RANKS "}", 422},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int status = push(rows[i].text);

		if (status != (rows[i].worker < 4 ? 0 : rows[i].worker))
			fail_msg("%s: %d %s", rows[i].text, status, error.text);
		if (!status)
			assert_ptr_equal(loads[0].worker, &workers[rows[i].worker]);
		else
			assert_true(error.text[0]);
	}
}

static void what_is_no_load(void **state)
{
	static const char *const texts[] = {
		"[]",
		"{}",
		"{\"worker\":\"w1\"}",
		"{\"worker\":\"w1\",\"ranks\":{}}",
		"{\"worker\":\"w1\",\"ranks\":[]}",
		"{\"worker\":\"w1\",\"ranks\":[1]}",
		"{\"worker\":\"w1\",\"ranks\":[{}]}",
		"{\"worker\":\"w1\",\"ranks\":[{\"rank\":-1}]}",
		"{\"worker\":\"w1\",\"ranks\":[{\"rank\":0.0}]}",
		"{\"worker\":\"w1\",\"ranks\":[{\"rank\":4294967296}]}",
		"{\"worker\":\"w1\",\"ranks\":[{\"rank\":0,\"running\":-1}]}",
		"{\"worker\":\"w1\",\"ranks\":[{\"rank\":0,\"running\":1.5}]}",
		"{\"worker\":\"w1\",\"ranks\":[{\"rank\":0,\"running\":\"1\"}]}",
		"{\"worker\":\"w1\",\"ranks\":[{\"rank\":0,\"queued_tokens\":true}]}",
		"{\"loads\":1}",
		"{\"loads\":[]}",
		"{\"loads\":[1]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (push(texts[i]) != 422)
			fail_msg("%s: %s", texts[i], error.text);
		assert_true(error.text[0]);
	}
}

/* A JSON list of `n` times `item` between `head` and `tail`. */
static char *repeat(const char *head, const char *item, size_t n, const char *tail)
{
	char *text = malloc(strlen(head) + n * (strlen(item) + 1) + strlen(tail) + 1), *at = text;

	at = stpcpy(at, head);
	for (size_t i = 0; i < n; i++)
		at = stpcpy(stpcpy(at, i ? "," : ""), item);
	strcpy(at, tail);
	return text;
}

static void there_are_not_too_many(void **state)
{
	static const char ranks[] = "{\"worker\":\"w1\",\"ranks\":[", rank[] = "{\"rank\":0}";
	static const char one[] = "{\"worker\":\"w1\"," RANKS "}";
	char *text;

	(void)state;
	for (int more = 0; more < 2; more++) {
		text = repeat(ranks, rank, SW_MAX_RANKS + (size_t)more, "]}");
		assert_int_equal(push(text), more ? 422 : 0);
		free(text);
		text = repeat("{\"loads\":[", one, SW_PUSH_LOADS + (size_t)more, "]}");
		assert_int_equal(push(text), more ? 422 : 0);
		free(text);
	}
}

static void of_many_all_or_none(void **state)
{
	(void)state;
	assert_int_equal(
		push("{\"loads\":[{\"worker\":\"w1\"," RANKS "},{\"worker\":\"w3\"," RANKS "}]}"),
		0);
	assert_int_equal(n_loads, 2);
	assert_ptr_equal(loads[1].worker, &workers[3]);
	assert_int_equal(
		push("{\"loads\":[{\"worker\":\"w1\"," RANKS "},{\"worker\":\"x\"," RANKS "}]}"),
		404);
	assert_string_equal(error.text, "loads[1]: no worker is named 'x'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_worker_with_all_signals, start, stop),
		cmocka_unit_test_setup_teardown(whose_it_is, start, stop),
		cmocka_unit_test_setup_teardown(what_is_no_load, start, stop),
		cmocka_unit_test_setup_teardown(there_are_not_too_many, start, stop),
		cmocka_unit_test_setup_teardown(of_many_all_or_none, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
