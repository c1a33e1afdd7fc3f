// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line of spillwayd: what flags become, what may stand beside --config, and what is
 * printed. Mistakes are in test_args_errors.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/args.h"
#include "lib/conf.h"

/* Runs what has to print `expected` and end, without a configuration. */
static void prints(const char *line, const char *expected)
{
	struct sw_config *c = NULL;
	struct sw_error err = {""};
	enum sw_args_result result;
	const char *text;

	conf_capture(STDOUT_FILENO);
	result = args_run(line, &c, &err);
	text = conf_captured();
	assert_int_equal(result, SW_ARGS_EXIT);
	assert_null(c);
	if (!strstr(text, expected))
		fail_msg("no \"%s\" in \"%s\"", expected, text);
}

static void zero_configuration(void **state)
{
	struct sw_config *c =
		args_good("--interface eth0 --guard 8000 --engine vllm "
			  "--scrape http://127.0.0.1:8000/metrics --decode-threshold 0.85");
	const struct sw_pool_conf *p = c->pools;
	char text[64];

	(void)state;
	assert_null(c->file);
	assert_int_equal(c->n_interfaces, 1);
	assert_string_equal(c->interfaces[0], "eth0");
	assert_int_equal(c->attach, SW_ATTACH_AUTO);
	assert_string_equal(c->control, SW_DEFAULT_CONTROL);
	assert_int_equal(c->log_level, SW_INFO);
	assert_int_equal(c->n_pools, 1);
	assert_string_equal(p->name, "default");
	assert_int_equal(p->limits.set, 1U << SW_LIM_DECODE);
	assert_true(p->limits.decode == 0.85);
	assert_int_equal(p->answer.status, 529);
	assert_int_equal(p->answer.api, SW_API_OPENAI);
	assert_int_equal(p->n_workers, 1);
	assert_string_equal(p->workers[0].name, "127.0.0.1:8000");
	assert_string_equal(p->workers[0].source.url, "http://127.0.0.1:8000/metrics");
	assert_int_equal(p->workers[0].source.engine, SW_ENGINE_VLLM);
	assert_int_equal(c->n_listeners, 1);
	sw_format_listener(c->listeners, text, sizeof(text));
	assert_string_equal(text, "*:8000");
	assert_true(c->listeners[0].n_paths > 0);
	sw_config_free(c);
}

static void every_flag(void **state)
{
	struct sw_config *c = args_good(
		"--interface eth0 --interface eth1 --guard 10.0.0.5:80 --guard=[::1]:81 "
		"--engine sglang --scrape http://a/m --scrape https://b/m --decode-threshold 0.5 "
		"--prefill-threshold 100 --prefill-threshold-frac 1.5 --max-queued-reqs 7 "
		"--kv-total 1000 --max-batched-tokens 2000 --preset tgi --overload-status 503 "
		"--retry-after 2:9 --observe --exempt 10.0.0.0/8 --exempt ::1 --shed-all-paths "
		"--intercept established --netns pid:12 --mode tc --control /tmp/s --pin-root /tmp/p --log-level debug");
	const struct sw_pool_conf *p = c->pools;

	(void)state;
	assert_int_equal(c->n_interfaces, 2);
	assert_int_equal(c->attach, SW_ATTACH_TC);
	assert_string_equal(c->control, "/tmp/s");
	assert_string_equal(c->pin_root, "/tmp/p");
	assert_int_equal(c->log_level, SW_DEBUG);
	assert_int_equal(p->limits.set, 1U << SW_LIM_DECODE | 1U << SW_LIM_PREFILL |
						1U << SW_LIM_PREFILL_FRAC |
						1U << SW_LIM_QUEUED_REQS);
	assert_int_equal(p->limits.count[SW_LIM_PREFILL], 100);
	assert_true(p->limits.prefill_frac == 1.5);
	assert_int_equal(p->limits.count[SW_LIM_QUEUED_REQS], 7);
	assert_int_equal(p->answer.status, 503);
	assert_int_equal(p->answer.api, SW_API_TGI);
	assert_int_equal(p->answer.retry_after_min, 2);
	assert_int_equal(p->answer.retry_after_max, 9);
	assert_true(p->observe);
	assert_int_equal(p->n_workers, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(p->workers[i].source.engine, SW_ENGINE_SGLANG);
		assert_int_equal(p->workers[i].source.hints.kv_total, 1000);
		assert_int_equal(p->workers[i].source.hints.max_batched, 2000);
		assert_string_equal(p->workers[i].source.netns, "/proc/12/ns/net");
	}
	assert_string_equal(p->workers[1].name, "b:443");
	assert_int_equal(c->n_listeners, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(c->listeners[i].n_exempt, 2);
		assert_true(c->listeners[i].all_paths);
		assert_int_equal(c->listeners[i].intercept, SW_INTERCEPT_ESTABLISHED);
		assert_string_equal(c->listeners[i].netns, "pid:12");
	}
	sw_config_free(c);
}

static void steer_connect(void **state)
{
	struct sw_config *c = args_good(
		"--steer connect --unit nginx --virtual 198.18.0.1:80 --virtual [fd00::1]:80 "
		"--engine vllm --scrape http://10.0.0.6:8000/m --worker 10.0.0.7:8000 "
		"--engine-request-limit 64 --request-queue-limit 8 --on-full refuse "
		"--close-idle --netns pid:12 --decode-threshold 0.5");
	const struct sw_pool_conf *p = c->pools;

	(void)state;
	assert_int_equal(c->n_listeners, 0);
	assert_int_equal(p->steer.by, SW_STEER_CONNECT);
	assert_int_equal(p->steer.n_virtuals, 2);
	assert_string_equal(p->steer.cgroup, "unit:nginx");
	assert_string_equal(p->steer.netns, "pid:12");
	assert_true(p->steer.refuse);
	assert_true(p->steer.close_idle);
	assert_int_equal(p->n_workers, 2);
	assert_string_equal(p->workers[0].source.netns, "/proc/12/ns/net");
	assert_null(p->workers[1].source.url);
	assert_string_equal(p->workers[1].name, "10.0.0.7:8000");
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(p->workers[i].engine_limit, 64);
		assert_int_equal(p->workers[i].queue_limit, 8);
	}
	sw_config_free(c);

	c = args_good("--steer connect --pid 77 --virtual 198.18.0.1:80 --worker 10.0.0.7:1");
	assert_string_equal(c->pools[0].steer.cgroup, "pid:77");
	assert_null(c->pools[0].steer.netns);
	sw_config_free(c);
	c = args_good("--steer connect --cgroup /x --virtual 198.18.0.1:80 --worker 10.0.0.7:1");
	assert_string_equal(c->pools[0].steer.cgroup, "/x");
	sw_config_free(c);
}

static void steer_local(void **state)
{
	struct sw_config *c =
		args_good("--steer local --guard 8000 --worker 127.0.0.1:8001 --netns /n "
			  "--worker 127.0.0.1:8002 --engine-request-limit 4");

	(void)state;
	assert_int_equal(c->pools[0].steer.by, SW_STEER_LOCAL);
	assert_null(c->pools[0].steer.netns);
	assert_int_equal(c->pools[0].n_workers, 2);
	assert_int_equal(c->pools[0].workers[1].queue_limit, 16);
	assert_string_equal(c->listeners[0].netns, "/n");
	sw_config_free(c);
}

/* --remove needs to know no more than where the pins are. */
static void removal(void **state)
{
	static const struct {
		const char *line, *pin_root;
	} table[] = {
		{"--remove", "/sys/fs/bpf/spillway"},
		{"--remove --pin-root /sys/fs/bpf/x --log-level debug", "/sys/fs/bpf/x"},
		{"--remove --config c.yaml", "/sys/fs/bpf/y"},
	};

	(void)state;
	conf_write("pin_root: /sys/fs/bpf/y\n" POOL(""));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config *c = NULL;
		struct sw_error err = {""};

		assert_int_equal(args_run(table[i].line, &c, &err), SW_ARGS_REMOVE);
		assert_string_equal(c->pin_root, table[i].pin_root);
		sw_config_free(c);
	}
}

static void retry_after(void **state)
{
	struct sw_config *c = args_good("--guard 1 --retry-after 5");

	(void)state;
	assert_int_equal(c->pools[0].answer.retry_after_min, 5);
	assert_int_equal(c->pools[0].answer.retry_after_max, 5);
	sw_config_free(c);
}

static void environment(void **state)
{
	struct sw_config *c;

	(void)state;
	setenv("DYN_HTTP_OVERLOAD_STATUS_CODE", "503", 1);
	c = args_good("--guard 1");
	assert_int_equal(c->pools[0].answer.status, 503);
	sw_config_free(c);
	c = args_good("--guard 1 --overload-status 429");
	assert_int_equal(c->pools[0].answer.status, 429);
	sw_config_free(c);
	unsetenv("DYN_HTTP_OVERLOAD_STATUS_CODE");
}

static void file_and_flags(void **state)
{
	struct sw_config *c;

	(void)state;
	conf_write("control: /tmp/file\nlog_level: error\n" POOL(""));
	c = args_good("--config c.yaml");
	assert_string_equal(c->file, "c.yaml");
	assert_string_equal(c->control, "/tmp/file");
	assert_int_equal(c->log_level, SW_ERROR);
	sw_config_free(c);
	c = args_good("--log-level debug --config c.yaml --control /tmp/flag");
	assert_string_equal(c->control, "/tmp/flag");
	assert_int_equal(c->log_level, SW_DEBUG);
	sw_config_free(c);
}

static void check_config(void **state)
{
	struct sw_config *c = NULL;
	struct sw_error err = {""};

	(void)state;
	conf_write(POOL(""));
	prints("--check-config --config c.yaml", "ok\n");
	prints("--guard 80 --check-config", "ok\n");
	conf_write(POOL("    body: xml\n"));
	assert_int_equal(args_run("--config c.yaml --check-config", &c, &err), SW_ARGS_ERROR);
	assert_string_equal(err.text, "c.yaml:5: pools[0].body: 'xml' is not known; allowed: auto, "
				      "dynamo, openai, anthropic, vllm, sglang, tgi, smg");
	assert_null(c);
}

static void help(void **state)
{
	static const char *const parts[] = {"--config FILE",
					    "--guard [ADDR:]PORT",
					    "--retry-after MIN",
					    "--netns PATH|pid:N",
					    "Examples:",
					    "DYN_HTTP_OVERLOAD_STATUS_CODE",
					    "DYN_DYNAMO_REQUEST_QUEUE_LIMIT",
					    "--remove",
					    "detaches all programs"};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		prints("--help", parts[i]);
	prints("-h", "Usage: spillwayd");
	prints("--version", "spillwayd " SW_VERSION "\n");
	/* the engines are spelled out there, but for two that need more than flags can say */
	for (int e = 0; e < SW_ENGINES; e++)
		if (e != SW_ENGINE_DYNAMO && e != SW_ENGINE_CUSTOM)
			prints("--help", sw_engine_name((enum sw_engine)e));
}

/* The command lines that the help shows are good ones. */
static void help_examples(void **state)
{
	static const char *const lines[] = {
		"--interface eth0 --guard 8000 --engine vllm --scrape "
		"http://127.0.0.1:8000/metrics --decode-threshold 0.85",
		"--interface eth0 --guard 10.0.0.5:80 --engine sglang --observe --scrape "
		"http://10.0.0.6:30000/v1/loads?format=prometheus --scrape "
		"http://10.0.0.7:30000/v1/loads?format=prometheus --max-queued-reqs 64 "
		"--retry-after 1:8",
		"--netns pid:1234 --guard 80 --engine tgi --preset tgi --scrape "
		"http://127.0.0.1:80/metrics --decode-threshold 0.9",
		"--steer connect --unit nginx --virtual 198.18.0.1:8000 --engine vllm --scrape "
		"http://10.0.0.6:8000/metrics --scrape http://10.0.0.7:8000/metrics "
		"--decode-threshold 0.85 --engine-request-limit 64",
		"--interface eth0 --steer local --guard 8000 --worker 127.0.0.1:8001 --worker "
		"127.0.0.1:8002 --engine-request-limit 32 --request-queue-limit 8",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		sw_config_free(args_good(lines[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zero_configuration),
		cmocka_unit_test(every_flag),
		cmocka_unit_test(steer_connect),
		cmocka_unit_test(steer_local),
		cmocka_unit_test(removal),
		cmocka_unit_test(retry_after),
		cmocka_unit_test(environment),
		cmocka_unit_test(file_and_flags),
		cmocka_unit_test(check_config),
		cmocka_unit_test(help),
		cmocka_unit_test(help_examples),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
