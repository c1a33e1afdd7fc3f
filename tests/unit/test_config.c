// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Configuration files: what a good one becomes. What is answered on which paths is in
 * test_config_answers.c, bad ones are in test_config_errors.c and test_config_listeners.c, flags in
 * test_args.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/schema.h"
#include "lib/conf.h"

static void defaults(void **state)
{
	struct sw_config *c = conf_good(POOL(""));
	const struct sw_pool_conf *p = &c->pools[0];
	const struct sw_worker_conf *w = &p->workers[0];
	const struct sw_listener_conf *l = &c->listeners[0];
	char text[64];

	(void)state;
	assert_string_equal(c->file, "c.yaml");
	assert_int_equal(c->n_interfaces, 0);
	assert_int_equal(c->attach, SW_ATTACH_AUTO);
	assert_string_equal(c->control, SW_DEFAULT_CONTROL);
	assert_string_equal(c->pin_root, "/sys/fs/bpf/spillway");
	assert_int_equal(c->heartbeat_ms, 200);
	assert_int_equal(c->deadline_ms, 2000);
	assert_int_equal(c->log_level, SW_INFO);
	assert_int_equal(c->n_pools, 1);
	assert_int_equal(p->limits.set, 0);
	assert_true(p->limits.release_ratio == 1.0);
	assert_int_equal(p->limits.min_hold_ms, 0);
	assert_int_equal(p->ageing.stale_after_ms, 5000);
	assert_int_equal(p->ageing.on_stale, SW_STALE_OPEN);
	assert_int_equal(p->answer.status, 529);
	assert_int_equal(p->answer.drain_status, 503);
	assert_int_equal(p->answer.api, SW_API_OPENAI);
	assert_int_equal(p->answer.retry_after_min, 0);
	assert_int_equal(p->answer.retry_after_ms, 0);
	assert_int_equal(p->answer.max_bytes, SW_ANSWER_DEFAULT);
	assert_null(p->answer.body[SW_FAMILY_DEFAULT]);
	assert_false(p->observe);
	assert_int_equal(p->n_workers, 1);
	assert_string_equal(w->name, "h:1");
	assert_int_equal(w->start_rank, 0);
	assert_int_equal(w->dp_size, -1);
	assert_int_equal(w->source.engine, SW_ENGINE_VLLM);
	assert_int_equal(w->source.period_ms, 250);
	assert_int_equal(w->source.timeout_ms, 1000);
	assert_int_equal(w->source.hints.kv_total, 0);
	assert_false(w->source.insecure);
	assert_null(w->source.netns);
	assert_int_equal(l->pool, 0);
	assert_int_equal(l->syn_rate, 50000);
	assert_int_equal(l->intercept, SW_INTERCEPT_AUTO);
	assert_int_equal(c->established_flows, SW_DEFAULT_FLOWS);
	assert_false(l->all_paths);
	assert_int_equal(l->n_exempt, 0);
	sw_format_listener(l, text, sizeof(text));
	assert_string_equal(text, "*:8000");
	sw_config_free(c);
}

static void check_example_pools(const struct sw_config *c)
{
	const struct sw_pool_conf *p = &c->pools[0];

	assert_int_equal(c->n_pools, 5);
	assert_int_equal(p->steer.by, SW_STEER_NONE);
	assert_int_equal(p->steer.count, SW_COUNT_REPORTS);
	assert_int_equal(p->steer.report_lag_ms, 2000);
	assert_string_equal(p->name, "qwen3");
	assert_int_equal(p->limits.set,
			 1U << SW_LIM_DECODE | 1U << SW_LIM_PREFILL | 1U << SW_LIM_PREFILL_FRAC |
				 1U << SW_LIM_QUEUED_REQS | 1U << SW_LIM_QUEUED_TOKENS);
	assert_true(p->limits.decode == 0.85);
	assert_true(p->limits.prefill_frac == 1.5);
	assert_int_equal(p->limits.count[SW_LIM_PREFILL], 60000);
	assert_int_equal(p->limits.count[SW_LIM_QUEUED_REQS], 64);
	assert_int_equal(p->limits.count[SW_LIM_QUEUED_TOKENS], 200000);
	assert_true(p->limits.release_ratio == 0.95);
	assert_int_equal(p->limits.min_hold_ms, 500);
	assert_int_equal(p->ageing.on_stale, SW_STALE_HOLD);
	assert_int_equal(p->ageing.hold_for_ms, 10000);
	assert_int_equal(p->answer.retry_after_min, 1);
	assert_int_equal(p->answer.retry_after_max, 8);
	assert_int_equal(p->answer.retry_after_ms, 1);
	assert_non_null(strstr(p->answer.body[SW_FAMILY_DEFAULT], "Busy ({reason})"));
	assert_non_null(p->answer.body[SW_FAMILY_ANTHROPIC]);
	assert_null(p->answer.body[SW_FAMILY_TGI]);
	assert_int_equal(p->n_workers, 2);
	assert_string_equal(p->workers[0].name, "gpu-0");
	assert_int_equal(p->workers[0].dp_size, 2);
	assert_int_equal(p->workers[0].source.hints.kv_total, 164000);
	assert_int_equal(p->workers[0].source.hints.max_batched, 8192);
	assert_string_equal(p->workers[1].source.bearer_token_file, "/etc/spillway/token");
	assert_string_equal(p->workers[1].source.ca_file, "/etc/spillway/ca.pem");

	assert_int_equal(c->pools[1].answer.status, 429);
	assert_int_equal(c->pools[1].answer.api, SW_API_TGI);
	assert_int_equal(c->pools[1].limits.count[SW_LIM_CONCURRENT_REQUESTS], 128);
	assert_string_equal(c->pools[1].workers[0].source.netns, "/run/netns/embed");
	assert_int_equal(c->pools[2].limits.count[SW_LIM_QUEUED_REQUESTS], 32);
	assert_int_equal(c->pools[2].workers[0].source.engine, SW_ENGINE_SGLANG);
	assert_int_equal(c->pools[2].answer.api, SW_API_OPENAI);
}

static void check_example_steering(const struct sw_config *c)
{
	const struct sw_pool_conf *routed = &c->pools[3], *local = &c->pools[4];

	assert_int_equal(routed->steer.by, SW_STEER_CONNECT);
	assert_int_equal(routed->steer.n_virtuals, 2);
	assert_string_equal(routed->steer.cgroup, "unit:nginx");
	assert_true(routed->steer.close_idle);
	assert_int_equal(routed->n_workers, 3);
	assert_int_equal(routed->workers[0].at.port, 8000);
	assert_int_equal(routed->workers[0].engine_limit, 64);
	assert_int_equal(routed->workers[0].queue_limit, 16);
	assert_int_equal(routed->workers[1].at.port, 8000);
	assert_true(routed->workers[1].share == 0.5);
	assert_null(routed->workers[2].source.url);
	assert_int_equal(routed->workers[2].engine_limit, 32);
	assert_true(routed->workers[2].drain);

	assert_int_equal(local->steer.by, SW_STEER_LOCAL);
	assert_int_equal(local->steer.count, SW_COUNT_CONNECTIONS);
	assert_int_equal(local->n_workers, 2);
	assert_int_equal(local->workers[1].at.port, 8102);
}

static void check_example_listeners(const struct sw_config *c)
{
	const struct sw_listener_conf *l = c->listeners;
	static const uint8_t net[16] = {[10] = 0xff, 0xff, 10};
	char text[64];

	assert_int_equal(c->n_listeners, 4);
	sw_format_listener(&l[0], text, sizeof(text));
	assert_string_equal(text, "10.0.0.5:8000");
	assert_int_equal(l[0].pool, 0);
	assert_int_equal(l[0].n_exempt, 2);
	assert_int_equal(l[0].exempt[0].bits, 120);
	assert_memory_equal(l[0].exempt[0].addr, net, 16);
	assert_int_equal(l[0].exempt[1].bits, 64);
	assert_non_null(conf_path(&l[0], SW_METHOD_POST, "/v1/custom/generate"));
	assert_non_null(conf_path(&l[0], SW_METHOD_POST, "/models/{name}/ask"));
	assert_int_equal(conf_path(&l[0], SW_METHOD_POST, "/v1/embeddings")->action, SW_PATH_PASS);
	assert_null(conf_path(&l[0], SW_METHOD_POST, "/v1/audio/speech"));
	assert_int_equal(conf_path(&l[0], SW_METHOD_POST, "/v1/messages")->family,
			 SW_FAMILY_ANTHROPIC);
	assert_int_equal(l[1].pool, 1);
	assert_string_equal(l[1].netns, "/run/netns/embed");
	assert_int_equal(conf_path(&l[1], SW_METHOD_POST, "/")->family, SW_FAMILY_TGI);
	assert_int_equal(l[2].pool, 4);
	sw_format_listener(&l[3], text, sizeof(text));
	assert_string_equal(text, "[::1]:9000");
	assert_int_equal(l[2].intercept, SW_INTERCEPT_NEW);
	assert_true(l[3].all_paths);
	assert_int_equal(l[3].n_paths, 0);
}

static void example(void **state)
{
	struct sw_config *c = NULL;
	struct sw_error err = {""};

	(void)state;
	if (sw_config_load(conf_source("docs/spillway.example.yaml"), &c, &err))
		fail_msg("%s", err.text);
	check_example_pools(c);
	check_example_steering(c);
	check_example_listeners(c);
	sw_config_free(c);
}

static void all_keys_in(const cyaml_schema_value_t *v, const char *text)
{
	char key[100];

	if (v->type == CYAML_SEQUENCE) {
		all_keys_in(v->sequence.entry, text);
		return;
	}
	for (const cyaml_schema_field_t *f = v->mapping.fields; v->type == CYAML_MAPPING && f->key;
	     f++) {
		snprintf(key, sizeof(key), "| `%s` |", f->key);
		if (!strstr(text, key))
			fail_msg("%s is not documented", key);
		all_keys_in(&f->value, text);
	}
}

static void documented(void **state)
{
	FILE *f = fopen(conf_source("docs/configuration.md"), "r");
	char text[65536];

	(void)state;
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	all_keys_in(&sw_doc_schema, text);
}

/* The keys of thresholds are the names that explain and metrics print. */
static void threshold_names(void **state)
{
	char text[256];

	(void)state;
	for (int i = 0; i < SW_LIMITS; i++) {
		struct sw_config *c;

		snprintf(text, sizeof(text), POOL("    thresholds: {%s: 0}\n"),
			 sw_limit_name((enum sw_limit)i));
		c = conf_good(text);
		assert_int_equal(c->pools[0].limits.set, 1U << i);
		sw_config_free(c);
	}
}

static void two_on_a_port(void **state)
{
	struct sw_config *c = conf_good(
		"pools: [{name: a}]\n"
		"listeners: [{listen: 80}, {listen: \"1.2.3.4:80\"}, {listen: \"[::1]:80\"},\n"
		"  {listen: 80, netns: \"pid:7\"}, {listen: 81}]\n");

	(void)state;
	assert_int_equal(c->n_listeners, 5);
	sw_config_free(c);
}

static void worker_netns(void **state)
{
	struct sw_config *c = conf_good(WORKER("scrape: \"http://[::1]/m\", netns: \"pid:77\""));

	(void)state;
	assert_string_equal(c->pools[0].workers[0].source.netns, "/proc/77/ns/net");
	assert_string_equal(c->pools[0].workers[0].name, "[::1]:80");
	sw_config_free(c);
}

static void control_over_tcp(void **state)
{
#define TCP(at)                                                                                    \
	"control_tcp: \"" at "\"\ncontrol_token_file: /t\npools: [{name: a}]\n"                    \
	"listeners: [{listen: 1}]\n"
	static const struct {
		const char *text;
		uint8_t addr[16];
	} rows[] = {
		{TCP("0.0.0.0:9300"), {[10] = 0xff, [11] = 0xff}},
		{TCP("127.0.0.1:9300"), {[10] = 0xff, 0xff, 127, 0, 0, 1}},
		{TCP("[::]:9300"), {0}},
		{TCP("[::1]:9300"), {[15] = 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sw_config *c = conf_good(rows[i].text);

		assert_int_equal(c->control_tcp.port, 9300);
		assert_memory_equal(c->control_tcp.addr, rows[i].addr, 16);
		sw_config_free(c);
	}
}

static void pushed_workers(void **state)
{
	struct sw_config *c = conf_good(WORKER("name: w0, data_parallel_size: 2"));

	(void)state;
	assert_string_equal(c->pools[0].workers[0].name, "w0");
	assert_null(c->pools[0].workers[0].source.url);
	assert_int_equal(c->pools[0].workers[0].dp_size, 2);
	sw_config_free(c);
}

static void aliases(void **state)
{
	struct sw_config *c = conf_good("pools:\n"
					"  - {name: a, thresholds: &t {max_num_queued_reqs: 3}}\n"
					"  - {name: b, thresholds: *t}\n"
					"listeners: [{listen: 1, pool: b}]\n");

	(void)state;
	assert_int_equal(c->pools[1].limits.count[SW_LIM_QUEUED_REQS], 3);
	assert_int_equal(c->listeners[0].pool, 1);
	sw_config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),	    cmocka_unit_test(example),
		cmocka_unit_test(documented),	    cmocka_unit_test(threshold_names),
		cmocka_unit_test(two_on_a_port),    cmocka_unit_test(worker_netns),
		cmocka_unit_test(control_over_tcp), cmocka_unit_test(pushed_workers),
		cmocka_unit_test(aliases),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
