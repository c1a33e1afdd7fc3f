// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of paths that may be shed; see paths.h. The operator's own come on top of it in the
 * configuration. */
#include "policy/paths.h"

#define POST(path, family, endpoint)                                                               \
	{SW_METHOD_POST, path, SW_FAMILY_##family, SW_API_EP_##endpoint}

/* One table, two windows: TGI sees all but the last OTHERS_ONLY entries, every other engine all but
 * the first TGI_ONLY. */
#define TGI_ONLY    3
#define OTHERS_ONLY 2

static const struct sw_builtin_path table[] = {
	POST("/", TGI, OTHER), /* GET / is its health check */
	POST("/generate", TGI, OTHER),
	POST("/generate_stream", TGI, OTHER),

	POST("/v1/chat/completions", DEFAULT, CHAT_COMPLETIONS),
	POST("/v1/chat/completions/batch", DEFAULT, CHAT_COMPLETIONS),
	POST("/v1/completions", DEFAULT, COMPLETIONS),
	POST("/v1/embeddings", DEFAULT, EMBEDDINGS),
	POST("/v1/messages", ANTHROPIC, ANTHROPIC_MESSAGES),
	POST("/v1/responses", DEFAULT, RESPONSES),
	POST("/v1/images/generations", DEFAULT, IMAGES),
	POST("/v1/images/edits", DEFAULT, IMAGES),
	POST("/v1/videos", DEFAULT, VIDEOS),
	POST("/v1/audio/speech", DEFAULT, AUDIOS),
	POST("/v1/audio/transcriptions", DEFAULT, AUDIOS),
	POST("/v1/audio/translations", DEFAULT, AUDIOS),
	POST("/v1/score", DEFAULT, OTHER),
	POST("/v1/rerank", DEFAULT, OTHER),
	POST("/v2/rerank", DEFAULT, OTHER),
	POST("/v2/embed", DEFAULT, OTHER),
	POST("/score", DEFAULT, OTHER),
	POST("/rerank", DEFAULT, OTHER),
	POST("/pooling", DEFAULT, OTHER),
	POST("/classify", DEFAULT, OTHER),
	POST("/generative_scoring", DEFAULT, OTHER),
	POST("/invocations", DEFAULT, OTHER),
	POST("/encode", DEFAULT, OTHER),
	POST("/vertex", DEFAULT, OTHER),
	POST("/completion", DEFAULT, OTHER),
	POST("/infill", DEFAULT, OTHER),
	POST("/inference/v1/generate", DEFAULT, OTHER),
	POST("/v2/models/{name}/infer", DEFAULT, TENSOR),
	POST("/v2/models/{name}/generate", DEFAULT, OTHER),
	POST("/v2/models/{name}/generate_stream", DEFAULT, OTHER),

	POST("/generate", DEFAULT, OTHER),
	POST("/generate_stream", DEFAULT, OTHER),
};

#define ENTRIES (sizeof(table) / sizeof(table[0]))

const struct sw_builtin_path *sw_builtin_paths(enum sw_engine engine, size_t *n)
{
	if (engine == SW_ENGINE_TGI) {
		*n = ENTRIES - OTHERS_ONLY;
		return table;
	}
	*n = ENTRIES - TGI_ONLY;
	return table + TGI_ONLY;
}

const char *sw_endpoint_name(enum sw_api_endpoint endpoint)
{
	static const char *const names[SW_API_ENDPOINTS] = {
		[SW_API_EP_OTHER] = "other",
		[SW_API_EP_COMPLETIONS] = "completions",
		[SW_API_EP_CHAT_COMPLETIONS] = "chat_completions",
		[SW_API_EP_EMBEDDINGS] = "embeddings",
		[SW_API_EP_IMAGES] = "images",
		[SW_API_EP_VIDEOS] = "videos",
		[SW_API_EP_AUDIOS] = "audios",
		[SW_API_EP_RESPONSES] = "responses",
		[SW_API_EP_ANTHROPIC_MESSAGES] = "anthropic_messages",
		[SW_API_EP_TENSOR] = "tensor",
	};

	return names[endpoint];
}

const char *const sw_method_names[] = {"GET",	"HEAD",	   "POST",    "PUT",   "DELETE",
				       "PATCH", "OPTIONS", "CONNECT", "TRACE", NULL};

const char *sw_method_name(enum sw_method method)
{
	return method == SW_METHOD_NONE ? "" : sw_method_names[method - SW_METHOD_GET];
}
