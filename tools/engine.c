// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A simulated LLM engine: chat completions that take a slot and a while, a queue before the slots,
// and load figures in the format of vLLM. It computes nothing; demo and tests drive it.

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/args.h"
#include "lib/server.h"

struct engine;

struct job { /* one completion, running or waiting */
	TAILQ_ENTRY(job) link;
	struct engine *engine;
	struct client *client;
	struct event *tick;
	bool chat, stream, running;
	unsigned tokens; /* made so far */
};

TAILQ_HEAD(jobs, job);

enum page { PAGE_OK, PAGE_HTML, PAGE_GARBAGE, PAGE_SLOW, PAGE_500, PAGES };

static const char *const page_names[PAGES] = {"ok", "html", "garbage", "slow", "500"};

struct engine {
	struct event_base *base;
	unsigned slots, service_ms, tokens, blocks;
	unsigned max_queued; /* running + waiting that are accepted; 0: no limit */
	const char *model;
	struct jobs waiting;		     /* in the order in which they came */
	unsigned n_running, n_waiting, most; /* most: of both together, ever */
	unsigned long served, refused, gone;
	double forced_kv;  /* reported whatever is running; negative: off */
	enum page metrics; /* what GET /metrics gives */
};

static const char usage[] =
	"usage: engine [options]\n"
	"\n"
	"A simulated LLM engine. POST /v1/chat/completions and /v1/completions take one of N slots\n"
	"for the service time, or wait for one; \"stream\": true gives server-sent events.\n"
	"Also GET /v1/models, /health and /metrics (vLLM's series).\n"
	"\n"
	"  --listen ADDR:PORT      default 127.0.0.1:9000; may be repeated\n"
	"  --slots N               completions at a time (default 8)\n"
	"  --service-ms MS         how long one takes (default 500)\n"
	"  --tokens N              tokens of one, one event each (default 16)\n"
	"  --max-queued-reqs N     answer 503 when running + waiting + 1 > N (default: no limit)\n"
	"  --blocks N              KV cache blocks (default 10000)\n"
	"  --model NAME            default \"demo\"\n"
	"  --help\n"
	"\n"
	"While it runs, /sim is its remote control; it answers with the state as JSON:\n"
	"  /sim?kv=0.95|auto       the KV cache use that is reported; auto: running / slots\n"
	"  /sim?service-ms=MS      how long completions take from now on\n"
	"  /sim?metrics=ok|html|garbage|slow|500   what GET /metrics gives; slow: never an answer\n"
	"\n"
	"examples:\n"
	"  engine --slots 50 --service-ms 250 --listen 0.0.0.0:9000 --listen '[::]:9000'\n"
	"  curl -N 127.0.0.1:9000/v1/chat/completions -d '{\"stream\":true,\"messages\":[]}'\n"
	"  curl -X POST '127.0.0.1:9000/sim?kv=0.95'\n";

/* ---- completions -------------------------------------------------------------------------- */

static void reply_json(struct client *c, int status, const char *fmt, ...)
{
	char body[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(body, sizeof(body), fmt, ap);
	va_end(ap);
	client_reply(c, status, "application/json", body, n);
}

/* One event of a stream: a token, or, with token NULL, the end. */
static void send_event(struct job *j, const char *token)
{
	char text[512];
	const char *kind = j->chat ? "chat.completion.chunk" : "text_completion";
	int n;

	if (!token)
		n = snprintf(text, sizeof(text), "data: [DONE]\n\n");
	else
		n = snprintf(text, sizeof(text),
			     "data: {\"id\":\"sim\",\"object\":\"%s\",\"model\":\"%s\",\"choices\":"
			     "[{\"index\":0,%s%s%s,\"finish_reason\":%s}]}\n\n",
			     kind, j->engine->model,
			     j->chat ? "\"delta\":{\"content\":\"" : "\"text\":\"", token,
			     j->chat ? "\"}" : "\"",
			     j->tokens == j->engine->tokens ? "\"length\"" : "null");
	client_write(j->client, text, n);
}

static void reply_whole(struct job *j)
{
	reply_json(j->client, 200,
		   "{\"id\":\"sim\",\"object\":\"%s\",\"model\":\"%s\",\"choices\":[{\"index\":0,"
		   "%s,\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":1,"
		   "\"completion_tokens\":%u,\"total_tokens\":%u}}",
		   j->chat ? "chat.completion" : "text_completion", j->engine->model,
		   j->chat ? "\"message\":{\"role\":\"assistant\",\"content\":\"...\"}"
			   : "\"text\":\"...\"",
		   j->tokens, j->tokens + 1);
}

static void job_run(struct job *j)
{
	const struct engine *e = j->engine;
	unsigned long us = e->service_ms * 1000UL / e->tokens;
	const struct timeval interval = {us / 1000000, us % 1000000};

	j->running = true;
	j->engine->n_running++;
	if (j->stream)
		client_stream(j->client, "text/event-stream");
	event_add(j->tick, &interval);
}

/* Takes a job out, whichever way it ended; a free slot goes to the one that waits longest. */
static void job_free(struct job *j)
{
	struct engine *e = j->engine;

	if (j->running) {
		e->n_running--;
	} else {
		e->n_waiting--;
		TAILQ_REMOVE(&e->waiting, j, link);
	}
	event_free(j->tick);
	free(j);

	while (e->n_running < e->slots && (j = TAILQ_FIRST(&e->waiting))) {
		TAILQ_REMOVE(&e->waiting, j, link);
		e->n_waiting--;
		job_run(j);
	}
}

static void on_tick(int fd, short what, void *arg)
{
	struct job *j = arg;

	(void)fd;
	(void)what;
	j->tokens++;
	if (j->stream)
		send_event(j, " token");
	if (j->tokens < j->engine->tokens)
		return;

	if (j->stream) {
		send_event(j, NULL);
		client_end(j->client);
	} else {
		reply_whole(j);
	}
	j->engine->served++;
	job_free(j);
}

/* "stream": true somewhere in the body; a parser would take longer than all the rest of this. */
static bool wants_stream(const struct server_request *r)
{
	const char *at = r->length ? memmem(r->body, r->length, "\"stream\"", 8) : NULL;
	const char *end = r->body + r->length;

	if (!at)
		return false;
	for (at += 8; at < end && (*at == ' ' || *at == ':'); at++)
		;
	return end - at >= 4 && !memcmp(at, "true", 4);
}

static void complete(struct engine *e, struct client *c, const struct server_request *r, bool chat)
{
	struct job *j;

	if (e->max_queued && e->n_running + e->n_waiting + 1 > e->max_queued) {
		e->refused++;
		reply_json(c, 503,
			   "{\"error\":{\"message\":\"The simulated engine is full.\","
			   "\"type\":\"Service Unavailable\",\"param\":null,\"code\":503}}");
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		abort();
	j->engine = e;
	j->client = c;
	j->chat = chat;
	j->stream = wants_stream(r);
	j->tick = event_new(e->base, -1, EV_PERSIST, on_tick, j);
	client_set_data(c, j);
	if (e->n_running < e->slots) {
		job_run(j);
	} else {
		TAILQ_INSERT_TAIL(&e->waiting, j, link);
		e->n_waiting++;
	}
	if (e->n_running + e->n_waiting > e->most)
		e->most = e->n_running + e->n_waiting;
}

/* ---- pages -------------------------------------------------------------------------------- */

static double kv_use(const struct engine *e)
{
	return e->forced_kv >= 0 ? e->forced_kv : (double)e->n_running / e->slots;
}

static void reply_metrics(const struct engine *e, struct client *c)
{
	char text[4096], of[128];
	double done = e->served;
	int n;

	snprintf(of, sizeof(of), "engine=\"0\",model_name=\"%s\"", e->model);
	/* With neighbours whose names begin like the series that are wanted. */
	n = snprintf(text, sizeof(text),
		     "# HELP vllm:num_requests_running Requests that are running.\n"
		     "# TYPE vllm:num_requests_running gauge\n"
		     "vllm:num_requests_running{%s} %.1f\n"
		     "# HELP vllm:num_requests_waiting Requests that wait for a slot.\n"
		     "# TYPE vllm:num_requests_waiting gauge\n"
		     "vllm:num_requests_waiting{%s} %.1f\n"
		     "# TYPE vllm:num_requests_waiting_by_reason gauge\n"
		     "vllm:num_requests_waiting_by_reason{%s,reason=\"capacity\"} %.1f\n"
		     "vllm:num_requests_waiting_by_reason{%s,reason=\"deferred\"} 0.0\n"
		     "# HELP vllm:kv_cache_usage_perc KV cache use, 1 is full.\n"
		     "# TYPE vllm:kv_cache_usage_perc gauge\n"
		     "vllm:kv_cache_usage_perc{%s} %.4f\n"
		     "# TYPE vllm:cache_config_info gauge\n"
		     "vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",engine=\"0\","
		     "num_gpu_blocks=\"%u\"} 1.0\n"
		     "# TYPE vllm:request_success_total counter\n"
		     "vllm:request_success_total{%s,finished_reason=\"length\"} %.1f\n"
		     "# TYPE vllm:request_success_created gauge\n"
		     "vllm:request_success_created{%s,finished_reason=\"length\"} 1.7e+09\n"
		     "# TYPE vllm:time_to_first_token_seconds histogram\n"
		     "vllm:time_to_first_token_seconds_bucket{%s,le=\"0.1\"} %.1f\n"
		     "vllm:time_to_first_token_seconds_bucket{%s,le=\"+Inf\"} %.1f\n"
		     "vllm:time_to_first_token_seconds_count{%s} %.1f\n"
		     "vllm:time_to_first_token_seconds_sum{%s} %.3f\n",
		     of, (double)e->n_running, of, (double)e->n_waiting, of, (double)e->n_waiting,
		     of, of, kv_use(e), e->blocks, of, done, of, of, done, of, done, of, done, of,
		     done * e->service_ms / e->tokens / 1000);
	client_reply(c, 200, "text/plain; version=0.0.4; charset=utf-8", text, n);
}

static void metrics(const struct engine *e, struct client *c)
{
	static const char html[] = "<!DOCTYPE html>\n<html><body><h1>Sign in</h1></body></html>\n";
	static const char garbage[] = "\x1f\x8b\x00\xff{{{ vllm:kv_cache_usage_perc \xfe\x00 1 1 1";

	switch (e->metrics) {
	case PAGE_HTML: client_reply(c, 200, "text/html", html, sizeof(html) - 1); break;
	case PAGE_GARBAGE:
		client_reply(c, 200, "application/octet-stream", garbage, sizeof(garbage) - 1);
		break;
	case PAGE_500: reply_json(c, 500, "{\"error\":\"as you wished\"}"); break;
	case PAGE_SLOW: break; /* stays pending until the client has had enough */
	default: reply_metrics(e, c);
	}
}

/* The remote control. False: a word that is not known. */
static bool obey(struct engine *e, const char *query)
{
	char *end;

	if (!strcmp(query, "kv=auto")) {
		e->forced_kv = -1;
	} else if (!strncmp(query, "kv=", 3)) {
		double kv = strtod(query + 3, &end);

		if (end == query + 3 || *end || !(kv >= 0 && kv <= 1))
			return false;
		e->forced_kv = kv;
	} else if (!strncmp(query, "service-ms=", 11)) {
		unsigned long ms = strtoul(query + 11, &end, 10);

		if (end == query + 11 || *end || ms < 1 || ms > 100000000)
			return false;
		e->service_ms = ms;
	} else if (!strncmp(query, "metrics=", 8)) {
		for (int p = 0; p < PAGES; p++) {
			if (!strcmp(query + 8, page_names[p])) {
				e->metrics = p;
				return true;
			}
		}
		return false;
	} else {
		return !*query;
	}
	return true;
}

static void on_request(void *arg, struct client *c, const struct server_request *r)
{
	struct engine *e = arg;
	bool post = !strcmp(r->method, "POST"), get = !strcmp(r->method, "GET");

	if (post && !strcmp(r->path, "/v1/chat/completions"))
		complete(e, c, r, true);
	else if (post && !strcmp(r->path, "/v1/completions"))
		complete(e, c, r, false);
	else if (get && !strcmp(r->path, "/metrics"))
		metrics(e, c);
	else if (get && !strcmp(r->path, "/health"))
		client_reply(c, 200, "text/plain", "", 0);
	else if (get && !strcmp(r->path, "/v1/models"))
		reply_json(c, 200,
			   "{\"object\":\"list\",\"data\":[{\"id\":\"%s\",\"object\":\"model\"}]}",
			   e->model);
	else if (strcmp(r->path, "/sim"))
		reply_json(c, 404, "{\"error\":{\"message\":\"no such page\",\"code\":404}}");
	else if (obey(e, r->query))
		reply_json(c, 200,
			   "{\"running\":%u,\"waiting\":%u,\"most\":%u,\"slots\":%u,\"kv\":%.4f,"
			   "\"served\":%lu,\"refused\":%lu,\"gone\":%lu,\"metrics\":\"%s\"}\n",
			   e->n_running, e->n_waiting, e->most, e->slots, kv_use(e), e->served,
			   e->refused, e->gone, page_names[e->metrics]);
	else
		reply_json(c, 400,
			   "{\"error\":\"/sim takes kv=0..1|auto, service-ms=MS, metrics=ok|html|"
			   "garbage|slow|500\"}\n");
}

static void on_gone(void *arg, struct client *c)
{
	struct engine *e = arg;
	struct job *j = client_data(c);

	if (!j)
		return;
	e->gone++;
	job_free(j);
}

/* ---- start -------------------------------------------------------------------------------- */

static void add_listener(struct server *s, const char *address)
{
	int err = server_listen(s, address);

	if (err)
		args_wrong(strerror(-err), address);
}

int main(int argc, char **argv)
{
	enum { LISTEN = 256, SLOTS, SERVICE, TOKENS, QUEUED, BLOCKS, MODEL };
	static const struct option options[] = {
		{"listen", 1, 0, LISTEN},
		{"slots", 1, 0, SLOTS},
		{"service-ms", 1, 0, SERVICE},
		{"tokens", 1, 0, TOKENS},
		{"max-queued-reqs", 1, 0, QUEUED},
		{"blocks", 1, 0, BLOCKS},
		{"model", 1, 0, MODEL},
		{"help", 0, 0, 'h'},
		{0},
	};
	struct engine e = {.slots = 8,
			   .service_ms = 500,
			   .tokens = 16,
			   .blocks = 10000,
			   .model = "demo",
			   .forced_kv = -1};
	struct server_calls calls = {.request = on_request, .gone = on_gone, .arg = &e};
	struct server *s;
	bool listens = false;
	int o;

	TAILQ_INIT(&e.waiting);
	e.base = event_base_new();
	s = server_new(e.base, &calls);
	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (o) {
		case LISTEN:
			add_listener(s, optarg);
			listens = true;
			break;
		case SLOTS: e.slots = args_number(optarg, 1, 100000000); break;
		case SERVICE: e.service_ms = args_number(optarg, 1, 100000000); break;
		case TOKENS: e.tokens = args_number(optarg, 1, 100000000); break;
		case QUEUED: e.max_queued = args_number(optarg, 1, 100000000); break;
		case BLOCKS: e.blocks = args_number(optarg, 1, 100000000); break;
		case MODEL: e.model = optarg; break;
		case 'h': fputs(usage, stdout); return 0;
		default: return 2;
		}
	}
	if (optind < argc)
		args_wrong("not an option", argv[optind]);
	if (!listens)
		add_listener(s, "127.0.0.1:9000");
	signal(SIGPIPE, SIG_IGN);
	args_many_files();
	return event_base_dispatch(e.base) < 0;
}
