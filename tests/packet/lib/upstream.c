// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// See upstream.h.

#include "upstream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/idle.h"
#include "kernel/steer.h"
#include "spillway.skel.h"

#define PATIENCE_MS 10000 /* guests are slow */

/* ---- cgroup --------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Our cgroup, with this process in it: a socket belongs to the cgroup of who makes it. */
static int enter_cgroup(struct upstreams *u)
{
	struct sw_error err = {0};
	char root[128], line[256], procs[300];
	FILE *own = fopen("/proc/self/cgroup", "re");

	assert_non_null(own);
	assert_int_equal(sw_cgroup_resolve(NULL, root, sizeof(root), &err), 0);
	while (fgets(line, sizeof(line), own))
		if (sscanf(line, "0::%199[^\n]", procs) == 1)
			snprintf(u->home, sizeof(u->home), "%.99s%.120s/cgroup.procs", root, procs);
	fclose(own);
	snprintf(u->cgroup, sizeof(u->cgroup), "%s/spillway-upstream-%d", root, getpid());
	assert_int_equal(mkdir(u->cgroup, 0755), 0);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", u->cgroup);
	write_file(procs, "0");
	return open(u->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- programs ------------------------------------------------------------------------------- */

static void load(struct upstreams *u)
{
	struct bpf_program *p;
	struct bpf_map *m;

	u->skel = spillway__open();
	assert_non_null(u->skel);
	bpf_object__for_each_program (p, u->skel->obj)
		bpf_program__set_autoload(p, false);
	bpf_object__for_each_map (m, u->skel->obj)
		bpf_map__set_autocreate(m, false);
	bpf_program__set_autoload(u->skel->progs.spillway_upstream_out, true);
	bpf_program__set_autoload(u->skel->progs.spillway_upstream_in, true);
	bpf_program__set_autoload(u->skel->progs.spillway_upstream_asked, true);
	bpf_program__set_autoload(u->skel->progs.spillway_close_idle, true);
	bpf_map__set_autocreate(u->skel->maps.sockets, true);
	bpf_map__set_autocreate(u->skel->maps.upstreams, true);
	bpf_map__set_autocreate(u->skel->maps.close_orders, true);
	bpf_map__set_autocreate(u->skel->maps.ended, true);
	bpf_map__set_autocreate(u->skel->maps.nonbusy, true);
	bpf_map__set_autocreate(u->skel->maps.members, true);
	bpf_map__set_autocreate(u->skel->maps.steers, true);
	bpf_map__set_autocreate(u->skel->maps.rodata, true);
	u->skel->rodata->have_sock_destroy = sw_idle_supported();
	assert_int_equal(spillway__load(u->skel), 0);
}

/* Lets a packet pass unless gate[which] is the local port of its socket. */
static int load_gate(int map, enum upstream_gate which, int attach)
{
	const struct bpf_insn code[] = {
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_2,
		 .src_reg = BPF_PSEUDO_MAP_VALUE,
		 .imm = map},
		{.imm = which * 4},
		{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_3, .src_reg = BPF_REG_2},
		{.code = BPF_LDX | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_4,
		 .src_reg = BPF_REG_1,
		 .off = offsetof(struct __sk_buff, local_port)},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1},
		{.code = BPF_JMP | BPF_JNE | BPF_X,
		 .dst_reg = BPF_REG_3,
		 .src_reg = BPF_REG_4,
		 .off = 1},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach);
	int prog = bpf_prog_load(BPF_PROG_TYPE_CGROUP_SKB, "gate", "GPL", code,
				 sizeof(code) / sizeof(*code), &opts);

	assert_true(prog >= 0);
	return prog;
}

static void attach(struct upstreams *u, int cgroup)
{
	const int types[] = {BPF_CGROUP_INET_EGRESS, BPF_CGROUP_INET_INGRESS};
	const int programs[] = {bpf_program__fd(u->skel->progs.spillway_upstream_out),
				bpf_program__fd(u->skel->progs.spillway_upstream_in)};

	u->gate = bpf_map_create(BPF_MAP_TYPE_ARRAY, "gate", 4, 8, 1, NULL);
	assert_true(u->gate >= 0);
	u->link[4] = bpf_link_create(bpf_program__fd(u->skel->progs.spillway_upstream_asked),
				     cgroup, BPF_CGROUP_GETSOCKOPT, NULL);
	assert_true(u->link[4] >= 0);
	for (int i = 0; i < 2; i++) {
		int gate = load_gate(u->gate, i, types[i]);

		u->link[i] = bpf_link_create(programs[i], cgroup, types[i], NULL);
		u->link[2 + i] = bpf_link_create(gate, cgroup, types[i], NULL);
		assert_true(u->link[i] >= 0 && u->link[2 + i] >= 0);
		close(gate);
	}
}

/* ---- the scene ------------------------------------------------------------------------------ */

static int listen_on(bool v6)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, v6 ? (void *)&a6 : (void *)&a4, v6 ? sizeof(a6) : sizeof(a4)) ||
	    listen(fd, 128)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* New kernels allocate storage by a double compare-and-swap, which some emulated CPUs lack. */
static void need_storage(struct upstreams *u)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sw_socket row = upstream_row(UP_WORKER);

	if (bpf_map_update_elem(bpf_map__fd(u->skel->maps.sockets), &fd, &row, BPF_ANY)) {
		printf("skip: this kernel and CPU keep nothing on sockets: %s\n", strerror(errno));
		exit(errno == ENOMEM ? 77 : 1);
	}
	close(fd);
}

int upstreams_up(void **state)
{
	struct upstreams *u = calloc(1, sizeof(*u));
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int cgroup, fd;

	*state = u;
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	load(u);
	need_storage(u);
	cgroup = enter_cgroup(u);
	attach(u, cgroup);
	upstream_avoid(u, false);
	close(cgroup);
	u->listener[0] = listen_on(false);
	u->listener[1] = listen_on(true);
	assert_true(u->listener[0] >= 0);
	return 0;
}

int upstreams_down(void **state)
{
	struct upstreams *u = *state;

	for (int i = 0; i < 5; i++)
		close(u->link[i]);
	close(u->gate);
	close(u->listener[0]);
	close(u->listener[1]);
	spillway__destroy(u->skel);
	if (*u->home) {
		write_file(u->home, "0");
		rmdir(u->cgroup);
	}
	free(u);
	return 0;
}

/* ---- connections ---------------------------------------------------------------------------- */

struct sw_socket upstream_row(unsigned worker)
{
	return (struct sw_socket){.slot = worker + 1, .port = 80};
}

void upstream_set_row(struct upstreams *u, int fd, const struct sw_socket *row)
{
	int map = bpf_map__fd(u->skel->maps.sockets);

	assert_int_equal(bpf_map_update_elem(map, &fd, row, BPF_ANY), 0);
}

int upstream_connect(struct upstreams *u, const struct sw_socket *row, bool v6)
{
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_storage to;
	socklen_t len = sizeof(to);

	if (row)
		upstream_set_row(u, fd, row);
	assert_int_equal(getsockname(u->listener[v6], (void *)&to, &len), 0);
	assert_int_equal(connect(fd, (void *)&to, len), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

struct upstream_pair upstream_open(struct upstreams *u, const struct sw_socket *row, bool v6)
{
	struct upstream_pair p = {.router = upstream_connect(u, row, v6)};
	int on = 1;

	p.server = accept(u->listener[v6], NULL, NULL);
	assert_true(p.server >= 0);
	setsockopt(p.server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return p;
}

void upstream_end(struct upstream_pair *p)
{
	struct linger now = {1, 0};

	setsockopt(p->server, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(p->server);
	close(p->router);
}

void upstream_send(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
}

void upstream_take(int fd, size_t len)
{
	char bytes[65536];

	while (len) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		ssize_t n;

		assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
		n = recv(fd, bytes, len < sizeof(bytes) ? len : sizeof(bytes), 0);
		assert_true(n > 0);
		len -= n;
	}
}

int upstream_close(struct upstreams *u, unsigned idle_ms)
{
	struct sw_bits workers = {0};

	workers.word[UP_WORKER / 64] = 1ULL << UP_WORKER % 64;
	return sw_idle_close(bpf_program__fd(u->skel->progs.spillway_close_idle),
			     bpf_map__fd(u->skel->maps.close_orders), &workers, idle_ms);
}

void upstream_avoid(struct upstreams *u, bool avoid)
{
	struct sw_bits workers = {0};
	uint32_t zero = 0; /* the pool, too */

	workers.word[UP_WORKER / 64] = 1ULL << UP_WORKER % 64;
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(u->skel->maps.members), &zero, &workers, BPF_ANY),
		0);
	if (avoid)
		workers = (struct sw_bits){0};
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(u->skel->maps.nonbusy), &zero, &workers, BPF_ANY),
		0);
}

bool upstream_gone(int fd)
{
	struct pollfd state = {.fd = fd};

	return poll(&state, 1, 0) == 1 && state.revents & POLLERR;
}

int upstream_error(int fd)
{
	int error = -1;
	socklen_t len = sizeof(error);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

struct upstream_cost upstream_cost(struct upstreams *u)
{
	struct bpf_prog_info out = {0}, in = {0};
	uint32_t len = sizeof(out);

	bpf_obj_get_info_by_fd(bpf_program__fd(u->skel->progs.spillway_upstream_out), &out, &len);
	bpf_obj_get_info_by_fd(bpf_program__fd(u->skel->progs.spillway_upstream_in), &in, &len);
	return (struct upstream_cost){out.run_cnt, out.run_time_ns, in.run_cnt, in.run_time_ns};
}

static unsigned port_of(int fd)
{
	struct sockaddr_in6 own; /* the port lies where IPv4 has it */
	socklen_t len = sizeof(own);

	assert_int_equal(getsockname(fd, (void *)&own, &len), 0);
	return ntohs(own.sin6_port);
}

static void set_gate(struct upstreams *u, uint32_t out, uint32_t in)
{
	uint32_t ports[] = {[GATE_OUT] = out, [GATE_IN] = in}, zero = 0;

	assert_int_equal(bpf_map_update_elem(u->gate, &zero, ports, BPF_ANY), 0);
}

void upstream_lose(struct upstreams *u, enum upstream_gate gate, int fd)
{
	set_gate(u, gate == GATE_OUT ? port_of(fd) : 0, gate == GATE_IN ? port_of(fd) : 0);
}

void upstream_lose_nothing(struct upstreams *u)
{
	set_gate(u, 0, 0);
}

int upstream_cut(int fd)
{
	enum { PORT = 14 + 20 + 2 }; /* past Ethernet, IPv4 and the source port */
	const struct bpf_insn code[] = {
		{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1},
		{.code = BPF_LDX | BPF_MEM | BPF_W,
		 .dst_reg = BPF_REG_3,
		 .src_reg = BPF_REG_1,
		 .off = offsetof(struct xdp_md, data_end)},
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_4, .src_reg = BPF_REG_2},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_4, .imm = PORT + 2},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_JGT | BPF_X,
		 .dst_reg = BPF_REG_4,
		 .src_reg = BPF_REG_3,
		 .off = 3},
		{.code = BPF_LDX | BPF_MEM | BPF_H,
		 .dst_reg = BPF_REG_5,
		 .src_reg = BPF_REG_2,
		 .off = PORT},
		{.code = BPF_JMP | BPF_JNE | BPF_K,
		 .dst_reg = BPF_REG_5,
		 .imm = htons(port_of(fd)),
		 .off = 1},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_DROP},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int prog = bpf_prog_load(BPF_PROG_TYPE_XDP, "cut", "GPL", code,
				 sizeof(code) / sizeof(*code), NULL);
	int link = bpf_link_create(prog, if_nametoindex("lo"), BPF_XDP, NULL);

	assert_true(link >= 0);
	close(prog);
	return link;
}
