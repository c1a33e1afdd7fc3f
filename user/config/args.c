// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line of spillwayd: one pool, described by flags, becomes the same document that a
 * file does and goes through the same checks. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"

/* What a flag's value goes to: text of the document, the pool, each worker or each listener; a list
 * of them; something of its own. */
enum target {
	DOC,
	POOL,
	WORKER,
	LISTENER,
	INTERFACES,
	GUARDS,
	SCRAPES,
	EXEMPTS,
	RETRY_AFTER,
	FILE_NAME,
	CHECK,
	HELP,
	VERSION,
};

struct flag {
	const char *name, *arg, *help;
	const char *field; /* in the document, indices left out */
	enum target target;
	size_t offset;
};

#define AT(type, member) offsetof(struct type, member)
#define LIMIT(l)	 AT(sw_doc_pool, thresholds.limit[l])

static const struct flag flags[] = {
	{"config", "FILE", "read all of this from a YAML file", "", FILE_NAME, 0},
	{"interface", "NAME", "guard on this interface (repeat); lo always is", "interfaces",
	 INTERFACES, 0},
	{"guard", "[ADDR:]PORT", "listener to protect (repeat)", "listeners.listen", GUARDS, 0},
	{"engine", "NAME", "vllm, sglang, tgi, llamacpp, triton, trtllm-serve, lmdeploy",
	 "pools.engine", POOL, AT(sw_doc_pool, engine)},
	{"scrape", "URL", "metrics page of a worker (repeat, one each)", "pools.workers.scrape",
	 SCRAPES, 0},
	{"decode-threshold", "F", "busy over this share of KV blocks, 0.0 to 1.0",
	 "pools.thresholds.active_decode_blocks_threshold", POOL, LIMIT(SW_LIM_DECODE)},
	{"prefill-threshold", "N", "busy over this many prefill tokens",
	 "pools.thresholds.active_prefill_tokens_threshold", POOL, LIMIT(SW_LIM_PREFILL)},
	{"prefill-threshold-frac", "F", "the same as a share of max batched tokens",
	 "pools.thresholds.active_prefill_tokens_threshold_frac", POOL, LIMIT(SW_LIM_PREFILL_FRAC)},
	{"max-queued-reqs", "N", "busy when running + waiting + 1 is over N",
	 "pools.thresholds.max_num_queued_reqs", POOL, LIMIT(SW_LIM_QUEUED_REQS)},
	{"kv-total", "N", "KV blocks of a rank, if the engine does not tell",
	 "pools.workers.kv_total", WORKER, AT(sw_doc_worker, kv_total)},
	{"max-batched-tokens", "N", "max_num_batched_tokens, if the engine does not tell",
	 "pools.workers.max_num_batched_tokens", WORKER, AT(sw_doc_worker, max_num_batched_tokens)},
	{"preset", "NAME", "status and body of dynamo, vllm, sglang, tgi, smg, anthropic",
	 "pools.preset", POOL, AT(sw_doc_pool, preset)},
	{"overload-status", "CODE", "HTTP status of a shed request (529)", "pools.overload_status",
	 POOL, AT(sw_doc_pool, overload_status)},
	{"retry-after", "MIN[:MAX]", "Retry-After in seconds, spread over clients",
	 "pools.retry_after", RETRY_AFTER, 0},
	{"observe", NULL, "count what would be shed, shed nothing", "pools.observe", POOL,
	 AT(sw_doc_pool, observe)},
	{"exempt", "CIDR", "clients that are never shed (repeat)", "listeners.exempt", EXEMPTS, 0},
	{"shed-all-paths", NULL, "shed every request, health checks too", "listeners.paths",
	 LISTENER, AT(sw_doc_listener, paths.all)},
	{"netns", "PATH|pid:N", "guard, and scrape from, inside this network namespace",
	 "listeners.netns", LISTENER, AT(sw_doc_listener, netns)},
	{"mode", "MODE", "auto, xdp, xdp-generic or tc (auto)", "mode", DOC, AT(sw_doc, mode)},
	{"control", "SOCKET", "unix socket for the spillway command (" SW_DEFAULT_CONTROL ")",
	 "control", DOC, AT(sw_doc, control)},
	{"pin-root", "DIR", "where maps are pinned (/sys/fs/bpf/spillway)", "pin_root", DOC,
	 AT(sw_doc, pin_root)},
	{"log-level", "LEVEL", "error, warning, info or debug (info)", "log_level", DOC,
	 AT(sw_doc, log_level)},
	{"check-config", NULL, "check the configuration and exit", "", CHECK, 0},
	{"help", NULL, "print this and exit", "", HELP, 0},
	{"version", NULL, "print the version and exit", "", VERSION, 0},
};
#define FLAGS (sizeof(flags) / sizeof(flags[0]))
#define FIRST 256 /* getopt's value for flags[0], above every letter */

struct args {
	char *file;
	bool check;
	const struct flag *without_file; /* the first one that excludes --config */
	struct sw_doc doc;		 /* lists have room for a value from each argument */
	struct sw_doc_pool pool;
	struct sw_doc_worker worker;	 /* what each worker gets */
	struct sw_doc_listener listener; /* what each listener gets */
	char **guards, **scrapes;
	unsigned n_guards, n_scrapes;
	char retry_after[64]; /* MIN of MIN:MAX */
};

/* A flag stands for its field, for what that is part of and its parts, and for a field of the same
 * name elsewhere: --engine is also the workers' engine. */
static bool stands_for(const struct flag *f, const char *path)
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
	for (size_t i = 0; i < FLAGS; i++) {
		if (!stands_for(&flags[i], plain))
			continue;
		snprintf(out, size, "--%s", flags[i].name);
		return;
	}
	snprintf(out, size, "%s", path);
}

static void print_help(void)
{
	printf("spillwayd: answers surplus requests to a saturated LLM pool in the kernel.\n\n"
	       "Usage: spillwayd --config FILE\n"
	       "       spillwayd --interface NAME --guard [ADDR:]PORT --engine NAME --scrape URL "
	       "[FLAGS]\n\n");
	for (size_t i = 0; i < FLAGS; i++) {
		int width = printf("  --%s%s%s", flags[i].name, flags[i].arg ? " " : "",
				   flags[i].arg ? flags[i].arg : "");

		printf("%*s%s\n", width < 30 ? 30 - width : 1, "", flags[i].help);
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
	       "  A file, checked before it is used:\n"
	       "    spillwayd --config /etc/spillway/spillway.yaml --check-config\n\n"
	       "Environment: DYN_HTTP_OVERLOAD_STATUS_CODE is the status of a shed request unless "
	       "a\nflag or the file sets one.\n");
}

static int unknown_flag(const char *arg, struct sw_error *err)
{
	const struct flag *nearest = flags;
	char name[40];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg, "="), arg);
	for (size_t i = 0; i < FLAGS; i++)
		if (sw_distance(name + strspn(name, "-"), flags[i].name) <
		    sw_distance(name + strspn(name, "-"), nearest->name))
			nearest = &flags[i];
	return sw_fail(err, -EINVAL, "%s: unknown flag; did you mean '--%s'? see --help", name,
		       nearest->name);
}

/* What suits the process, not the configuration, may stand beside --config. */
static bool beside_file(const struct flag *f)
{
	return f->target >= FILE_NAME || !strcmp(f->field, "control") ||
	       !strcmp(f->field, "log_level");
}

/* Stores the value of a flag that fills the document. */
static int take(struct args *a, const struct flag *f, char *value, struct sw_error *err)
{
	char *const base[] = {(char *)&a->doc, (char *)&a->pool, (char *)&a->worker,
			      (char *)&a->listener};
	char **text = f->target <= LISTENER	 ? (char **)(base[f->target] + f->offset)
		      : f->target == FILE_NAME	 ? &a->file
		      : f->target == RETRY_AFTER ? &a->pool.retry_after.min
						 : NULL;

	if (!beside_file(f) && !a->without_file)
		a->without_file = f;
	if (text && *text)
		return sw_fail(err, -EINVAL, "--%s: given twice; allowed: once", f->name);
	switch (f->target) {
	case INTERFACES: a->doc.interfaces[a->doc.interfaces_count++] = value; break;
	case GUARDS: a->guards[a->n_guards++] = value; break;
	case SCRAPES: a->scrapes[a->n_scrapes++] = value; break;
	case EXEMPTS: a->listener.exempt[a->listener.exempt_count++] = value; break;
	case CHECK: a->check = true; break;
	case RETRY_AFTER: {
		size_t room = sizeof(a->retry_after) - 1, length = strcspn(value, ":");

		memcpy(a->retry_after, value, length < room ? length : room);
		*text = a->retry_after;
		if (value[length])
			a->pool.retry_after.max = value + length + 1;
		break;
	}
	default: *text = value;
	}
	return 0;
}

/* 1: printed what was asked for, nothing else to do. */
static int parse(int argc, char **argv, struct args *a, struct sw_error *err)
{
	static char yes[] = "true"; /* the value of a flag that has none */
	struct option options[FLAGS + 1] = {0};
	const struct flag *f;
	int c, ret = 0;

	for (size_t i = 0; i < FLAGS; i++)
		options[i] = (struct option){flags[i].name,
					     flags[i].arg ? required_argument : no_argument, NULL,
					     FIRST + (int)i};
	optind = 0;
	while (!ret && (c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		f = c >= FIRST	      ? &flags[c - FIRST]
		    : optopt >= FIRST ? &flags[optopt - FIRST]
				      : NULL;
		if (c == ':')
			return sw_fail(err, -EINVAL, "--%s: needs a value, %s", f->name, f->arg);
		if (c == '?' && f)
			return sw_fail(err, -EINVAL, "--%s: takes no value", f->name);
		if (c == '?')
			return unknown_flag(argv[optind - 1], err);
		if (c == 'h' || f->target == HELP) {
			print_help();
			return 1;
		}
		if (f->target == VERSION) {
			printf("spillwayd %s\n", SW_VERSION);
			return 1;
		}
		ret = take(a, f, optarg ? optarg : yes, err);
	}
	if (!ret && optind < argc)
		return sw_fail(err, -EINVAL, "'%s' is not a flag; see --help", argv[optind]);
	return ret;
}

/* The document that the flags describe. */
static int build(struct args *a, struct sw_config **out, struct sw_error *err)
{
	const struct sw_origin origin = {NULL, NULL};
	static char name[] = "default";
	int ret;

	if (!a->n_guards)
		return sw_fail(err, -EINVAL,
			       "nothing to guard; give --guard PORT or --config FILE, see --help");
	a->doc.pools = &a->pool;
	a->doc.pools_count = 1;
	a->doc.listeners = calloc(a->n_guards, sizeof(*a->doc.listeners));
	a->pool.name = name;
	a->pool.workers = calloc(a->n_scrapes + 1, sizeof(*a->pool.workers));
	if (!a->doc.listeners || !a->pool.workers) {
		ret = sw_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	a->worker.netns = a->listener.netns;
	for (; a->pool.workers_count < a->n_scrapes; a->pool.workers_count++) {
		a->worker.scrape = a->scrapes[a->pool.workers_count];
		a->pool.workers[a->pool.workers_count] = a->worker;
	}
	for (; a->doc.listeners_count < a->n_guards; a->doc.listeners_count++) {
		a->listener.listen = a->guards[a->doc.listeners_count];
		a->doc.listeners[a->doc.listeners_count] = a->listener;
	}
	ret = sw_config_build(&a->doc, &origin, out, err);
out:
	free(a->doc.listeners);
	free(a->pool.workers);
	return ret;
}

/* The file, with the two flags that may stand beside it. */
static int load(struct args *a, struct sw_config **out, struct sw_error *err)
{
	const struct sw_origin origin = {NULL, NULL};
	struct sw_build b = {.origin = &origin, .error = err};
	struct sw_place top = {.build = &b};
	struct sw_config *c;
	int ret;

	if (a->without_file)
		return sw_fail(err, -EINVAL, "--%s: not beside --config; set %s in %s instead",
			       a->without_file->name, a->without_file->field, a->file);
	ret = sw_config_load(a->file, &c, err);
	if (ret)
		return ret;
	if (a->doc.log_level)
		c->log_level = sw_build_log_level(&top, a->doc.log_level);
	if (a->doc.control) {
		free(c->control);
		c->control = sw_build_control(&top, a->doc.control);
	}
	if (b.err)
		sw_config_free(c);
	else
		*out = c;
	return b.err;
}

enum sw_args_result sw_config_from_args(int argc, char **argv, struct sw_config **out,
					struct sw_error *err)
{
	struct sw_config *c = NULL;
	struct args a = {0};
	char **room = calloc((size_t)argc * 4, sizeof(*room));
	int ret;

	if (!room)
		return sw_fail(err, SW_ARGS_ERROR, "out of memory");
	a.doc.interfaces = room;
	a.guards = room + argc;
	a.scrapes = room + 2 * argc;
	a.listener.exempt = room + 3 * argc;
	ret = parse(argc, argv, &a, err);
	if (!ret)
		ret = a.file ? load(&a, &c, err) : build(&a, &c, err);
	free(room);
	if (ret)
		return ret > 0 ? SW_ARGS_EXIT : SW_ARGS_ERROR;
	if (!a.check) {
		*out = c;
		return SW_ARGS_RUN;
	}
	puts("ok");
	sw_config_free(c);
	return SW_ARGS_EXIT;
}
