/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Configuration files with pools that are steered or counted, for conf.h to load. */
#ifndef SPILLWAY_TEST_CONF_STEER_H
#define SPILLWAY_TEST_CONF_STEER_H

#include "conf.h"

#define QUEUE_ENV "DYN_DYNAMO_REQUEST_QUEUE_LIMIT"

/* A steered pool with `keys` on line 2 and workers on line 3. */
#define CONNECT(keys, workers)                                                                       \
	"pools:\n  - {name: a, steer: connect, cgroup: \"pid:1\", virtual: [\"198.18.0.1:80\"]" keys \
	",\n     workers: [" workers "]}\n"
#define LOCAL(keys, workers, listeners)                                                            \
	"pools:\n  - {name: a, steer: local" keys ",\n     workers: [" workers                     \
	"]}\nlisteners:\n" listeners
/* A guarded pool of vLLM. */
#define GUARD(keys, workers, listeners)                                                            \
	"pools:\n  - {name: a, engine: vllm" keys ",\n     workers: [" workers                     \
	"]}\nlisteners:\n" listeners
#define ONE   "{address: \"10.0.0.6:8000\"}"
#define AT(s) "{address: \"" s "\"}"
#define URL   "{scrape: \"http://10.0.0.6:8000/m\"}"
#define N     ", engine_request_limit: 4"

#endif
