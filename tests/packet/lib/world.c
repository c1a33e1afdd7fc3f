// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Namespace, sockets and programs of a packet test, and what each test starts and ends with. The
// content of the maps is in tables.c.

#include "world.h"
#include "tables.h"
#include "spillway.skel.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

static const char *const programs[HOOKS] = {
	[HOOK_XDP] = "spillway_xdp",
	[HOOK_XDP_REDIRECT] = "spillway_xdp_redirect",
	[HOOK_XDP_GENERIC] = "spillway_xdp_generic",
	[HOOK_TC] = "spillway_tc",
};

static const char *const counting[] = {"spillway_lookup", "spillway_sweep", "spillway_sockops"};

static const char *const maps[MAPS] = {
	[MAP_PORTS] = "ports",	   [MAP_ADDRESSES] = "addresses",   [MAP_LISTENERS] = "listeners",
	[MAP_LOCAL] = "local",	   [MAP_POOLS] = "pools",	    [MAP_ANSWERS] = "answers",
	[MAP_PATHS] = "paths",	   [MAP_PREFIXES] = "prefixes",	    [MAP_EXEMPT] = "exempt",
	[MAP_SECRETS] = "secrets", [MAP_LEVERS] = "levers",	    [MAP_RECENT] = "recent",
	[MAP_FLOOD] = "flood",	   [MAP_COUNTS_XDP] = "counts_xdp", [MAP_COUNTS_TC] = "counts_tc",
};

void world_addresses(int family, uint8_t last, uint8_t src[16], uint8_t dst[16])
{
	inet_pton(family == 4 ? AF_INET : AF_INET6, family == 4 ? "192.0.2.0" : "2001:db8::", src);
	memcpy(dst, src, 16);
	src[family == 4 ? 3 : 15] = last;
	dst[family == 4 ? 3 : 15] = 1;
}

/* ---- namespace and sockets --------------------------------------------------------------- */

static void loopback_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr)) {
		perror("lo up");
		exit(1);
	}
	close(fd);
}

/* The programs hand over to a listening socket, so they look for one. */
static int listen_on(int family, bool any, uint16_t port)
{
	int one = 1, fd = socket(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	uint8_t src[16], dst[16];

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	world_addresses(family, 1, src, dst);
	if (family == 4) {
		setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
		if (!any)
			memcpy(&v4.sin_addr, dst, 4);
	} else {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof(one));
		if (!any)
			memcpy(&v6.sin6_addr, dst, 16);
	}
	if (bind(fd, family == 4 ? (void *)&v4 : (void *)&v6,
		 family == 4 ? sizeof(v4) : sizeof(v6)) ||
	    listen(fd, 64)) {
		perror("listen");
		exit(1);
	}
	return fd;
}

static bool enter_namespace(struct world *w)
{
	cpu_set_t cpus;
	int fd;

	if (unshare(CLONE_NEWNET)) {
		perror("skip: a network namespace is needed (root)");
		return false;
	}
	/* one CPU: BPF_PROG_TEST_RUN then counts in one place and time is not lost by moving */
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	loopback_up();
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	w->ipv6 = fd >= 0;
	if (fd >= 0)
		close(fd);
	else
		printf("skip: IPv6, which this kernel does not have\n");
	for (int family = 4; family <= (w->ipv6 ? 6 : 4); family += 2) {
		w->listener[family] = listen_on(family, true, PORT_MAIN);
		listen_on(family, false, PORT_SINGLE);
		listen_on(family, true, PORT_PLAIN);
	}
	return true;
}

/* ---- programs ---------------------------------------------------------------------------- */

static bool is_in(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static uint64_t this_namespace(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len);
	close(fd);
	return cookie;
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level, (void)fmt, (void)args;
	return 0;
}

/* Does this kernel take the program? */
static bool loads(const char *name)
{
	struct spillway *skel = spillway__open();
	struct bpf_program *prog;
	bool taken;

	if (!skel)
		return false;
	bpf_object__for_each_program (prog, skel->obj)
		bpf_program__set_autoload(prog, !strcmp(bpf_program__name(prog), name));
	taken = !spillway__load(skel);
	spillway__destroy(skel);
	return taken;
}

static const char *choose_finder(void)
{
	if (loads("spillway_find"))
		return "spillway_find";
	return loads("spillway_find_walk") ? "spillway_find_walk" : NULL;
}

static struct spillway *load(const struct world *w, bool counted)
{
	struct spillway *skel = spillway__open();
	struct bpf_program *prog;

	if (!skel)
		return NULL;
	skel->rodata->have_hand_over = w->hand_over;
	skel->rodata->netns_cookie = counted ? this_namespace() : 0;
	bpf_map__set_max_entries(skel->maps.answers, ANSWER_SETS * SW_ANSWERS_PER_SET);
	bpf_object__for_each_program (prog, skel->obj) {
		const char *name = bpf_program__name(prog);

		bpf_program__set_autoload(prog, is_in(name, programs, HOOKS) ||
							(counted && is_in(name, counting, 3)) ||
							(w->finder && !strcmp(name, w->finder)));
	}
	if (spillway__load(skel)) {
		spillway__destroy(skel);
		return NULL;
	}
	return skel;
}

/* With hand-over where the kernel has it; only the last failure is worth a message. */
static bool load_programs(struct world *w, bool counted)
{
	const char *without = getenv("PACKET_NO_HAND_OVER");
	libbpf_print_fn_t print = libbpf_set_print(quiet);

	w->finder = counted ? choose_finder() : NULL;
	w->hand_over = !without;
	w->skel = w->hand_over ? load(w, counted) : NULL;
	libbpf_set_print(print);
	if (!w->skel) {
		w->hand_over = false;
		w->skel = load(w, counted);
		printf("hand-over: %s\n", without ? "off by request" : "this kernel has none");
	}
	if (!w->skel)
		return false;
	for (unsigned i = 0; i < HOOKS; i++)
		w->program[i] = bpf_program__fd(
			bpf_object__find_program_by_name(w->skel->obj, programs[i]));
	for (unsigned i = 0; i < MAPS; i++)
		w->map[i] = bpf_object__find_map_fd_by_name(w->skel->obj, maps[i]);
	return true;
}

/* ---- life of a test ----------------------------------------------------------------------- */

static int up(void **state, bool counted)
{
	struct rlimit memory = {RLIM_INFINITY, RLIM_INFINITY};
	struct world *w = calloc(1, sizeof(*w));

	setrlimit(RLIMIT_MEMLOCK, &memory);
	*state = w;
	w->n_cpus = libbpf_num_possible_cpus();
	w->next_port = 20000;
	if (!enter_namespace(w) || !load_programs(w, counted))
		return -1;
	tables_fill(w);
	return 0;
}

int world_up(void **state)
{
	return up(state, false);
}

int world_up_counted(void **state)
{
	return up(state, true);
}

int world_down(void **state)
{
	struct world *w = *state;

	spillway__destroy(w->skel);
	free(w);
	return 0;
}

int world_reset(void **state)
{
	struct world *w = *state;

	w->failures = 0;
	snprintf(w->what, sizeof(w->what), "start");
	tables_reset(w);
	return 0;
}

int world_settle(void **state)
{
	struct world *w = *state;

	if (w->failures)
		print_error("%d failures\n", w->failures);
	return w->failures ? -1 : 0;
}

void world_complain(struct world *w, const char *fmt, ...)
{
	char text[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (w->failures++ < 20 && !w->mute)
		print_error("%s: %s\n", w->what, text);
}
