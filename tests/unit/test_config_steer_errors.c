// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools that are steered or counted: the line that each mistake gives, and what is warned about. */
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
#include "policy/slots.h"

static void bad_environment(void **state)
{
#define PLACE "c.yaml:2: pools[0].request_queue_limit (from " QUEUE_ENV "): "
	static const struct {
		const char *env, *error;
	} table[] = {
		{"1",
		 PLACE "'1' is too small: one request may always be on its way from the queue to "
		       "the engine, so that N + Q is an exact cap from 2 on only; allowed: 2 to "
		       "1000000"},
		{"many", PLACE "'many' is not a whole number; allowed: 2 to 1000000"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config *c = NULL;
		struct sw_error err = {""};

		setenv(QUEUE_ENV, table[i].env, 1);
		assert_int_equal(conf_load(CONNECT(", engine_request_limit: 4", ONE), &c, &err),
				 -EINVAL);
		assert_string_equal(err.text, table[i].error);
		unsetenv(QUEUE_ENV);
	}
}

static void mistakes_of_keys(void **state)
{
#define BAD(keys, error) {CONNECT(keys, ONE), "c.yaml:2: pools[0]." error}
#define NEVER(key, value, need)                                                                    \
	{GUARD(", " key ": " value, URL, "  - listen: 1\n"),                                       \
	 "c.yaml:2: pools[0]." key ": never used; allowed: with " need}
	static const struct conf_mistake table[] = {
		{GUARD(", steer: dnat", URL, "  - listen: 1\n"),
		 "c.yaml:2: pools[0].steer: 'dnat' is not known; allowed: connect, local"},
		{"pools: [{name: a, steer: connect, cgroup: /x, workers: [" ONE "]}]\n",
		 "c.yaml:1: pools[0].virtual: missing, steer: connect needs it; allowed: [ADDR:PORT, "
		 "...], addresses that routers connect to and nothing else uses"},
		{"pools: [{name: a, steer: connect, virtual: [\"198.18.0.1:80\"]}]\n",
		 "c.yaml:1: pools[0].cgroup: missing, steer: connect needs the routers'; allowed: "
		 "/PATH, pid:N or unit:NAME"},
		{"pools: [{name: a, steer: connect, cgroup: nginx, virtual: [\"198.18.0.1:80\"]}]\n",
		 "c.yaml:1: pools[0].cgroup: 'nginx' is not a cgroup; allowed: a directory such as "
		 "/sys/fs/cgroup/system.slice/nginx.service, pid:N or unit:NAME"},
		{"pools: [{name: a, steer: connect, cgroup: \"pid:0\", virtual: [\"1.2.3.4:5\"]}]\n",
		 "c.yaml:1: pools[0].cgroup: 'pid:0' is not a cgroup; allowed: a directory such as "
		 "/sys/fs/cgroup/system.slice/nginx.service, pid:N or unit:NAME"},
		{"pools: [{name: a, steer: connect, cgroup: \"unit:\", virtual: [\"1.2.3.4:5\"]}]\n",
		 "c.yaml:1: pools[0].cgroup: 'unit:' is not a cgroup; allowed: a directory such as "
		 "/sys/fs/cgroup/system.slice/nginx.service, pid:N or unit:NAME"},
		{"pools:\n  - {name: a, steer: connect, cgroup: /x,\n"
		 "     virtual: [\"198.18.0.1:80\",\n       \"80\"]}\n",
		 "c.yaml:4: pools[0].virtual[1]: '80' is not an address and port; allowed: ADDR:PORT or "
		 "[ADDR6]:PORT, one address and no host name"},
		{"pools: [{name: a, steer: connect, cgroup: /x, virtual: [\"0.0.0.0:80\"]}]\n",
		 "c.yaml:1: pools[0].virtual[0]: '0.0.0.0:80' is not an address and port; allowed: "
		 "ADDR:PORT or [ADDR6]:PORT, one address and no host name"},
		{"pools: [{name: a, steer: connect, cgroup: /x, virtual: [\"model:80\"]}]\n",
		 "c.yaml:1: pools[0].virtual[0]: 'model:80' is not an address and port; allowed: "
		 "ADDR:PORT or [ADDR6]:PORT, one address and no host name"},
		BAD(", netns: blue",
		    "netns: 'blue' is not a network namespace; allowed: /PATH or pid:N"),
		BAD(", on_full: drop", "on_full: 'drop' is not known; allowed: answer, refuse"),
		BAD(", on_full: refuse, refuse_errno: EPIPE",
		    "refuse_errno: 'EPIPE' is not known; allowed: ECONNREFUSED, EAGAIN, ETIMEDOUT, "
		    "EHOSTUNREACH, ENETUNREACH, EACCES"),
		BAD(", refuse_errno: EAGAIN",
		    "refuse_errno: never used; allowed: with on_full: refuse"),
		BAD(", pooled_upstreams: close",
		    "pooled_upstreams: 'close' is not known; allowed: keep, close_idle"),
		BAD(", idle_close_after_ms: 70",
		    "idle_close_after_ms: never used; allowed: with pooled_upstreams: close_idle"),
		BAD(", pooled_upstreams: close_idle, idle_close_after_ms: 0",
		    "idle_close_after_ms: '0' is out of range; allowed: 1 to 60000"),
		BAD(", engine_request_limit: 0",
		    "engine_request_limit: '0' is out of range; allowed: 1 to 1000000"),
		BAD(", engine_request_limit: 4, request_queue_limit: 1",
		    "request_queue_limit: '1' is too small: one request may always be on its way "
		    "from the queue to the engine, so that N + Q is an exact cap from 2 on only; "
		    "allowed: 2 to 1000000"),
		BAD(", count: all",
		    "count: 'all' is not known; allowed: auto, connections, reports"),
		BAD(", count: reports",
		    "count: a steered pool counts connections; allowed: auto, connections"),
		BAD(", report_lag_ms: 500",
		    "report_lag_ms: never used, since this pool counts connections; allowed: with "
		    "count: reports"),
		BAD(", observe: true",
		    "observe: a steered pool cannot only be observed; allowed: without steer"),
		NEVER("virtual", "[\"198.18.0.1:80\"]", "steer: connect"),
		NEVER("netns", "/run/netns/x", "steer: connect"),
		NEVER("on_full", "refuse", "steer: connect"),
		NEVER("pooled_upstreams", "close_idle", "steer: connect"),
		NEVER("cgroup", "/x", "steer, or count: connections"),
		{LOCAL(", netns: /x", ONE, "  - listen: 1\n"),
		 "c.yaml:2: pools[0].netns: never used; allowed: with steer: connect"},
		{GUARD(N ", report_lag_ms: 10001", URL, "  - listen: 1\n"),
		 "c.yaml:2: pools[0].report_lag_ms: '10001' is out of range; allowed: 0 to 10000"},
		{GUARD(", report_lag_ms: 10", URL, "  - listen: 1\n"),
		 "c.yaml:2: pools[0].report_lag_ms: never used; allowed: where every worker has a limit, "
		 "such as engine_request_limit"},
	};

	(void)state;
	CONF_CHECK(table);
}

static void mistakes_of_workers(void **state)
{
#define BAD_WORKER(worker, error) {CONNECT("", worker), "c.yaml:3: pools[0].workers[0]." error}
#define UNUSED(keys, key)                                                                          \
	BAD_WORKER("{address: \"10.0.0.6:8000\", " keys "}",                                       \
		   key ": never used; allowed: with scrape")
	static const struct conf_mistake table[] = {
		BAD_WORKER("{name: x}",
			   "name: without an address nothing can be steered to it; give address: "
			   "ADDR:PORT beside it"),
		BAD_WORKER("{address: \"h:80\"}",
			   "address: 'h:80' is not an address and port; allowed: ADDR:PORT or "
			   "[ADDR6]:PORT, one address and no host name"),
		BAD_WORKER("{address: \"8000\"}",
			   "address: '8000' is not an address and port; allowed: ADDR:PORT or "
			   "[ADDR6]:PORT, one address and no host name"),
		BAD_WORKER("{address: \"10.0.0.6:8000\", share: 0}",
			   "share: '0' is out of range; allowed: over 0.0, to 1.0"),
		BAD_WORKER("{address: \"10.0.0.6:8000\", share: 1.1}",
			   "share: '1.1' is out of range; allowed: over 0.0, to 1.0"),
		BAD_WORKER("{address: \"10.0.0.6:8000\", share: nan}",
			   "share: 'nan' is out of range; allowed: over 0.0, to 1.0"),
		BAD_WORKER("{address: \"10.0.0.6:8000\", drain: soon}",
			   "drain: 'soon' is not known; allowed: false, true"),
		BAD_WORKER(
			"{address: \"10.0.0.6:8000\", engine_request_limit: 1000001}",
			"engine_request_limit: '1000001' is out of range; allowed: 1 to 1000000"),
		BAD_WORKER(
			"{address: \"10.0.0.6:8000\", engine_request_limit: 1, "
			"request_queue_limit: 0}",
			"request_queue_limit: '0' is too small: one request may always be on its way "
			"from the queue to the engine, so that N + Q is an exact cap from 2 on only; "
			"allowed: 2 to 1000000"),
		UNUSED("kv_total: 5", "kv_total"),
		UNUSED("max_num_batched_tokens: 5", "max_num_batched_tokens"),
		UNUSED("period_ms: 50", "period_ms"),
		UNUSED("timeout_ms: 50", "timeout_ms"),
		UNUSED("bearer_token_file: /x", "bearer_token_file"),
		UNUSED("ca_file: /x", "ca_file"),
		UNUSED("insecure: true", "insecure"),
		UNUSED("netns: /x", "netns"),
		UNUSED("data_parallel_start_rank: 1", "data_parallel_start_rank"),
		UNUSED("data_parallel_size: 1", "data_parallel_size"),
		BAD_WORKER(
			"{scrape: \"http://h/m\", engine: vllm}",
			"scrape: 'http://h/m' has no address to steer to, but a name; give address: "
			"ADDR:PORT beside it"),
		BAD_WORKER("{scrape: \"http://10.0.0.6/m\"}",
			   "engine: missing; allowed: vllm, sglang, tgi, llamacpp, triton, "
			   "trtllm-serve, lmdeploy, dynamo-frontend, custom, auto"),
		{CONNECT("", ONE ",\n       " ONE),
		 "c.yaml:4: pools[0].workers[1].address: '10.0.0.6:8000' is workers[0] already; allowed: "
		 "a name that is not taken"},
		{CONNECT("",
			 ONE ",\n       {name: x, scrape: \"http://10.0.0.6:8000\", engine: tgi}"),
		 "c.yaml:4: pools[0].workers[1].scrape: the same address as workers[0]; allowed: one "
		 "worker for an address"},
		{GUARD("", ONE, "  - listen: 1\n"),
		 "c.yaml:3: pools[0].workers[0].scrape: missing; without it or worker_id this pool "
		 "would have to be steered, or count connections"},
		{GUARD("", "{scrape: \"http://h/m\", drain: true}", "  - listen: 1\n"),
		 "c.yaml:3: pools[0].workers[0].drain: nothing that is only guarded can be kept from a "
		 "worker; allowed: in a pool with steer"},
		{GUARD(N ", count: reports", AT("127.0.0.1:1"), "  - listen: 1\n"),
		 "c.yaml:3: pools[0].workers[0].scrape: missing; without it or worker_id this pool "
		 "would have to be steered, or count connections"},
	};

	(void)state;
	CONF_CHECK(table);
}

static void mistakes_between(void **state)
{
#define SECOND(keys) "  - {name: b, steer: connect, cgroup: /x, " keys "}\n"
	static const struct conf_mistake table[] = {
		{"pools: [{name: a, steer: local, workers: [" ONE "]}, {name: b}]\n"
		 "listeners: [{listen: 1, pool: b}]\n",
		 "c.yaml:1: pools[0].steer: local steers what comes to listeners, and the pool has "
		 "none; allowed: with a listener"},
		{"pools: [{name: a, steer: local, workers: [" ONE "]}]\n",
		 "c.yaml:1: listeners: none; allowed: 1 to 1023, or none where a pool has steer: "
		 "connect"},
		{LOCAL("", AT("10.0.0.5:80"), "  - listen: 10.0.0.5:80\n"),
		 "c.yaml:3: pools[0].workers[0].address: taken by listeners[0], whose connections are "
		 "steered; allowed: an address and port of the worker's own"},
		{LOCAL("", AT("127.0.0.1:81") ", " AT("127.0.0.1:80"), "  - listen: 80\n"),
		 "c.yaml:3: pools[0].workers[1].address: taken by listeners[0], whose connections are "
		 "steered; allowed: an address and port of the worker's own"},
		{LOCAL("", ONE, "  - listen: 80\n  - listen: 81\n    netns: /x\n"),
		 "c.yaml:7: listeners[1].netns: not that of the pool's other listeners; allowed: one "
		 "network namespace for a pool with steer: local"},
		{CONNECT("", AT("[fd00::6]:80")),
		 "c.yaml:2: pools[0].virtual[0]: '198.18.0.1:80' is IPv4 and all workers are IPv6, which "
		 "its connections cannot reach; allowed: an IPv6 address"},
		{CONNECT("", ONE) SECOND("virtual: [\"198.18.0.2:80\",\n \"198.18.0.1:80\"]"),
		 "c.yaml:5: pools[1].virtual[1]: '198.18.0.1:80' is pools[0].virtual[0] already; "
		 "allowed: once"},
		{"pools: [{name: a, steer: connect, cgroup: /x, virtual: [\"198.18.0.1:80\",\n"
		 "  \"[::ffff:198.18.0.1]:80\"]}]\n",
		 "c.yaml:2: pools[0].virtual[1]: '[::ffff:198.18.0.1]:80' is pools[0].virtual[0] "
		 "already; allowed: once"},
		{CONNECT("", AT("198.18.0.1:80")),
		 "c.yaml:2: pools[0].virtual[0]: '198.18.0.1:80' is the address of "
		 "pools[0].workers[0]; allowed: one that nothing else uses"},
		{CONNECT("", ONE) "  - {name: b, engine: vllm, workers: [{scrape: "
				  "\"http://198.18.0.1/m\"}]}\n",
		 "c.yaml:2: pools[0].virtual[0]: '198.18.0.1:80' is the address of "
		 "pools[1].workers[0]; allowed: one that nothing else uses"},
		{CONNECT(", engine_request_limit: 4", ONE)
			 SECOND("virtual: [\"198.18.0.2:80\"],\n workers: [" ONE "]"),
		 "c.yaml:5: pools[1].workers[0].address: pools[0] has the same worker with other limits "
		 "(20 slots, here 2147483647); allowed: the same limits and share"},
		{CONNECT(", engine_request_limit: 4", ONE)
			 SECOND("virtual: [\"198.18.0.2:80\"], engine_request_limit: 18,\n"
				" request_queue_limit: 2, workers: [" ONE "]"),
		 "c.yaml:5: pools[1].workers[0].address: pools[0] has the same worker with other limits "
		 "(20 slots, here 20); allowed: the same limits and share"},
		{CONNECT(", netns: /x", AT("127.0.0.1:1"))
			 SECOND("virtual: [\"198.18.0.2:80\"],\n workers: [" AT("127.0.0.1:1") "]"),
		 "c.yaml:5: pools[1].workers[0].address: pools[0] has a worker with this address in "
		 "another network namespace; allowed: an address that no other worker has"},
		{"pools:\n  - {name: a, steer: local, workers: [" ONE "]}\n"
		 "  - {name: b, steer: local, workers: [" ONE "]}\n"
		 "listeners: [{listen: 1, pool: a}, {listen: 1, pool: b, netns: /x}]\n",
		 "c.yaml:3: pools[1].workers[0].address: pools[0] has a worker with this address in "
		 "another network namespace; allowed: an address that no other worker has"},
	};

	(void)state;
	CONF_CHECK(table);
}

/* `n` workers of one steered pool, and `rows` guarded pools that are counted. */
static void write_rows(FILE *f, unsigned n, unsigned rows)
{
	fprintf(f, "pools:\n");
	for (unsigned i = 0; i < rows; i++)
		fprintf(f, "  - {name: g%u, count: connections}\n", i);
	fprintf(f, "  - name: a\n    steer: connect\n    cgroup: /x\n"
		   "    virtual: [\"198.18.0.1:80\"]\n    workers:\n");
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "      - address: 10.0.%u.%u:80\n", i / 250, 1 + i % 250);
}

static void rows_of_slots(void **state)
{
	static const struct {
		unsigned workers, rows;
		const char *error;
	} table[] = {
		{1024, 0, NULL},
		{1000, 24, NULL},
		{1025, 0,
		 "c.yaml:6: pools[0].workers: over 1024 workers and counted pools up to this "
		 "pool; allowed: 1024 in all"},
		{1000, 25,
		 "c.yaml:31: pools[25].workers: over 1024 workers and counted pools up to "
		 "this pool; allowed: 1024 in all"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config *c = NULL;
		struct sw_error err = {""};
		FILE *f = fopen("c.yaml", "w");

		assert_non_null(f);
		write_rows(f, table[i].workers, table[i].rows);
		fclose(f);
		assert_int_equal(sw_config_load("c.yaml", &c, &err), table[i].error ? -EINVAL : 0);
		assert_string_equal(err.text, table[i].error ? table[i].error : "");
		sw_config_free(c);
	}
}

static void many_virtuals(void **state)
{
	(void)state;
	for (unsigned n = SW_MAX_VIRTUALS; n <= SW_MAX_VIRTUALS + 1; n++) {
		struct sw_config *c = NULL;
		struct sw_error err = {""};
		FILE *f = fopen("c.yaml", "w");

		assert_non_null(f);
		fprintf(f, "pools:\n  - name: a\n    steer: connect\n    cgroup: /x\n"
			   "    virtual:\n");
		for (unsigned i = 0; i < n; i++)
			fprintf(f, "      - 198.18.0.1:%u\n", 1000 + i);
		fclose(f);
		assert_int_equal(sw_config_load("c.yaml", &c, &err),
				 n > SW_MAX_VIRTUALS ? -EINVAL : 0);
		assert_string_equal(
			err.text,
			n > SW_MAX_VIRTUALS
				? "c.yaml:5: pools[0].virtual: 1025 virtual addresses up to "
				  "this pool; allowed: 1024 in all"
				: "");
		sw_config_free(c);
	}
}

static void warnings(void **state)
{
	static const struct {
		const char *text, *warning; /* "": none at all */
	} table[] = {
		{CONNECT(", request_queue_limit: 1", ONE),
		 "c.yaml:2: pools[0].request_queue_limit: does nothing without "
		 "engine_request_limit\n"},
		{CONNECT("", "{address: \"10.0.0.6:8000\", request_queue_limit: 1}"),
		 "c.yaml:3: pools[0].workers[0].request_queue_limit: does nothing without "
		 "engine_request_limit\n"},
		{CONNECT(", request_queue_limit: 4",
			 "{address: \"10.0.0.6:8000\", engine_request_limit: 1}"),
		 ""},
		{CONNECT("", ONE ", " AT("[fd00::1]:80") ", " AT("[fd00::2]:80")),
		 "c.yaml:2: pools[0].virtual[0]: '198.18.0.1:80' is IPv4, so its connections cannot "
		 "reach the 2 of 3 workers that are IPv6; an IPv6 address reaches all\n"},
		{CONNECT("", "{address: \"10.0.0.6:8000\", share: 0.5}"),
		 "c.yaml:3: pools[0].workers[0].share: a share of no limit is no limit\n"},
		{CONNECT(", thresholds: {max_num_queued_reqs: 9}",
			 "{address: \"10.0.0.6:8000\", share: 0.5}"),
		 ""},
		{CONNECT(", thresholds: {active_decode_blocks_threshold: 0.9}", ONE),
		 "c.yaml:2: pools[0].thresholds: never reached, since no worker of 'a' has `scrape` or `worker_id`\n"},
		{CONNECT(", thresholds: {active_decode_blocks_threshold: 0.9}",
			 "{scrape: \"http://10.0.0.6/m\", engine: vllm}"),
		 ""},
		{CONNECT(", thresholds: {max_concurrent_requests: 9}", ONE), ""},
		{CONNECT("", ONE), ""}, /* balanced by connections, which is what was asked for */
		{"interfaces: [lo]\n" GUARD(N, URL, "  - listen: 1\n"), ""},
	};

	(void)state;
	sw_log_level(SW_WARN);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *log;

		conf_capture(STDERR_FILENO);
		sw_config_free(conf_good(table[i].text));
		log = conf_captured();
		if (table[i].warning[0] ? !strstr(log, table[i].warning) : log[0] != '\0')
			fail_msg("not \"%s\" but \"%s\"", table[i].warning, log);
	}
	sw_log_level(SW_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_environment),
		cmocka_unit_test(mistakes_of_keys),
		cmocka_unit_test(mistakes_of_workers),
		cmocka_unit_test(mistakes_between),
		cmocka_unit_test(rows_of_slots),
		cmocka_unit_test(many_virtuals),
		cmocka_unit_test(warnings),
	};

	unsetenv(QUEUE_ENV);
	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
