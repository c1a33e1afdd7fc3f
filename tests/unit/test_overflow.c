// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Overflow of pools: the shape of an answer by path, and responders kept from one configuration to
 * the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/overflow.h"

static struct sw_worker_conf worker = {.source.engine = SW_ENGINE_VLLM, .share = 1};
static struct sw_path_conf paths[] = {
	{SW_METHOD_POST, (char *)"/v1/x", SW_PATH_SHED, SW_FAMILY_TGI, SW_API_EP_OTHER},
	{SW_METHOD_POST, (char *)"/v1/messages", SW_PATH_SHED, SW_FAMILY_DEFAULT,
	 SW_API_EP_RESPONSES},
};
static struct sw_pool_conf pools[] = {
	{.name = (char *)"a", .workers = &worker, .n_workers = 1, .steer.by = SW_STEER_CONNECT},
	{.name = (char *)"b", .workers = &worker, .n_workers = 1, .steer.by = SW_STEER_LOCAL},
	{.name = (char *)"c", .workers = &worker, .n_workers = 1},
};
static struct sw_listener_conf listeners[] = {{.pool = 1, .paths = paths, .n_paths = 2},
					      {.pool = 2}};
static struct sw_config conf = {
	.pools = pools, .n_pools = 3, .listeners = listeners, .n_listeners = 2};
static struct sw_live live;
static struct event_base *base;

static enum sw_family family(size_t pool, enum sw_method method, const char *path)
{
	enum sw_api_endpoint endpoint;

	return sw_overflow_family(&conf, pool, method, path, &endpoint);
}

static enum sw_api_endpoint endpoint(size_t pool, enum sw_method method, const char *path)
{
	enum sw_api_endpoint out;

	sw_overflow_family(&conf, pool, method, path, &out);
	return out;
}

static void kinds_of_requests(void **state)
{
	(void)state;
	assert_int_equal(endpoint(0, SW_METHOD_POST, "/v1/messages"), SW_API_EP_ANTHROPIC_MESSAGES);
	assert_int_equal(endpoint(0, SW_METHOD_POST, "/v2/models/a/infer"), SW_API_EP_TENSOR);
	assert_int_equal(endpoint(0, SW_METHOD_GET, "/v1/messages"), SW_API_EP_OTHER);
	assert_int_equal(endpoint(1, SW_METHOD_POST, "/v1/messages"), SW_API_EP_RESPONSES);
}

static void built_in_paths(void **state)
{
	(void)state;
	assert_int_equal(family(0, SW_METHOD_POST, "/v1/messages"), SW_FAMILY_ANTHROPIC);
	assert_int_equal(family(0, SW_METHOD_GET, "/v1/messages"), SW_FAMILY_DEFAULT);
	assert_int_equal(family(0, SW_METHOD_POST, "/v1/chat/completions"), SW_FAMILY_DEFAULT);
	assert_int_equal(family(0, SW_METHOD_GET, "/health"), SW_FAMILY_DEFAULT);
	worker.source.engine = SW_ENGINE_TGI;
	assert_int_equal(family(0, SW_METHOD_POST, "/generate"), SW_FAMILY_TGI);
	worker.source.engine = SW_ENGINE_VLLM;
}

static void the_listeners_paths_win(void **state)
{
	(void)state;
	assert_int_equal(family(1, SW_METHOD_POST, "/v1/x"), SW_FAMILY_TGI);
	assert_int_equal(family(1, SW_METHOD_POST, "/v1/messages"), SW_FAMILY_DEFAULT);
}

static void names_in_paths(void **state)
{
	(void)state;
	paths[0].path = (char *)"/m/{name}/infer";
	assert_int_equal(family(1, SW_METHOD_POST, "/m/llama/infer"), SW_FAMILY_TGI);
	assert_int_equal(family(1, SW_METHOD_POST, "/m//infer"), SW_FAMILY_DEFAULT);
	assert_int_equal(family(1, SW_METHOD_POST, "/m/a/b/infer"), SW_FAMILY_DEFAULT);
	assert_int_equal(family(1, SW_METHOD_POST, "/m/a/infer2"), SW_FAMILY_DEFAULT);
	assert_int_equal(family(1, SW_METHOD_POST, "/m"), SW_FAMILY_DEFAULT);
}

static void build(const struct sw_overflows *running, struct sw_overflows *out)
{
	struct sw_error err = {0};

	if (sw_overflows_build(&live, base, &conf, running, out, &err))
		fail_msg("%s", err.text);
}

static void only_where_something_can_overflow(void **state)
{
	struct sw_overflows o;

	(void)state;
	build(NULL, &o);
	assert_int_equal(o.n, 2);
	assert_non_null(sw_overflow_find(&o, "a", NULL));
	assert_non_null(sw_overflow_find(&o, "b", NULL));
	assert_null(sw_overflow_find(&o, "c", NULL));
	sw_overflows_free(&o, NULL);
	pools[0].steer.refuse = true; /* connect() fails instead */
	build(NULL, &o);
	assert_int_equal(o.n, 1);
	sw_overflows_free(&o, NULL);
	pools[0].steer.refuse = false;
}

/* A port that was told to the kernel stays good, also when the change is given up. */
static void those_that_stay_are_kept(void **state)
{
	struct sw_overflows was, now;
	uint16_t port;

	(void)state;
	build(NULL, &was);
	port = sw_responder_port(sw_overflow_find(&was, "b", NULL)->responder);
	pools[0].name = (char *)"new";
	build(&was, &now);
	pools[0].name = (char *)"a";
	assert_null(sw_overflow_find(&now, "a", NULL));
	assert_ptr_equal(sw_overflow_find(&now, "b", NULL), sw_overflow_find(&was, "b", NULL));
	sw_overflows_free(&now, &was);
	assert_int_equal(sw_responder_port(sw_overflow_find(&was, "b", NULL)->responder), port);
	sw_overflows_free(&was, NULL);
}

static void a_namespace_is_waited_for(void **state)
{
	struct sw_overflows o;

	(void)state;
	pools[0].steer.netns = (char *)"/run/netns/spw-none";
	build(NULL, &o);
	assert_null(sw_overflow_find(&o, "a", "/run/netns/spw-none")->responder);
	assert_false(sw_overflows_tick(&o, base));
	sw_overflows_free(&o, NULL);
	pools[0].steer.netns = NULL;
}

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	event_base_free(base);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_requests),
		cmocka_unit_test(built_in_paths),
		cmocka_unit_test(the_listeners_paths_win),
		cmocka_unit_test(names_in_paths),
		cmocka_unit_test(only_where_something_can_overflow),
		cmocka_unit_test(those_that_stay_are_kept),
		cmocka_unit_test(a_namespace_is_waited_for),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
