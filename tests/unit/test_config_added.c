// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Workers that are added to a configuration from outside of its file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/conf.h"

#define STORE "dynamo: {store: file, store_path: /d}\n"
#define TWO_POOLS                                                                                  \
	STORE "pools:\n"                                                                           \
	      "  - {name: a, engine: vllm, workers: [{scrape: \"http://h:1/m\"}]}\n"               \
	      "  - name: b\n"                                                                      \
	      "    discover: {}\n"                                                                 \
	      "    engine_request_limit: 8\n"                                                      \
	      "    thresholds: {active_decode_blocks_threshold: 0.9}\n"                            \
	      "listeners:\n"                                                                       \
	      "  - {listen: 8000, pool: a}\n"                                                      \
	      "  - {listen: 8001, pool: b}\n"
#define STEERED                                                                                    \
	STORE "pools:\n"                                                                           \
	      "  - {name: a, steer: connect, virtual: [\"10.9.9.9:80\"], cgroup: /c, discover: {}}\n"

static struct sw_config *with(const struct sw_config *c, const struct sw_added_worker *added,
			      size_t n)
{
	struct sw_config *out = NULL;
	struct sw_error err = {""};

	if (sw_config_with(c, added, n, &out, &err))
		fail_msg("%s", err.text);
	return out;
}

static void added_workers_are_workers(void **state)
{
	static const struct sw_added_worker added[] = {
		{"b", "backend-1", 1, "10.0.0.5:9000", 4096, 8192, 2, 4},
		{"b", "backend-ffffffffffffffff", UINT64_MAX, NULL, 0, 0, 0, -1},
		{"gone", "x", 3, NULL, 0, 0, 0, -1},
	};
	struct sw_config *c = conf_good(TWO_POOLS), *more;
	const struct sw_worker_conf *w;

	(void)state;
	c->log_level = SW_DEBUG; /* as by a flag */
	free(c->control);
	c->control = strdup("/elsewhere");
	more = with(c, added, 3);
	assert_int_equal(more->log_level, SW_DEBUG);
	assert_string_equal(more->control, "/elsewhere");
	assert_int_equal(more->pools[0].n_workers, 1);
	assert_false(more->pools[0].workers[0].discovered);
	assert_int_equal(more->pools[1].n_workers, 2);
	w = more->pools[1].workers;
	assert_true(w[0].discovered && w[1].discovered);
	assert_true(w[0].has_worker_id);
	assert_string_equal(w[0].name, "backend-1");
	assert_int_equal(w[0].worker_id, 1);
	assert_int_equal(w[0].at.port, 9000);
	assert_int_equal(w[0].source.hints.kv_total, 4096);
	assert_int_equal(w[0].source.hints.max_batched, 8192);
	assert_int_equal(w[0].start_rank, 2);
	assert_int_equal(w[0].dp_size, 4);
	assert_int_equal(w[0].engine_limit, 8);
	assert_null(w[0].source.url);
	assert_true(w[1].worker_id == UINT64_MAX);
	assert_int_equal(w[1].at.port, 0);
	assert_int_equal(w[1].dp_size, -1);
	sw_config_free(c);

	c = with(more, added, 1); /* and again, in place of those */
	assert_int_equal(c->pools[1].n_workers, 1);
	sw_config_free(more);
	more = with(c, NULL, 0);
	assert_int_equal(more->pools[1].n_workers, 0);
	sw_config_free(c);
	sw_config_free(more);
}

static void they_keep_to_the_rules(void **state)
{
	static const struct sw_added_worker added[] = {
		{"a", "x", 1, "10.0.0.5:9000", 0, 0, 0, -1},
		{"a", "y", 2, "10.0.0.5:9000", 0, 0, 0, -1},
		{"a", "z", 3, NULL, 0, 0, 0, -1},
	};
	struct sw_config *c = conf_good(STEERED), former, *out = &former;
	struct sw_error err;

	(void)state;
	sw_config_free(with(c, added, 1));
	assert_int_equal(sw_config_with(c, added, 2, &out, &err), -EINVAL);
	assert_string_equal(err.text, "c.yaml:3: pools[0].workers[1].address: the same address as "
				      "workers[0]; allowed: one worker for an address");
	assert_int_equal(sw_config_with(c, added + 2, 1, &out, &err), -EINVAL);
	assert_string_equal(err.text,
			    "c.yaml:3: pools[0].workers[0].worker_id: without an address nothing "
			    "can be steered to it; give address: ADDR:PORT beside it");
	assert_ptr_equal(out, &former);
	assert_int_equal(
		conf_load("pools:\n  - name: a\n    discover: {}\nlisteners: [{listen: 1}]\n", &out,
			  &err),
		-EINVAL);
	assert_string_equal(err.text, "c.yaml:3: pools[0].discover: never used; allowed: with "
				      "dynamo.store");
	sw_config_free(c);
}

static void warnings_are_logged_once(void **state)
{
	struct sw_config *c;

	(void)state;
	sw_log_level(SW_INFO);
	conf_capture(STDERR_FILENO);
	c = conf_good(TWO_POOLS);
	assert_non_null(strstr(conf_captured(), "only clients on this host are shed"));
	conf_capture(STDERR_FILENO);
	sw_config_free(with(c, NULL, 0));
	assert_string_equal(conf_captured(), "");
	sw_config_free(c);
	sw_log_level(SW_ERROR);
}

/* A worker of the file that only Dynamo's events tell of. */
static void a_worker_may_be_known_by_its_id(void **state)
{
	struct sw_config *c = conf_good(WORKER("worker_id: 7, kv_total: 100, "
					       "data_parallel_size: 2"));
	const struct sw_worker_conf *w = c->pools[0].workers;

	(void)state;
	assert_string_equal(w->name, "7");
	assert_int_equal(w->source.hints.kv_total, 100);
	assert_int_equal(w->dp_size, 2);
	assert_null(w->source.url);
	sw_config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(added_workers_are_workers),
		cmocka_unit_test(they_keep_to_the_rules),
		cmocka_unit_test(warnings_are_logged_once),
		cmocka_unit_test(a_worker_may_be_known_by_its_id),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
