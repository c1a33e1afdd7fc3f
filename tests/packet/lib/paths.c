// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The default path policy as the tests expect it.

#include "paths.h"

#include <string.h>

const struct known_path shed_paths[] = {
	{"/v1/chat/completions", SW_FAMILY_DEFAULT},
	{"/v1/chat/completions/batch", SW_FAMILY_DEFAULT},
	{"/v1/completions", SW_FAMILY_DEFAULT},
	{"/v1/embeddings", SW_FAMILY_DEFAULT},
	{"/v1/messages", SW_FAMILY_ANTHROPIC},
	{"/v1/responses", SW_FAMILY_DEFAULT},
	{"/v1/images/generations", SW_FAMILY_DEFAULT},
	{"/v1/images/edits", SW_FAMILY_DEFAULT},
	{"/v1/videos", SW_FAMILY_DEFAULT},
	{"/v1/audio/speech", SW_FAMILY_DEFAULT},
	{"/v1/audio/transcriptions", SW_FAMILY_DEFAULT},
	{"/v1/audio/translations", SW_FAMILY_DEFAULT},
	{"/v1/score", SW_FAMILY_DEFAULT},
	{"/v1/rerank", SW_FAMILY_DEFAULT},
	{"/v2/rerank", SW_FAMILY_DEFAULT},
	{"/v2/embed", SW_FAMILY_DEFAULT},
	{"/score", SW_FAMILY_DEFAULT},
	{"/rerank", SW_FAMILY_DEFAULT},
	{"/pooling", SW_FAMILY_DEFAULT},
	{"/classify", SW_FAMILY_DEFAULT},
	{"/generative_scoring", SW_FAMILY_DEFAULT},
	{"/invocations", SW_FAMILY_DEFAULT},
	{"/generate", SW_FAMILY_TGI},
	{"/generate_stream", SW_FAMILY_TGI},
	{"/encode", SW_FAMILY_DEFAULT},
	{"/vertex", SW_FAMILY_DEFAULT},
	{"/completion", SW_FAMILY_DEFAULT},
	{"/infill", SW_FAMILY_DEFAULT},
	{"/inference/v1/generate", SW_FAMILY_DEFAULT},
	{MODEL_PREFIX "{name}/infer", SW_FAMILY_DEFAULT},
	{MODEL_PREFIX "{name}/generate", SW_FAMILY_DEFAULT},
	{MODEL_PREFIX "{name}/generate_stream", SW_FAMILY_DEFAULT},
	{NULL, SW_FAMILY_DEFAULT},
};

const char *const never_shed_paths[] = {
	"/health",
	"/live",
	"/metrics",
	"/v1/models",
	"/v1/models/{name}",
	"/busy_threshold",
	"/docs",
	"/openapi.json",
	"/v1/messages/count_tokens",
	"/v1/responses/input_tokens",
	"/v1/responses/{name}/cancel",
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
	"/v2/models/{name}/ready",
	"/v2/repository/index",
	"/liveness",
	"/readiness",
	"/workers",
	NULL,
};

struct sw_path path_key(unsigned set, enum sw_method method, unsigned prefix, const char *text)
{
	struct sw_path key = {.set = set, .method = method, .prefix = prefix};

	memcpy(key.path, text, strnlen(text, SW_PATH_MAX));
	return key;
}
