// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Steering for tests; see steers.h. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "kernel/probe.h"
#include "kernel/remove.h"
#include "steers.h"

char steers_root[64], steers_cgroup[2][128];

static char top[64];
static int server = -1;

const char *steers_impossible(void)
{
	static bool unshared;
	static struct sw_error err;

	if (!sw_probe_caps())
		return "loading BPF programs needs root";
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return "the kernel has no BTF";
	if (sw_cgroup_resolve(NULL, top, sizeof(top), &err))
		return err.text;
	if (!unshared && (unshare(CLONE_NEWNET) || system("ip link set lo up")))
		return "network namespaces cannot be made here";
	unshared = true;
	snprintf(steers_root, sizeof(steers_root), "/sys/fs/bpf/sps-test-%d", getpid());
	for (int i = 0; i < 2; i++)
		snprintf(steers_cgroup[i], sizeof(steers_cgroup[i]), "%s/sps-%d-%d", top, getpid(),
			 i);
	return NULL;
}

static void move_to(const char *cgroup)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%d", getpid());
	assert_int_equal(fclose(f), 0);
}

int steers_setup(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	(void)state;
	sw_log_level(SW_ERROR);
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return -1;
	return mkdir(steers_cgroup[0], 0755) || mkdir(steers_cgroup[1], 0755);
}

int steers_teardown(void **state)
{
	struct sw_error err;

	(void)state;
	close(server);
	move_to(top);
	rmdir(steers_cgroup[0]);
	rmdir(steers_cgroup[1]);
	return sw_host_remove(steers_root, &err);
}

struct sw_steer *steers_open(void)
{
	struct sw_error err = {0};
	struct sw_steer *s = NULL;

	if (sw_steer_open(&s, steers_root, &err))
		fail_msg("%s", err.text);
	return s;
}

void steers_attach(struct sw_steer *s, unsigned cgroup, bool connect, bool accept)
{
	struct sw_steer_cgroup c = {
		.path = steers_cgroup[cgroup], .connect = connect, .accept = accept};
	struct sw_error err = {0};

	if (sw_steer_attach(s, &c, 1, &err))
		fail_msg("%s", err.text);
}

static struct sw_address mapped(const char *addr, uint16_t port)
{
	struct sw_address out = {.addr = {[10] = 0xff, [11] = 0xff}, .port = port};

	inet_pton(AF_INET, addr, out.addr + 12);
	return out;
}

void steers_pool(struct sw_steer *s, uint32_t cap)
{
	struct sw_virtual v = {.at = mapped("127.0.0.9", STEERS_VIRTUAL), .pool = 3};
	struct sw_steer_pool pool = {.deadline_ns = UINT64_MAX,
				     .flags = SW_SF_REFUSE,
				     .error = ECONNREFUSED,
				     .words = 1};
	struct sw_bits one = {.word = {1ULL << STEERS_WORKER}};
	struct sw_worker_row row = {.pool = 3, .cap = cap};
	struct sockaddr_in at;
	socklen_t size = sizeof(at);
	struct sw_address worker;

	assert_int_equal(getsockname(server, (void *)&at, &size), 0);
	worker = mapped("127.0.0.1", ntohs(at.sin_port));
	memcpy(row.addr, worker.addr, sizeof(row.addr));
	row.port = worker.port;
	assert_int_equal(sw_steer_set_worker(s, STEERS_WORKER, &row), 0);
	assert_int_equal(sw_steer_set_pool(s, 3, &pool), 0);
	assert_int_equal(sw_steer_virtuals(s, &v, 1, NULL), 0);
	sw_steer_set_nonbusy(s, &one);
	sw_steer_set_reach4(s, &one);
	sw_steer_set_members(s, 3, &one);
}

int steers_connect(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(STEERS_VIRTUAL)};
	int fd, ret;

	move_to(steers_cgroup[0]);
	inet_pton(AF_INET, "127.0.0.9", &at.sin_addr);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ret = connect(fd, (void *)&at, sizeof(at)) ? -errno : fd;
	if (ret < 0)
		close(fd);
	move_to(top);
	return ret;
}

int steers_accept(void)
{
	int fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

pid_t steers_idler(void)
{
	pid_t pid;

	move_to(steers_cgroup[0]);
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	move_to(top);
	return pid;
}

void steers_await(struct sw_steer *s, uint32_t inuse)
{
	uint64_t end = sw_now_ms() + 20000;
	struct sw_slot slot;

	do {
		sw_steer_slot(s, STEERS_WORKER, &slot);
		if (slot.inuse == inuse)
			return;
		usleep(1000);
	} while (sw_now_ms() < end);
	fail_msg("%u in use and not %u", slot.inuse, inuse);
}

struct sw_slot steers_slot(const struct sw_steer *s)
{
	struct sw_slot slot;

	sw_steer_slot(s, STEERS_WORKER, &slot);
	return slot;
}

struct sw_address steers_at(const char *addr, uint16_t port)
{
	struct sw_address out = {.port = port};

	if (strchr(addr, ':')) {
		inet_pton(AF_INET6, addr, out.addr);
	} else {
		out.addr[10] = out.addr[11] = 0xff;
		inet_pton(AF_INET, addr, out.addr + 12);
	}
	return out;
}

struct sw_worker_row steers_row(const char *addr, uint16_t port, uint16_t pool)
{
	struct sw_address a = steers_at(addr, port);
	struct sw_worker_row row = {.port = port, .pool = pool, .cap = 4};

	memcpy(row.addr, a.addr, sizeof(row.addr));
	return row;
}

void steers_put_slot(const struct sw_steer *s, uint32_t id, struct sw_slot slot)
{
	assert_int_equal(bpf_map_update_elem(sw_steer_maps(s)->slots, &id, &slot, BPF_ANY), 0);
}

int steers_other_program(void)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_SOCK_OPS, "other", "GPL", code, 2, NULL);
}

const char *steers_pin(const char *name)
{
	static char path[4][256];
	static unsigned next;

	next = (next + 1) % 4;
	snprintf(path[next], sizeof(path[next]), "%s/v%d/slots/%s", steers_root, SW_LAYOUT, name);
	return path[next];
}

const char *steers_link(const char *hook, unsigned cgroup)
{
	char name[64];
	struct stat st;

	if (stat(steers_cgroup[cgroup], &st))
		fail_msg("%s: %s", steers_cgroup[cgroup], strerror(errno));
	snprintf(name, sizeof(name), "link_%s_%lu", hook, (unsigned long)st.st_ino);
	return steers_pin(name);
}

uint32_t steers_map_id(const char *path)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return 0;
	bpf_obj_get_info_by_fd(fd, &info, &size);
	close(fd);
	return info.id;
}

uint32_t steers_link_id(const char *path)
{
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return 0;
	bpf_obj_get_info_by_fd(fd, &info, &size);
	close(fd);
	return info.id;
}
