// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Counted connections; see counting.h.

#include "counting.h"
#include "local.h"
#include "spillway.skel.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct counting the_counting;
struct counting *const counting = &the_counting;

static const uint32_t main_pool = POOL_MAIN, zero;

/* ---- maps ------------------------------------------------------------------------------------ */

static int map(const char *name)
{
	return bpf_object__find_map_fd_by_name(counting->w->skel->obj, name);
}

static void put(const char *name, const void *key, const void *value)
{
	if (bpf_map_update_elem(map(name), key, value, BPF_ANY))
		fail_msg("writing %s: %s", name, strerror(errno));
}

static void get(const char *name, const void *key, void *value)
{
	if (bpf_map_lookup_elem(map(name), key, value))
		fail_msg("reading %s: %s", name, strerror(errno));
}

static void set_bit(const char *name, uint32_t key, unsigned id, bool on)
{
	struct sw_bits bits;

	get(name, &key, &bits);
	bits.word[id / 64] &= ~(1ULL << id % 64);
	bits.word[id / 64] |= (uint64_t)on << id % 64;
	put(name, &key, &bits);
}

static bool get_bit(const char *name, unsigned id)
{
	struct sw_bits bits;

	get(name, &zero, &bits);
	return bits.word[id / 64] >> id % 64 & 1;
}

void count_member(unsigned id, bool on)
{
	set_bit("members", POOL_MAIN, id, on);
}

void count_busy(unsigned id, bool on)
{
	set_bit("nonbusy", 0, id, !on);
}

static void put_row(unsigned id, const struct sw_worker_row *row)
{
	put("workers", &id, row);
	count_member(id, true);
	count_busy(id, false);
	set_bit("suspect", 0, id, false);
}

void count_row(uint32_t cap)
{
	struct sw_worker_row row = {.pool = POOL_MAIN, .cap = cap, .flags = SW_WF_ROW};

	put_row(ID_ROW, &row);
}

void count_worker(unsigned id, int family, uint16_t port, uint32_t cap)
{
	struct sw_worker_row row = {.port = port, .pool = POOL_MAIN, .cap = cap};
	struct sw_address any = {.port = port}, at = {.port = port};
	uint32_t value = id;

	if (family == 4) {
		inet_pton(AF_INET6, "::ffff:127.0.0.1", row.addr);
		inet_pton(AF_INET6, "::ffff:0.0.0.0", any.addr);
	} else {
		inet_pton(AF_INET6, "::1", row.addr);
	}
	memcpy(at.addr, row.addr, 16);
	put("listens", &any, &value);
	put("listens", &at, &value);
	put_row(id, &row);
}

void count_worker_elsewhere(unsigned id)
{
	struct sw_worker_row row;

	get("workers", &id, &row);
	row.tag = ~0ULL;
	put("workers", &id, &row);
}

void count_pool(uint32_t flags, uint32_t half_open, int64_t deadline_ms)
{
	struct sw_steer_pool steer = {
		.deadline_ns = world_now() + deadline_ms * 1000000,
		.flags = flags,
		.half_open = half_open,
		.words = 2,
	};

	put("steers", &main_pool, &steer);
}

void count_responder(int family, int socket)
{
	uint32_t key = POOL_MAIN * 2 + (family == 6);
	uint64_t value = socket;

	if (socket >= 0)
		put("responding", &key, &value);
	else
		bpf_map_delete_elem(map("responding"), &key);
}

/* ---- what the kernel wrote ------------------------------------------------------------------- */

struct sw_slot count_slot(unsigned id)
{
	struct sw_slot slot;

	get("slots", &id, &slot);
	return slot;
}

struct sw_slot count_all(void)
{
	struct sw_slot sum = {};

	for (unsigned id = ID_FIRST; id <= ID_ROW; id++) {
		struct sw_slot one = count_slot(id);

		sum.inuse += one.inuse;
		sum.most = one.most > sum.most ? one.most : sum.most;
		sum.takes += one.takes;
		sum.gives += one.gives;
		sum.moves += one.moves;
		sum.refusals += one.refusals;
	}
	return sum;
}

struct sw_pool_use count_use(unsigned pool)
{
	struct sw_pool_use use;

	get("pool_use", &pool, &use);
	return use;
}

void count_set_use(const struct sw_pool_use *use)
{
	put("pool_use", &main_pool, use);
}

static struct sw_steer_counts read_steers(void)
{
	enum { N = sizeof(struct sw_steer_counts) / 8 };
	uint64_t all[counting->w->n_cpus][N], sum[N] = {};
	struct sw_steer_counts out;

	get("counts_steer", &main_pool, all);
	for (int cpu = 0; cpu < counting->w->n_cpus; cpu++)
		for (int i = 0; i < N; i++)
			sum[i] += all[cpu][i];
	memcpy(&out, sum, sizeof(out));
	return out;
}

struct sw_steer_counts count_steers(void)
{
	struct sw_steer_counts now = read_steers();

#define X(n, name, text) now.name -= counting->counts.name;
	SW_STEERS(X)
#undef X
	return now;
}

bool count_suspect(unsigned id)
{
	return get_bit("suspect", id);
}

bool count_listens(unsigned id)
{
	uint64_t cookie;

	return !bpf_map_lookup_elem(map("listening"), &id, &cookie);
}

unsigned count_reservations(void)
{
	struct sw_tuple key, *last = NULL;
	unsigned n = 0;

	while (!bpf_map_get_next_key(map("reservations"), last, &key)) {
		last = &key;
		n++;
	}
	return n;
}

void count_age_reservation(int64_t seconds, bool elsewhere)
{
	struct sw_reservation value;
	struct sw_tuple key;

	assert_int_equal(bpf_map_get_next_key(map("reservations"), NULL, &key), 0);
	get("reservations", &key, &value);
	bpf_map_delete_elem(map("reservations"), &key);
	value.since_ns -= seconds * 1000000000;
	key.netns ^= elsewhere;
	put("reservations", &key, &value);
}

void count_await(uint32_t inuse, uint32_t half_open)
{
	for (int i = 0; i < 1000; i++) {
		if (count_all().inuse == inuse && count_use(POOL_MAIN).half_open == half_open)
			break;
		usleep(5000);
	}
	assert_int_equal(count_all().inuse, inuse);
	assert_int_equal(count_use(POOL_MAIN).half_open, half_open);
	assert_int_equal(count_use(SW_MAX_POOLS).half_open, half_open);
}

/* ---- what the daemon runs ---------------------------------------------------------------------
 */

static int run(const struct bpf_program *program)
{
	char packet[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));

	if (bpf_prog_test_run_opts(bpf_program__fd(program), &opts))
		fail_msg("test run: %s", strerror(errno));
	return opts.retval;
}

int count_sweep(void)
{
	return run(counting->w->skel->progs.spillway_sweep);
}

/* A byte for each. */
static int walk(const struct bpf_program *program)
{
	int link = bpf_link_create(bpf_program__fd(program), 0, BPF_TRACE_ITER, NULL);
	int iter = bpf_iter_create(link), found = 0, n;
	char bytes[64];

	if (iter < 0)
		fail_msg("walking sockets: %s", strerror(errno));
	while ((n = read(iter, bytes, sizeof(bytes))) > 0)
		found += n;
	close(iter);
	close(link);
	return found;
}

int count_find(void)
{
	const struct spillway *skel = counting->w->skel;

	if (bpf_program__fd(skel->progs.spillway_find) >= 0)
		return run(skel->progs.spillway_find);
	return walk(skel->progs.spillway_find_walk);
}

int count_sysctl(const char *name, int value)
{
	char path[120], text[20] = {};
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) < 1 || dprintf(fd, "%d", value) < 1)
		fail_msg("%s: %s", path, strerror(errno));
	close(fd);
	return atoi(text);
}

/* ---- up and down ------------------------------------------------------------------------------
 */

static void enter(const char *cgroup)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		fail_msg("%s: %s", path, strerror(errno));
	close(fd);
}

static bool make_cgroup(void)
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
	snprintf(counting->cgroup, sizeof(counting->cgroup), "%s/spcount-%d", m->mnt_dir, getpid());
	endmntent(mounts);
	if (!mkdir(counting->cgroup, 0755))
		return true;
	perror("skip: a cgroup is needed");
	return false;
}

static int attach(const struct bpf_program *program, const char *where)
{
	int fd = open(where, O_RDONLY | O_CLOEXEC), link;

	link = bpf_link_create(bpf_program__fd(program), fd,
			       bpf_program__expected_attach_type(program), NULL);
	if (link < 0)
		fail_msg("attaching %s: %s", bpf_program__name(program), strerror(errno));
	close(fd);
	return link;
}

int counting_up(void **state)
{
	if (!make_cgroup())
		exit(77);
	enter(counting->cgroup); /* first: the server's socket is to be of this cgroup */
	if (world_up_counted(state))
		return -1;
	counting->w = *state;
	counting->lookup = attach(counting->w->skel->progs.spillway_lookup, "/proc/self/ns/net");
	counting->sockops = attach(counting->w->skel->progs.spillway_sockops, counting->cgroup);
	return 0;
}

int counting_down(void **state)
{
	char root[200];

	snprintf(root, sizeof(root), "%s", counting->cgroup);
	*strrchr(root, '/') = 0;
	enter(root);
	close(counting->lookup);
	close(counting->sockops);
	return world_down(state) | rmdir(counting->cgroup);
}

void counting_hears_nothing(bool on)
{
	if (on)
		close(counting->sockops);
	else
		counting->sockops =
			attach(counting->w->skel->progs.spillway_sockops, counting->cgroup);
}

int counting_reset(void **state)
{
	static const struct sw_worker_row none;
	static const struct sw_slot free_slot;

	world_reset(state);
	for (unsigned id = ID_FIRST; id <= ID_ROW; id++) {
		count_member(id, false);
		put("workers", &id, &none);
		put("slots", &id, &free_slot);
	}
	count_responder(4, -1);
	count_responder(6, -1);
	count_pool(SW_SF_COUNT, SW_MAX_RESERVATIONS, 60000);
	world_pool(counting->w, SW_MODE_OPEN, SW_CAUSE_SATURATED, 60000);
	counting->counts = read_steers();
	return 0;
}

int counting_settle(void **state)
{
	workers_close();
	for (int i = 0; i < 400 && (count_all().inuse || count_use(SW_MAX_POOLS).half_open); i++) {
		usleep(50000);
		count_sweep();
	}
	if (count_all().inuse || count_use(SW_MAX_POOLS).half_open || count_reservations()) {
		print_error("%d slots in use, %d half open, %u reservations at the end\n",
			    (int)count_all().inuse, (int)count_use(SW_MAX_POOLS).half_open,
			    count_reservations());
		return -1;
	}
	return world_settle(state);
}
