// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From configuration to map contents, on real maps (needs root): what is written, what is shared,
 * what a reload leaves alone, and what is left when it fails. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/iface.h"
#include "kernel/image.h"
#include "kernel/probe.h"
#include "kernel/tables.h"
#include "spillway.skel.h"

#define SETS 2 /* room for answers in these maps */
#define NOW  1000000000ULL

struct world {
	struct spillway *obj;
	struct sw_maps maps;
};

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct bpf_program *prog;

	w->obj = spillway__open();
	bpf_object__for_each_program (prog, w->obj->obj)
		bpf_program__set_autoload(prog, false);
	bpf_map__set_max_entries(w->obj->maps.answers, SETS * SW_ANSWERS_PER_SET);
	*state = w;
	return spillway__load(w->obj) || sw_maps_find(w->obj->obj, &w->maps);
}

static int tear_down(void **state)
{
	struct world *w = *state;

	spillway__destroy(w->obj);
	free(w);
	return 0;
}

/* ---- configurations ---------------------------------------------------------------------------
 */

static struct sw_pool_conf pool(uint16_t status)
{
	return (struct sw_pool_conf){
		.answer = {.status = status, .drain_status = 503, .max_bytes = SW_ANSWER_DEFAULT}};
}

static struct sw_listener_conf any(uint16_t port)
{
	return (struct sw_listener_conf){.v4 = true, .v6 = true, .port = port, .syn_rate = 7};
}

static struct sw_listener_conf one4(const char *addr, uint16_t port)
{
	struct sw_listener_conf l = {.v4 = true, .port = port, .addr = {[10] = 0xff, [11] = 0xff}};

	inet_pton(AF_INET, addr, l.addr + 12);
	return l;
}

static struct sw_cidr cidr4(const char *addr, int bits)
{
	struct sw_cidr c = {.addr = {[10] = 0xff, [11] = 0xff}, .bits = 96 + bits};

	inet_pton(AF_INET, addr, c.addr + 12);
	return c;
}

static void write_ok(struct world *w, struct sw_pool_conf *pools, size_t n_pools,
		     struct sw_listener_conf *listeners, size_t n, uint64_t now)
{
	struct sw_config c = {
		.pools = pools, .n_pools = n_pools, .listeners = listeners, .n_listeners = n};
	struct sw_error err = {0};

	if (sw_tables_write(&w->maps, &c, NULL, now, &err))
		fail_msg("%s", err.text);
}

static int write_bad(struct world *w, struct sw_pool_conf *pools, size_t n_pools,
		     struct sw_listener_conf *listeners, size_t n, struct sw_error *err)
{
	struct sw_config c = {
		.pools = pools, .n_pools = n_pools, .listeners = listeners, .n_listeners = n};
	int ret = sw_tables_write(&w->maps, &c, NULL, NOW, err);

	assert_true(ret < 0);
	assert_true(err->text[0]);
	return ret;
}

/* ---- what the maps hold -----------------------------------------------------------------------
 */

static struct sw_port port_of(struct world *w, uint32_t port)
{
	struct sw_port p;

	assert_int_equal(bpf_map_lookup_elem(w->maps.ports, &port, &p), 0);
	return p;
}

static struct sw_listener listener(struct world *w, uint32_t id)
{
	struct sw_listener l;

	assert_int_equal(bpf_map_lookup_elem(w->maps.listeners, &id, &l), 0);
	return l;
}

static void assert_port(struct world *w, uint32_t port, int any4, int any6, int single)
{
	struct sw_port p = port_of(w, port);

	assert_int_equal(p.any4, any4);
	assert_int_equal(p.any6, any6);
	assert_int_equal(p.single, single);
}

static size_t rows(int map)
{
	uint8_t key[128];
	void *previous = NULL;
	size_t n = 0;

	while (!bpf_map_get_next_key(map, previous, key)) {
		previous = key;
		n++;
	}
	return n;
}

/* The action of a path in a set, 0: it is not there. `prefix`: its number, 0 for a whole path. */
static int action(struct world *w, int set, int method, int prefix, const char *path)
{
	struct sw_path key = {.set = set, .method = method, .prefix = prefix};
	struct sw_path_value value;

	memcpy(key.path, path, strlen(path));
	return bpf_map_lookup_elem(w->maps.paths, &key, &value) ? 0 : value.action;
}

static bool is_exempt(struct world *w, int set, const char *addr)
{
	struct sw_cidr_key key = {
		.prefixlen = 32 + 128, .set = htonl(set), .addr = {[10] = 0xff, [11] = 0xff}};
	uint32_t value;

	inet_pton(AF_INET, addr, key.addr + 12);
	return !bpf_map_lookup_elem(w->maps.exempt, &key, &value);
}

static struct sw_answer answer(struct world *w, int set)
{
	uint32_t index = SW_ANSWER_INDEX(set, SW_CAUSE_SATURATED, SW_FAMILY_DEFAULT, 0);
	struct sw_answer a;

	assert_int_equal(bpf_map_lookup_elem(w->maps.answers, &index, &a), 0);
	return a;
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void packets_find_listeners(void **state)
{
	struct sw_listener_conf l[] = {
		any(8000), any(8001), any(8002), one4("10.0.0.1", 8003), one4("10.0.0.2", 8003),
		any(8003)};
	struct sw_address key = {.port = 8003, .addr = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}};
	struct sw_pool_conf p[] = {pool(529)};
	uint32_t id;

	l[1].v6 = false;
	l[2].v4 = false;
	write_ok(*state, p, 1, l, 6, NOW);
	assert_port(*state, 8000, 1, 1, 0);
	assert_port(*state, 8001, 2, 0, 0);
	assert_port(*state, 8002, 0, 3, 0);
	assert_port(*state, 8003, 6, 6, 1);
	assert_port(*state, 8004, 0, 0, 0);
	assert_int_equal(rows(((struct world *)*state)->maps.addresses), 2);
	assert_int_equal(bpf_map_lookup_elem(((struct world *)*state)->maps.addresses, &key, &id),
			 0);
	assert_int_equal(id, 5);
	write_ok(*state, p, 1, l, 1, NOW);
	assert_port(*state, 8000, 1, 1, 0);
	assert_port(*state, 8001, 0, 0, 0);
	assert_port(*state, 8003, 0, 0, 0);
	assert_int_equal(rows(((struct world *)*state)->maps.addresses), 0);
	assert_int_equal(listener(*state, 5).port, 0);
}

static void a_listener_knows_its_pool(void **state)
{
	struct sw_pool_conf p[] = {pool(529), pool(503)};
	struct sw_cidr c[] = {cidr4("10.0.0.0", 8)};
	struct sw_listener_conf l[] = {any(8000), one4("10.0.0.1", 8001), any(8002)};

	p[1].observe = true;
	l[1].pool = 1;
	l[1].all_paths = true;
	l[2].exempt = c;
	l[2].n_exempt = 1;
	write_ok(*state, p, 2, l, 3, NOW);
	assert_int_equal(listener(*state, 1).port, 8000);
	assert_int_equal(listener(*state, 1).pool, 0);
	assert_int_equal(listener(*state, 1).syn_rate, 7);
	assert_int_equal(listener(*state, 1).flags, 0);
	assert_int_equal(listener(*state, 2).pool, 1);
	assert_int_equal(listener(*state, 2).flags, SW_LF_OBSERVE | SW_LF_ALL_PATHS);
	assert_memory_equal(listener(*state, 2).addr, l[1].addr, 16);
	assert_int_equal(listener(*state, 3).flags, SW_LF_EXEMPT);
	assert_int_equal(listener(*state, 0).port, 0);
}

/* Who finds out for himself lets new connections in until that is done, and keeps what was found.
 */
static void a_listener_intercepts_as_told(void **state)
{
	struct sw_listener_conf l[] = {any(8000), any(8001), any(8002), any(8003)};
	struct sw_pool_conf p[] = {pool(529)};
	struct sw_listener found;
	uint32_t id = 4;

	l[1].intercept = SW_INTERCEPT_ESTABLISHED;
	l[2].intercept = SW_INTERCEPT_BOTH;
	l[3].intercept = SW_INTERCEPT_AUTO;
	write_ok(*state, p, 1, l, 4, NOW);
	assert_int_equal(listener(*state, 1).flags, 0);
	assert_int_equal(listener(*state, 2).flags, SW_LF_KEEP | SW_LF_PASS_NEW);
	assert_int_equal(listener(*state, 3).flags, SW_LF_KEEP);
	assert_int_equal(listener(*state, 4).flags, SW_LF_KEEP | SW_LF_PASS_NEW);
	found = listener(*state, 4);
	found.flags = SW_LF_KEEP;
	assert_int_equal(
		bpf_map_update_elem(((struct world *)*state)->maps.listeners, &id, &found, BPF_ANY),
		0);
	p[0].observe = true; /* so that something is written */
	write_ok(*state, p, 1, l, 4, NOW);
	assert_int_equal(listener(*state, 4).flags, SW_LF_KEEP | SW_LF_OBSERVE);
}

static void only_this_namespace_is_written(void **state)
{
	struct sw_listener_conf l[] = {any(8000), any(8001), any(8002)};
	struct sw_pool_conf p[] = {pool(529)};
	struct sw_config c = {.pools = p, .n_pools = 1, .listeners = l, .n_listeners = 3};
	char a[] = "/run/netns/a", again[] = "/run/netns/a";
	struct world *w = *state;

	l[1].netns = a;
	l[2].netns = "pid:1";
	assert_int_equal(sw_tables_write(&w->maps, &c, NULL, NOW, NULL), 0);
	assert_port(w, 8000, 1, 1, 0);
	assert_port(w, 8001, 0, 0, 0);
	assert_int_equal(sw_tables_write(&w->maps, &c, again, NOW, NULL), 0);
	assert_port(w, 8000, 0, 0, 0);
	assert_port(w, 8001, 2, 2, 0);
	assert_port(w, 8002, 0, 0, 0);
	assert_int_equal(listener(w, 1).port, 0);
}

static void paths_have_their_meaning(void **state)
{
	struct sw_path_conf paths[] = {
		{SW_METHOD_POST, "/v1/completions", SW_PATH_SHED, SW_FAMILY_DEFAULT,
		 SW_API_EP_COMPLETIONS},
		{SW_METHOD_POST, "/v1/messages", SW_PATH_SHED, SW_FAMILY_ANTHROPIC,
		 SW_API_EP_ANTHROPIC_MESSAGES},
		{SW_METHOD_POST, "/v2/models/{name}/infer", SW_PATH_SHED, SW_FAMILY_DEFAULT,
		 SW_API_EP_TENSOR},
		{SW_METHOD_POST, "/v2/models/{name}/generate", SW_PATH_SHED, SW_FAMILY_DEFAULT,
		 SW_API_EP_OTHER},
		{SW_METHOD_GET, "/x/{id}", SW_PATH_SHED, SW_FAMILY_DEFAULT, SW_API_EP_OTHER},
		{SW_METHOD_POST, "/v1/completions", SW_PATH_PASS, SW_FAMILY_DEFAULT,
		 SW_API_EP_OTHER},
	};
	struct sw_listener_conf l[] = {any(8000)};
	struct sw_pool_conf p[] = {pool(529)};
	struct sw_path key = {.method = SW_METHOD_POST, .path = "/v1/messages"};
	struct sw_path_value value;
	struct sw_prefix prefix;
	struct world *w = *state;
	uint32_t i;

	l[0].paths = paths;
	l[0].n_paths = 6;
	write_ok(w, p, 1, l, 1, NOW);
	key.set = listener(w, 1).paths;
	assert_int_equal(rows(w->maps.paths), 5);
	assert_int_equal(action(w, key.set, SW_METHOD_POST, 0, "/v1/completions"), SW_PATH_PASS);
	assert_int_equal(action(w, key.set, SW_METHOD_GET, 0, "/v1/completions"), 0);
	assert_int_equal(action(w, key.set, SW_METHOD_POST, 1, "/infer"), SW_PATH_SHED);
	assert_int_equal(action(w, key.set, SW_METHOD_POST, 1, "/generate"), SW_PATH_SHED);
	assert_int_equal(action(w, key.set, SW_METHOD_GET, 2, ""), SW_PATH_SHED);
	assert_int_equal(bpf_map_lookup_elem(w->maps.paths, &key, &value), 0);
	assert_int_equal(value.family, SW_FAMILY_ANTHROPIC);
	assert_int_equal(value.endpoint, SW_API_EP_ANTHROPIC_MESSAGES);
	for (i = 0; i < 3; i++) {
		static const char *const want[] = {"/v2/models/", "/x/", ""};

		bpf_map_lookup_elem(w->maps.prefixes, &i, &prefix);
		assert_int_equal(prefix.length, strlen(want[i]));
		assert_memory_equal(prefix.bytes, want[i], strlen(want[i]));
	}
}

static void equal_sets_are_shared(void **state)
{
	struct sw_path_conf a[] = {{SW_METHOD_POST, "/a", SW_PATH_SHED, 0, 0},
				   {SW_METHOD_POST, "/b", SW_PATH_SHED, 0, 0}};
	struct sw_path_conf turned[] = {a[1], a[0]}, b[] = {a[0]};
	struct sw_cidr c[] = {cidr4("10.0.0.0", 8), cidr4("192.168.1.0", 24)}, d[] = {c[1]};
	struct sw_listener_conf l[] = {any(1), any(2), any(3), any(4)};
	struct sw_pool_conf p[] = {pool(529), pool(529), pool(503)};
	struct world *w = *state;

	l[0].paths = a, l[0].n_paths = 2, l[0].exempt = c, l[0].n_exempt = 2;
	l[1].paths = turned, l[1].n_paths = 2, l[1].exempt = c, l[1].n_exempt = 2, l[1].pool = 1;
	l[2].paths = b, l[2].n_paths = 1, l[2].exempt = d, l[2].n_exempt = 1, l[2].pool = 2;
	write_ok(w, p, 3, l, 4, NOW);
	assert_int_equal(listener(w, 1).paths, listener(w, 2).paths);
	assert_int_not_equal(listener(w, 1).paths, listener(w, 3).paths);
	assert_int_equal(rows(w->maps.paths), 3);
	assert_int_equal(listener(w, 1).exempt, listener(w, 2).exempt);
	assert_int_equal(rows(w->maps.exempt), 3);
	assert_true(is_exempt(w, listener(w, 1).exempt, "10.9.8.7"));
	assert_false(is_exempt(w, listener(w, 1).exempt, "11.9.8.7"));
	assert_true(is_exempt(w, listener(w, 3).exempt, "192.168.1.1"));
	assert_false(is_exempt(w, listener(w, 3).exempt, "10.9.8.7"));
	assert_int_equal(listener(w, 1).answers, listener(w, 2).answers);
	assert_int_not_equal(listener(w, 1).answers, listener(w, 3).answers);
	/* The one without paths and CIDRs shares neither with anybody. */
	assert_int_equal(action(w, listener(w, 4).paths, SW_METHOD_POST, 0, "/a"), 0);
	assert_false(is_exempt(w, listener(w, 4).exempt, "192.168.1.1"));
}

static void answers_are_the_rendered_ones(void **state)
{
	static struct sw_answer want[SW_ANSWERS_PER_SET];
	struct sw_listener_conf l[] = {any(8000)};
	struct sw_pool_conf p[] = {pool(529)};
	struct world *w = *state;
	uint8_t mask;

	p[0].answer.retry_after_min = 1;
	p[0].answer.retry_after_max = 4;
	write_ok(w, p, 1, l, 1, NOW);
	assert_int_equal(sw_answers_render(&p[0].answer, want, &mask, NULL), 0);
	for (uint32_t i = 0; i < SW_ANSWERS_PER_SET; i++) {
		uint32_t at = listener(w, 1).answers * SW_ANSWERS_PER_SET + i;
		struct sw_answer is;

		assert_int_equal(bpf_map_lookup_elem(w->maps.answers, &at, &is), 0);
		assert_memory_equal(&is, &want[i], sizeof(is));
	}
	assert_int_equal(listener(w, 1).length, want[0].length);
	assert_int_equal(listener(w, 1).variants_mask, mask);
}

static void the_old_length_stays_valid(void **state)
{
	struct sw_pool_conf p[] = {pool(529)}, longer[] = {pool(529)};
	struct sw_listener_conf l[] = {any(8000)}, moved[] = {any(9000), any(8000)};
	struct world *w = *state;
	uint16_t before;

	longer[0].answer.body[SW_FAMILY_DEFAULT] =
		"{\"message\":\"a body that is a good deal longer than the one that is built in, so "
		"that the whole answer gets another length, whatever its other parts\"}";
	write_ok(w, p, 1, l, 1, NOW);
	before = listener(w, 1).length;
	assert_int_equal(listener(w, 1).old_length, 0);
	/* Another place in the list: it is the address that counts. */
	write_ok(w, longer, 1, moved, 2, NOW);
	assert_int_not_equal(listener(w, 2).length, before);
	assert_int_equal(listener(w, 2).old_length, before);
	assert_int_equal(listener(w, 2).old_until_ns, NOW + SW_LIFETIME_NS);
	assert_int_equal(listener(w, 1).old_length, 0);
	/* A reload that changes nothing does not prolong it. */
	write_ok(w, longer, 1, moved, 2, NOW + 5);
	assert_int_equal(listener(w, 2).old_length, before);
	assert_int_equal(listener(w, 2).old_until_ns, NOW + SW_LIFETIME_NS);
}

static void answers_in_use_are_not_overwritten(void **state)
{
	struct sw_pool_conf p[] = {pool(529)}, q[] = {pool(503)};
	struct sw_listener_conf l[] = {any(8000)};
	struct sw_answer first;
	struct world *w = *state;
	int set;

	write_ok(w, p, 1, l, 1, NOW);
	set = listener(w, 1).answers;
	first = answer(w, set);
	write_ok(w, q, 1, l, 1, NOW);
	assert_int_not_equal(listener(w, 1).answers, set);
	assert_memory_equal(answer(w, set).bytes, first.bytes, first.length);
}

/* A frozen map takes no writes from user space. */
static void the_same_again_writes_nothing(void **state)
{
	struct sw_path_conf paths[] = {{SW_METHOD_POST, "/a/{b}/c", SW_PATH_SHED, 0, 0},
				       {SW_METHOD_POST, "/b", SW_PATH_SHED, 0, 0}};
	struct sw_cidr c[] = {cidr4("10.0.0.0", 8)};
	struct sw_listener_conf l[] = {any(8000), one4("10.0.0.1", 8001)};
	struct sw_pool_conf p[] = {pool(529), pool(503)};
	struct world *w = *state;
	const int maps[] = {w->maps.ports, w->maps.addresses, w->maps.listeners, w->maps.answers,
			    w->maps.paths, w->maps.prefixes,  w->maps.exempt};

	l[0].paths = paths, l[0].n_paths = 2, l[0].exempt = c, l[0].n_exempt = 1;
	l[1].pool = 1;
	write_ok(w, p, 2, l, 2, NOW);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		assert_int_equal(bpf_map_freeze(maps[i]), 0);
	write_ok(w, p, 2, l, 2, NOW + 1);
}

static void a_failed_write_keeps_the_old_table(void **state)
{
	struct sw_path_conf a[] = {{SW_METHOD_POST, "/a", SW_PATH_SHED, 0, 0}},
			    b[] = {{SW_METHOD_POST, "/b", SW_PATH_SHED, 0, 0}};
	struct sw_listener_conf l[] = {any(8000)}, m[] = {any(8001), one4("10.0.0.1", 8001)};
	struct sw_pool_conf p[] = {pool(529)};
	struct sw_listener before, after;
	struct sw_error err = {0};
	struct world *w = *state;

	l[0].paths = a, l[0].n_paths = 1;
	m[0].paths = b, m[0].n_paths = 1;
	write_ok(w, p, 1, l, 1, NOW);
	before = listener(w, 1);
	assert_int_equal(bpf_map_freeze(w->maps.ports), 0); /* which is written last */
	assert_int_equal(write_bad(w, p, 1, m, 2, &err), -EPERM);
	assert_non_null(strstr(err.text, "ports"));
	after = listener(w, 1);
	assert_memory_equal(&after, &before, sizeof(before));
	assert_int_equal(listener(w, 2).port, 0);
	assert_int_equal(rows(w->maps.addresses), 0);
	assert_int_equal(rows(w->maps.paths), 1);
	assert_int_equal(action(w, before.paths, SW_METHOD_POST, 0, "/a"), SW_PATH_SHED);
}

/* What a packet that comes by the old ports still refers to goes last. */
static void old_listeners_outlive_their_ports(void **state)
{
	struct sw_path_conf a[] = {{SW_METHOD_POST, "/a", SW_PATH_SHED, 0, 0}};
	struct sw_listener_conf l[] = {any(8000)};
	struct sw_pool_conf p[] = {pool(529)};
	struct sw_image old = {0}, none = {0};
	struct world *w = *state;

	l[0].paths = a, l[0].n_paths = 1;
	write_ok(w, p, 1, l, 1, NOW);
	assert_int_equal(sw_image_read(&old, &w->maps, NULL), 0);
	assert_int_equal(sw_image_successor(&none, &old, false), 0);
	assert_int_equal(bpf_map_freeze(w->maps.ports), 0);
	assert_int_equal(sw_image_apply(&w->maps, &old, &none, NULL), -EPERM);
	assert_int_equal(listener(w, 1).port, 8000);
	assert_int_equal(action(w, listener(w, 1).paths, SW_METHOD_POST, 0, "/a"), SW_PATH_SHED);
	sw_image_free(&old);
	sw_image_free(&none);
}

static void what_cannot_be_is_refused(void **state)
{
	struct sw_path_conf nowhere[] = {{SW_METHOD_POST, "/a{b}", SW_PATH_SHED, 0, 0}};
	struct sw_path_conf open[] = {{SW_METHOD_POST, "/a/{b", SW_PATH_SHED, 0, 0}};
	struct sw_path_conf large[] = {
		{SW_METHOD_POST, "/012345678901234567890123456789012345678901234567890123456789012",
		 SW_PATH_SHED, 0, 0}};
	struct sw_listener_conf good[] = {any(7000)}, l[] = {any(8000)},
				twice[] = {any(8000), any(8000)},
				same[] = {one4("10.0.0.1", 80), one4("10.0.0.1", 80)};
	struct sw_pool_conf p[] = {pool(529), pool(503), pool(504)};
	struct sw_listener_conf three[] = {any(1), any(2), any(3)};
	struct sw_error err = {0};
	struct world *w = *state;

	write_ok(w, p, 1, good, 1, NOW);
	assert_int_equal(write_bad(w, p, 1, twice, 2, &err), -EEXIST);
	assert_int_equal(write_bad(w, p, 1, same, 2, &err), -EEXIST);
	l[0].paths = nowhere, l[0].n_paths = 1;
	assert_int_equal(write_bad(w, p, 1, l, 1, &err), -EINVAL);
	l[0].paths = open;
	assert_int_equal(write_bad(w, p, 1, l, 1, &err), -EINVAL);
	l[0].paths = large;
	assert_int_equal(write_bad(w, p, 1, l, 1, &err), -ENAMETOOLONG);
	for (size_t i = 0; i < 3; i++)
		three[i].pool = i;
	assert_int_equal(write_bad(w, p, 3, three, 3, &err), -E2BIG);
	assert_non_null(strstr(err.text, "restart"));
	assert_port(w, 7000, 1, 1, 0);
	assert_port(w, 8000, 0, 0, 0);
}

/* Old and new together are more than the maps hold; either alone is not. */
static void full_maps_can_be_replaced(void **state)
{
	enum { N = 3000 };
	struct sw_path_conf *paths = calloc(N, sizeof(*paths));
	struct sw_cidr *c = calloc(N, sizeof(*c));
	struct sw_pool_conf p[] = {pool(529), pool(503), pool(504)};
	struct sw_listener_conf l[] = {any(8000), any(8001)};
	struct world *w = *state;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++) {
			free(paths[i].path);
			paths[i] = (struct sw_path_conf){SW_METHOD_POST, NULL, SW_PATH_SHED, 0, 0};
			assert_true(asprintf(&paths[i].path, "/%d/%d", round, i) > 0);
			c[i] = cidr4("10.0.0.0", 32);
			c[i].addr[13] = round;
			c[i].addr[14] = i >> 8;
			c[i].addr[15] = i;
		}
		l[0].paths = paths, l[0].n_paths = N, l[0].exempt = c, l[0].n_exempt = N;
		/* Both places for answers are used by the old, and both change. */
		l[0].pool = round ? 2 : 0;
		l[1].pool = 1;
		p[1] = pool(503 + round * 2);
		write_ok(w, p, 3, l, 2, NOW);
		assert_int_equal(rows(w->maps.paths), N);
		assert_int_equal(rows(w->maps.exempt), N);
	}
	assert_port(w, 8000, 1, 1, 0);
	assert_int_equal(action(w, listener(w, 1).paths, SW_METHOD_POST, 0, "/1/7"), SW_PATH_SHED);
	assert_true(is_exempt(w, listener(w, 1).exempt, "10.1.0.7"));
	assert_non_null(strstr(answer(w, listener(w, 1).answers).bytes, "504"));
	for (int i = 0; i < N; i++)
		free(paths[i].path);
	free(paths);
	free(c);
}

static void more_than_a_map_holds_is_refused(void **state)
{
	enum { N = SW_MAX_EXEMPT + 1 };
	struct sw_cidr *c = calloc(N, sizeof(*c));
	struct sw_listener_conf good[] = {any(7000)}, l[] = {any(8000)};
	struct sw_pool_conf p[] = {pool(529)};
	struct sw_error err = {0};

	for (int i = 0; i < N; i++) {
		c[i] = cidr4("10.0.0.0", 32);
		c[i].addr[14] = i >> 8;
		c[i].addr[15] = i;
	}
	l[0].exempt = c, l[0].n_exempt = N;
	write_ok(*state, p, 1, good, 1, NOW);
	assert_int_equal(write_bad(*state, p, 1, l, 1, &err), -E2BIG);
	assert_non_null(strstr(err.text, "exempt"));
	assert_port(*state, 7000, 1, 1, 0);
	free(c);
}

static void own_addresses_are_known(void **state)
{
	struct sw_local list[64], gone = {.addr = {1}};
	uint32_t value = 1;
	struct world *w = *state;
	int n = sw_iface_addresses(list, 64);

	bpf_map_update_elem(w->maps.local, &gone, &value, BPF_ANY);
	assert_int_equal(sw_tables_write_local(&w->maps, NULL), 0);
	for (int i = 0; i < n && i < 64; i++)
		assert_int_equal(bpf_map_lookup_elem(w->maps.local, &list[i], &value), 0);
	assert_int_not_equal(bpf_map_lookup_elem(w->maps.local, &gone, &value), 0);
}

static void room_for_answers(void **state)
{
	(void)state;
	assert_int_equal(sw_answer_sets(0), 8);
	assert_int_equal(sw_answer_sets(8), 8);
	assert_int_equal(sw_answer_sets(9), 16);
	assert_int_equal(sw_answer_sets(256), 256);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(packets_find_listeners),
		T(a_listener_knows_its_pool),
		T(a_listener_intercepts_as_told),
		T(only_this_namespace_is_written),
		T(paths_have_their_meaning),
		T(equal_sets_are_shared),
		T(answers_are_the_rendered_ones),
		T(the_old_length_stays_valid),
		T(answers_in_use_are_not_overwritten),
		T(the_same_again_writes_nothing),
		T(a_failed_write_keeps_the_old_table),
		T(old_listeners_outlive_their_ports),
		T(what_cannot_be_is_refused),
		T(full_maps_can_be_replaced),
		T(more_than_a_map_holds_is_refused),
		T(own_addresses_are_known),
		cmocka_unit_test(room_for_answers),
	};

	if (!sw_probe_caps()) {
		printf("SKIP: making BPF maps needs root\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
