// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A client that trusts nothing: many exchanges at a time, one connection each, every response
// checked to the last byte. One JSON line says how they ended; exit 0 means that none went wrong.

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/args.h"
#include "lib/exchange.h"
#include "lib/tally.h"

#define MIX_MAX 16

struct entry { /* one kind of request in the mix */
	struct exchange_request request;
	char *name; /* "POST /v1/chat/completions" */
	int weight, credit;
	struct tally tally;
};

struct checker {
	struct event_base *base;
	struct event *retry;
	struct entry mix[MIX_MAX];
	size_t n_mix;
	bool expected[1000];
	uint64_t count, started, ok, concurrency, running;
	uint64_t begin_us, end_us; /* nothing is started from end_us on */
	uint16_t first_port, last_port, port;
	bool port_used[65536];
	uint64_t ports_busy; /* the kernel still held a connection there */
	uint64_t faults[FAULTS], unexpected;
	uint64_t connect_max_us, stall_max_us;
	json_t *first_error;
};

static const char usage[] =
	"usage: checker [options] ADDR:PORT\n"
	"\n"
	"Opens connections to an HTTP server, one request each, and checks every response: complete,\n"
	"as long as it says, JSON or event stream as it says, connection closed as it says.\n"
	"Prints one JSON line. Exit status: 0 no error, 1 errors, 2 wrong usage.\n"
	"\n"
	"  --count N               requests (default 100, with --duration no limit)\n"
	"  --duration SECONDS      start requests for this long, or until SIGINT\n"
	"  --concurrency N         connections at a time (default 10)\n"
	"  --mix LIST              METHOD PATH[:WEIGHT], comma separated\n"
	"                          (default \"POST /v1/chat/completions\")\n"
	"  --post-size BYTES       body of all but GET and DELETE (default 200)\n"
	"  --stream                ask for event streams\n"
	"  --split-writes          send head and body in separate segments\n"
	"  --source-port FIRST-LAST  client ports to go round in, so that they are used again soon\n"
	"  --expect-status LIST    any other status is an error (default 200,529)\n"
	"  --timeout-ms MS         longest wait for any progress (default 5000)\n"
	"  --help\n"
	"\n"
	"examples:\n"
	"  checker --count 10000 --concurrency 64 --expect-status 529 10.0.0.1:8000\n"
	"  checker --duration 20 --concurrency 64 --source-port 40000-40099 \\\n"
	"      --mix 'POST /v1/chat/completions:3,GET /health:1' '[fd00::1]:8000'\n"
	"  checker --post-size 4194304 --split-writes 127.0.0.1:8000\n";

static void pump(struct checker *c);

static void note_error(struct checker *c, const struct exchange_outcome *o, const char *what)
{
	const struct entry *e = (const struct entry *)o->request;

	if (!c->first_error)
		c->first_error =
			json_pack("{s:s,s:s,s:i,s:i,s:I}", "error", what, "request", e->name,
				  "status", o->status, "source_port", o->source_port, "after_us",
				  (json_int_t)(exchange_now_us() - c->begin_us));
}

static void on_end(void *arg, const struct exchange_outcome *o)
{
	struct checker *c = arg;
	struct entry *e = (struct entry *)o->request;

	c->running--;
	c->port_used[o->source_port] = false;
	c->faults[o->fault]++;
	if (o->connected_us > c->connect_max_us)
		c->connect_max_us = o->connected_us;
	if (o->stall_us > c->stall_max_us)
		c->stall_max_us = o->stall_us;

	if (o->status)
		tally_add(&e->tally, o->status, o->latency_us);
	if (o->fault) {
		note_error(c, o, exchange_fault_name(o->fault));
	} else if (!c->expected[o->status]) {
		c->unexpected++;
		note_error(c, o, "status");
	} else {
		c->ok++;
	}
	pump(c);
}

/* Smooth weighted round robin: exact proportions, no runs of one kind. */
static struct entry *next_entry(struct checker *c)
{
	struct entry *best = &c->mix[0];
	int total = 0;

	for (struct entry *e = c->mix; e < c->mix + c->n_mix; e++) {
		e->credit += e->weight;
		total += e->weight;
		if (e->credit > best->credit)
			best = e;
	}
	best->credit -= total;
	return best;
}

/* Starts on the next client port of the range that neither we nor the kernel have in use. */
static int start_on_port(struct checker *c, const struct exchange_request *r)
{
	int err = -EADDRNOTAVAIL;

	for (int left = c->last_port - c->first_port + 1; left && err == -EADDRNOTAVAIL; left--) {
		uint16_t port = c->port;

		c->port = port == c->last_port ? c->first_port : port + 1;
		if (port && c->port_used[port])
			continue;
		err = exchange_start(c->base, r, port, on_end, c);
		c->port_used[port] = !err;
		c->ports_busy += err == -EADDRNOTAVAIL;
	}
	return err;
}

static volatile sig_atomic_t interrupted; /* nothing more is started */

static void on_interrupt(int number)
{
	interrupted = number;
}

/* Keeps `concurrency` exchanges going; leaves the loop when all is done. */
static void pump(struct checker *c)
{
	const struct timeval soon = {0, 1000};

	while (c->running < c->concurrency && c->started < c->count &&
	       exchange_now_us() < c->end_us && !interrupted) {
		struct entry *e = next_entry(c);
		int err = start_on_port(c, &e->request);

		if (!err) {
			c->started++;
			c->running++;
			continue;
		}
		if (err != -EADDRNOTAVAIL) {
			struct exchange_outcome o = {.request = &e->request};

			c->started++;
			c->faults[FAULT_CONNECT]++;
			note_error(c, &o, strerror(-err));
		}
		event_add(c->retry, &soon);
		return;
	}
	if (!c->running)
		event_base_loopbreak(c->base);
}

static void on_retry(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	pump(arg);
}

static int report(struct checker *c)
{
	json_t *faults = json_object(), *by = json_object(), *all;
	uint64_t done = c->unexpected + c->ok, errors = c->unexpected;
	static struct tally total;

	for (int f = FAULT_NONE + 1; f < FAULTS; f++) {
		json_object_set_new(faults, exchange_fault_name(f), json_integer(c->faults[f]));
		errors += c->faults[f];
		done += c->faults[f];
	}
	json_object_set_new(faults, "status", json_integer(c->unexpected));
	for (struct entry *e = c->mix; e < c->mix + c->n_mix; e++) {
		for (int s = 0; s < 1000; s++)
			for (size_t i = 0; i < e->tally.by[s].n; i++)
				tally_add(&total, s, e->tally.by[s].latency_us[i]);
		json_object_set_new(by, e->name, tally_json(&e->tally));
	}
	all = json_pack("{s:I,s:I,s:I,s:f,s:o,s:o,s:o,s:I,s:I,s:I,s:o?}", "requests",
			(json_int_t)done, "ok", (json_int_t)c->ok, "errors", (json_int_t)errors,
			"seconds", (exchange_now_us() - c->begin_us) / 1e6, "status",
			tally_json(&total), "by_request", by, "faults", faults, "max_stall_us",
			(json_int_t)c->stall_max_us, "max_connect_us",
			(json_int_t)c->connect_max_us, "ports_busy", (json_int_t)c->ports_busy,
			"first_error", c->first_error);
	json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(all);
	return errors ? 1 : 0;
}

/* ---- command line ------------------------------------------------------------------------- */

static void parse_mix(struct checker *c, char *list)
{
	for (char *item = strtok(list, ","); item; item = strtok(NULL, ",")) {
		struct entry *e = &c->mix[c->n_mix++];
		char *colon = strrchr(item, ':');

		if (c->n_mix > MIX_MAX)
			args_wrong("--mix takes at most 16 kinds of request", item);
		e->weight = 1;
		if (colon && colon[1] >= '0' && colon[1] <= '9') {
			e->weight = args_number(colon + 1, 1, 1000);
			*colon = 0;
		}
		item += strspn(item, " ");
		if (!strchr(item, ' ') || strchr(item, ' ')[1] != '/')
			args_wrong("--mix takes METHOD PATH[:WEIGHT]", item);
		e->name = strdup(item);
	}
}

static void parse_statuses(struct checker *c, char *list)
{
	memset(c->expected, 0, sizeof(c->expected));
	for (char *item = strtok(list, ","); item; item = strtok(NULL, ","))
		c->expected[args_number(item, 100, 999)] = true;
}

static void parse_ports(struct checker *c, const char *text)
{
	unsigned first, last;

	if (sscanf(text, "%u-%u", &first, &last) != 2 || !first || last > 65535 || first > last)
		args_wrong("--source-port takes FIRST-LAST", text);
	c->first_port = c->port = first;
	c->last_port = last;
}

static void parse(struct checker *c, int argc, char **argv)
{
	enum {
		COUNT = 256,
		DURATION,
		CONCURRENCY,
		MIX,
		SIZE,
		STREAM,
		SPLIT,
		PORTS,
		EXPECT,
		TIMEOUT
	};
	static const struct option options[] = {
		{"count", 1, 0, COUNT},
		{"duration", 1, 0, DURATION},
		{"concurrency", 1, 0, CONCURRENCY},
		{"mix", 1, 0, MIX},
		{"post-size", 1, 0, SIZE},
		{"stream", 0, 0, STREAM},
		{"split-writes", 0, 0, SPLIT},
		{"source-port", 1, 0, PORTS},
		{"expect-status", 1, 0, EXPECT},
		{"timeout-ms", 1, 0, TIMEOUT},
		{"help", 0, 0, 'h'},
		{0},
	};
	struct exchange_request common = {.timeout_ms = 5000};
	char default_mix[] = "POST /v1/chat/completions";
	long size = 200;
	bool stream = false;
	int o;

	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (o) {
		case COUNT: c->count = args_number(optarg, 1, UINT64_MAX); break;
		case DURATION: c->end_us = args_number(optarg, 1, 86400) * 1000000; break;
		case CONCURRENCY: c->concurrency = args_number(optarg, 1, 60000); break;
		case MIX: parse_mix(c, optarg); break;
		case SIZE: size = args_number(optarg, 0, 1 << 30); break;
		case STREAM: stream = true; break;
		case SPLIT: common.split = true; break;
		case PORTS: parse_ports(c, optarg); break;
		case EXPECT: parse_statuses(c, optarg); break;
		case TIMEOUT: common.timeout_ms = args_number(optarg, 1, 3600000); break;
		case 'h': fputs(usage, stdout); exit(0);
		default: exit(2);
		}
	}
	if (optind != argc - 1 || !exchange_parse_address(argv[optind], &common))
		args_wrong("one ADDR:PORT or [ADDR6]:PORT is needed",
			   optind < argc ? argv[optind] : "");

	if (!c->count)
		c->count = c->end_us ? UINT64_MAX : 100;
	if (!c->n_mix)
		parse_mix(c, default_mix);
	for (struct entry *e = c->mix; e < c->mix + c->n_mix; e++) {
		char *path = strchr(e->name, ' ');
		bool bare = !strncmp(e->name, "GET ", 4) || !strncmp(e->name, "DELETE ", 7);

		e->request = common;
		*path = 0;
		exchange_compose(&e->request, e->name, path + 1, bare ? -1 : size, stream, true);
		*path = ' ';
	}
}

int main(int argc, char **argv)
{
	static struct checker c = {.concurrency = 10};

	signal(SIGINT, on_interrupt);
	c.expected[200] = c.expected[529] = true;
	parse(&c, argc, argv);
	args_many_files();
	c.base = event_base_new();
	c.retry = event_new(c.base, -1, 0, on_retry, &c);
	c.begin_us = exchange_now_us();
	c.end_us = c.end_us ? c.begin_us + c.end_us : UINT64_MAX;
	pump(&c);
	event_base_dispatch(c.base);
	return report(&c);
}
