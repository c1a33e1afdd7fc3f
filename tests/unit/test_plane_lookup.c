// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A plane that counts and steers: sk_lookup on its namespace, the host's slots under it, and what
 * outlives the daemon. Needs root. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "kernel/netns.h"
#include "kernel/remove.h"
#include "kernel/steer_impl.h"
#include "lib/nets.h"

#define POOL	    3
#define WORKER	    7
#define PORT	    8000 /* that the pool listens on */
#define WORKER_PORT 9000 /* that its worker listens on */

static struct sw_steer *steer;

static int setup(void **state)
{
	struct sw_error err = {0};

	if (nets_setup(state))
		return -1;
	if (!sw_steer_open(&steer, nets_root, &err))
		return 0;
	printf("%s\n", err.text);
	return -1;
}

static int teardown(void **state)
{
	struct sw_error err;

	sw_steer_leave(steer);
	steer = NULL;
	sw_host_remove(nets_root, &err);
	return nets_teardown(state);
}

static struct sw_plane *open_plane(bool lookup)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	struct sw_error err = {0};
	struct sw_plane *p = NULL;

	conf.slots = sw_steer_maps(steer);
	conf.lookup = lookup;
	if (sw_plane_open(&p, &conf, &err))
		fail_msg("%s", err.text);
	return p;
}

static unsigned lookups(void)
{
	int netns = open(nets_guarded, O_RDONLY | O_CLOEXEC);
	uint32_t ids[4], n = 4;

	assert_int_equal(bpf_prog_query(netns, BPF_SK_LOOKUP, 0, NULL, ids, &n), 0);
	close(netns);
	return n;
}

static uint32_t link_id(void)
{
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_obj_get(nets_pin("link_lookup"));

	if (fd < 0)
		return 0;
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	close(fd);
	return info.id;
}

static uint32_t map_id(const char *name)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_obj_get(nets_pin(name));

	if (fd < 0)
		return 0;
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	close(fd);
	return info.id;
}

/* ---- a pool with a worker ------------------------------------------------------------------- */

static struct sw_worker_row worker_row(void)
{
	struct sw_worker_row row = {
		.addr = {[10] = 0xff, [11] = 0xff}, .port = WORKER_PORT, .pool = POOL, .cap = 4};

	inet_pton(AF_INET, "192.0.2.1", row.addr + 12);
	return row;
}

static void make_pool(void)
{
	struct sw_steer_pool pool = {.deadline_ns = UINT64_MAX,
				     .flags = SW_SF_COUNT | SW_SF_ASSIGN,
				     .half_open = 100,
				     .words = 1};
	struct sw_bits one = {.word = {1ULL << WORKER}};
	struct sw_worker_row row = worker_row();

	assert_int_equal(sw_steer_set_pool(steer, POOL, &pool), 0);
	assert_int_equal(sw_steer_set_worker(steer, WORKER, &row), 0);
	sw_steer_set_nonbusy(steer, &one);
	sw_steer_set_reach4(steer, &one);
	sw_steer_set_members(steer, POOL, &one);
}

static void configure(struct sw_plane *p)
{
	struct sw_pool_conf pools[POOL + 1] = {0};
	struct sw_listener_conf l = {.v4 = true, .port = PORT, .pool = POOL, .netns = nets_guarded};
	struct sw_config c = {
		.pools = pools, .n_pools = POOL + 1, .listeners = &l, .n_listeners = 1};
	struct sw_error err = {0};

	for (size_t i = 0; i <= POOL; i++)
		pools[i].answer = (struct sw_answer_spec){
			.status = 529, .drain_status = 503, .max_bytes = SW_ANSWER_DEFAULT};
	if (sw_plane_configure(p, &c, &err))
		fail_msg("%s", err.text);
}

static int make_socket(const char *netns)
{
	int former, fd;

	assert_int_equal(sw_netns_enter(netns, &former, NULL), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sw_netns_leave(former);
	return fd;
}

static int listen_at(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = make_socket(nets_guarded);

	inet_pton(AF_INET, "192.0.2.1", &at.sin_addr);
	assert_int_equal(bind(fd, (void *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* What a client in the other namespace gets: 0 or a negative errno. */
static int connect_once(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct timeval limit = {.tv_sec = 2};
	int fd = make_socket(nets_client), ret;

	inet_pton(AF_INET, "192.0.2.1", &at.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	ret = connect(fd, (void *)&at, sizeof(at)) ? -errno : 0;
	close(fd);
	return ret;
}

/* ---- attaching ------------------------------------------------------------------------------ */

static void without_lookup_there_is_nothing_of_it(void **state)
{
	struct sw_plane *p = open_plane(false);

	(void)state;
	assert_int_equal(lookups(), 0);
	assert_int_equal(link_id(), 0);
	assert_int_equal(map_id("responding"), 0);
	assert_int_equal(sw_plane_sweep(p), 0);
	assert_int_equal(sw_plane_find_workers(p), 0);
	assert_int_equal(sw_plane_set_responder(p, 0, false, 0), -EINVAL);
	sw_plane_close(p, 0);
	assert_int_not_equal(access(nets_pin(""), F_OK), 0);
}

static void clients_reach_a_worker(void **state)
{
	struct sw_plane *p;
	int server;

	(void)state;
	make_pool();
	assert_int_equal(connect_once(), -ECONNREFUSED);
	p = open_plane(true);
	configure(p);
	assert_int_equal(lookups(), 1);
	server = listen_at(WORKER_PORT);
	assert_int_equal(sw_plane_find_workers(p), 1);
	assert_int_equal(connect_once(), 0);
	/* The namespace is the plane's own, not where the daemon is. */
	close(server);
	sw_plane_end_lookup(p);
	assert_int_equal(lookups(), 0);
	assert_int_equal(connect_once(), -ECONNREFUSED);
	sw_plane_close(p, 0);
	assert_int_not_equal(access(nets_pin(""), F_OK), 0);
}

static void steering_outlives_the_daemon(void **state)
{
	struct sw_plane *p = open_plane(true);
	int server = listen_at(WORKER_PORT);
	uint32_t link, ports, responding;

	(void)state;
	make_pool();
	configure(p);
	assert_int_equal(sw_plane_find_workers(p), 1);
	link = link_id();
	ports = map_id("ports");
	responding = map_id("responding");
	assert_int_not_equal(responding, 0);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
	sw_plane_close(p, 0);
	sw_steer_leave(steer);
	steer = NULL;
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 0);
	assert_int_equal(lookups(), 1);
	assert_int_equal(connect_once(), 0);

	assert_int_equal(sw_steer_open(&steer, nets_root, NULL), 0);
	p = open_plane(true);
	assert_int_equal(link_id(), link);
	assert_int_equal(map_id("ports"), ports);
	assert_int_equal(map_id("responding"), responding);
	assert_int_equal(connect_once(), 0);
	/* One that is replaced while it runs. */
	sw_plane_leave(p);
	p = open_plane(true);
	assert_int_equal(link_id(), link);
	assert_int_equal(sw_plane_changed(p), 0);
	sw_plane_leave(p);

	/* And one that is not to look up any more. */
	p = open_plane(false);
	assert_int_equal(lookups(), 0);
	assert_int_equal(link_id(), 0);
	sw_plane_close(p, 0);
	assert_int_not_equal(access(nets_pin(""), F_OK), 0);
	close(server);
}

static void what_was_left_is_removed_when_nobody_wants_it(void **state)
{
	const char *both[] = {NULL, nets_guarded}, *other[] = {NULL, nets_client};
	struct sw_error err;

	(void)state;
	sw_plane_close(open_plane(true), 0);
	sw_host_remove_others(nets_root, both, 2);
	assert_int_equal(lookups(), 1);
	sw_host_remove_others(nets_root, other, 2);
	assert_int_equal(lookups(), 0);
	assert_int_not_equal(access(nets_pin(""), F_OK), 0);

	sw_plane_close(open_plane(true), 0);
	sw_plane_leave(open_plane(true));
	setenv("SPILLWAY_NO_TCX", "1", 1);
	sw_plane_leave(open_plane(true));
	assert_int_equal(nets_try(nets_guarded, "tc qdisc show dev veth0 | grep -q clsact"), 0);
	assert_int_equal(sw_host_remove(nets_root, &err), 0);
	assert_int_equal(lookups(), 0);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 0);
	assert_int_not_equal(nets_try(nets_guarded, "tc qdisc show dev veth0 | grep -q clsact"), 0);
	assert_int_not_equal(access(nets_root, F_OK), 0);
}

static void a_failure_takes_off_only_what_is_new(void **state)
{
	char nope[] = "nope0", lo[] = "lo", *names[] = {lo, nope};
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_XDP);
	struct sw_error err = {0};

	(void)state;
	conf.slots = sw_steer_maps(steer);
	conf.lookup = true;
	conf.interfaces = names;
	conf.n_interfaces = 2;
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_int_equal(lookups(), 0);
	/* A frame is sent on trial, and does not leave: attached at last, and fails. */
	nets_run(nets_guarded, "ip link add other0 type veth");
	nets_run(nets_guarded, "ip link set other0 up");
	names[1] = (char[]){"other0"};
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_int_equal(lookups(), 0);
	assert_int_equal(link_id(), 0);
	sw_plane_leave(open_plane(true));
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_int_equal(lookups(), 1);
}

static void a_lookup_that_is_taken_away(void **state)
{
	struct sw_plane *p = open_plane(true);
	int link = bpf_obj_get(nets_pin("link_lookup"));

	(void)state;
	assert_int_equal(sw_plane_changed(p), 0);
	assert_int_equal(bpf_link_detach(link), 0);
	close(link);
	assert_int_equal(sw_plane_changed(p), 1);
	sw_plane_leave(p);
	p = open_plane(true);
	assert_int_equal(lookups(), 1);
	assert_int_equal(sw_plane_changed(p), 0);
	sw_plane_leave(p);
}

/* ---- what is run inside --------------------------------------------------------------------- */

static uint64_t cookie_of(const char *netns)
{
	struct sw_netns_id id;
	int former;

	assert_int_equal(sw_netns_enter(netns, &former, NULL), 0);
	assert_int_equal(sw_netns_identify(&id), 0);
	sw_netns_leave(former);
	return id.cookie;
}

/* A slot that is held for a connection that does not exist. */
static void reserve(const char *netns, uint16_t port)
{
	struct sw_tuple t = {
		.netns = cookie_of(netns),
		.peer = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 2},
		.local = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 1},
		.peer_port = port,
		.local_port = PORT};
	struct sw_reservation r = {.since_ns = sw_now_ns(), .slot = WORKER + 1, .pool = POOL};

	assert_int_equal(bpf_map_update_elem(sw_steer_maps(steer)->reservations, &t, &r, BPF_ANY),
			 0);
}

static uint32_t inuse(void)
{
	struct sw_slot slot;

	sw_steer_slot(steer, WORKER, &slot);
	return slot.inuse;
}

/* Of this namespace only, and when it was missing twice. */
static void reservations_without_connections_are_swept(void **state)
{
	struct sw_pool_use use = {.half_open = 3};
	uint32_t pools[] = {POOL, SW_MAX_POOLS};
	struct sw_plane *p = open_plane(true);

	(void)state;
	make_pool();
	steer->slots[WORKER].inuse = 3;
	for (int i = 0; i < 2; i++)
		assert_int_equal(bpf_map_update_elem(sw_steer_maps(steer)->pool_use, &pools[i],
						     &use, BPF_ANY),
				 0);
	reserve(nets_guarded, 1);
	reserve(nets_guarded, 2);
	reserve(nets_client, 3);
	assert_int_equal(sw_plane_sweep(p), 0);
	assert_int_equal(inuse(), 3);
	assert_int_equal(sw_plane_sweep(p), 2);
	assert_int_equal(inuse(), 1);
	assert_int_equal(sw_plane_sweep(p), 0);
	assert_int_equal(inuse(), 1);
	sw_plane_leave(p);
}

static void workers_are_found(void **state)
{
	struct sw_plane *p = open_plane(true);
	uint32_t id = WORKER;
	uint64_t cookie;
	int server;

	(void)state;
	make_pool();
	assert_int_equal(sw_plane_find_workers(p), 0);
	server = listen_at(WORKER_PORT);
	assert_int_equal(sw_plane_find_workers(p), 1);
	assert_int_equal(sw_plane_find_workers(p), 1);
	assert_int_equal(bpf_map_lookup_elem(sw_steer_maps(steer)->listening, &id, &cookie), 0);
	close(server);
	assert_int_equal(sw_plane_find_workers(p), 0);
	sw_plane_leave(p);
}

static void the_responder_of_a_pool(void **state)
{
	struct sw_plane *p = open_plane(true);
	uint32_t key = POOL * 2;
	uint64_t cookie;
	int map = bpf_obj_get(nets_pin("responding")), server = listen_at(7000);

	(void)state;
	assert_int_equal(sw_plane_set_responder(p, POOL, false, server), 0);
	assert_int_equal(bpf_map_lookup_elem(map, &key, &cookie), 0);
	key++;
	assert_int_not_equal(bpf_map_lookup_elem(map, &key, &cookie), 0);
	assert_int_equal(sw_plane_set_responder(p, SW_MAX_POOLS, false, server), -EINVAL);
	assert_true(sw_plane_set_responder(p, POOL, false, map) < 0);
	/* It answers who finds nothing free. */
	make_pool();
	configure(p);
	assert_int_equal(connect_once(), 0);
	close(server);
	assert_int_not_equal(connect_once(), 0);
	close(map);
	sw_plane_leave(p);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(without_lookup_there_is_nothing_of_it),
		T(clients_reach_a_worker),
		T(steering_outlives_the_daemon),
		T(what_was_left_is_removed_when_nobody_wants_it),
		T(a_failure_takes_off_only_what_is_new),
		T(a_lookup_that_is_taken_away),
		T(reservations_without_connections_are_swept),
		T(workers_are_found),
		T(the_responder_of_a_pool),
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
