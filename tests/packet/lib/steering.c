// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The world of a steering test; see steering.h. Its sockets are in steering_sockets.c, who the
// workers are in workers.c.

#include "steering.h"
#include "workers.h"
#include "kernel/probe.h"
#include "spillway.skel.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct steering the_world = {.deaf = -1};
struct steering *const world = &the_world;

static const char *const programs[ATTACHED] = {
	"spillway_sockops",	 "spillway_sock_release", "spillway_getpeername4",
	"spillway_getpeername6", "spillway_connect4",	  "spillway_connect6",
};
static const char *const recount[] = {"spillway_recount", "spillway_reserved", "spillway_correct"};

/* ---- maps ------------------------------------------------------------------------------------ */

static int map(const char *name)
{
	return bpf_object__find_map_fd_by_name(world->skel->obj, name);
}

static void put(const char *name, const void *key, const void *value)
{
	if (bpf_map_update_elem(map(name), key, value, BPF_ANY))
		fail_msg("writing %s: %s", name, strerror(errno));
}

static void set_bit(const char *name, uint32_t key, unsigned id, bool on)
{
	struct sw_bits bits;

	assert_int_equal(bpf_map_lookup_elem(map(name), &key, &bits), 0);
	bits.word[id / 64] &= ~(1ULL << id % 64);
	bits.word[id / 64] |= (uint64_t)on << id % 64;
	put(name, &key, &bits);
}

static bool get_bit(const char *name, unsigned id)
{
	struct sw_bits bits;
	uint32_t zero = 0;

	assert_int_equal(bpf_map_lookup_elem(map(name), &zero, &bits), 0);
	return bits.word[id / 64] >> id % 64 & 1;
}

static void address_bytes(const struct sockaddr_storage *a, struct sw_address *out)
{
	const struct sockaddr_in6 *v6 = (const void *)a;
	const struct sockaddr_in *v4 = (const void *)a;

	*out = (struct sw_address){.addr = {[10] = 0xff, [11] = 0xff}};
	out->port = ntohs(v6->sin6_port);
	if (a->ss_family == AF_INET6)
		memcpy(out->addr, &v6->sin6_addr, 16);
	else
		memcpy(out->addr + 12, &v4->sin_addr, 4);
}

void set_worker(unsigned id, enum way way, uint16_t port, uint32_t cap)
{
	struct sockaddr_storage at = local_address(way, port);
	struct sw_worker_row row = {.port = port, .pool = POOL, .cap = cap};
	struct sw_address bytes;

	if (id == ID_FAR)
		at = virtual_address(way, port);
	address_bytes(&at, &bytes);
	memcpy(row.addr, bytes.addr, 16);
	put("workers", &id, &row);
	set_bit("reach4", 0, id, way != V6);
}

void set_member(unsigned id, bool on)
{
	set_bit("members", POOL, id, on);
}

void set_only_member(unsigned id)
{
	for (unsigned i = ID_A; i <= ID_B; i++)
		set_member(i, i == id);
}

void set_busy(unsigned id, bool on)
{
	set_bit("nonbusy", 0, id, !on);
}

void set_steer(uint32_t flags, uint32_t error, uint16_t responder, int64_t deadline_ms)
{
	struct sw_steer_pool steer = {.flags = flags, .error = error, .responder = responder};
	uint32_t pool = POOL;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	steer.deadline_ns =
		now.tv_sec * 1000000000ULL + now.tv_nsec + (uint64_t)(deadline_ms * 1000000);
	steer.first = ID_A / 64;
	steer.words = 2;
	put("steers", &pool, &steer);
}

struct sw_slot slot_of(unsigned id)
{
	struct sw_slot slot;

	assert_int_equal(bpf_map_lookup_elem(map("slots"), &id, &slot), 0);
	return slot;
}

bool suspected(unsigned id)
{
	return get_bit("suspect", id);
}

uint64_t taken(unsigned id)
{
	return slot_of(id).takes - world->before[id].takes;
}

uint64_t given(unsigned id)
{
	return slot_of(id).gives - world->before[id].gives;
}

static struct sw_steer_counts sum_counts(void)
{
	const int cpus = libbpf_num_possible_cpus(), n = sizeof(struct sw_steer_counts) / 8;
	uint64_t *all = calloc((size_t)(cpus * n), 8),
		 sum[sizeof(struct sw_steer_counts) / 8] = {0};
	struct sw_steer_counts out;
	uint32_t pool = POOL;

	assert_int_equal(bpf_map_lookup_elem(map("counts_steer"), &pool, all), 0);
	for (int i = 0; i < cpus * n; i++)
		sum[i % n] += all[i];
	free(all);
	memcpy(&out, sum, sizeof(out));
	return out;
}

struct sw_steer_counts counted(void)
{
	struct sw_steer_counts now = sum_counts();

#define X(n, name, text) now.name -= world->counts.name;
	SW_STEERS(X)
#undef X
	return now;
}

void await_inuse(unsigned id, uint32_t want)
{
	for (int i = 0; i < 2000 && slot_of(id).inuse != want; i++)
		usleep(10000);
	assert_int_equal(slot_of(id).inuse, want);
}

/* ---- cgroups --------------------------------------------------------------------------------- */

void enter(const char *cgroup)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		fail_msg("%s: %s", path, strerror(errno));
	close(fd);
}

void attach(const char *cgroup, int links[ATTACHED])
{
	int dir = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < ATTACHED; i++) {
		struct bpf_program *p =
			bpf_object__find_program_by_name(world->skel->obj, programs[i]);

		links[i] = bpf_link_create(bpf_program__fd(p), dir,
					   bpf_program__expected_attach_type(p), NULL);
		if (links[i] < 0)
			fail_msg("attaching %s: %s", programs[i], strerror(errno));
	}
	close(dir);
}

void detach(int links[ATTACHED])
{
	for (int i = 0; i < ATTACHED; i++)
		close(links[i]);
}

static bool make_cgroups(void)
{
	FILE *mounts = setmntent("/proc/mounts", "r");
	struct mntent *m;

	while (mounts && (m = getmntent(mounts)))
		if (!strcmp(m->mnt_type, "cgroup2"))
			break;
	if (!mounts || !m) {
		puts("skip: no cgroup v2 is mounted");
		return false;
	}
	snprintf(world->cgroup, sizeof(world->cgroup), "%s/spsteer-%d", m->mnt_dir, getpid());
	snprintf(world->inner, sizeof(world->inner), "%s/inner", world->cgroup);
	endmntent(mounts);
	if (mkdir(world->cgroup, 0755) || mkdir(world->inner, 0755)) {
		perror("skip: a cgroup is needed");
		return false;
	}
	return true;
}

/* ---- up and down ----------------------------------------------------------------------------- */

static void share_maps(struct spillway *skel, const struct spillway *of)
{
	struct bpf_map *m;

	bpf_object__for_each_map (m, skel->obj) {
		const char *name = bpf_map__name(m);

		if (!bpf_map__is_internal(m))
			bpf_map__reuse_fd(m, bpf_object__find_map_fd_by_name(of->obj, name));
	}
}

struct spillway *steering_load(const struct spillway *of)
{
	struct spillway *skel = spillway__open();
	struct bpf_program *p;

	assert_non_null(skel);
	bpf_object__for_each_program (p, skel->obj)
		bpf_program__set_autoload(p, false);
	for (int i = 0; i < ATTACHED; i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(skel->obj, programs[i]),
					  true);
	for (int i = 0; i < (world->walk ? 3 : 0); i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(skel->obj, recount[i]),
					  true);
	if (of)
		share_maps(skel, of);
	if (spillway__load(skel))
		fail_msg("the kernel refuses the programs");
	return skel;
}

void steering_swap(struct spillway *skel)
{
	for (int i = 0; i < ATTACHED; i++) {
		struct bpf_program *p = bpf_object__find_program_by_name(skel->obj, programs[i]);

		assert_int_equal(bpf_link_update(world->links[i], bpf_program__fd(p), NULL), 0);
	}
}

void steering_unload(struct spillway *skel)
{
	spillway__destroy(skel);
}

static void write_virtuals(void)
{
	uint32_t pool = POOL;

	for (enum way way = V4; way < MAPPED; way++) {
		struct sockaddr_storage at = virtual_address(way, VIRTUAL);
		struct sw_address key;

		address_bytes(&at, &key);
		put("virtuals", &key, &pool);
	}
}

int steering_up(void **state)
{
	int fd;

	(void)state;
	if (geteuid() || unshare(CLONE_NEWNET)) {
		puts("skip: root and a network namespace are needed");
		exit(77);
	}
	workers_loopback_up();
	fd = socket_for(V6, SOCK_STREAM);
	world->ipv6 = fd >= 0;
	close(fd);
	if (!make_cgroups())
		exit(77);
	world->walk = sw_probe_storage_walk();
	world->skel = steering_load(NULL);
	world->server = workers_start();
	world->deaf = workers_deaf(PORT_DEAF, world->filler, 8);
	write_virtuals();
	attach(world->cgroup, world->links);
	enter(world->cgroup);
	return 0;
}

int steering_down(void **state)
{
	char root[200];

	(void)state;
	if (world->server > 0 && !kill(world->server, SIGKILL))
		waitpid(world->server, NULL, 0);
	snprintf(root, sizeof(root), "%s", world->cgroup);
	*strrchr(root, '/') = 0;
	enter(root);
	detach(world->links);
	spillway__destroy(world->skel);
	rmdir(world->inner);
	return rmdir(world->cgroup);
}

int steering_reset(void **state)
{
	(void)state;
	set_steer(0, 0, RESPONDER, LONG);
	set_worker(ID_A, V4, PORT_A, 4);
	set_worker(ID_B, V4, PORT_B, 4);
	set_worker(ID_DEAD, V4, PORT_DEAD, 4);
	set_worker(ID_DEAF, V4, PORT_DEAF, 4);
	set_worker(ID_FAR, V4, PORT_A, 4);
	for (unsigned id = ID_A; id <= ID_B; id++) {
		set_member(id, id == ID_A || id == ID_B);
		set_busy(id, false);
		set_bit("suspect", 0, id, false);
		world->before[id] = slot_of(id);
	}
	world->counts = sum_counts();
	return 0;
}

int steering_settle(void **state)
{
	int stuck = 0;

	(void)state;
	for (unsigned id = ID_A; id <= ID_B; id++) {
		struct sw_slot slot;

		for (int i = 0; i < 500 && slot_of(id).inuse; i++)
			usleep(10000);
		slot = slot_of(id);
		if (!slot.inuse)
			continue;
		print_error("worker %u has %d slots in use\n", id, (int)slot.inuse);
		slot.inuse = 0; /* the next test is to fail for reasons of its own */
		put("slots", &id, &slot);
		stuck = -1;
	}
	return stuck;
}
