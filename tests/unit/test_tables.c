// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From configuration to map contents, on real maps (needs root): what is written and what is
 * shared. What a reload does to what is there is in test_tables_again.c. */
#include <bpf/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/iface.h"
#include "kernel/probe.h"
#include "lib/maps.h"

static void packets_find_listeners(void **state)
{
	struct sw_listener_conf l[] = {maps_any(8000),
				       maps_any(8001),
				       maps_any(8002),
				       maps_one4("10.0.0.1", 8003),
				       maps_one4("10.0.0.2", 8003),
				       maps_any(8003)};
	struct sw_address key = {.port = 8003, .addr = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}};
	struct sw_pool_conf p[] = {maps_pool(529)};
	uint32_t id;

	l[1].v6 = false;
	l[2].v4 = false;
	maps_write(*state, p, 1, l, 6, NOW);
	maps_assert_port(*state, 8000, 1, 1, 0);
	maps_assert_port(*state, 8001, 2, 0, 0);
	maps_assert_port(*state, 8002, 0, 3, 0);
	maps_assert_port(*state, 8003, 6, 6, 1);
	maps_assert_port(*state, 8004, 0, 0, 0);
	assert_int_equal(maps_rows(((struct world *)*state)->maps.addresses), 2);
	assert_int_equal(bpf_map_lookup_elem(((struct world *)*state)->maps.addresses, &key, &id),
			 0);
	assert_int_equal(id, 5);
	maps_write(*state, p, 1, l, 1, NOW);
	maps_assert_port(*state, 8000, 1, 1, 0);
	maps_assert_port(*state, 8001, 0, 0, 0);
	maps_assert_port(*state, 8003, 0, 0, 0);
	assert_int_equal(maps_rows(((struct world *)*state)->maps.addresses), 0);
	assert_int_equal(maps_listener(*state, 5).port, 0);
}

static void a_listener_knows_its_pool(void **state)
{
	struct sw_pool_conf p[] = {maps_pool(529), maps_pool(503)};
	struct sw_cidr c[] = {maps_cidr4("10.0.0.0", 8)};
	struct sw_listener_conf l[] = {maps_any(8000), maps_one4("10.0.0.1", 8001), maps_any(8002)};

	p[1].observe = true;
	l[1].pool = 1;
	l[1].all_paths = true;
	l[2].exempt = c;
	l[2].n_exempt = 1;
	maps_write(*state, p, 2, l, 3, NOW);
	assert_int_equal(maps_listener(*state, 1).port, 8000);
	assert_int_equal(maps_listener(*state, 1).pool, 0);
	assert_int_equal(maps_listener(*state, 1).syn_rate, 7);
	assert_int_equal(maps_listener(*state, 1).flags, 0);
	assert_int_equal(maps_listener(*state, 2).pool, 1);
	assert_int_equal(maps_listener(*state, 2).flags, SW_LF_OBSERVE | SW_LF_ALL_PATHS);
	assert_memory_equal(maps_listener(*state, 2).addr, l[1].addr, 16);
	assert_int_equal(maps_listener(*state, 3).flags, SW_LF_EXEMPT);
	assert_int_equal(maps_listener(*state, 0).port, 0);
}

/* Who finds out for himself lets new connections in until that is done, and keeps what was found.
 */
static void a_listener_intercepts_as_told(void **state)
{
	struct sw_listener_conf l[] = {maps_any(8000), maps_any(8001), maps_any(8002),
				       maps_any(8003)};
	struct sw_pool_conf p[] = {maps_pool(529)};
	struct sw_listener found;
	uint32_t id = 4;

	l[1].intercept = SW_INTERCEPT_ESTABLISHED;
	l[2].intercept = SW_INTERCEPT_BOTH;
	l[3].intercept = SW_INTERCEPT_AUTO;
	maps_write(*state, p, 1, l, 4, NOW);
	assert_int_equal(maps_listener(*state, 1).flags, 0);
	assert_int_equal(maps_listener(*state, 2).flags, SW_LF_KEEP | SW_LF_PASS_NEW);
	assert_int_equal(maps_listener(*state, 3).flags, SW_LF_KEEP);
	assert_int_equal(maps_listener(*state, 4).flags, SW_LF_KEEP | SW_LF_PASS_NEW);
	found = maps_listener(*state, 4);
	found.flags = SW_LF_KEEP;
	assert_int_equal(
		bpf_map_update_elem(((struct world *)*state)->maps.listeners, &id, &found, BPF_ANY),
		0);
	p[0].observe = true; /* so that something is written */
	maps_write(*state, p, 1, l, 4, NOW);
	assert_int_equal(maps_listener(*state, 4).flags, SW_LF_KEEP | SW_LF_OBSERVE);
}

static void only_this_namespace_is_written(void **state)
{
	struct sw_listener_conf l[] = {maps_any(8000), maps_any(8001), maps_any(8002)};
	struct sw_pool_conf p[] = {maps_pool(529)};
	struct sw_config c = {.pools = p, .n_pools = 1, .listeners = l, .n_listeners = 3};
	char a[] = "/run/netns/a", again[] = "/run/netns/a";
	struct world *w = *state;

	l[1].netns = a;
	l[2].netns = "pid:1";
	assert_int_equal(sw_tables_write(&w->maps, &c, NULL, NOW, NULL), 0);
	maps_assert_port(w, 8000, 1, 1, 0);
	maps_assert_port(w, 8001, 0, 0, 0);
	assert_int_equal(sw_tables_write(&w->maps, &c, again, NOW, NULL), 0);
	maps_assert_port(w, 8000, 0, 0, 0);
	maps_assert_port(w, 8001, 2, 2, 0);
	maps_assert_port(w, 8002, 0, 0, 0);
	assert_int_equal(maps_listener(w, 1).port, 0);
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
	struct sw_listener_conf l[] = {maps_any(8000)};
	struct sw_pool_conf p[] = {maps_pool(529)};
	struct sw_path key = {.method = SW_METHOD_POST, .path = "/v1/messages"};
	struct sw_path_value value;
	struct sw_prefix prefix;
	struct world *w = *state;
	uint32_t i;

	l[0].paths = paths;
	l[0].n_paths = 6;
	maps_write(w, p, 1, l, 1, NOW);
	key.set = maps_listener(w, 1).paths;
	assert_int_equal(maps_rows(w->maps.paths), 5);
	assert_int_equal(maps_action(w, key.set, SW_METHOD_POST, 0, "/v1/completions"),
			 SW_PATH_PASS);
	assert_int_equal(maps_action(w, key.set, SW_METHOD_GET, 0, "/v1/completions"), 0);
	assert_int_equal(maps_action(w, key.set, SW_METHOD_POST, 1, "/infer"), SW_PATH_SHED);
	assert_int_equal(maps_action(w, key.set, SW_METHOD_POST, 1, "/generate"), SW_PATH_SHED);
	assert_int_equal(maps_action(w, key.set, SW_METHOD_GET, 2, ""), SW_PATH_SHED);
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
	struct sw_cidr c[] = {maps_cidr4("10.0.0.0", 8), maps_cidr4("192.168.1.0", 24)},
		       d[] = {c[1]};
	struct sw_listener_conf l[] = {maps_any(1), maps_any(2), maps_any(3), maps_any(4)};
	struct sw_pool_conf p[] = {maps_pool(529), maps_pool(529), maps_pool(503)};
	struct world *w = *state;

	l[0].paths = a, l[0].n_paths = 2, l[0].exempt = c, l[0].n_exempt = 2;
	l[1].paths = turned, l[1].n_paths = 2, l[1].exempt = c, l[1].n_exempt = 2, l[1].pool = 1;
	l[2].paths = b, l[2].n_paths = 1, l[2].exempt = d, l[2].n_exempt = 1, l[2].pool = 2;
	maps_write(w, p, 3, l, 4, NOW);
	assert_int_equal(maps_listener(w, 1).paths, maps_listener(w, 2).paths);
	assert_int_not_equal(maps_listener(w, 1).paths, maps_listener(w, 3).paths);
	assert_int_equal(maps_rows(w->maps.paths), 3);
	assert_int_equal(maps_listener(w, 1).exempt, maps_listener(w, 2).exempt);
	assert_int_equal(maps_rows(w->maps.exempt), 3);
	assert_true(maps_is_exempt(w, maps_listener(w, 1).exempt, "10.9.8.7"));
	assert_false(maps_is_exempt(w, maps_listener(w, 1).exempt, "11.9.8.7"));
	assert_true(maps_is_exempt(w, maps_listener(w, 3).exempt, "192.168.1.1"));
	assert_false(maps_is_exempt(w, maps_listener(w, 3).exempt, "10.9.8.7"));
	assert_int_equal(maps_listener(w, 1).answers, maps_listener(w, 2).answers);
	assert_int_not_equal(maps_listener(w, 1).answers, maps_listener(w, 3).answers);
	/* The one without paths and CIDRs shares neither with anybody. */
	assert_int_equal(maps_action(w, maps_listener(w, 4).paths, SW_METHOD_POST, 0, "/a"), 0);
	assert_false(maps_is_exempt(w, maps_listener(w, 4).exempt, "192.168.1.1"));
}

static void answers_are_the_rendered_ones(void **state)
{
	static struct sw_answer want[SW_ANSWERS_PER_SET];
	struct sw_listener_conf l[] = {maps_any(8000)};
	struct sw_pool_conf p[] = {maps_pool(529)};
	struct world *w = *state;
	uint8_t mask;

	p[0].answer.retry_after_min = 1;
	p[0].answer.retry_after_max = 4;
	maps_write(w, p, 1, l, 1, NOW);
	assert_int_equal(sw_answers_render(&p[0].answer, want, &mask, NULL), 0);
	for (uint32_t i = 0; i < SW_ANSWERS_PER_SET; i++) {
		uint32_t at = maps_listener(w, 1).answers * SW_ANSWERS_PER_SET + i;
		struct sw_answer is;

		assert_int_equal(bpf_map_lookup_elem(w->maps.answers, &at, &is), 0);
		assert_memory_equal(&is, &want[i], sizeof(is));
	}
	assert_int_equal(maps_listener(w, 1).length, want[0].length);
	assert_int_equal(maps_listener(w, 1).variants_mask, mask);
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
#define T(test) cmocka_unit_test_setup_teardown(test, maps_set_up, maps_tear_down)
	const struct CMUnitTest tests[] = {
		T(packets_find_listeners),	    T(a_listener_knows_its_pool),
		T(a_listener_intercepts_as_told),   T(only_this_namespace_is_written),
		T(paths_have_their_meaning),	    T(equal_sets_are_shared),
		T(answers_are_the_rendered_ones),   T(own_addresses_are_known),
		cmocka_unit_test(room_for_answers),
	};

	if (!sw_probe_caps()) {
		printf("SKIP: making BPF maps needs root\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
