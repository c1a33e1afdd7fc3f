// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A configuration that is written over another one, on real maps (needs root): what stays valid,
 * what is left alone, what is refused, and what is left when it fails. */
#include <bpf/bpf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/image.h"
#include "kernel/probe.h"
#include "lib/maps.h"

static void the_old_length_stays_valid(void **state)
{
	struct sw_pool_conf p[] = {maps_pool(529)}, longer[] = {maps_pool(529)};
	struct sw_listener_conf l[] = {maps_any(8000)}, moved[] = {maps_any(9000), maps_any(8000)};
	struct world *w = *state;
	uint16_t before;

	longer[0].answer.body[SW_FAMILY_DEFAULT] =
		"{\"message\":\"a body that is a good deal longer than the one that is built in, so "
		"that the whole answer gets another length, whatever its other parts\"}";
	maps_write(w, p, 1, l, 1, NOW);
	before = maps_listener(w, 1).length;
	assert_int_equal(maps_listener(w, 1).old_length, 0);
	/* Another place in the list: it is the address that counts. */
	maps_write(w, longer, 1, moved, 2, NOW);
	assert_int_not_equal(maps_listener(w, 2).length, before);
	assert_int_equal(maps_listener(w, 2).old_length, before);
	assert_int_equal(maps_listener(w, 2).old_until_ns, NOW + SW_LIFETIME_NS);
	assert_int_equal(maps_listener(w, 1).old_length, 0);
	/* A reload that changes nothing does not prolong it. */
	maps_write(w, longer, 1, moved, 2, NOW + 5);
	assert_int_equal(maps_listener(w, 2).old_length, before);
	assert_int_equal(maps_listener(w, 2).old_until_ns, NOW + SW_LIFETIME_NS);
}

static void answers_in_use_are_not_overwritten(void **state)
{
	struct sw_pool_conf p[] = {maps_pool(529)}, q[] = {maps_pool(503)};
	struct sw_listener_conf l[] = {maps_any(8000)};
	struct sw_answer first;
	struct world *w = *state;
	int set;

	maps_write(w, p, 1, l, 1, NOW);
	set = maps_listener(w, 1).answers;
	first = maps_answer(w, set);
	maps_write(w, q, 1, l, 1, NOW);
	assert_int_not_equal(maps_listener(w, 1).answers, set);
	assert_memory_equal(maps_answer(w, set).bytes, first.bytes, first.length);
}

/* A frozen map takes no writes from user space. */
static void the_same_again_writes_nothing(void **state)
{
	struct sw_path_conf paths[] = {{SW_METHOD_POST, "/a/{b}/c", SW_PATH_SHED, 0, 0},
				       {SW_METHOD_POST, "/b", SW_PATH_SHED, 0, 0}};
	struct sw_cidr c[] = {maps_cidr4("10.0.0.0", 8)};
	struct sw_listener_conf l[] = {maps_any(8000), maps_one4("10.0.0.1", 8001)};
	struct sw_pool_conf p[] = {maps_pool(529), maps_pool(503)};
	struct world *w = *state;
	const int maps[] = {w->maps.ports, w->maps.addresses, w->maps.listeners, w->maps.answers,
			    w->maps.paths, w->maps.prefixes,  w->maps.exempt};

	l[0].paths = paths, l[0].n_paths = 2, l[0].exempt = c, l[0].n_exempt = 1;
	l[1].pool = 1;
	maps_write(w, p, 2, l, 2, NOW);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		assert_int_equal(bpf_map_freeze(maps[i]), 0);
	maps_write(w, p, 2, l, 2, NOW + 1);
}

static void a_failed_write_keeps_the_old_table(void **state)
{
	struct sw_path_conf a[] = {{SW_METHOD_POST, "/a", SW_PATH_SHED, 0, 0}},
			    b[] = {{SW_METHOD_POST, "/b", SW_PATH_SHED, 0, 0}};
	struct sw_listener_conf l[] = {maps_any(8000)},
				m[] = {maps_any(8001), maps_one4("10.0.0.1", 8001)};
	struct sw_pool_conf p[] = {maps_pool(529)};
	struct sw_listener before, after;
	struct sw_error err = {0};
	struct world *w = *state;

	l[0].paths = a, l[0].n_paths = 1;
	m[0].paths = b, m[0].n_paths = 1;
	maps_write(w, p, 1, l, 1, NOW);
	before = maps_listener(w, 1);
	assert_int_equal(bpf_map_freeze(w->maps.ports), 0); /* which is written last */
	assert_int_equal(maps_write_bad(w, p, 1, m, 2, &err), -EPERM);
	assert_non_null(strstr(err.text, "ports"));
	after = maps_listener(w, 1);
	assert_memory_equal(&after, &before, sizeof(before));
	assert_int_equal(maps_listener(w, 2).port, 0);
	assert_int_equal(maps_rows(w->maps.addresses), 0);
	assert_int_equal(maps_rows(w->maps.paths), 1);
	assert_int_equal(maps_action(w, before.paths, SW_METHOD_POST, 0, "/a"), SW_PATH_SHED);
}

/* What a packet that comes by the old ports still refers to goes last. */
static void old_listeners_outlive_their_ports(void **state)
{
	struct sw_path_conf a[] = {{SW_METHOD_POST, "/a", SW_PATH_SHED, 0, 0}};
	struct sw_listener_conf l[] = {maps_any(8000)};
	struct sw_pool_conf p[] = {maps_pool(529)};
	struct sw_image old = {0}, none = {0};
	struct world *w = *state;

	l[0].paths = a, l[0].n_paths = 1;
	maps_write(w, p, 1, l, 1, NOW);
	assert_int_equal(sw_image_read(&old, &w->maps, NULL), 0);
	assert_int_equal(sw_image_successor(&none, &old, false), 0);
	assert_int_equal(bpf_map_freeze(w->maps.ports), 0);
	assert_int_equal(sw_image_apply(&w->maps, &old, &none, NULL), -EPERM);
	assert_int_equal(maps_listener(w, 1).port, 8000);
	assert_int_equal(maps_action(w, maps_listener(w, 1).paths, SW_METHOD_POST, 0, "/a"),
			 SW_PATH_SHED);
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
	struct sw_listener_conf good[] = {maps_any(7000)}, l[] = {maps_any(8000)},
				twice[] = {maps_any(8000), maps_any(8000)},
				same[] = {maps_one4("10.0.0.1", 80), maps_one4("10.0.0.1", 80)};
	struct sw_pool_conf p[] = {maps_pool(529), maps_pool(503), maps_pool(504)};
	struct sw_listener_conf three[] = {maps_any(1), maps_any(2), maps_any(3)};
	struct sw_error err = {0};
	struct world *w = *state;

	maps_write(w, p, 1, good, 1, NOW);
	assert_int_equal(maps_write_bad(w, p, 1, twice, 2, &err), -EEXIST);
	assert_int_equal(maps_write_bad(w, p, 1, same, 2, &err), -EEXIST);
	l[0].paths = nowhere, l[0].n_paths = 1;
	assert_int_equal(maps_write_bad(w, p, 1, l, 1, &err), -EINVAL);
	l[0].paths = open;
	assert_int_equal(maps_write_bad(w, p, 1, l, 1, &err), -EINVAL);
	l[0].paths = large;
	assert_int_equal(maps_write_bad(w, p, 1, l, 1, &err), -ENAMETOOLONG);
	for (size_t i = 0; i < 3; i++)
		three[i].pool = i;
	assert_int_equal(maps_write_bad(w, p, 3, three, 3, &err), -E2BIG);
	assert_non_null(strstr(err.text, "restart"));
	maps_assert_port(w, 7000, 1, 1, 0);
	maps_assert_port(w, 8000, 0, 0, 0);
}

/* Old and new together are more than the maps hold; either alone is not. */
static void full_maps_can_be_replaced(void **state)
{
	enum { N = 3000 };
	struct sw_path_conf *paths = calloc(N, sizeof(*paths));
	struct sw_cidr *c = calloc(N, sizeof(*c));
	struct sw_pool_conf p[] = {maps_pool(529), maps_pool(503), maps_pool(504)};
	struct sw_listener_conf l[] = {maps_any(8000), maps_any(8001)};
	struct world *w = *state;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++) {
			free(paths[i].path);
			paths[i] = (struct sw_path_conf){SW_METHOD_POST, NULL, SW_PATH_SHED, 0, 0};
			assert_true(asprintf(&paths[i].path, "/%d/%d", round, i) > 0);
			c[i] = maps_cidr4("10.0.0.0", 32);
			c[i].addr[13] = round;
			c[i].addr[14] = i >> 8;
			c[i].addr[15] = i;
		}
		l[0].paths = paths, l[0].n_paths = N, l[0].exempt = c, l[0].n_exempt = N;
		/* Both places for answers are used by the old, and both change. */
		l[0].pool = round ? 2 : 0;
		l[1].pool = 1;
		p[1] = maps_pool(503 + round * 2);
		maps_write(w, p, 3, l, 2, NOW);
		assert_int_equal(maps_rows(w->maps.paths), N);
		assert_int_equal(maps_rows(w->maps.exempt), N);
	}
	maps_assert_port(w, 8000, 1, 1, 0);
	assert_int_equal(maps_action(w, maps_listener(w, 1).paths, SW_METHOD_POST, 0, "/1/7"),
			 SW_PATH_SHED);
	assert_true(maps_is_exempt(w, maps_listener(w, 1).exempt, "10.1.0.7"));
	assert_non_null(strstr(maps_answer(w, maps_listener(w, 1).answers).bytes, "504"));
	for (int i = 0; i < N; i++)
		free(paths[i].path);
	free(paths);
	free(c);
}

static void more_than_a_map_holds_is_refused(void **state)
{
	enum { N = SW_MAX_EXEMPT + 1 };
	struct sw_cidr *c = calloc(N, sizeof(*c));
	struct sw_listener_conf good[] = {maps_any(7000)}, l[] = {maps_any(8000)};
	struct sw_pool_conf p[] = {maps_pool(529)};
	struct sw_error err = {0};

	for (int i = 0; i < N; i++) {
		c[i] = maps_cidr4("10.0.0.0", 32);
		c[i].addr[14] = i >> 8;
		c[i].addr[15] = i;
	}
	l[0].exempt = c, l[0].n_exempt = N;
	maps_write(*state, p, 1, good, 1, NOW);
	assert_int_equal(maps_write_bad(*state, p, 1, l, 1, &err), -E2BIG);
	assert_non_null(strstr(err.text, "exempt"));
	maps_assert_port(*state, 7000, 1, 1, 0);
	free(c);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, maps_set_up, maps_tear_down)
	const struct CMUnitTest tests[] = {
		T(the_old_length_stays_valid),	      T(answers_in_use_are_not_overwritten),
		T(the_same_again_writes_nothing),     T(a_failed_write_keeps_the_old_table),
		T(old_listeners_outlive_their_ports), T(what_cannot_be_is_refused),
		T(full_maps_can_be_replaced),	      T(more_than_a_map_holds_is_refused),
	};

	if (!sw_probe_caps()) {
		printf("SKIP: making BPF maps needs root\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
