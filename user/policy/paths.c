// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of paths that may be shed; see paths.h. The operator's own come on top of it in the
 * configuration. */
#include "policy/paths.h"

#define POST(path, family) {SW_METHOD_POST, path, SW_FAMILY_##family}

/* One table, two windows: TGI sees all but the last OTHERS_ONLY entries, every other engine all but
 * the first TGI_ONLY. */
#define TGI_ONLY    3
#define OTHERS_ONLY 2

static const struct sw_builtin_path table[] = {
	POST("/", TGI), /* GET / is its health check */
	POST("/generate", TGI),
	POST("/generate_stream", TGI),

	POST("/v1/chat/completions", DEFAULT),
	POST("/v1/chat/completions/batch", DEFAULT),
	POST("/v1/completions", DEFAULT),
	POST("/v1/embeddings", DEFAULT),
	POST("/v1/messages", ANTHROPIC),
	POST("/v1/responses", DEFAULT),
	POST("/v1/images/generations", DEFAULT),
	POST("/v1/images/edits", DEFAULT),
	POST("/v1/videos", DEFAULT),
	POST("/v1/audio/speech", DEFAULT),
	POST("/v1/audio/transcriptions", DEFAULT),
	POST("/v1/audio/translations", DEFAULT),
	POST("/v1/score", DEFAULT),
	POST("/v1/rerank", DEFAULT),
	POST("/v2/rerank", DEFAULT),
	POST("/v2/embed", DEFAULT),
	POST("/score", DEFAULT),
	POST("/rerank", DEFAULT),
	POST("/pooling", DEFAULT),
	POST("/classify", DEFAULT),
	POST("/generative_scoring", DEFAULT),
	POST("/invocations", DEFAULT),
	POST("/encode", DEFAULT),
	POST("/vertex", DEFAULT),
	POST("/completion", DEFAULT),
	POST("/infill", DEFAULT),
	POST("/inference/v1/generate", DEFAULT),
	POST("/v2/models/{name}/infer", DEFAULT),
	POST("/v2/models/{name}/generate", DEFAULT),
	POST("/v2/models/{name}/generate_stream", DEFAULT),

	POST("/generate", DEFAULT),
	POST("/generate_stream", DEFAULT),
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
