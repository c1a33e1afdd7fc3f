// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which members become workers of which pools. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/discover.h"
#include "lib/conf.h"

#define STORE "dynamo: {store: file, store_path: /d}\n"
#define LISTEN                                                                                     \
	"listeners:\n"                                                                             \
	"  - {listen: 8000, pool: a}\n"

static struct event_base *base;
static struct sw_members *members;
static struct sw_config *conf;
static struct sw_found *found;
static struct sw_additions a;

static void on_change(void *arg)
{
	(void)arg;
}

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	members = sw_members_new(base, on_change, NULL);
	return !members;
}

static void forget(void)
{
	sw_additions_free(&a);
	sw_found_free(found);
	sw_config_free(conf);
	found = NULL;
	conf = NULL;
}

static int teardown(void **state)
{
	(void)state;
	forget();
	sw_members_free(members);
	event_base_free(base);
	return 0;
}

/* path: "NAMESPACE/COMPONENT/ENDPOINT/ID" */
static void put(const char *path, const char *address, const char *model)
{
	char key[128], value[256];

	snprintf(key, sizeof(key), "v1/instances/%s", path);
	snprintf(value, sizeof(value), "{\"transport\":{\"tcp\":\"%s\"}}", address);
	sw_members_put(members, key, value, strlen(value));
	snprintf(key, sizeof(key), "v1/mdc/%s", path);
	snprintf(
		value, sizeof(value),
		"{\"card_json\":{\"display_name\":\"%s\",\"runtime_config\":{\"total_kv_blocks\":9,"
		"\"max_num_batched_tokens\":8,\"data_parallel_start_rank\":4,"
		"\"data_parallel_size\":2}}}",
		model);
	sw_members_put(members, key, value, strlen(value));
}

static void choose(const char *yaml)
{
	forget();
	conf = conf_good(yaml);
	found = sw_found_take(members);
	assert_non_null(found);
	assert_int_equal(sw_additions_choose(found, conf, &a), 0);
}

/* The names of all that were chosen, as "pool/worker pool/worker". */
static const char *chosen(void)
{
	static char out[1024];
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < a.n; i++)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s/%s", i ? " " : "",
				      a.workers[i].pool, a.workers[i].name);
	return out;
}

static void a_pool_gets_those_of_its_model(void **state)
{
	(void)state;
	put("d/back/gen/1f", "10.0.0.5:9000/1f/gen", "m");
	put("d/back/gen/2", "a-name:9000", "m");
	put("d/back/gen/3", "10.0.0.7:9000", "other");
	choose(STORE "pools:\n"
		     "  - {name: a, model: m, discover: {}}\n"
		     "  - {name: other, discover: {}}\n"
		     "  - {name: m}\n" LISTEN);
	assert_string_equal(chosen(), "a/back-1f a/back-2 other/back-3");
	assert_int_equal(a.left_out, 0);
	assert_int_equal(a.workers[0].worker_id, 0x1f);
	assert_string_equal(a.workers[0].address, "10.0.0.5:9000");
	assert_null(a.workers[1].address);
	assert_int_equal(a.workers[0].kv_total, 9);
	assert_int_equal(a.workers[0].max_batched, 8);
	assert_int_equal(a.workers[0].start_rank, 4);
	assert_int_equal(a.workers[0].dp_size, 2);
}

static void filters_hold(void **state)
{
	(void)state;
	put("d/back/gen/1", "10.0.0.5:9000", "a");
	put("d/prefill/gen/2", "10.0.0.6:9000", "a");
	put("d/back/other/3", "10.0.0.7:9000", "a");
	put("e/back/gen/4", "10.0.0.8:9000", "a");
#define WITH(filter) STORE "pools: [{name: a, discover: {" filter "}}]\n" LISTEN
	choose(WITH("component: back"));
	assert_string_equal(chosen(), "a/back-1 a/back-3 a/back-4");
	choose(WITH("component: back, endpoint: gen"));
	assert_string_equal(chosen(), "a/back-1 a/back-4");
	choose(WITH("namespace: e"));
	assert_string_equal(chosen(), "a/back-4");
	choose(WITH("component: gone"));
	assert_string_equal(chosen(), "");
}

static void a_worker_of_the_file_is_not_added(void **state)
{
	(void)state;
	put("d/back/gen/1f", "10.0.0.5:9000", "a");
	put("d/back/gen/2", "10.0.0.6:9000", "a");
	choose(STORE
	       "pools:\n"
	       "  - {name: a, discover: {}, workers: [{worker_id: 31, name: mine}]}\n" LISTEN);
	assert_string_equal(chosen(), "a/back-2");
	assert_int_equal(a.left_out, 0);
	choose(STORE
	       "pools:\n"
	       "  - {name: a, discover: {}, workers: [{worker_id: 9, name: back-2}]}\n" LISTEN);
	assert_string_equal(chosen(), "a/back-1f");
	assert_string_equal(a.error.text,
			    "pool a: worker back-2 is left out: the file has a worker "
			    "of that name");
}

static void a_worker_with_two_endpoints_is_one(void **state)
{
	(void)state;
	put("d/back/chat/1", "10.0.0.5:9000", "a");
	put("d/back/embed/1", "10.0.0.5:9000", "a");
	choose(WITH(""));
	assert_string_equal(chosen(), "a/back-1");
	assert_int_equal(a.left_out, 0);
}

#define STEER(workers)                                                                             \
	STORE "pools:\n"                                                                           \
	      "  - name: a\n"                                                                      \
	      "    discover: {}\n"                                                                 \
	      "    steer: connect\n"                                                               \
	      "    virtual: [\"10.9.9.9:80\"]\n"                                                   \
	      "    cgroup: /c\n" workers

/* And what is left is a configuration that is good. */
static void odd_ones_do_not_keep_others_out(void **state)
{
	struct sw_config *next;
	struct sw_error err;

	(void)state;
	put("d/back/gen/1", "a-name:9000", "a");
	put("d/back/gen/2", "10.9.9.9:80", "a");
	put("d/back/gen/3", "10.0.0.5:9000", "a");
	put("d/back/gen/4", "10.0.0.5:9000", "a");
	put("d/back/gen/5", "10.0.0.1:80", "a");
	put("d/back/gen/6", "0.0.0.0:80", "a");
	put("d/back/gen/7", "10.0.0.6:9000", "a");
	choose(STEER("    workers: [{address: \"10.0.0.1:80\"}]\n"));
	assert_string_equal(chosen(), "a/back-3 a/back-7");
	assert_int_equal(a.left_out, 5);
	assert_non_null(strstr(a.error.text, "back-6 is left out: it registers no address"));
	assert_int_equal(sw_config_with(conf, a.workers, a.n, &next, &err), 0);
	sw_config_free(next);

	choose(STORE "pools: [{name: a, discover: {}, steer: local}]\n"
		     "listeners: [{listen: \"10.0.0.6:9000\"}]\n");
	assert_string_equal(chosen(), "a/back-2 a/back-3 a/back-5");
	assert_non_null(strstr(a.error.text, "back-7 is left out: its address is a listener's"));
	assert_int_equal(sw_config_with(conf, a.workers, a.n, &next, &err), 0);
	sw_config_free(next);
}

static void what_is_running_is_recognised(void **state)
{
	struct sw_config *running;
	struct sw_error err;

	(void)state;
	put("d/back/gen/1", "10.0.0.5:9000", "a");
	put("d/back/gen/2", "a-name:9000", "a");
	choose(WITH(""));
	assert_false(sw_additions_are_in(&a, conf));
	assert_int_equal(sw_config_with(conf, a.workers, a.n, &running, &err), 0);
	assert_true(sw_additions_are_in(&a, running));
	put("d/back/gen/1", "10.0.0.6:9000", "a");
	choose(WITH(""));
	assert_false(sw_additions_are_in(&a, running));
	put("d/back/gen/1", "10.0.0.5:9000", "a");
	put("d/back/gen/3", "10.0.0.7:9000", "a");
	choose(WITH(""));
	assert_false(sw_additions_are_in(&a, running));
	sw_members_delete(members, "v1/instances/d/back/gen/3");
	choose(WITH(""));
	assert_true(sw_additions_are_in(&a, running));
	sw_members_delete(members, "v1/mdc/d/back/gen/2");
	choose(WITH(""));
	assert_false(sw_additions_are_in(&a, running));
	sw_config_free(running);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pool_gets_those_of_its_model),	 TEST(filters_hold),
		TEST(a_worker_of_the_file_is_not_added), TEST(a_worker_with_two_endpoints_is_one),
		TEST(odd_ones_do_not_keep_others_out),	 TEST(what_is_running_is_recognised),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
