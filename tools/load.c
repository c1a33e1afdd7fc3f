// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Open-loop load: so many new connections a second, whatever becomes of them, as users arrive. One
// JSON line a second says what was offered and what came back; the last one sums up.

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/args.h"
#include "lib/exchange.h"
#include "lib/tally.h"

#define STEPS_MAX 32

struct step {
	unsigned rate; /* connections a second */
	unsigned seconds;
};

struct window { /* one second, or the whole run */
	unsigned long offered, errors, faults[FAULTS];
	struct tally tally;
};

struct load {
	struct event_base *base;
	struct exchange_request request;
	struct step steps[STEPS_MAX];
	size_t n_steps, step;
	uint64_t step_us;	 /* when this step began */
	unsigned long step_sent; /* and what was offered in it */
	unsigned long running;
	uint64_t begin_us;
	unsigned second; /* of the last line; one is left out when the machine is too busy */
	struct window now, all;
};

static const char usage[] =
	"usage: load --steps RATE:SECONDS[,RATE:SECONDS...] [options] ADDR:PORT\n"
	"\n"
	"Opens RATE connections a second, evenly, however slow the answers are, and asks for a chat\n"
	"completion on each. Prints a JSON line a second: offered, running, and by status how many\n"
	"answers came and how long they took. The last line, with \"total\", sums up.\n"
	"Exit status: 0 every answer was sound, whatever its status; 1 errors; 2 wrong usage.\n"
	"\n"
	"  --steps LIST        e.g. 100:5,1000:10,100:5\n"
	"  --no-stream         ask for plain JSON, not for event streams\n"
	"  --post-size BYTES   body of a request (default 400)\n"
	"  --timeout-ms MS     longest wait for any progress (default 10000)\n"
	"  --help\n"
	"\n"
	"example:\n"
	"  load --steps 100:5,1000:10,100:5 10.0.0.1:8000\n";

static void print_window(struct load *l, struct window *w, const char *key, unsigned value)
{
	json_t *faults = json_object(), *line;

	for (int f = FAULT_NONE + 1; f < FAULTS; f++)
		if (w->faults[f])
			json_object_set_new(faults, exchange_fault_name(f),
					    json_integer(w->faults[f]));
	line = json_pack("{s:i,s:I,s:I,s:I,s:o,s:o}", key, value, "offered", (json_int_t)w->offered,
			 "running", (json_int_t)l->running, "errors", (json_int_t)w->errors,
			 "faults", faults, "status", tally_json(&w->tally));
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(line);
	tally_reset(&w->tally);
	*w = (struct window){0};
}

static void count(struct window *w, const struct exchange_outcome *o)
{
	w->faults[o->fault]++;
	if (o->fault)
		w->errors++;
	else
		tally_add(&w->tally, o->status, o->latency_us);
}

static void on_end(void *arg, const struct exchange_outcome *o)
{
	struct load *l = arg;

	l->running--;
	count(&l->now, o);
	count(&l->all, o);
	if (!l->running && l->step == l->n_steps)
		event_base_loopbreak(l->base);
}

static void offer(struct load *l)
{
	const struct exchange_outcome failed = {.fault = FAULT_CONNECT};

	l->now.offered++;
	l->all.offered++;
	l->step_sent++;
	l->running++;
	if (exchange_start(l->base, &l->request, 0, on_end, l))
		on_end(l, &failed);
}

/* Every millisecond: offers what is due by now. */
static void on_pace(int fd, short what, void *arg)
{
	struct load *l = arg;
	uint64_t now = exchange_now_us();

	(void)fd;
	(void)what;
	while (l->step < l->n_steps) {
		const struct step *s = &l->steps[l->step];
		uint64_t length = s->seconds * 1000000ULL, in = now - l->step_us;
		unsigned long due = (in < length ? in : length) * s->rate / 1000000;

		while (l->step_sent < due)
			offer(l);
		if (in < length)
			return;
		l->step++;
		l->step_us += length;
		l->step_sent = 0;
	}
	if (!l->running)
		event_base_loopbreak(l->base);
}

static void on_second(int fd, short what, void *arg)
{
	struct load *l = arg;

	(void)fd;
	(void)what;
	l->second = (exchange_now_us() - l->begin_us + 500000) / 1000000;
	print_window(l, &l->now, "second", l->second);
}

static void parse_steps(struct load *l, char *list)
{
	for (char *item = strtok(list, ","); item; item = strtok(NULL, ",")) {
		struct step *s = &l->steps[l->n_steps++];
		char *colon = strchr(item, ':');

		if (!colon || l->n_steps > STEPS_MAX)
			args_wrong("--steps takes up to 32 times RATE:SECONDS", item);
		*colon = 0;
		s->rate = args_number(item, 0, 1000000);
		s->seconds = args_number(colon + 1, 1, 86400);
	}
}

static void parse(struct load *l, int argc, char **argv)
{
	enum { STEPS = 256, PLAIN, SIZE, TIMEOUT };
	static const struct option options[] = {
		{"steps", 1, 0, STEPS},	   {"no-stream", 0, 0, PLAIN},
		{"post-size", 1, 0, SIZE}, {"timeout-ms", 1, 0, TIMEOUT},
		{"help", 0, 0, 'h'},	   {0},
	};
	bool stream = true;
	long size = 400;
	int o;

	l->request.timeout_ms = 10000;
	while ((o = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (o) {
		case STEPS: parse_steps(l, optarg); break;
		case PLAIN: stream = false; break;
		case SIZE: size = args_number(optarg, 0, 1 << 30); break;
		case TIMEOUT: l->request.timeout_ms = args_number(optarg, 1, 3600000); break;
		case 'h': fputs(usage, stdout); exit(0);
		default: exit(2);
		}
	}
	if (!l->n_steps)
		args_wrong("--steps is missing", "");
	if (optind != argc - 1 || !exchange_parse_address(argv[optind], &l->request))
		args_wrong("one ADDR:PORT or [ADDR6]:PORT is needed",
			   optind < argc ? argv[optind] : "");
	exchange_compose(&l->request, "POST", "/v1/chat/completions", size, stream, false);
}

int main(int argc, char **argv)
{
	static struct load l;
	const struct timeval millisecond = {0, 1000}, second = {1, 0};
	unsigned long errors;

	parse(&l, argc, argv);
	args_many_files();
	l.base = event_base_new();
	event_add(event_new(l.base, -1, EV_PERSIST, on_pace, &l), &millisecond);
	event_add(event_new(l.base, -1, EV_PERSIST, on_second, &l), &second);
	l.begin_us = l.step_us = exchange_now_us();
	event_base_dispatch(l.base);
	errors = l.all.errors;
	print_window(&l, &l.all, "total", l.second);
	return errors ? 1 : 0;
}
