// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The engines of tests/bench/scale: one process that answers on every address of 127.0.0.0/8 with a
 * metrics page as large as vLLM's. What it tells changes on one address, PROBE, with each page;
 * then it looks into the map of pools until the decision is there, and tells how long that took:
 * of the whole page, and of its last byte alone when the rest has been there for some time.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <spillway/abi.h>

#define PROBE	  0x7f000001 /* 127.0.0.1 */
#define PROBES	  4096
#define WAIT_NS	  50000000ULL
#define REST_US	  3000 /* that all but the last byte is there before */
#define PAGE_SIZE (256 * 1024)

static const char usage[] =
	"usage: scale PORT MAP POOL SAMPLES\n"
	"\n"
	"Engines on 127.0.0.0/8:PORT whose pages have about SAMPLES samples. On SIGTERM it prints, of\n"
	"the times from sending 127.0.0.1's page to the new mode of POOL in the pinned MAP: how many,\n"
	"median, 99th percentile and largest, us; the same from sending the page's last byte; how many\n"
	"modes never came; and how many pages there were, and their size.\n";

struct times {
	unsigned us[PROBES], n;
};

static struct {
	int map;
	__u32 pool;
	char page[2][PAGE_SIZE]; /* free, busy */
	size_t length[2];
	struct times whole, last; /* from sending the page, or its last byte */
	unsigned n, lost;
	unsigned long pages;
} s;
static volatile sig_atomic_t ended;

static void on_term(int signal)
{
	(void)signal;
	ended = 1;
}

static __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static __u32 mode(void)
{
	struct sw_pool p = {};

	bpf_map_lookup_elem(s.map, &s.pool, &p);
	return p.mode;
}

/* The series that are wanted lie among histograms, as they do in an engine's page. */
static size_t make_page(char *out, double kv, unsigned samples)
{
	static const char of[] = "engine=\"0\",model_name=\"qwen3.8-27b\"";
	char body[PAGE_SIZE - 256];
	size_t n = 0;

	for (unsigned i = 0; i < samples; i++) {
		if (i % 20 == 0)
			n += snprintf(
				body + n, sizeof(body) - n,
				"# HELP vllm:part_%u_seconds Histogram of part %u in seconds.\n"
				"# TYPE vllm:part_%u_seconds histogram\n",
				i / 20, i / 20, i / 20);
		n += snprintf(body + n, sizeof(body) - n,
			      "vllm:part_%u_seconds_bucket{%s,le=\"%u.5\"} %u.0\n", i / 20, of,
			      i % 20, 1000 + i);
		if (i == samples / 2)
			n += snprintf(
				body + n, sizeof(body) - n,
				"vllm:num_requests_running{%s} 8.0\n"
				"vllm:num_requests_waiting{%s} 2.0\n"
				"vllm:kv_cache_usage_perc{%s} %.4f\n"
				"vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_"
				"blocks=\"164000\"} 1.0\n",
				of, of, of, kv);
	}
	return snprintf(out, PAGE_SIZE,
			"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
			"Content-Length: %zu\r\n\r\n%s",
			n, body);
}

/* Sends a page that changes what is decided, and waits until it is. Two are sent at once, of the
 * next two the last byte comes later. */
static void send_probe(int fd)
{
	bool busy = s.n % 2 == 0;
	struct times *times = s.n / 2 % 2 ? &s.last : &s.whole;
	size_t early = times == &s.last ? s.length[busy] - 1 : 0;
	__u32 before = mode(), after = before;
	__u64 start, took = 0;

	if (early && send(fd, s.page[busy], early, MSG_NOSIGNAL) > 0)
		usleep(REST_US);
	start = now_ns();
	if (send(fd, s.page[busy] + early, s.length[busy] - early, MSG_NOSIGNAL) < 0 ||
	    s.n == PROBES)
		return;
	while (after == before && took < WAIT_NS) {
		after = mode();
		took = now_ns() - start;
	}
	if (after == before)
		s.lost++;
	times->us[times->n++] = took / 1000;
	s.n++;
}

static void answer(int epoll, int fd)
{
	struct sockaddr_in a;
	socklen_t length = sizeof(a);
	char request[4096];

	if (recv(fd, request, sizeof(request), 0) <= 0) {
		epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
		close(fd);
		return;
	}
	s.pages++;
	getsockname(fd, (struct sockaddr *)&a, &length);
	if (ntohl(a.sin_addr.s_addr) == PROBE)
		send_probe(fd);
	else
		send(fd, s.page[0], s.length[0], MSG_NOSIGNAL);
}

static int start_listener(unsigned port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* a last byte goes at once */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 4096) ? -errno : fd;
}

static void serve(int listener)
{
	int epoll = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener};

	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &ev);
	while (!ended) {
		if (epoll_wait(epoll, &ev, 1, 100) < 1)
			continue;
		if (ev.data.fd == listener) {
			ev.data.fd = accept(listener, NULL, NULL);
			ev.events = EPOLLIN;
			epoll_ctl(epoll, EPOLL_CTL_ADD, ev.data.fd, &ev);
		} else {
			answer(epoll, ev.data.fd);
		}
	}
}

static int ascending(const void *a, const void *b)
{
	return *(const unsigned *)a < *(const unsigned *)b
		       ? -1
		       : *(const unsigned *)a > *(const unsigned *)b;
}

static void print_times(struct times *t)
{
	qsort(t->us, t->n, sizeof(*t->us), ascending);
	printf("%u %u %u %u ", t->n, t->us[t->n / 2], t->us[t->n * 99 / 100],
	       t->us[t->n ? t->n - 1 : 0]);
}

int main(int argc, char **argv)
{
	struct rlimit files = {65536, 65536};
	int listener;

	if (argc != 5) {
		fputs(usage, stderr);
		return 2;
	}
	s.map = bpf_obj_get(argv[2]);
	s.pool = atoi(argv[3]);
	for (int busy = 0; busy < 2; busy++)
		s.length[busy] = make_page(s.page[busy], busy ? 0.95 : 0.1, atoi(argv[4]));
	setrlimit(RLIMIT_NOFILE, &files);
	signal(SIGTERM, on_term);
	listener = start_listener(atoi(argv[1]));
	if (s.map < 0 || listener < 0) {
		fprintf(stderr, "scale: cannot open %s or listen on %s\n", argv[2], argv[1]);
		return 1;
	}
	serve(listener);
	print_times(&s.whole);
	print_times(&s.last);
	printf("%u %lu %zu\n", s.lost, s.pages, s.length[0]);
	return !s.n;
}
