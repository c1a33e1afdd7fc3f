// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The life of a plane: its maps grow, what it counts, its keys, another plane beside it, and how it
 * ends. Needs root. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "kernel/netns.h"
#include "kernel/probe.h"
#include "lib/nets.h"

static void configure(struct sw_plane *p, size_t n_pools)
{
	struct sw_pool_conf *pools = calloc(n_pools, sizeof(*pools));
	struct sw_listener_conf *listeners = calloc(n_pools, sizeof(*listeners));
	struct sw_config c = {
		.pools = pools, .n_pools = n_pools, .listeners = listeners, .n_listeners = n_pools};
	struct sw_error err = {0};

	for (size_t i = 0; i < n_pools; i++) {
		pools[i].answer = (struct sw_answer_spec){
			.status = 500 + i, .drain_status = 503, .max_bytes = SW_ANSWER_DEFAULT};
		listeners[i] = (struct sw_listener_conf){
			.v4 = true, .port = 8000 + i, .pool = i, .netns = nets_guarded};
	}
	if (sw_plane_configure(p, &c, &err))
		fail_msg("%s", err.text);
	free(pools);
	free(listeners);
}

static struct sw_listener listener(uint32_t id)
{
	struct sw_listener l;
	int fd = bpf_obj_get(nets_pin("listeners"));

	assert_int_equal(bpf_map_lookup_elem(fd, &id, &l), 0);
	close(fd);
	return l;
}

static struct sw_answer answer(uint32_t set)
{
	uint32_t index = SW_ANSWER_INDEX(set, 0, 0, 0);
	struct sw_answer a;
	int fd = bpf_obj_get(nets_pin("answers"));

	assert_int_equal(bpf_map_lookup_elem(fd, &index, &a), 0);
	close(fd);
	return a;
}

/* Into another place, so that conversations under way have their own to the end. */
static void answers_are_exchanged(void **state)
{
	struct sw_answer_spec other = {
		.status = 555, .drain_status = 503, .max_bytes = SW_ANSWER_DEFAULT};
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	unsigned before[3], now;

	(void)state;
	configure(p, 8); /* as many as there would be room for, if none were ever exchanged */
	for (unsigned id = 1; id < 3; id++)
		before[id] = listener(id).answers;
	assert_int_equal(sw_plane_put_answers(p, 1, &other), 0);
	now = listener(2).answers;
	assert_int_not_equal(now, before[2]);
	assert_int_equal(listener(1).answers, before[1]);
	assert_memory_equal(answer(now).bytes, "HTTP/1.1 555", 12);
	for (unsigned i = 0; i < 8; i++)
		if (listener(i + 1).answers != now)
			assert_int_equal(answer(listener(i + 1).answers).bytes[11], '0' + i);
	assert_memory_equal(answer(before[2]).bytes, "HTTP/1.1 501", 12);
	configure(p, 8); /* and the configuration's again */
	assert_memory_equal(answer(listener(2).answers).bytes, "HTTP/1.1 501", 12);
	sw_plane_close(p, 0);
}

/* More pools than there was room for: larger map, new programs, in place. */
static void answers_grow(void **state)
{
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	struct nets_programs before = nets_tcx(nets_guarded, "veth0");
	unsigned first;

	(void)state;
	configure(p, 4);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").id, before.id);
	first = listener(1).answers;
	configure(p, 9);
	if (sw_probe_tcx()) {
		assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
		assert_int_not_equal(nets_tcx(nets_guarded, "veth0").id, before.id);
	}
	assert_memory_equal(answer(listener(9).answers).bytes, "HTTP/1.1 508", 12);
	/* What was there was moved, not made anew. */
	assert_int_equal(listener(1).answers, first);
	assert_memory_equal(answer(first).bytes, "HTTP/1.1 500", 12);
	assert_int_equal(sw_plane_changed(p), 0);
	/* A new daemon keeps the larger map. */
	sw_plane_leave(p);
	p = nets_open(SW_ATTACH_TC);
	before = nets_tcx(nets_guarded, "veth0");
	configure(p, 9);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").id, before.id);
	sw_plane_close(p, 0);
	nets_assert_bare();
}

static void send_datagrams(const char *addr, int n)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	int former, fd;

	inet_pton(AF_INET, addr, &to.sin_addr);
	assert_int_equal(sw_netns_enter(nets_client, &former, NULL), 0);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	sw_netns_leave(former);
	while (n--)
		assert_int_equal(sendto(fd, "x", 1, 0, (void *)&to, sizeof(to)), 1);
	close(fd);
	usleep(100000);
}

static void packets_are_counted_over_all_cpus(void **state)
{
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	struct sw_counts tc, xdp;
	struct sw_counts *each = calloc(libbpf_num_possible_cpus(), sizeof(*each));
	uint32_t id = 5;
	int fd = bpf_obj_get(nets_pin("counts_tc"));

	(void)state;
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		each[cpu].syn_ack = 100 + cpu;
	assert_int_equal(bpf_map_update_elem(fd, &id, each, BPF_ANY), 0);
	assert_int_equal(sw_plane_counts(p, 5, &xdp, &tc, NULL), 0);
	assert_int_equal(xdp.syn_ack, 0);
	assert_int_equal(tc.syn_ack,
			 libbpf_num_possible_cpus() * 100 +
				 libbpf_num_possible_cpus() * (libbpf_num_possible_cpus() - 1) / 2);
	assert_int_equal(sw_plane_counts(p, 5, NULL, NULL, NULL), 0);
	assert_true(sw_plane_counts(p, SW_MAX_LISTENERS, NULL, &tc, NULL) < 0);
	close(fd);
	free(each);
	/* And for real: what comes in is counted. */
	send_datagrams("192.0.2.1", 3);
	assert_int_equal(sw_plane_counts(p, 0, NULL, &tc, NULL), 0);
	assert_true(tc.pass_other >= 3);
	sw_plane_close(p, 0);
}

static void the_previous_key_is_kept(void **state)
{
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	struct sw_secrets first = nets_secrets(), second;
	uint64_t now = sw_now_ns();

	(void)state;
	assert_int_equal(sw_plane_rotate_key(p), 0);
	second = nets_secrets();
	assert_memory_equal(second.key[1], first.key[0], 16);
	assert_memory_not_equal(second.key[0], first.key[0], 16);
	assert_true(second.previous_until_ns >= now + SW_LIFETIME_NS);
	assert_true(second.previous_until_ns < now + SW_LIFETIME_NS + 1000000000);
	sw_plane_close(p, 0);
}

static void two_planes_at_once(void **state)
{
	struct sw_plane_conf here = {.pin_root = nets_root, .attach = SW_ATTACH_TC};
	struct sw_plane *a = nets_open(SW_ATTACH_TC), *b;
	struct sw_error err = {0};
	char host[128];

	(void)state;
	nets_run(NULL, "ip link set lo up");
	if (sw_plane_open(&b, &here, &err))
		fail_msg("%s", err.text);
	snprintf(host, sizeof(host), "%s/v%d/host/ports", nets_root, SW_LAYOUT);
	assert_int_equal(access(host, F_OK), 0);
	sw_plane_close(a, 0);
	assert_int_equal(access(host, F_OK), 0);
	assert_int_equal(sw_plane_changed(b), 0);
	sw_plane_close(b, 0);
	nets_assert_bare();
}

/* ---- the end ------------------------------------------------------------------------------------
 */

static uint64_t close_ms(struct sw_plane *p, unsigned linger_ms)
{
	uint64_t start = sw_now_ms();

	sw_plane_close(p, linger_ms);
	return sw_now_ms() - start;
}

/* How long closing takes by itself depends on the host; it is measured first. */
static void closing_waits_for_conversations(void **state)
{
	uint64_t bare, quiet, busy;
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	int fd, status;
	pid_t pid;

	(void)state;
	configure(p, 1);
	sw_plane_set_pool(p, 0, SW_MODE_OPEN, 0, false, 0);
	bare = close_ms(p, 3000);

	p = nets_open(SW_ATTACH_TC);
	configure(p, 1);
	sw_plane_set_pool(p, 0, SW_MODE_SHED, 0, false, sw_now_ns() + 2000000000);
	quiet = close_ms(p, 3000);
	assert_true(quiet >= 200);
	assert_true(quiet < bare + 1500);

	/* Somebody who goes on sending; told apart from quiet by the mode it finds. */
	p = nets_open(SW_ATTACH_TC);
	configure(p, 1);
	sw_plane_set_pool(p, 0, SW_MODE_SHED, 0, false, sw_now_ns() + 2000000000);
	fd = bpf_obj_get(nets_pin("counts_tc"));
	pid = fork();
	if (!pid) {
		struct sw_counts *each = calloc(libbpf_num_possible_cpus(), sizeof(*each));
		uint32_t id = 1;

		for (;; usleep(20000)) {
			each[0].drain_data++;
			bpf_map_update_elem(fd, &id, each, BPF_ANY);
		}
	}
	busy = close_ms(p, 3000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(fd);
	assert_true(busy >= 3000);
	nets_assert_bare();
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, nets_setup, nets_teardown)
	const struct CMUnitTest tests[] = {
		T(answers_are_exchanged),
		T(answers_grow),
		T(packets_are_counted_over_all_cpus),
		T(the_previous_key_is_kept),
		T(two_planes_at_once),
		T(closing_waits_for_conversations),
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
