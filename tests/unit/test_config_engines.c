// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Engines in a configuration: an operator's own series, a front end's page, and pages whose engine
 * is found out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/conf.h"
#include "sources/custom.h"

#define LISTEN "listeners: [{listen: 1}]\n"
#define URL    "scrape: \"http://h:1/m\""

static int read_as(const struct sw_worker_conf *w, const char *page, struct sw_report *out)
{
	return sw_engine_read(w->source.engine, &w->source.hints, page, strlen(page), out, 1, NULL);
}

static void own_series(void **state)
{
	struct sw_config *c = conf_good("pools:\n"
					"  - name: a\n"
					"    engine: custom\n"
					"    series: {running: 'r{s=\"\\\\\"}', kv_total: t}\n"
					"    rank_label: shard\n"
					"    workers:\n"
					"      - {" URL "}\n"
					"      - {name: b, " URL ", series: {running: w}}\n"
					"      - {name: c, " URL ", engine: vllm}\n" LISTEN);
	const struct sw_worker_conf *w = c->pools[0].workers;
	struct sw_report r;

	(void)state;
	assert_int_equal(read_as(&w[0], "r{shard=\"2\",s=\"\\\\\"} 5\nt 9\nw 7\n", &r), 1);
	assert_int_equal(r.rank, 2);
	assert_int_equal(r.value[SW_SIG_RUNNING], 5);
	assert_int_equal(r.value[SW_SIG_KV_TOTAL], 9);
	assert_int_equal(read_as(&w[1], "r{s=\"\\\\\"} 5\nt 9\nw{shard=\"2\"} 7\n", &r), 1);
	assert_int_equal(r.rank, 0); /* nothing of the pool's */
	assert_int_equal(r.value[SW_SIG_RUNNING], 7);
	assert_int_equal(r.have, 1 << SW_SIG_RUNNING);
	assert_null(w[2].source.hints.custom);
	sw_config_free(c);
}

static void bad_series(void **state)
{
#define CUSTOM(keys)                                                                               \
	"pools:\n  - name: a\n    engine: custom\n    workers:\n      - {" URL "}\n" keys LISTEN
#define FORM "allowed: NAME or NAME{LABEL=\"VALUE\", ...}"
	static const struct conf_mistake table[] = {
		{CUSTOM(""), "c.yaml:5: pools[0].workers[0].series: missing; it has to be given "
			     "with engine: custom"},
		{CUSTOM("    series:\n      running: a\n      waiting: 'x{y!=\"z\"}'\n"),
		 "c.yaml:8: pools[0].series.waiting: 'x{y!=\"z\"}' selects no series: its labels "
		 "are malformed; " FORM},
		{CUSTOM("    series: {kv_used: my used}\n"),
		 "c.yaml:6: pools[0].series.kv_used: 'my used' selects no series: its value is not "
		 "a number; " FORM},
		{CUSTOM("    series: {runing: a}\n"),
		 "c.yaml:6: pools[0].series.runing: unknown key; did you mean 'running'? allowed: "
		 "running, waiting, kv_ratio, kv_used, kv_total, prefill_tokens, queued_tokens, "
		 "max_batched"},
		{CUSTOM("    series: {kv_total: a}\n"),
		 "c.yaml:6: pools[0].series: nothing in it is load; allowed: with running, "
		 "waiting, kv_ratio, kv_used, prefill_tokens or queued_tokens"},
		{CUSTOM("    series: {running: a}\n    rank_label: a-b\n"),
		 "c.yaml:7: pools[0].rank_label: 'a-b' is no name of a label; allowed: letters, "
		 "digits and _"},
		{POOL("    rank_label: a\n"),
		 "c.yaml:5: pools[0].rank_label: never used; allowed: with series"},
		{POOL("    series: {running: a}\n"),
		 "c.yaml:5: pools[0].series: never used; allowed: with engine: custom"},
		{WORKER(URL ", series: {running: a}"),
		 "c.yaml:3: pools[0].workers[0].series: never used; allowed: with engine: custom"},
		{"pools:\n  - name: a\n    steer: local\n    workers:\n"
		 "      - {address: \"127.0.0.1:2\", series: {running: a}}\n" LISTEN,
		 "c.yaml:5: pools[0].workers[0].series: never used; allowed: with scrape"},
	};

	(void)state;
	CONF_CHECK(table);
}

static void front_ends(void **state)
{
	struct sw_config *c = conf_good("pools:\n"
					"  - name: a\n"
					"    model: qwen\n"
					"    engine: dynamo-frontend\n"
					"    workers:\n"
					"      - {scrape: \"http://10.0.0.1:1/m\", worker_id: 7}\n"
					"      - {scrape: \"http://10.0.0.1:1/m\", worker_id: 8,\n"
					"         address: \"10.0.0.2:80\"}\n" LISTEN);
	const struct sw_worker_conf *w = c->pools[0].workers;
	static const struct conf_mistake table[] = {
		{"pools:\n  - name: a\n    engine: dynamo-frontend\n    workers:\n      - {" URL
		 "}\n" LISTEN,
		 "c.yaml:5: pools[0].workers[0].worker_id: missing; it has to be given with "
		 "engine: dynamo-frontend, as one page names many workers"},
	};
	struct sw_report r;

	(void)state;
	assert_string_equal(w[0].name, "7"); /* the address is the front end's */
	assert_int_equal(w[0].at.port, 0);
	assert_string_equal(w[1].name, "8");
	assert_int_equal(w[1].at.port, 80);
	assert_int_equal(read_as(&w[1],
				 "dynamo_frontend_worker_active_decode_blocks{worker_id=\"7\"} 1\n"
				 "dynamo_frontend_worker_active_decode_blocks{worker_id=\"8\"} 2\n"
				 "dynamo_frontend_model_total_kv_blocks{model=\"glm\"} 3\n"
				 "dynamo_frontend_model_total_kv_blocks{model=\"qwen\"} 2\n",
				 &r),
			 1);
	assert_int_equal(r.value[SW_SIG_DECODE_BLOCKS], 2);
	assert_int_equal(r.value[SW_SIG_KV_TOTAL], 2);
	sw_config_free(c);
	CONF_CHECK(table);
}

/* Whatever is found later, paths and body are what is known now. */
static void auto_leaves_the_answer_alone(void **state)
{
	struct sw_config *c =
		conf_good("pools: [{name: a, engine: auto, workers: [{" URL "}]}]\n" LISTEN);

	(void)state;
	assert_int_equal(c->pools[0].workers[0].source.engine, SW_ENGINE_AUTO);
	assert_int_equal(c->pools[0].answer.api, SW_API_DYNAMO);
	for (size_t i = 0; i < c->listeners[0].n_paths; i++)
		assert_string_not_equal(c->listeners[0].paths[i].path, "/"); /* TGI's alone */
	sw_config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_series),
		cmocka_unit_test(bad_series),
		cmocka_unit_test(front_ends),
		cmocka_unit_test(auto_leaves_the_answer_alone),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
