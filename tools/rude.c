// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Clients without manners, to see that what they leave behind is cleared away: SYNs that nothing
// follows, and connections that are reset at every point of their life.

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/args.h"
#include "lib/exchange.h"

enum phase {
	PHASE_SYN,	 /* before the handshake is over */
	PHASE_CONNECTED, /* nothing was sent */
	PHASE_HEAD,	 /* half of the head was */
	PHASE_REQUEST,	 /* all of the request */
	PHASE_RESPONSE,	 /* and some of the response was read */
	PHASES
};

struct rude {
	struct exchange_request request;
	unsigned long half_open, aborts, rate, unmade;
	struct in_addr sources;
	bool phases[PHASES];
	unsigned timeout_ms;
};

static const char *const phase_names[PHASES] = {"syn", "connected", "head", "request", "response"};

static const char usage[] =
	"usage: rude [options] ADDR:PORT\n"
	"\n"
	"Sends SYNs that nothing follows, or opens connections and resets them, one after the other.\n"
	"The last line is JSON: how many of each there were, and how many connections came not about.\n"
	"\n"
	"  --half-open N    so many SYNs, from a raw socket; IPv4 only\n"
	"  --from ADDR      the first of 200 source addresses of these; nobody may have them, lest\n"
	"                   they answer, and the target must look for them on this side\n"
	"  --abort N        so many connections that are reset\n"
	"  --phases LIST    when: syn, connected, head, request, response (default: all, in turn)\n"
	"  --rate N         a second, of either (default 1000; 0: as fast as it goes)\n"
	"  --timeout-ms MS  longest wait for a handshake or a response (default 2000)\n"
	"  --help\n"
	"\n"
	"examples:\n"
	"  rude --half-open 5000 --from 10.0.0.20 10.0.0.1:8000\n"
	"  rude --abort 1000 --phases head,response 10.0.0.1:8000\n";

__attribute__((noreturn)) static void give_up(const char *what)
{
	fprintf(stderr, "rude: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Waits until number n is due. */
static void keep_rate(const struct rude *r, uint64_t begin_us, unsigned long n)
{
	uint64_t due = r->rate ? begin_us + n * 1000000 / r->rate : 0, now = exchange_now_us();

	if (due > now)
		usleep(due - now);
}

/* ---- half open ------------------------------------------------------------------------------ */

struct syn {
	struct iphdr ip;
	struct tcphdr tcp;
};

static uint16_t checksum(const struct syn *s)
{
	struct {
		in_addr_t from, to;
		uint16_t protocol, length;
		struct tcphdr tcp;
	} pseudo = {s->ip.saddr, s->ip.daddr, htons(IPPROTO_TCP), htons(sizeof(s->tcp)), s->tcp};
	uint16_t words[sizeof(pseudo) / 2];
	uint32_t sum = 0;

	memcpy(words, &pseudo, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static void flood(struct rude *r)
{
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	struct sockaddr_in *to = (void *)&r->request.to;
	uint64_t begin = exchange_now_us();

	if (fd < 0)
		give_up("raw socket");
	for (unsigned long n = 0; n < r->half_open; n++) {
		struct syn s = {
			.ip = {.version = 4,
			       .ihl = 5,
			       .ttl = 64,
			       .protocol = IPPROTO_TCP,
			       .saddr = htonl(ntohl(r->sources.s_addr) + n % 200),
			       .daddr = to->sin_addr.s_addr},
			.tcp = {.source = htons(1024 + n / 200 % 60000),
				.dest = to->sin_port,
				.seq = htonl(n * 2654435761U),
				.doff = 5,
				.syn = 1,
				.window = htons(64240)},
		};

		s.tcp.check = checksum(&s);
		keep_rate(r, begin, n);
		if (sendto(fd, &s, sizeof(s), 0, (void *)to, sizeof(*to)) != sizeof(s))
			r->unmade++;
	}
	close(fd);
}

/* ---- aborted -------------------------------------------------------------------------------- */

static bool becomes(int fd, short events, unsigned timeout_ms)
{
	struct pollfd ready = {.fd = fd, .events = events};

	return poll(&ready, 1, timeout_ms) == 1 && !(ready.revents & (POLLERR | POLLHUP));
}

/* Goes as far as the phase says. */
static bool advance(struct rude *r, int fd, enum phase phase)
{
	const struct exchange_request *q = &r->request;
	size_t head = phase == PHASE_HEAD ? q->head_length / 2 : q->head_length;
	char some[16];

	if (connect(fd, (void *)&q->to, q->to_length) && errno != EINPROGRESS)
		return false;
	if (phase == PHASE_SYN)
		return true;
	if (!becomes(fd, POLLOUT, r->timeout_ms))
		return false;
	if (phase == PHASE_CONNECTED)
		return true;
	if (send(fd, q->head, head, MSG_NOSIGNAL) != (ssize_t)head)
		return false;
	if (phase == PHASE_HEAD)
		return true;
	if (send(fd, q->body, q->body_length, MSG_NOSIGNAL) != (ssize_t)q->body_length)
		return false;
	if (phase == PHASE_REQUEST)
		return true;
	return becomes(fd, POLLIN, r->timeout_ms) && recv(fd, some, sizeof(some), 0) > 0;
}

static void abort_all(struct rude *r)
{
	const struct linger now = {1, 0};
	uint64_t begin = exchange_now_us();
	unsigned phase = 0;

	for (unsigned long n = 0; n < r->aborts; n++) {
		int fd = socket(r->request.to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
				0);

		if (fd < 0)
			give_up("socket");
		while (!r->phases[phase % PHASES])
			phase++;
		keep_rate(r, begin, n);
		if (!advance(r, fd, phase++ % PHASES))
			r->unmade++;
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(fd);
	}
}

/* ---- command line --------------------------------------------------------------------------- */

static void parse_phases(struct rude *r, char *list)
{
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		int i = 0;

		while (i < PHASES && strcmp(name, phase_names[i]))
			i++;
		if (i == PHASES)
			args_wrong("no such phase", name);
		r->phases[i] = true;
	}
}

static void parse(struct rude *r, int argc, char **argv)
{
	enum { HALF_OPEN = 1, FROM, ABORT, PHASES_OPTION, RATE, TIMEOUT, HELP };
	static const struct option options[] = {
		{"half-open", required_argument, NULL, HALF_OPEN},
		{"from", required_argument, NULL, FROM},
		{"abort", required_argument, NULL, ABORT},
		{"phases", required_argument, NULL, PHASES_OPTION},
		{"rate", required_argument, NULL, RATE},
		{"timeout-ms", required_argument, NULL, TIMEOUT},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	char all[] = "syn,connected,head,request,response", *phases = all;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) > 0)
		switch (c) {
		case HALF_OPEN: r->half_open = args_number(optarg, 1, 100000000); break;
		case FROM:
			if (inet_pton(AF_INET, optarg, &r->sources) != 1)
				args_wrong("not an IPv4 address", optarg);
			break;
		case ABORT: r->aborts = args_number(optarg, 1, 100000000); break;
		case PHASES_OPTION: phases = optarg; break;
		case RATE: r->rate = args_number(optarg, 0, 10000000); break;
		case TIMEOUT: r->timeout_ms = args_number(optarg, 1, 600000); break;
		case HELP: fputs(usage, stdout); exit(0);
		default: fputs("see rude --help\n", stderr); exit(2);
		}
	if (optind != argc - 1 || !exchange_parse_address(argv[optind], &r->request))
		args_wrong("not ADDR:PORT", optind < argc ? argv[optind] : "");
	if (r->half_open && (!r->sources.s_addr || r->request.to.ss_family != AF_INET))
		args_wrong("--half-open needs --from and an IPv4 target", argv[optind]);
	parse_phases(r, phases);
}

int main(int argc, char **argv)
{
	struct rude r = {.rate = 1000, .timeout_ms = 2000};

	parse(&r, argc, argv);
	exchange_compose(&r.request, "POST", "/v1/chat/completions", 400, true, true);
	if (r.half_open)
		flood(&r);
	abort_all(&r);
	printf("{\"half_open\": %lu, \"aborted\": %lu, \"unmade\": %lu}\n", r.half_open, r.aborts,
	       r.unmade);
	free(r.request.head);
	free(r.request.body);
	return 0;
}
