// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Recounts: the programs of recount.bpf.c with a reading of its own of what is written there for
// user space. Drift is put right, a right count is left alone. Needs a kernel on which
// sw_probe_storage_walk() holds.

#include "lib/steering.h"
#include "spillway.skel.h"

#include <bpf/bpf.h>
#include <signal.h>
#include <stdio.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t former[SW_MAX_WORKERS];
static volatile const struct sw_slot *slots;
static volatile uint64_t *seen;

static void run(const struct bpf_program *p, void *ctx, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = (uint32_t)size);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(p), &opts), 0);
	assert_int_equal(opts.retval, 0);
}

static void correct(unsigned id, int delta)
{
	struct sw_correction c = {.slot = id, .delta = delta};

	run(world->skel->progs.spillway_correct, &c, sizeof(c));
}

static void scan_sockets(void)
{
	union bpf_iter_link_info info = {.map.map_fd =
						 (uint32_t)bpf_map__fd(world->skel->maps.sockets)};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));
	int link = bpf_link_create(bpf_program__fd(world->skel->progs.spillway_recount), 0,
				   BPF_TRACE_ITER, &opts);
	int iter = bpf_iter_create(link);
	char waste[64];

	assert_true(link >= 0 && iter >= 0);
	while (read(iter, waste, sizeof(waste)) > 0)
		;
	close(iter);
	close(link);
}

static int64_t smaller(int64_t a, int64_t b)
{
	if (a > 0 && b > 0)
		return a < b ? a : b;
	if (a < 0 && b < 0)
		return a > b ? a : b;
	return 0;
}

static int64_t drift(const struct sw_slot *before, unsigned id)
{
	volatile const struct sw_slot *now = &slots[id];
	int64_t sockets = (int64_t)seen[id], inuse = (int32_t)before->inuse;
	int64_t high = sockets + (int64_t)(now->gives - before->gives);
	int64_t low = sockets - (int64_t)(now->takes - before->takes) -
		      (int64_t)(now->moves - before->moves);

	if (seen[SW_SEEN_MOVING])
		return 0;
	return inuse > high ? inuse - high : inuse < low ? inuse - low : 0;
}

static void note(struct sw_slot *row, volatile const struct sw_slot *of)
{
	row->takes = of->takes;
	row->gives = of->gives;
	row->moves = of->moves;
	row->inuse = of->inuse; /* last */
}

/* Returns how much was corrected. */
static int64_t recount(void)
{
	static struct sw_slot before[SW_MAX_WORKERS];
	int64_t all = 0;

	for (unsigned i = 0; i <= SW_MAX_WORKERS; i++)
		seen[i] = 0;
	for (unsigned id = 0; id < SW_MAX_WORKERS; id++)
		note(&before[id], &slots[id]);
	run(world->skel->progs.spillway_reserved, NULL, 0);
	scan_sockets();
	for (unsigned id = 0; id < SW_MAX_WORKERS; id++) {
		int64_t d = drift(&before[id], id), sure = smaller(d, former[id]);

		if (sure)
			correct(id, (int)-sure);
		former[id] = sure ? 0 : d;
		all += sure < 0 ? -sure : sure;
	}
	return all;
}

static void *map_of(const struct bpf_map *m, int protection)
{
	void *at = mmap(NULL, bpf_map__max_entries(m) * bpf_map__value_size(m), protection,
			MAP_SHARED, bpf_map__fd(m), 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static bool possible(void)
{
	memset(former, 0, sizeof(former));
	slots = map_of(world->skel->maps.slots, PROT_READ);
	seen = map_of(world->skel->maps.seen, PROT_READ | PROT_WRITE);
	if (world->walk)
		return true;
	puts("skip: this kernel does not let us walk the storage of its sockets, or would crash");
	return false;
}

/* As if takes or gives had been lost. */
static void write_inuse(unsigned id, uint32_t inuse)
{
	struct sw_slot slot = slot_of(id);

	slot.inuse = inuse;
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(world->skel->maps.slots), &id, &slot, 0),
			 0);
}

static void too_many_are_put_right(void **state)
{
	int fd;

	(void)state;
	if (!possible())
		skip();
	set_member(ID_B, false);
	write_inuse(ID_A, 2000);
	fd = connected(V4);
	assert_int_equal(who(fd), 'R'); /* full: its hint is off now */
	close(fd);
	assert_int_equal(recount(), 0); /* once is no proof */
	assert_int_equal(slot_of(ID_A).inuse, 2000);
	assert_int_equal(recount(), 2000);
	assert_int_equal(slot_of(ID_A).inuse, 0);
	assert_int_equal(slot_of(ID_A).corrected - world->before[ID_A].corrected, 2000);
	fd = connected(V4);
	assert_int_equal(who(fd), 'A');
	assert_int_equal(recount(), 0);
	assert_int_equal(recount(), 0);
	close(fd);
}

static void too_few_are_put_right(void **state)
{
	int fds[3];

	(void)state;
	if (!possible())
		skip();
	set_member(ID_B, false);
	for (int i = 0; i < 3; i++)
		fds[i] = connected(V4);
	write_inuse(ID_A, 0);
	assert_int_equal(recount(), 0);
	assert_int_equal(recount(), 3);
	assert_int_equal(slot_of(ID_A).inuse, 3);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

/* What a lookup has taken counts, from then on. */
static void reservations_count(void **state)
{
	int reservations = bpf_map__fd(world->skel->maps.reservations);
	int pending = bpf_map__fd(world->skel->maps.pending), n = libbpf_num_possible_cpus();
	struct sw_reservation r = {.since_ns = 1, .slot = ID_A + 1, .pool = POOL};
	struct sw_pending *all = calloc((size_t)n, sizeof(*all));
	struct sw_tuple t = {.peer_port = 1};
	uint32_t zero = 0;

	(void)state;
	if (!possible()) {
		free(all);
		skip();
	}
	write_inuse(ID_A, 3);
	bpf_map_update_elem(reservations, &t, &r, 0);
	t.peer_port = 2;
	bpf_map_update_elem(reservations, &t, &r, 0);
	all[n - 1] = (struct sw_pending){.since_ns = 1, .slot = ID_A + 1, .pool = POOL};
	bpf_map_update_elem(pending, &zero, all, 0);
	recount();
	assert_int_equal(recount(), 0);

	/* without `since_ns` they are somebody's who is about to give them back */
	r.since_ns = 0;
	bpf_map_update_elem(reservations, &t, &r, 0);
	all[n - 1].since_ns = 0;
	bpf_map_update_elem(pending, &zero, all, 0);
	recount();
	assert_int_equal(recount(), 2);
	bpf_map_delete_elem(reservations, &t);
	t.peer_port = 1;
	bpf_map_delete_elem(reservations, &t);
	write_inuse(ID_A, 0);
	free(all);
}

/* Of those only the reports know what is in flight. */
static void credit_rows_are_not_corrected(void **state)
{
	int workers = bpf_map__fd(world->skel->maps.workers);
	struct sw_correction c = {.slot = ID_A, .delta = 1};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &c, .ctx_size_in = sizeof(c));
	struct sw_worker_row row;
	uint32_t id = ID_A;

	(void)state;
	if (!possible())
		skip();
	bpf_map_lookup_elem(workers, &id, &row);
	row.flags = SW_WF_CREDIT;
	bpf_map_update_elem(workers, &id, &row, 0);
	assert_int_equal(
		bpf_prog_test_run_opts(bpf_program__fd(world->skel->progs.spillway_correct), &opts),
		0);
	assert_int_equal(opts.retval, 1);
	assert_int_equal(slot_of(ID_A).inuse, 0);
}

/* ---- under load ------------------------------------------------------------------------------ */

static void clients(int pids[4])
{
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		while (!pids[i]) {
			int fd = socket_for(V4, SOCK_STREAM);

			if (connect_to(fd, virtual_address(V4, VIRTUAL)))
				_exit(1);
			close(fd);
		}
	}
}

static void end(int pids[4])
{
	for (int i = 0; i < 4; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < 4; i++)
		waitpid(pids[i], NULL, 0);
	await_inuse(ID_A, 0);
	await_inuse(ID_B, 0);
}

static void a_right_count_is_left_alone_under_load(void **state)
{
	int pids[4];

	(void)state;
	if (!possible())
		skip();
	clients(pids);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(recount(), 0);
		usleep(5000);
	}
	end(pids);
	assert_true(counted().steered > 100);
}

static void drift_is_put_right_under_load(void **state)
{
	int pids[4];

	(void)state;
	if (!possible())
		skip();
	set_worker(ID_A, V4, PORT_A, SW_NO_CAP);
	clients(pids);
	correct(ID_A, 2000);
	correct(ID_B, -2000);
	for (int i = 0; i < 100; i++) {
		recount();
		usleep(5000);
	}
	end(pids); /* and exactly so */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		steering_test(too_many_are_put_right),
		steering_test(too_few_are_put_right),
		steering_test(reservations_count),
		steering_test(credit_rows_are_not_corrected),
		steering_test(a_right_count_is_left_alone_under_load),
		steering_test(drift_is_put_right_under_load),
	};

	return steering_run(tests);
}
