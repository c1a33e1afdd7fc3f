// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs for established connections: behind the guard, in place of those of an earlier daemon,
 * and there as long as a connection is translated. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/netns.h"
#include "kernel/remove.h"
#include "lib/nets.h"

#define TRANSLATED (1U << 3) /* bpf/flow.h */

static struct sw_plane *open_keeping(unsigned flows)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	struct sw_plane *p = NULL;
	struct sw_error err = {0};

	conf.flows = flows;
	if (sw_plane_open(&p, &conf, &err))
		fail_msg("%s", err.text);
	if (flows && !sw_plane_can_keep(p, NULL)) {
		sw_plane_close(p, 0);
		printf("skip: this kernel refuses the programs for established connections\n");
		skip();
	}
	return p;
}

static uint32_t id_of(const char *pin)
{
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_obj_get(nets_pin(pin));

	if (fd < 0)
		return 0;
	bpf_obj_get_info_by_fd(fd, &info, &size);
	close(fd);
	return info.id;
}

/* A connection inside the namespace: [0] is the client's end, [1] the server's. */
static void connect_inside(int end[2], struct sw_tuple *key)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int former, listener;

	assert_int_equal(sw_netns_enter(nets_guarded, &former, NULL), 0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	end[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &size), 0);
	assert_int_equal(connect(end[0], (struct sockaddr *)&a, sizeof(a)), 0);
	end[1] = accept(listener, NULL, NULL);
	assert_true(end[1] >= 0);
	close(listener);
	sw_netns_leave(former);
	*key = (struct sw_tuple){.local_port = ntohs(a.sin_port)};
	assert_int_equal(getsockname(end[0], (struct sockaddr *)&a, &size), 0);
	key->peer_port = ntohs(a.sin_port);
	memset(key->peer + 10, 0xff, 2);
	memcpy(key->peer + 12, &a.sin_addr, 4);
	memcpy(key->local, key->peer, sizeof(key->local));
}

/* Where a value of `flows` has its flags. */
static size_t flags_at(const struct bpf_map_info *info)
{
	struct btf *btf = btf__load_from_kernel_by_id(info->btf_id);
	const struct btf_type *t = btf__type_by_id(btf, info->btf_value_type_id);
	const struct btf_member *m = btf_members(t);
	size_t at = 0;

	for (int i = 0; i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), "flags"))
			at = m[i].offset / 8;
	btf__free(btf);
	assert_true(at);
	return at;
}

/* As the programs would do it. */
static void follow(const struct sw_tuple *key, uint32_t flags)
{
	int flows = bpf_obj_get(nets_pin("flows")), use = bpf_obj_get(nets_pin("flow_use"));
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info), zero = 0, n;
	uint8_t value[1024] = {0};

	assert_int_equal(bpf_obj_get_info_by_fd(flows, &info, &size), 0);
	assert_true(info.value_size <= sizeof(value));
	memcpy(value + flags_at(&info), &flags, sizeof(flags));
	assert_int_equal(bpf_map_update_elem(flows, key, value, BPF_ANY), 0);
	assert_int_equal(bpf_map_lookup_elem(use, &zero, &n), 0);
	n++;
	assert_int_equal(bpf_map_update_elem(use, &zero, &n, BPF_ANY), 0);
	close(flows);
	close(use);
}

static unsigned room(const struct sw_plane *p)
{
	unsigned n;

	sw_plane_flows(p, &n);
	return n;
}

static unsigned use(const struct sw_plane *p)
{
	unsigned n;

	return sw_plane_flows(p, &n);
}

static void assert_nothing_left(void)
{
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 0);
	assert_int_not_equal(nets_try(nets_guarded, "tc qdisc show dev veth0 | grep -q clsact"), 0);
	assert_int_not_equal(access(nets_root, F_OK), 0);
}

static void not_unless_asked_for(void **state)
{
	struct sw_plane *p = open_keeping(0);
	const char *why;

	(void)state;
	assert_false(sw_plane_can_keep(p, &why));
	assert_string_equal(why, "");
	assert_int_equal(room(p), 0);
	assert_int_equal(access(nets_pin("flows"), F_OK), -1);
	assert_int_equal(id_of("link_keep_veth0"), 0);
	sw_plane_close(p, 0);
	assert_nothing_left();
}

/* Two ends of a translated connection: what translates stays, and the next one takes it over. */
static void what_translates_stays(void **state)
{
	struct sw_plane *p = open_keeping(2048);
	bool tcx = id_of("link_tc_veth0");
	struct sw_tuple key;
	uint32_t keep, egress;
	int end[2];

	(void)state;
	assert_int_equal(room(p), 2048);
	connect_inside(end, &key);
	follow(&key, TRANSLATED);
	keep = id_of("link_keep_veth0");
	egress = id_of("link_egress_veth0");
	assert_int_equal(!keep, !tcx);
	sw_plane_close(p, 0);
	assert_int_equal(id_of("link_tc_veth0"), 0);
	assert_int_equal(id_of("link_keep_veth0"), keep);
	assert_int_equal(id_of("link_egress_veth0"), egress);
	if (!tcx)
		nets_run(nets_guarded, "tc filter show dev veth0 ingress | grep -q spillway_keep");

	/* another size, or not wanted at all: it goes on */
	p = open_keeping(0);
	assert_int_equal(room(p), 2048);
	assert_int_equal(id_of("link_keep_veth0"), keep);
	sw_plane_leave(p);
	p = open_keeping(4096);
	assert_int_equal(room(p), 2048);
	assert_int_equal(id_of("link_keep_veth0"), keep);
	assert_int_equal(sw_plane_expire_flows(p, true), 0);
	assert_int_equal(use(p), 1);

	close(end[0]);
	close(end[1]);
	nets_run(nets_guarded, "ss -K state all >/dev/null 2>&1 || true"); /* of TIME_WAIT */
	for (int i = 0; i < 3; i++)
		sw_plane_expire_flows(p, true);
	assert_int_equal(use(p), 0);
	sw_plane_leave(p);
	p = open_keeping(4096);
	assert_int_equal(room(p), 4096);
	sw_plane_close(p, 0);
	assert_nothing_left();
}

/* A connection that nothing was taken out of needs nobody. */
static void what_is_followed_does_not(void **state)
{
	struct sw_plane *p = open_keeping(2048);
	struct sw_tuple key;
	int end[2];

	(void)state;
	connect_inside(end, &key);
	follow(&key, 0);
	assert_int_equal(sw_plane_expire_flows(p, false), 0);
	assert_int_equal(sw_plane_expire_flows(p, false), 0);
	assert_int_equal(use(p), 1);
	sw_plane_close(p, 0);
	assert_nothing_left();
	assert_int_equal(write(end[0], "x", 1), 1);
	close(end[0]);
	close(end[1]);
}

#define MANY  500000
#define BATCH 50000

/* As many as there is room for, of clients that have gone: the next one finds none, and nothing is
 * put out for it; a part is looked at each second, until all of them are swept. */
static void many_connections(void **state)
{
	struct sw_plane *p = open_keeping(MANY);
	int flows = bpf_obj_get(nets_pin("flows")), uses = bpf_obj_get(nets_pin("flow_use"));
	struct sw_tuple *keys = calloc(BATCH, sizeof(*keys)), one_more = {.peer_port = 1};
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info), zero = 0, n = MANY, seconds = 0;
	void *values;

	(void)state;
	assert_int_equal(bpf_obj_get_info_by_fd(flows, &info, &size), 0);
	values = calloc(BATCH, info.value_size);
	for (uint32_t i = 0; i < MANY; i += BATCH) {
		uint32_t count = BATCH;

		for (uint32_t j = 0; j < BATCH; j++)
			keys[j].pad = i + j + 1;
		assert_int_equal(bpf_map_update_batch(flows, keys, values, &count, NULL), 0);
	}
	assert_int_equal(bpf_map_update_elem(uses, &zero, &n, BPF_ANY), 0);
	assert_int_equal(room(p), MANY);
	assert_int_equal(use(p), MANY);
	assert_int_equal(bpf_map_update_elem(flows, &one_more, values, BPF_NOEXIST), -E2BIG);
	while (use(p) && seconds++ < 60)
		assert_true(sw_plane_expire_flows(p, false) >= 0);
	printf("swept in %u parts\n", seconds);
	assert_int_equal(use(p), 0);
	assert_true(seconds > 2);
	free(values);
	free(keys);
	close(flows);
	close(uses);
	sw_plane_close(p, 0);
}

/* Of a daemon that was killed. */
static void removal_resets_what_is_translated(void **state)
{
	struct sw_plane *p = open_keeping(2048);
	struct sw_tuple key, other;
	int end[2], followed[2];
	struct sw_error err;
	char byte;

	(void)state;
	connect_inside(end, &key);
	follow(&key, TRANSLATED);
	connect_inside(followed, &other);
	follow(&other, 0);
	sw_plane_leave(p);
	assert_int_equal(sw_host_remove(nets_root, &err), 0);
	assert_int_equal(recv(end[0], &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(write(followed[1], "x", 1), 1);
	assert_int_equal(recv(followed[0], &byte, 1, 0), 1);
	close(followed[0]);
	close(followed[1]);
	close(end[0]);
	close(end[1]);
	assert_nothing_left();
}

static void new_connections_are_let_in(void **state)
{
	struct sw_plane *p = open_keeping(2048);
	int listeners = bpf_obj_get(nets_pin("listeners"));
	struct sw_listener l = {.port = 80, .flags = SW_LF_KEEP};
	uint32_t id = 7;

	(void)state;
	assert_int_equal(bpf_map_update_elem(listeners, &id, &l, BPF_ANY), 0);
	assert_int_equal(sw_plane_pass_new(p, id, true), 0);
	assert_int_equal(bpf_map_lookup_elem(listeners, &id, &l), 0);
	assert_int_equal(l.flags, SW_LF_KEEP | SW_LF_PASS_NEW);
	assert_int_equal(sw_plane_pass_new(p, id, false), 0);
	assert_int_equal(bpf_map_lookup_elem(listeners, &id, &l), 0);
	assert_int_equal(l.flags, SW_LF_KEEP);
	assert_int_equal(sw_plane_pass_new(p, SW_MAX_LISTENERS, true), -ENOENT);
	close(listeners);
	sw_plane_close(p, 0);
}

static int without_tcx(void **state)
{
	setenv("SPILLWAY_NO_TCX", "1", 1);
	return nets_setup(state);
}

static int with_tcx_again(void **state)
{
	unsetenv("SPILLWAY_NO_TCX");
	return nets_teardown(state);
}

#define T(f) cmocka_unit_test_setup_teardown(f, nets_setup, nets_teardown)
#define C(f) {#f " (clsact)", f, without_tcx, with_tcx_again, NULL}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(not_unless_asked_for),
		T(what_translates_stays),
		C(what_translates_stays),
		T(what_is_followed_does_not),
		C(what_is_followed_does_not),
		T(many_connections),
		T(removal_resets_what_is_translated),
		C(removal_resets_what_is_translated),
		T(new_connections_are_let_in),
	};

	if (nets_impossible()) {
		printf("SKIP: %s\n", nets_impossible());
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
