// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools that are steered or counted: what their keys become, and who counts. Mistakes and warnings
 * are in test_config_steer_errors.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/conf_steer.h"

static void is_endpoint(const struct sw_endpoint *e, const char *text)
{
	struct sw_listener_conf l = {.port = e->port};
	char shown[64];

	memcpy(l.addr, e->addr, sizeof(l.addr));
	l.v4 = !memcmp(e->addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	sw_format_listener(&l, shown, sizeof(shown));
	assert_string_equal(shown, text);
}

static void connect_all_keys(void **state)
{
	struct sw_config *c = conf_good(
		"pools:\n"
		"  - name: a\n"
		"    steer: connect\n"
		"    virtual: [\"198.18.0.1:80\", \"[fd00::1]:80\"]\n"
		"    cgroup: unit:nginx\n"
		"    netns: /run/netns/x\n"
		"    on_full: refuse\n"
		"    refuse_errno: EHOSTUNREACH\n"
		"    pooled_upstreams: close_idle\n"
		"    idle_close_after_ms: 70\n"
		"    engine_request_limit: 64\n"
		"    request_queue_limit: 8\n"
		"    workers:\n"
		"      - address: 10.0.0.6:8000\n"
		"      - {name: w, address: \"[fd00::7]:81\", scrape: \"http://h/m\", engine: tgi,\n"
		"         engine_request_limit: 9, request_queue_limit: 3, share: 0.5, drain: true}\n"
		"      - {scrape: \"http://10.0.0.8/m\", engine: tgi, request_queue_limit: 2}\n"
		"      - {scrape: \"http://[fd00::9]:99/m\", engine: tgi}\n");
	const struct sw_pool_conf *p = c->pools;
	const struct sw_steer_conf *s = &p->steer;
	const struct sw_worker_conf *w = p->workers;

	(void)state;
	assert_int_equal(c->n_listeners, 0);
	assert_int_equal(s->by, SW_STEER_CONNECT);
	assert_int_equal(s->n_virtuals, 2);
	is_endpoint(&s->virtuals[0], "198.18.0.1:80");
	is_endpoint(&s->virtuals[1], "[fd00::1]:80");
	assert_string_equal(s->cgroup, "unit:nginx");
	assert_string_equal(s->netns, "/run/netns/x");
	assert_true(s->refuse);
	assert_int_equal(s->error, EHOSTUNREACH);
	assert_true(s->close_idle);
	assert_int_equal(s->idle_close_after_ms, 70);
	assert_int_equal(s->count, SW_COUNT_CONNECTIONS);

	assert_int_equal(p->n_workers, 4);
	assert_string_equal(w[0].name, "10.0.0.6:8000");
	assert_null(w[0].source.url);
	is_endpoint(&w[0].at, "10.0.0.6:8000");
	assert_int_equal(w[0].engine_limit, 64);
	assert_int_equal(w[0].queue_limit, 8);
	assert_true(w[0].share == 1.0);
	assert_false(w[0].drain);
	assert_string_equal(w[1].name, "w");
	assert_string_equal(w[1].source.url, "http://h/m");
	is_endpoint(&w[1].at, "[fd00::7]:81");
	assert_int_equal(w[1].engine_limit, 9);
	assert_int_equal(w[1].queue_limit, 3);
	assert_true(w[1].share == 0.5);
	assert_true(w[1].drain);
	is_endpoint(&w[2].at, "10.0.0.8:80");
	assert_int_equal(w[2].engine_limit, 64);
	assert_int_equal(w[2].queue_limit, 2);
	is_endpoint(&w[3].at, "[fd00::9]:99");
	sw_config_free(c);
}

static void defaults(void **state)
{
	struct sw_config *c = conf_good(CONNECT("", ONE));
	const struct sw_steer_conf *s = &c->pools[0].steer;

	(void)state;
	assert_string_equal(s->cgroup, "pid:1");
	assert_null(s->netns);
	assert_false(s->refuse);
	assert_int_equal(s->error, ECONNREFUSED);
	assert_false(s->close_idle);
	assert_int_equal(s->idle_close_after_ms, 1);
	assert_int_equal(c->pools[0].workers[0].engine_limit, 0);
	assert_int_equal(c->pools[0].answer.api, SW_API_DYNAMO); /* of no engine */
	sw_config_free(c);

	c = conf_good(LOCAL("", AT("127.0.0.1:8001"), "  - listen: 8000\n"));
	s = &c->pools[0].steer;
	assert_int_equal(s->by, SW_STEER_LOCAL);
	assert_int_equal(s->count, SW_COUNT_CONNECTIONS);
	assert_null(s->cgroup);
	sw_config_free(c);

	c = conf_good(GUARD("", URL, "  - listen: 8000\n"));
	s = &c->pools[0].steer;
	assert_int_equal(s->by, SW_STEER_NONE);
	assert_int_equal(s->count, SW_COUNT_REPORTS);
	assert_int_equal(s->report_lag_ms, 1000);
	sw_config_free(c);
}

/* Bodies go by the first engine that is named, also of a worker that is not scraped. */
static void engines(void **state)
{
	struct sw_config *c =
		conf_good(CONNECT("", ONE ", {address: \"10.0.0.7:1\", engine: vllm}"));

	(void)state;
	assert_int_equal(c->pools[0].answer.api, SW_API_OPENAI);
	sw_config_free(c);
}

static void errnos(void **state)
{
	static const struct {
		const char *name;
		int error;
	} table[] = {{"ECONNREFUSED", ECONNREFUSED}, {"EAGAIN", EAGAIN},
		     {"ETIMEDOUT", ETIMEDOUT},	     {"EHOSTUNREACH", EHOSTUNREACH},
		     {"ENETUNREACH", ENETUNREACH},   {"EACCES", EACCES}};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config *c;

		snprintf(text, sizeof(text), CONNECT(", on_full: refuse, refuse_errno: %s", ONE),
			 table[i].name);
		c = conf_good(text);
		assert_int_equal(c->pools[0].steer.error, table[i].error);
		sw_config_free(c);
	}
}

/* Worker, pool, environment, 16; and read with N only. */
static void queue_limit_order(void **state)
{
	static const struct {
		const char *env, *pool, *worker;
		uint64_t engine, queue;
	} table[] = {
		{NULL, ", engine_request_limit: 4", "", 4, 16},
		{"5", ", engine_request_limit: 4", "", 4, 5},
		{"", ", engine_request_limit: 4", "", 4, 16},
		{"5", ", engine_request_limit: 4, request_queue_limit: 6", "", 4, 6},
		{"1", ", engine_request_limit: 4, request_queue_limit: 6", "", 4, 6},
		{"1", ", engine_request_limit: 4, request_queue_limit: 1",
		 ", request_queue_limit: 7", 4, 7},
		{NULL, ", request_queue_limit: 6", ", engine_request_limit: 3", 3, 6},
		{"1", ", request_queue_limit: 1", ", request_queue_limit: 0", 0, 0},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config *c;

		if (table[i].env)
			setenv(QUEUE_ENV, table[i].env, 1);
		snprintf(text, sizeof(text), CONNECT("%s", "{address: \"10.0.0.6:8000\"%s}"),
			 table[i].pool, table[i].worker);
		c = conf_good(text);
		assert_int_equal(c->pools[0].workers[0].engine_limit, table[i].engine);
		assert_int_equal(c->pools[0].workers[0].queue_limit, table[i].queue);
		sw_config_free(c);
		unsetenv(QUEUE_ENV);
	}
}

/* Connections are counted where the listeners are the workers, and reports are read elsewhere. */
static void who_counts(void **state)
{
#define W(url) "{scrape: \"http://" url "/m\"}"
	static const struct {
		const char *what, *text;
		enum sw_count_by want;
	} table[] = {
		{"the same address and port",
		 GUARD(N, W("10.0.0.5:8000"), "  - listen: 10.0.0.5:8000\n"), SW_COUNT_CONNECTIONS},
		{"loopback and a listener on any address",
		 GUARD(N, W("127.0.0.1:8000"), "  - listen: 8000\n"), SW_COUNT_CONNECTIONS},
		{"and over IPv6", GUARD(N, W("[::1]:8000"), "  - listen: 8000\n"),
		 SW_COUNT_CONNECTIONS},
		{"localhost", GUARD(N, W("localhost:8000"), "  - listen: 8000\n"),
		 SW_COUNT_CONNECTIONS},
		{"a limit of vLLM's",
		 GUARD(", thresholds: {max_num_queued_reqs: 9}", W("127.0.0.1:8000"),
		       "  - listen: 8000\n"),
		 SW_COUNT_CONNECTIONS},
		{"by address alone", GUARD(N, AT("127.0.0.1:8000"), "  - listen: 8000\n"),
		 SW_COUNT_CONNECTIONS},
		{"in one namespace, by path and by process",
		 GUARD(N, "{scrape: \"http://127.0.0.1:80/m\", netns: \"pid:7\"}",
		       "  - {listen: 80, netns: \"pid:7\"}\n"),
		 SW_COUNT_CONNECTIONS},
		{"each worker has its listener",
		 GUARD(N, W("127.0.0.1:8000") ", " W("127.0.0.1:8001"),
		       "  - listen: 8000\n  - listen: 8001\n"),
		 SW_COUNT_CONNECTIONS},
		{"no limit", GUARD("", W("127.0.0.1:8000"), "  - listen: 8000\n"),
		 SW_COUNT_REPORTS},
		{"another port", GUARD(N, W("127.0.0.1:8001"), "  - listen: 8000\n"),
		 SW_COUNT_REPORTS},
		{"another host", GUARD(N, W("10.0.0.6:8000"), "  - listen: 8000\n"),
		 SW_COUNT_REPORTS},
		{"any host", GUARD(N, W("0.0.0.0:8000"), "  - listen: 8000\n"), SW_COUNT_REPORTS},
		{"a name", GUARD(N, W("h:8000"), "  - listen: 8000\n"), SW_COUNT_REPORTS},
		{"another family", GUARD(N, W("[::1]:8000"), "  - listen: 0.0.0.0:8000\n"),
		 SW_COUNT_REPORTS},
		{"another namespace",
		 GUARD(N, W("127.0.0.1:80"), "  - {listen: 80, netns: \"pid:7\"}\n"),
		 SW_COUNT_REPORTS},
		{"one of two workers",
		 GUARD(N, W("127.0.0.1:8000") ", " W("10.0.0.6:8000"), "  - listen: 8000\n"),
		 SW_COUNT_REPORTS},
		{"the listener of another pool",
		 "pools:\n  - {name: a, engine: vllm" N ", workers: [" W(
			 "127.0.0.1:8000") "]}\n"
					   "  - {name: b}\nlisteners: [{listen: 8000, pool: b}]\n",
		 SW_COUNT_REPORTS},
		{"on request", GUARD(N ", count: connections", W("h:1"), "  - listen: 8000\n"),
		 SW_COUNT_CONNECTIONS},
		{"without a limit",
		 GUARD(", count: connections, cgroup: \"pid:1\"", AT("10.0.0.6:1"),
		       "  - listen: 8000\n"),
		 SW_COUNT_CONNECTIONS},
		{"on request too",
		 GUARD(N ", count: reports, report_lag_ms: 3000", W("127.0.0.1:8000"),
		       "  - listen: 8000\n"),
		 SW_COUNT_REPORTS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config *c = conf_good(table[i].text);

		if (c->pools[0].steer.count != table[i].want)
			fail_msg("%s: %d", table[i].what, c->pools[0].steer.count);
		sw_config_free(c);
	}
}

/* What may stand beside each other. */
static void good_neighbours(void **state)
{
	static const char *const table[] = {
		/* a router that is guarded and steered */
		CONNECT("", ONE) "listeners:\n  - listen: 80\n",
		/* IPv6 addresses lead to all workers */
		"pools: [{name: a, steer: connect, cgroup: /x, virtual: [\"[fd00::1]:80\"],\n"
		"  workers: [" ONE ", " AT("[fd00::2]:1") "]}]\n",
		/* the listener's port on another address */
		LOCAL("", AT("127.0.0.2:80"), "  - listen: 127.0.0.1:80\n"),
		/* a worker of two pools, in the same way */
		CONNECT(", engine_request_limit: 4",
			ONE) "  - {name: b, steer: connect, cgroup: /x, "
			     "virtual: [\"198.18.0.2:80\"],\n"
			     "     engine_request_limit: 4, workers: "
			     "[" ONE "]}\n",
		/* one port of a virtual address each */
		CONNECT("", ONE) "  - {name: b, steer: connect, cgroup: /x, virtual: "
				 "[\"198.18.0.1:81\"], workers: [" ONE "]}\n",
		/* guarded pools may name an address twice */
		GUARD("", "{name: x, scrape: \"http://h/a\"}, {name: y, scrape: \"http://h/b\"}",
		      "  - listen: 1\n"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		sw_config_free(conf_good(table[i]));
}

/* The files that docs/steering.md shows are good ones, and nothing is to be said about them. */
static void documented(void **state)
{
	FILE *f = fopen(conf_source("docs/steering.md"), "r");
	char text[65536], *rest = text, *block;
	unsigned n = 0;

	(void)state;
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	sw_log_level(SW_WARN);
	conf_capture(STDERR_FILENO);
	while ((block = strstr(rest, "```yaml\n"))) {
		block += strlen("```yaml\n");
		rest = strstr(block, "```");
		*rest++ = '\0';
		sw_config_free(conf_good(block));
		n++;
	}
	assert_string_equal(conf_captured(), "");
	sw_log_level(SW_ERROR);
	assert_int_equal(n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect_all_keys),  cmocka_unit_test(defaults),
		cmocka_unit_test(engines),	     cmocka_unit_test(errnos),
		cmocka_unit_test(queue_limit_order), cmocka_unit_test(who_counts),
		cmocka_unit_test(good_neighbours),   cmocka_unit_test(documented),
	};

	unsetenv(QUEUE_ENV);
	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
