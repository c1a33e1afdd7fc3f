// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A client that keeps its connections and trusts nothing: GET and POST of all sizes against
// tools/echo, cut anywhere, pipelined if that is wanted, and every answer checked to the byte. One
// JSON line says how they ended; exit 0 means that none went wrong.

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "lib/args.h"
#include "lib/echo_text.h"
#include "lib/exchange.h"
#include "lib/keeping.h"

#define EVENTS	  64
#define PASS_US	  500 /* between looks at all connections */
#define CONNS_MAX 4096

static const char usage[] =
	"usage: keeper [options] ADDR:PORT\n"
	"\n"
	"Keeps connections to a server (tools/echo, or a router before it) and asks it GET and POST of\n"
	"all sizes. Answers of 200 have to be what tools/echo says, those of 529 one of a few texts.\n"
	"Prints one JSON line. Exit status: 0 no error, 1 errors, 2 wrong usage.\n"
	"\n"
	"  --connections N   (default 64)\n"
	"  --requests N      answers to wait for (default 1000, with --seconds no limit)\n"
	"  --seconds N       ask for this long\n"
	"  --depth N         requests under way on a connection, at most (default 1, at most 16)\n"
	"  --body-max BYTES  of a request or an answer (default 1048576)\n"
	"  --lifetime N      requests of a connection on average, then a new one (default: no end)\n"
	"  --texts N         how many texts answers of 529 may have (default 8)\n"
	"  --bodies          only their bodies count: there is a proxy, which writes other heads\n"
	"  --whole           no request is cut\n"
	"  --path PATH       (default /v1/chat/completions)\n"
	"  --timeout-ms MS   longest wait for any progress (default 30000)\n"
	"  --seed N          of the random choices (default 1)\n"
	"  --help\n"
	"\n"
	"example:\n"
	"  keeper --requests 1000000 --depth 8 '[fd77::1]:8000'\n";

struct keeper {
	struct keeping_job job;
	unsigned n, seconds;
	uint64_t timeout_us, requests;
	int poll;
	struct keeping conns[CONNS_MAX];
	struct watch { /* what epoll has been told of */
		int fd;
		uint32_t events;
		uint64_t opened;
	} watch[CONNS_MAX];
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ULL + t.tv_nsec / 1000;
}

/* Tells epoll what is new of a connection; a socket that was closed it has forgotten. */
static void watch(struct keeper *k, unsigned i, uint64_t now)
{
	const struct keeping *c = &k->conns[i];
	struct watch *w = &k->watch[i];
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};

	if (keeping_wants_out(c, now))
		e.events |= EPOLLOUT;
	if (w->fd == c->fd && w->opened == c->number && w->events == e.events)
		return;
	if (epoll_ctl(k->poll,
		      w->fd == c->fd && w->opened == c->number ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		      c->fd, &e) &&
	    c->fd >= 0)
		perror("epoll");
	*w = (struct watch){c->fd, e.events, c->number};
}

static void go(struct keeper *k, unsigned i, uint32_t events, uint64_t now)
{
	keeping_go(&k->conns[i], events & (EPOLLIN | EPOLLHUP | EPOLLERR), events & EPOLLOUT, now);
	watch(k, i, now);
}

/* Those that held back, and those on which nothing moves. False: all is done. */
static bool look_at_all(struct keeper *k, uint64_t now)
{
	bool busy = false;

	for (unsigned i = 0; i < k->n; i++) {
		struct keeping *c = &k->conns[i];

		if (keeping_idle(c))
			continue;
		busy = true;
		if (now - c->moved > k->timeout_us && (c->n || c->connecting))
			keeping_hang(c, now);
		go(k, i, 0, now);
	}
	return busy;
}

static void run(struct keeper *k)
{
	uint64_t now = now_us(), end = now + k->seconds * 1000000ULL, next = now;
	struct epoll_event events[EVENTS];

	for (unsigned i = 0; i < k->n; i++) {
		keeping_open(&k->conns[i], &k->job, now);
		watch(k, i, now);
	}
	for (;;) {
		int n = epoll_wait(k->poll, events, EVENTS, 1);

		now = now_us();
		for (int i = 0; i < n; i++)
			go(k, events[i].data.u32, events[i].events, now);
		if (k->seconds && now >= end)
			k->job.left = 0;
		if (now < next)
			continue;
		next = now + PASS_US;
		if (!look_at_all(k, now))
			return;
	}
}

static int report(const struct keeper *k, uint64_t took_us)
{
	const struct keeping_job *j = &k->job;

	printf("{\"answers\":%" PRIu64 ",\"served\":%" PRIu64 ",\"shed\":%" PRIu64
	       ",\"errors\":%" PRIu64 ",\"hangs\":%" PRIu64 ",\"connections\":%" PRIu64
	       ",\"texts\":%u,\"seconds\":%.3f,\"sent_bytes\":%" PRIu64 ",\"got_bytes\":%" PRIu64
	       "}\n",
	       j->served + j->shed, j->served, j->shed, j->errors, j->hangs, j->opened, j->n_texts,
	       took_us / 1e6, j->sent_bytes, j->got_bytes);
	if (j->errors)
		fprintf(stderr, "keeper: the first error: %s\n", j->first_error);
	return j->errors ? 1 : 0;
}

static void parse(struct keeper *k, int argc, char **argv)
{
	enum {
		CONNECTIONS = 256,
		REQUESTS,
		SECONDS,
		DEPTH,
		BODY,
		LIFETIME,
		TEXTS,
		BODIES,
		WHOLE,
		WHERE,
		TIMEOUT,
		SEED
	};
	static const struct option options[] = {
		{"connections", 1, 0, CONNECTIONS},
		{"requests", 1, 0, REQUESTS},
		{"seconds", 1, 0, SECONDS},
		{"depth", 1, 0, DEPTH},
		{"body-max", 1, 0, BODY},
		{"lifetime", 1, 0, LIFETIME},
		{"texts", 1, 0, TEXTS},
		{"bodies", 0, 0, BODIES},
		{"whole", 0, 0, WHOLE},
		{"path", 1, 0, WHERE},
		{"timeout-ms", 1, 0, TIMEOUT},
		{"seed", 1, 0, SEED},
		{"help", 0, 0, 'h'},
		{0},
	};
	struct exchange_request to = {0};
	int o;

	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (o) {
		case CONNECTIONS: k->n = args_number(optarg, 1, CONNS_MAX); break;
		case REQUESTS: k->job.left = args_number(optarg, 1, UINT64_MAX); break;
		case SECONDS: k->seconds = args_number(optarg, 1, 86400); break;
		case DEPTH: k->job.depth = args_number(optarg, 1, KEEPING_DEPTH_MAX); break;
		case BODY: k->job.body_max = args_number(optarg, 0, ECHO_BODY_MAX); break;
		case LIFETIME: k->job.lifetime = args_number(optarg, 1, 1000000000); break;
		case TEXTS: k->job.texts_max = args_number(optarg, 0, KEEPING_TEXTS_MAX); break;
		case BODIES: k->job.bodies = true; break;
		case WHOLE: k->job.whole = true; break;
		case WHERE: k->job.path = optarg; break;
		case TIMEOUT: k->timeout_us = args_number(optarg, 1, 3600000) * 1000; break;
		case SEED: k->job.random = args_number(optarg, 0, UINT64_MAX); break;
		case 'h': fputs(usage, stdout); exit(0);
		default: exit(2);
		}
	}
	if (optind != argc - 1 || !exchange_parse_address(argv[optind], &to))
		args_wrong("one ADDR:PORT or [ADDR6]:PORT is needed",
			   optind < argc ? argv[optind] : "");
	k->job.to = to.to;
	k->job.to_length = to.to_length;
	if (!k->job.left)
		k->job.left = k->seconds ? UINT64_MAX / 2 : 1000;
}

int main(int argc, char **argv)
{
	static struct keeper k;
	uint64_t begin;

	k.n = 64;
	k.timeout_us = 30000000;
	k.job = (struct keeping_job){.depth = 1,
				     .body_max = ECHO_BODY_MAX,
				     .texts_max = 8,
				     .path = "/v1/chat/completions",
				     .random = 1};
	parse(&k, argc, argv);
	echo_init();
	args_many_files();
	k.poll = epoll_create1(EPOLL_CLOEXEC);
	begin = now_us();
	run(&k);
	return report(&k, now_us() - begin);
}
