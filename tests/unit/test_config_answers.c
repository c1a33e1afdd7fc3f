// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Configuration files: what is answered, by preset, body and status, and on which paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/conf.h"

#define ENV "DYN_HTTP_OVERLOAD_STATUS_CODE"

static void presets(void **state)
{
	static const struct {
		const char *name;
		uint16_t status;
		enum sw_api api;
		enum sw_family messages;
	} table[] = {
		{"dynamo", 529, SW_API_DYNAMO, SW_FAMILY_ANTHROPIC},
		{"vllm", 503, SW_API_VLLM, SW_FAMILY_ANTHROPIC},
		{"sglang", 503, SW_API_SGLANG, SW_FAMILY_ANTHROPIC},
		{"tgi", 429, SW_API_TGI, SW_FAMILY_ANTHROPIC},
		{"smg", 429, SW_API_SMG, SW_FAMILY_DEFAULT},
		{"anthropic", 529, SW_API_ANTHROPIC, SW_FAMILY_ANTHROPIC},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config *c;

		snprintf(text, sizeof(text), POOL("    preset: %s\n"), table[i].name);
		c = conf_good(text);
		assert_int_equal(c->pools[0].answer.status, table[i].status);
		assert_int_equal(c->pools[0].answer.drain_status, 503);
		assert_int_equal(c->pools[0].answer.api, table[i].api);
		assert_int_equal(
			conf_path(&c->listeners[0], SW_METHOD_POST, "/v1/messages")->family,
			table[i].messages);
		sw_config_free(c);
	}
}

static void body_shapes(void **state)
{
	static const struct {
		const char *keys;
		enum sw_api api;
		enum sw_family messages;
	} table[] = {
		{"engine: vllm", SW_API_OPENAI, SW_FAMILY_ANTHROPIC},
		{"engine: sglang", SW_API_OPENAI, SW_FAMILY_ANTHROPIC},
		{"engine: tgi", SW_API_DYNAMO, SW_FAMILY_ANTHROPIC},
		{"engine: llamacpp", SW_API_DYNAMO, SW_FAMILY_ANTHROPIC},
		{"engine: vllm, body: auto", SW_API_OPENAI, SW_FAMILY_ANTHROPIC},
		{"engine: vllm, body: dynamo", SW_API_DYNAMO, SW_FAMILY_DEFAULT},
		{"engine: tgi, body: openai", SW_API_OPENAI, SW_FAMILY_DEFAULT},
		{"engine: vllm, body: anthropic", SW_API_ANTHROPIC, SW_FAMILY_DEFAULT},
		{"engine: vllm, body: vllm", SW_API_VLLM, SW_FAMILY_DEFAULT},
		{"engine: vllm, body: sglang", SW_API_SGLANG, SW_FAMILY_DEFAULT},
		{"engine: vllm, body: tgi", SW_API_TGI, SW_FAMILY_DEFAULT},
		{"engine: vllm, body: smg", SW_API_SMG, SW_FAMILY_DEFAULT},
		{"preset: vllm, body: dynamo", SW_API_DYNAMO, SW_FAMILY_DEFAULT},
		{"preset: vllm, thresholds: {max_num_queued_tokens: 9}", SW_API_VLLM_TOKENS,
		 SW_FAMILY_ANTHROPIC},
		{"preset: vllm, thresholds: {max_num_queued_tokens: 9, max_num_queued_reqs: 9}",
		 SW_API_VLLM, SW_FAMILY_ANTHROPIC},
		{"engine: vllm, thresholds: {max_num_queued_tokens: 9}", SW_API_OPENAI,
		 SW_FAMILY_ANTHROPIC},
		{"preset: sglang, thresholds: {max_num_queued_tokens: 9}", SW_API_SGLANG,
		 SW_FAMILY_ANTHROPIC},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config *c;

		snprintf(text, sizeof(text), "pools: [{name: a, %s}]\nlisteners: [{listen: 1}]\n",
			 table[i].keys);
		c = conf_good(text);
		assert_int_equal(c->pools[0].answer.api, table[i].api);
		assert_int_equal(
			conf_path(&c->listeners[0], SW_METHOD_POST, "/v1/messages")->family,
			table[i].messages);
		sw_config_free(c);
	}
}

/* overload_status, then preset, then environment, then 529. */
static void status_order(void **state)
{
	static const struct {
		const char *env, *keys;
		uint16_t status;
	} table[] = {
		{NULL, "", 529},
		{"503", "", 503},
		{" 429 ", "", 429},
		{"99", "", 529},
		{"busy", "", 529},
		{"429", "    overload_status: 503\n", 503},
		{"429", "    preset: vllm\n", 503},
		{NULL, "    preset: vllm\n    overload_status: 529\n", 529},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config *c;

		if (table[i].env)
			setenv(ENV, table[i].env, 1);
		snprintf(text, sizeof(text), POOL("%s"), table[i].keys);
		c = conf_good(text);
		assert_int_equal(c->pools[0].answer.status, table[i].status);
		sw_config_free(c);
		unsetenv(ENV);
	}
}

static void paths(void **state)
{
	struct sw_config *c = conf_good(
		LISTENER("    paths:\n"
			 "      shed: [/mine, GET /mine, \"/a/{name}\", /b/, /b//x]\n"
			 "      pass: [/mine/not, GET /v2/rerank, \"/v2/models/{name}/infer\","
			 " /a/b, \"/b/{name}\",\n        \"/b/{name}/x\", \"/v1/{name}\"]\n"));
	const struct sw_listener_conf *l = &c->listeners[0];

	(void)state;
	assert_int_equal(conf_path(l, SW_METHOD_POST, "/mine")->action, SW_PATH_SHED);
	assert_int_equal(conf_path(l, SW_METHOD_GET, "/mine")->action, SW_PATH_SHED);
	assert_int_equal(conf_path(l, SW_METHOD_POST, "/v2/rerank")->action, SW_PATH_SHED);
	assert_int_equal(conf_path(l, SW_METHOD_POST, "/a/b")->action, SW_PATH_PASS);
	assert_int_equal(conf_path(l, SW_METHOD_GET, "/a/b")->action, SW_PATH_PASS);
	assert_null(conf_path(l, SW_METHOD_PUT, "/a/b"));
	assert_null(conf_path(l, SW_METHOD_POST, "/v2/models/{name}/infer"));
	assert_non_null(conf_path(l, SW_METHOD_POST, "/v2/models/{name}/generate"));
	assert_non_null(conf_path(l, SW_METHOD_POST, "/b/"));
	assert_non_null(conf_path(l, SW_METHOD_POST, "/b//x"));
	assert_non_null(conf_path(l, SW_METHOD_POST, "/v1/chat/completions"));
	assert_null(conf_path(l, SW_METHOD_POST, "/v1/completions"));
	assert_non_null(conf_path(l, SW_METHOD_POST, "/generate"));
	assert_null(conf_path(l, SW_METHOD_POST, "/"));
	for (size_t i = 0; i < l->n_paths; i++)
		assert_ptr_equal(conf_path(l, l->paths[i].method, l->paths[i].path), &l->paths[i]);
	sw_config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets),
		cmocka_unit_test(body_shapes),
		cmocka_unit_test(status_order),
		cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
