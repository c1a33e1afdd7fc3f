// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A wire between two network namespaces with delay, loss and reordering, for kernels without netem:
// a TAP device at each end, and this program between them. Which addresses they get is the
// caller's.

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if_tun.h>
#include <math.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "kernel/netns.h"
#include "lib/args.h"

#define FRAME_MAX 2048
#define WAITING	  8192 /* frames in a queue, a power of two; more are dropped, as by any queue */
#define BATCH	  64   /* frames read before others are sent */

struct frame {
	uint64_t due_ns;
	size_t len;
	uint8_t bytes[FRAME_MAX];
};

struct queue { /* frames that wait equally long, so the first is due first */
	unsigned head, tail;
	struct frame *frames;
};

struct direction {
	int from, to;
	struct queue usual, late;
};

struct relay {
	struct direction way[2];
	uint64_t delay_ns;
	double loss, reorder;
	unsigned short random[3];
	unsigned long passed, lost, late, dropped;
};

static const char usage[] =
	"usage: relay [options] NETNS:DEVICE NETNS:DEVICE\n"
	"\n"
	"Makes a TAP device in each of two network namespaces and carries frames between them until it\n"
	"is told to end. Prints \"ready\" when both are up, and what became of the frames at the end.\n"
	"NETNS is a name of `ip netns`, a path, or pid:N. Only TCP is lost or reordered, so that\n"
	"neighbours are found.\n"
	"\n"
	"  --delay-ms MS   each way, may be a fraction (default 0)\n"
	"  --loss P        share of TCP frames that are lost, 0 to 1 (default 0)\n"
	"  --reorder P     share of TCP frames that take twice as long and 100 us (default 0)\n"
	"  --seed N        of the random choices (default 1)\n"
	"  --help\n"
	"\n"
	"example:\n"
	"  relay --delay-ms 0.5 --loss 0.1 client:r0 server:r0\n";

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* ---- devices -------------------------------------------------------------------------------- */

__attribute__((noreturn)) static void give_up(const char *what)
{
	fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A TAP device that is up, in the namespace that the process is in. */
static int make_device(const char *name)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq device = {.ifr_flags = IFF_TAP | IFF_NO_PI};

	snprintf(device.ifr_name, sizeof(device.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &device))
		give_up(name);
	device.ifr_flags = IFF_UP;
	if (control < 0 || ioctl(control, SIOCSIFFLAGS, &device))
		give_up(name);
	close(control);
	return fd;
}

/* "NETNS:DEVICE", split at the last colon. */
static int make_end(const char *where)
{
	const char *colon = strrchr(where, ':');
	struct sw_error err;
	char netns[256];
	int fd, former;

	if (!colon || colon == where || !colon[1] || strlen(colon + 1) >= IFNAMSIZ)
		args_wrong("not NETNS:DEVICE", where);
	snprintf(netns, sizeof(netns), "%s%.*s",
		 strchr(where, '/') || !strncmp(where, "pid:", 4) ? "" : "/run/netns/",
		 (int)(colon - where), where);
	if (sw_netns_enter(netns, &former, &err)) {
		fprintf(stderr, "relay: %s\n", err.text);
		exit(1);
	}
	fd = make_device(colon + 1);
	sw_netns_leave(former);
	return fd;
}

/* ---- frames --------------------------------------------------------------------------------- */

static bool is_tcp(const uint8_t *b, size_t len)
{
	enum { TYPE = 12, V4_PROTOCOL = 14 + 9, V6_NEXT = 14 + 6, TCP = 6 };

	if (len < 54)
		return false;
	return (b[TYPE] == 0x08 && !b[TYPE + 1] && b[V4_PROTOCOL] == TCP) ||
	       (b[TYPE] == 0x86 && b[TYPE + 1] == 0xdd && b[V6_NEXT] == TCP);
}

/* Reads one frame and decides on it. False: there is none. */
static bool take_frame(struct relay *r, struct direction *d)
{
	static struct frame f;
	ssize_t len = read(d->from, f.bytes, sizeof(f.bytes));
	struct queue *q = &d->usual;
	bool tcp;

	if (len <= 0)
		return false;
	f.len = len;
	tcp = is_tcp(f.bytes, f.len);
	f.due_ns = now_ns() + r->delay_ns;
	if (tcp && erand48(r->random) < r->loss) {
		r->lost++;
		return true;
	}
	if (tcp && erand48(r->random) < r->reorder) {
		q = &d->late;
		f.due_ns += r->delay_ns + 100000;
		r->late++;
	}
	if (q->tail - q->head == WAITING) {
		r->dropped++;
		return true;
	}
	memcpy(&q->frames[q->tail++ % WAITING], &f, offsetof(struct frame, bytes) + f.len);
	return true;
}

/* Sends what is due; gives when the next frame is. */
static uint64_t send_due(struct relay *r, struct queue *q, int to)
{
	while (q->head != q->tail) {
		struct frame *f = &q->frames[q->head % WAITING];

		if (f->due_ns > now_ns())
			return f->due_ns;
		q->head++;
		if (write(to, f->bytes, f->len) == (ssize_t)f->len)
			r->passed++;
		else
			r->dropped++;
	}
	return UINT64_MAX;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void carry(struct relay *r)
{
	struct pollfd ready[2] = {{.fd = r->way[0].from, .events = POLLIN},
				  {.fd = r->way[1].from, .events = POLLIN}};
	sigset_t none;

	sigemptyset(&none);
	while (!ended) {
		uint64_t due = UINT64_MAX, now;
		struct timespec wait;

		for (int i = 0; i < 2; i++) {
			struct direction *d = &r->way[i];

			for (int n = 0; n < BATCH && take_frame(r, d); n++)
				;
			due = earlier(due, send_due(r, &d->usual, d->to));
			due = earlier(due, send_due(r, &d->late, d->to));
		}
		now = now_ns();
		due = due == UINT64_MAX ? 1000000000 : due > now ? due - now : 0;
		wait = (struct timespec){due / 1000000000, due % 1000000000};
		if (ppoll(ready, 2, &wait, &none) < 0 && errno != EINTR)
			give_up("poll");
	}
}

/* ---- command line --------------------------------------------------------------------------- */

static double parse_real(const char *text, double max)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || *end || !(n >= 0 && n <= max)) /* and not when it is no number at all */
		args_wrong("not a number that is possible here", text);
	return n;
}

static void parse(struct relay *r, int argc, char **argv)
{
	enum { DELAY = 1, LOSS, REORDER, SEED, HELP };
	static const struct option options[] = {
		{"delay-ms", required_argument, NULL, DELAY},
		{"loss", required_argument, NULL, LOSS},
		{"reorder", required_argument, NULL, REORDER},
		{"seed", required_argument, NULL, SEED},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	int c;

	r->random[0] = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) > 0)
		switch (c) {
		case DELAY: r->delay_ns = lround(parse_real(optarg, 10000) * 1e6); break;
		case LOSS: r->loss = parse_real(optarg, 1); break;
		case REORDER: r->reorder = parse_real(optarg, 1); break;
		case SEED: r->random[0] = args_number(optarg, 0, UINT16_MAX); break;
		case HELP: fputs(usage, stdout); exit(0);
		default: fputs("see relay --help\n", stderr); exit(2);
		}
	if (optind != argc - 2)
		args_wrong("two ends are needed", argc > optind ? argv[optind] : "");
}

static void start_queue(struct queue *q)
{
	q->frames = malloc(WAITING * sizeof(*q->frames));
	if (!q->frames)
		give_up("memory");
}

int main(int argc, char **argv)
{
	static struct relay r;
	struct sigaction act = {.sa_handler = end};
	sigset_t stops;
	int ends[2];

	parse(&r, argc, argv);
	sigemptyset(&stops); /* they come while it waits, and at no other time */
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigprocmask(SIG_BLOCK, &stops, NULL);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	for (int i = 0; i < 2; i++)
		ends[i] = make_end(argv[optind + i]);
	for (int i = 0; i < 2; i++) {
		r.way[i].from = ends[i];
		r.way[i].to = ends[!i];
		start_queue(&r.way[i].usual);
		start_queue(&r.way[i].late);
	}
	puts("ready");
	fflush(stdout);
	carry(&r);
	printf("{\"passed\": %lu, \"lost\": %lu, \"late\": %lu, \"dropped\": %lu}\n", r.passed,
	       r.lost, r.late, r.dropped);
	for (int i = 0; i < 2; i++) {
		free(r.way[i].usual.frames);
		free(r.way[i].late.frames);
		close(ends[i]);
	}
	return 0;
}
