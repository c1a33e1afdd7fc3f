// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of spillwayd's flags and what --help prints. What becomes of their values is in
 * args.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/field.h"
#include "config/flags.h"

#define AT(type, member) offsetof(struct type, member)
#define LIMIT(l)	 AT(sw_doc_pool, thresholds.limit[l])

const struct sw_flag sw_flags[] = {
	{"config", "FILE", "read all of this from a YAML file", "", SW_TO_FILE, 0},
	{"interface", "NAME", "guard on this interface (repeat); lo always is", "interfaces",
	 SW_TO_INTERFACES, 0},
	{"guard", "[ADDR:]PORT", "listener to protect (repeat)", "listeners.listen", SW_TO_GUARDS,
	 0},
	{"engine", "NAME", "vllm, sglang, tgi, llamacpp, triton, trtllm-serve, lmdeploy, auto",
	 "pools.engine", SW_TO_POOL, AT(sw_doc_pool, engine)},
	{"scrape", "URL", "metrics page of a worker (repeat, one each)", "pools.workers.scrape",
	 SW_TO_SCRAPES, 0},
	{"worker", "ADDR:PORT", "worker whose load is not read (repeat)", "pools.workers.address",
	 SW_TO_WORKERS, 0},
	{"engine-request-limit", "N", "requests that the engine of a worker takes at once",
	 "pools.engine_request_limit", SW_TO_POOL, AT(sw_doc_pool, engine_request_limit)},
	{"request-queue-limit", "Q", "requests that may wait there besides (16)",
	 "pools.request_queue_limit", SW_TO_POOL, AT(sw_doc_pool, request_queue_limit)},
	{"steer", "HOW", "connect: a router's connections; local: clients'", "pools.steer",
	 SW_TO_POOL, AT(sw_doc_pool, steer)},
	{"virtual", "ADDR:PORT", "connect: where the router connects to (repeat)", "pools.virtual",
	 SW_TO_VIRTUALS, 0},
	{"cgroup", "DIR", "connect: the router's cgroup; local: the servers'", "pools.cgroup",
	 SW_TO_CGROUP, 0},
	{"pid", "N", "instead of --cgroup: that of a process", "pools.cgroup", SW_TO_CGROUP, 0},
	{"unit", "NAME", "instead of --cgroup: that of a systemd unit", "pools.cgroup",
	 SW_TO_CGROUP, 0},
	{"on-full", "HOW", "connect: answer, or refuse the connection (answer)", "pools.on_full",
	 SW_TO_POOL, AT(sw_doc_pool, on_full)},
	{"close-idle", NULL, "connect: close idle connections to busy workers",
	 "pools.pooled_upstreams", SW_TO_CLOSE_IDLE, 0},
	{"decode-threshold", "F", "busy over this share of KV blocks, 0.0 to 1.0",
	 "pools.thresholds.active_decode_blocks_threshold", SW_TO_POOL, LIMIT(SW_LIM_DECODE)},
	{"prefill-threshold", "N", "busy over this many prefill tokens",
	 "pools.thresholds.active_prefill_tokens_threshold", SW_TO_POOL, LIMIT(SW_LIM_PREFILL)},
	{"prefill-threshold-frac", "F", "the same as a share of max batched tokens",
	 "pools.thresholds.active_prefill_tokens_threshold_frac", SW_TO_POOL,
	 LIMIT(SW_LIM_PREFILL_FRAC)},
	{"max-queued-reqs", "N", "busy when running + waiting + 1 is over N",
	 "pools.thresholds.max_num_queued_reqs", SW_TO_POOL, LIMIT(SW_LIM_QUEUED_REQS)},
	{"kv-total", "N", "KV blocks of a rank, if the engine does not tell",
	 "pools.workers.kv_total", SW_TO_WORKER, AT(sw_doc_worker, kv_total)},
	{"max-batched-tokens", "N", "max_num_batched_tokens, if the engine does not tell",
	 "pools.workers.max_num_batched_tokens", SW_TO_WORKER,
	 AT(sw_doc_worker, max_num_batched_tokens)},
	{"preset", "NAME", "status and body of dynamo, vllm, sglang, tgi, smg, anthropic",
	 "pools.preset", SW_TO_POOL, AT(sw_doc_pool, preset)},
	{"overload-status", "CODE", "HTTP status of a shed request (529)", "pools.overload_status",
	 SW_TO_POOL, AT(sw_doc_pool, overload_status)},
	{"retry-after", "MIN[:MAX]", "Retry-After in seconds, spread over clients",
	 "pools.retry_after", SW_TO_RETRY_AFTER, 0},
	{"observe", NULL, "count what would be shed, shed nothing", "pools.observe", SW_TO_POOL,
	 AT(sw_doc_pool, observe)},
	{"exempt", "CIDR", "clients that are never shed (repeat)", "listeners.exempt",
	 SW_TO_EXEMPTS, 0},
	{"shed-all-paths", NULL, "shed every request, health checks too", "listeners.paths",
	 SW_TO_LISTENER, AT(sw_doc_listener, paths.all)},
	{"intercept", "WHAT", "requests on new, established or both connections (auto)",
	 "listeners.intercept", SW_TO_LISTENER, AT(sw_doc_listener, intercept)},
	{"netns", "PATH|pid:N", "guard, steer and scrape inside this network namespace",
	 "listeners.netns", SW_TO_LISTENER, AT(sw_doc_listener, netns)},
	{"mode", "MODE", "auto, xdp, xdp-generic or tc (auto)", "mode", SW_TO_DOC,
	 AT(sw_doc, mode)},
	{"control", "SOCKET", "unix socket for the spillway command (" SW_DEFAULT_CONTROL ")",
	 "control", SW_TO_DOC, AT(sw_doc, control)},
	{"pin-root", "DIR", "where maps are pinned (/sys/fs/bpf/spillway)", "pin_root", SW_TO_DOC,
	 AT(sw_doc, pin_root)},
	{"log-level", "LEVEL", "error, warning, info or debug (info)", "log_level", SW_TO_DOC,
	 AT(sw_doc, log_level)},
	{"remove", NULL, "take everything of Spillway off this host and exit", "", SW_TO_REMOVE, 0},
	{"check-config", NULL, "check the configuration and exit", "", SW_TO_CHECK, 0},
	{"help", NULL, "print this and exit", "", SW_TO_HELP, 0},
	{"version", NULL, "print the version and exit", "", SW_TO_VERSION, 0},
};

/* A flag stands for its field, for what that is part of and its parts, and for a field of the same
 * name elsewhere: --engine is also the workers' engine. */
static bool stands_for(const struct sw_flag *f, const char *path)
{
	size_t a = strlen(f->field), b = strlen(path);
	const char *last = strrchr(f->field, '.'), *path_last = strrchr(path, '.');

	if (!strncmp(f->field, path, a < b ? a : b) &&
	    (a == b || (a < b ? path[a] : f->field[b]) == '.'))
		return true;
	return last && path_last && !strcmp(last, path_last);
}

void sw_flag_of(const char *path, char *out, size_t size)
{
	char plain[160];
	size_t n = 0;

	for (const char *p = path; *p && n < sizeof(plain) - 1; p++) {
		if (*p == '[')
			p += strcspn(p, "]");
		else
			plain[n++] = *p;
	}
	plain[n] = '\0';
	for (size_t i = 0; i < SW_FLAGS; i++) {
		if (!stands_for(&sw_flags[i], plain))
			continue;
		snprintf(out, size, "--%s", sw_flags[i].name);
		return;
	}
	snprintf(out, size, "%s", path);
}

void sw_flags_help(void)
{
	printf("spillwayd: answers surplus requests to a saturated LLM pool in the kernel, and steers\n"
	       "new connections to workers that have room.\n\n"
	       "Usage: spillwayd --config FILE\n"
	       "       spillwayd --interface NAME --guard [ADDR:]PORT --engine NAME --scrape URL "
	       "[FLAGS]\n"
	       "       spillwayd --steer connect --virtual ADDR:PORT --unit NAME --worker "
	       "ADDR:PORT [FLAGS]\n"
	       "       spillwayd --steer local --guard PORT --worker ADDR:PORT [FLAGS]\n"
	       "       spillwayd --remove [--pin-root DIR]\n\n");
	for (size_t i = 0; i < SW_FLAGS; i++) {
		int width = printf("  --%s%s%s", sw_flags[i].name, sw_flags[i].arg ? " " : "",
				   sw_flags[i].arg ? sw_flags[i].arg : "");

		printf("%*s%s\n", width < 30 ? 30 - width : 1, "", sw_flags[i].help);
	}
	printf("\nExamples:\n"
	       "  A vLLM server on this host, shed over 85 %% of its KV cache:\n"
	       "    spillwayd --interface eth0 --guard 8000 --engine vllm \\\n"
	       "      --scrape http://127.0.0.1:8000/metrics --decode-threshold 0.85\n"
	       "  A router in front of two workers; only count what would be shed:\n"
	       "    spillwayd --interface eth0 --guard 10.0.0.5:80 --engine sglang --observe \\\n"
	       "      --scrape 'http://10.0.0.6:30000/v1/loads?format=prometheus' \\\n"
	       "      --scrape 'http://10.0.0.7:30000/v1/loads?format=prometheus' \\\n"
	       "      --max-queued-reqs 64 --retry-after 1:8\n"
	       "  A server inside a container, answered as TGI would:\n"
	       "    spillwayd --netns pid:1234 --guard 80 --engine tgi --preset tgi \\\n"
	       "      --scrape http://127.0.0.1:80/metrics --decode-threshold 0.9\n"
	       "  nginx on this host and its upstream 198.18.0.1:8000, which stands for two workers "
	       "of\n  at most 64 + 16 requests each:\n"
	       "    spillwayd --steer connect --unit nginx --virtual 198.18.0.1:8000 --engine vllm "
	       "\\\n"
	       "      --scrape http://10.0.0.6:8000/metrics --scrape http://10.0.0.7:8000/metrics "
	       "\\\n"
	       "      --decode-threshold 0.85 --engine-request-limit 64\n"
	       "  Two servers on this host behind one port, none of them with more than 32 + 8:\n"
	       "    spillwayd --interface eth0 --steer local --guard 8000 --worker 127.0.0.1:8001 "
	       "\\\n"
	       "      --worker 127.0.0.1:8002 --engine-request-limit 32 --request-queue-limit 8\n"
	       "  A file, checked before it is used:\n"
	       "    spillwayd --config /etc/spillway/spillway.yaml --check-config\n\n"
	       "Steering and counting go on when spillwayd ends, so that it can be replaced while "
	       "connections\nare open. --remove ends them: it detaches all programs and removes "
	       "the pins under --pin-root;\nconnections that are open stay so. Stop spillwayd "
	       "first.\n\n"
	       "Environment: DYN_HTTP_OVERLOAD_STATUS_CODE is the status of a shed request, and\n"
	       "DYN_DYNAMO_REQUEST_QUEUE_LIMIT the request queue limit, unless a flag or the file "
	       "sets one.\n");
}

int sw_flags_unknown(const char *arg, struct sw_error *err)
{
	const struct sw_flag *nearest = sw_flags;
	char name[40];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg, "="), arg);
	for (size_t i = 0; i < SW_FLAGS; i++)
		if (sw_distance(name + strspn(name, "-"), sw_flags[i].name) <
		    sw_distance(name + strspn(name, "-"), nearest->name))
			nearest = &sw_flags[i];
	return sw_fail(err, -EINVAL, "%s: unknown flag; did you mean '--%s'? see --help", name,
		       nearest->name);
}
