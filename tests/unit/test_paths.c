// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The built-in path policy: each path that may be shed and each that never may, by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/paths.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* May be shed when POSTed, whatever the engine. */
static const char *const shed[] = {
	"/v1/chat/completions",
	"/v1/chat/completions/batch",
	"/v1/completions",
	"/v1/embeddings",
	"/v1/messages",
	"/v1/responses",
	"/v1/images/generations",
	"/v1/images/edits",
	"/v1/videos",
	"/v1/audio/speech",
	"/v1/audio/transcriptions",
	"/v1/audio/translations",
	"/v1/score",
	"/v1/rerank",
	"/v2/rerank",
	"/v2/embed",
	"/score",
	"/rerank",
	"/pooling",
	"/classify",
	"/generative_scoring",
	"/invocations",
	"/generate",
	"/generate_stream",
	"/encode",
	"/vertex",
	"/completion",
	"/infill",
	"/inference/v1/generate",
	"/v2/models/llama/infer",
	"/v2/models/llama/generate",
	"/v2/models/llama/generate_stream",
};

/* Never shed, whatever the method and the engine. */
static const char *const never[] = {
	"/health",
	"/live",
	"/metrics",
	"/v1/models",
	"/v1/models/llama",
	"/busy_threshold",
	"/docs",
	"/openapi.json",
	"/v1/messages/count_tokens",
	"/v1/responses/input_tokens",
	"/v1/responses/resp_1/cancel",
	"/v1/files",
	"/v1/batches",
	"/ping",
	"/version",
	"/load",
	"/v1/loads",
	"/get_load",
	"/server_info",
	"/get_server_info",
	"/health_generate",
	"/get_model_info",
	"/flush_cache",
	"/abort_request",
	"/abort_requests",
	"/pause",
	"/resume",
	"/sleep",
	"/wake_up",
	"/is_sleeping",
	"/tokenize",
	"/detokenize",
	"/start_profile",
	"/stop_profile",
	"/update_weights",
	"/info",
	"/slots",
	"/props",
	"/lora-adapters",
	"/v2/health/live",
	"/v2/health/ready",
	"/v2/models/llama/ready",
	"/v2/repository/index",
	"/liveness",
	"/readiness",
	"/workers",
	/* near misses */
	"/v1/chat/completions/",
	"/v1/chat",
	"/v2/models//infer",
	"/v2/models/llama/versions/1/infer",
	"/v2/models/infer",
	"/v2/models/llama/inferx",
	"*",
	"",
};

static bool matches(const char *pattern, const char *path)
{
	const char *name = strstr(pattern, "{name}");
	size_t prefix, segment;

	if (!name)
		return !strcmp(pattern, path);
	prefix = name - pattern;
	if (strncmp(pattern, path, prefix) != 0)
		return false;
	segment = strcspn(path + prefix, "/");
	return segment > 0 && !strcmp(path + prefix + segment, name + strlen("{name}"));
}

static const struct sw_builtin_path *find(enum sw_engine engine, enum sw_method method,
					  const char *path)
{
	size_t n;
	const struct sw_builtin_path *table = sw_builtin_paths(engine, &n);

	for (size_t i = 0; i < n; i++) {
		if (table[i].method == method && matches(table[i].path, path))
			return &table[i];
	}
	return NULL;
}

static enum sw_family family_of(enum sw_engine engine, const char *path)
{
	if (!strcmp(path, "/v1/messages"))
		return SW_FAMILY_ANTHROPIC;
	if (engine == SW_ENGINE_TGI &&
	    (!strcmp(path, "/generate") || !strcmp(path, "/generate_stream")))
		return SW_FAMILY_TGI;
	return SW_FAMILY_DEFAULT;
}

static void may_be_shed(void **state)
{
	(void)state;
	for (int engine = 0; engine < SW_ENGINES; engine++) {
		for (size_t i = 0; i < ARRAY_SIZE(shed); i++) {
			const struct sw_builtin_path *p = find(engine, SW_METHOD_POST, shed[i]);

			if (!p)
				fail_msg("POST %s is not shed for engine %d", shed[i], engine);
			assert_int_equal(p->family, family_of(engine, shed[i]));
		}
	}
}

static void never_shed(void **state)
{
	(void)state;
	for (int engine = 0; engine < SW_ENGINES; engine++) {
		for (int method = SW_METHOD_NONE; method <= SW_METHOD_TRACE; method++) {
			for (size_t i = 0; i < ARRAY_SIZE(never); i++)
				if (find(engine, method, never[i]))
					fail_msg("%s (method %d) is shed for engine %d", never[i],
						 method, engine);
			for (size_t i = 0; i < ARRAY_SIZE(shed); i++)
				if (method != SW_METHOD_POST && find(engine, method, shed[i]))
					fail_msg("%s is shed with method %d", shed[i], method);
		}
	}
}

static void root_is_tgi_only(void **state)
{
	(void)state;
	for (int engine = 0; engine < SW_ENGINES; engine++) {
		const struct sw_builtin_path *p = find(engine, SW_METHOD_POST, "/");

		assert_int_equal(p != NULL, engine == SW_ENGINE_TGI);
		assert_true(!p || p->family == SW_FAMILY_TGI);
		assert_null(find(engine, SW_METHOD_GET, "/"));
	}
}

/* Each entry is wanted by a name above, is there once, and fits what the kernel can match. */
static void table_is_sound(void **state)
{
	(void)state;
	for (int engine = 0; engine < SW_ENGINES; engine++) {
		size_t n;
		const struct sw_builtin_path *t = sw_builtin_paths(engine, &n);

		assert_int_equal(n, ARRAY_SIZE(shed) + (engine == SW_ENGINE_TGI));
		for (size_t i = 0; i < n; i++) {
			const char *name = strstr(t[i].path, "{name}");
			const char *suffix = name ? name + strlen("{name}") : t[i].path;

			assert_int_equal(t[i].path[0], '/');
			assert_in_range(strlen(suffix), 1, SW_PATH_MAX);
			if (name)
				assert_in_range(name - t[i].path, 1, SW_PREFIX_MAX);
			for (size_t j = 0; j < i; j++)
				assert_string_not_equal(t[i].path, t[j].path);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(may_be_shed),
		cmocka_unit_test(never_shed),
		cmocka_unit_test(root_is_tgi_only),
		cmocka_unit_test(table_is_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
