// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line of spillwayd: what flags become, the line that each mistake gives, and what may
 * stand beside --config. */
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

#include "lib/conf.h"

#define MAX_ARGS 64

/* Splits `line` at blanks and runs it. */
static enum sw_args_result run(const char *line, struct sw_config **out, struct sw_error *err)
{
	char copy[1024], *argv[MAX_ARGS + 1] = {"spillwayd"}, *rest = copy;
	enum sw_args_result result;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	while ((argv[argc] = strsep(&rest, " ")) && argc < MAX_ARGS)
		argc += argv[argc][0] != '\0';
	argv[argc] = NULL;
	result = sw_config_from_args(argc, argv, out, err);
	memset(copy, '#', sizeof(copy)); /* nothing may point into it */
	return result;
}

static struct sw_config *good(const char *line)
{
	struct sw_config *c = NULL;
	struct sw_error err = {""};

	if (run(line, &c, &err) != SW_ARGS_RUN)
		fail_msg("%s: %s", line, err.text);
	return c;
}

/* Runs what has to print `expected` and end, without a configuration. */
static void prints(const char *line, const char *expected)
{
	struct sw_config *c = NULL;
	struct sw_error err = {""};
	enum sw_args_result result;
	const char *text;

	conf_capture(STDOUT_FILENO);
	result = run(line, &c, &err);
	text = conf_captured();
	assert_int_equal(result, SW_ARGS_EXIT);
	assert_null(c);
	if (!strstr(text, expected))
		fail_msg("no \"%s\" in \"%s\"", expected, text);
}

static void zero_configuration(void **state)
{
	struct sw_config *c =
		good("--interface eth0 --guard 8000 --engine vllm "
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
	struct sw_config *c = good(
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
	struct sw_config *c =
		good("--steer connect --unit nginx --virtual 198.18.0.1:80 --virtual [fd00::1]:80 "
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

	c = good("--steer connect --pid 77 --virtual 198.18.0.1:80 --worker 10.0.0.7:1");
	assert_string_equal(c->pools[0].steer.cgroup, "pid:77");
	assert_null(c->pools[0].steer.netns);
	sw_config_free(c);
	c = good("--steer connect --cgroup /x --virtual 198.18.0.1:80 --worker 10.0.0.7:1");
	assert_string_equal(c->pools[0].steer.cgroup, "/x");
	sw_config_free(c);
}

static void steer_local(void **state)
{
	struct sw_config *c = good("--steer local --guard 8000 --worker 127.0.0.1:8001 --netns /n "
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

		assert_int_equal(run(table[i].line, &c, &err), SW_ARGS_REMOVE);
		assert_string_equal(c->pin_root, table[i].pin_root);
		sw_config_free(c);
	}
}

static void retry_after(void **state)
{
	struct sw_config *c = good("--guard 1 --retry-after 5");

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
	c = good("--guard 1");
	assert_int_equal(c->pools[0].answer.status, 503);
	sw_config_free(c);
	c = good("--guard 1 --overload-status 429");
	assert_int_equal(c->pools[0].answer.status, 429);
	sw_config_free(c);
	unsetenv("DYN_HTTP_OVERLOAD_STATUS_CODE");
}

static void mistakes(void **state)
{
	static const struct {
		const char *line, *error;
	} table[] = {
		{"",
		 "nothing to guard or to steer; give --guard PORT, --steer connect or --config FILE, "
		 "see --help"},
		{"--gaurd 80", "--gaurd: unknown flag; did you mean '--guard'? see --help"},
		{"--decode-treshold=0.5",
		 "--decode-treshold: unknown flag; did you mean '--decode-threshold'? see --help"},
		{"--guard", "--guard: needs a value, [ADDR:]PORT"},
		{"--guard 80 --observe=yes", "--observe: takes no value"},
		{"--guard 80 8000", "'8000' is not a flag; see --help"},
		{"--guard 80 --engine vllm --engine tgi", "--engine: given twice; allowed: once"},
		{"--guard 80 --retry-after 1 --retry-after 2",
		 "--retry-after: given twice; allowed: once"},
		{"--guard x", "--guard: 'x' is not a listener; allowed: PORT, ADDR:PORT or "
			      "[ADDR6]:PORT, port 1 to 65535"},
		{"--guard 80 --guard 0.0.0.0:80",
		 "--guard: '0.0.0.0:80' is covered by listeners[0] already; allowed: once for an "
		 "address, port and netns"},
		{"--guard 80 --scrape http://h",
		 "--engine: missing; allowed: vllm, sglang, tgi, llamacpp, triton, trtllm-serve, "
		 "lmdeploy, dynamo-frontend, custom, auto"},
		{"--guard 80 --scrape h --engine vllm",
		 "--scrape: 'h' cannot be scraped; allowed: an http:// or https:// URL"},
		{"--guard 80 --scrape http://h --scrape http://h --engine vllm",
		 "--scrape: 'h:80' is workers[0] already; allowed: a name that is not taken"},
		{"--guard 80 --decode-threshold 85",
		 "--decode-threshold: '85' is out of range; allowed: 0.0 to 1.0"},
		{"--guard 80 --prefill-threshold 1.5",
		 "--prefill-threshold: '1.5' is not a whole "
		 "number; allowed: 0 to 18446744073709551615"},
		{"--guard 80 --prefill-threshold-frac nan",
		 "--prefill-threshold-frac: 'nan' is out of range; allowed: a finite number from 0.0"},
		{"--guard 80 --max-queued-reqs -1",
		 "--max-queued-reqs: '-1' is not a whole number; "
		 "allowed: 0 to 18446744073709551615"},
		{"--guard 80 --scrape http://h --engine vllm --kv-total 0",
		 "--kv-total: '0' is out of range; allowed: 1 to 18446744073709551615"},
		{"--guard 80 --scrape http://h --engine vllm --max-batched-tokens x",
		 "--max-batched-tokens: 'x' is not a whole number; allowed: 1 to "
		 "18446744073709551615"},
		{"--guard 80 --scrape http://h --engine vllm --netns blue",
		 "--netns: 'blue' is not a network namespace; allowed: /PATH or pid:N"},
		{"--guard 80 --overload-status 99",
		 "--overload-status: '99' is out of range; allowed: 200 to 999"},
		{"--guard 80 --preset x",
		 "--preset: 'x' is not known; allowed: dynamo, vllm, sglang, "
		 "tgi, smg, anthropic"},
		{"--guard 80 --retry-after 5:3",
		 "--retry-after: '3' is out of range; allowed: 5 to 60"},
		{"--guard 80 --retry-after 61",
		 "--retry-after: '61' is out of range; allowed: 1 to 60"},
		{"--guard 80 --retry-after 5:",
		 "--retry-after: '' is not a whole number; allowed: 5 to 60"},
		{"--guard 80 --exempt 10.0.0.1/8",
		 "--exempt: '10.0.0.1/8' has host bits set; allowed: 10.0.0.0/8"},
		{"--guard 80 --mode raw",
		 "--mode: 'raw' is not known; allowed: auto, xdp, xdp-generic, tc"},
		{"--guard 80 --control s",
		 "--control: 's' will not do; allowed: an absolute path of up to 107 bytes"},
		{"--guard 80 --log-level loud",
		 "--log-level: 'loud' is not known; allowed: error, warning, info, debug"},
		{"--guard 80 --interface a:b",
		 "--interface: 'a:b' is not an interface; allowed: a name of 1 to 15 bytes"},
		{"--steer dnat --guard 80",
		 "--steer: 'dnat' is not known; allowed: connect, local"},
		{"--steer connect",
		 "--virtual: missing, steer: connect needs it; allowed: [ADDR:PORT, ...], addresses that "
		 "routers connect to and nothing else uses"},
		{"--steer connect --virtual 198.18.0.1:80",
		 "--cgroup: missing, steer: connect needs the routers'; allowed: /PATH, pid:N or "
		 "unit:NAME"},
		{"--steer connect --virtual 80 --pid 1",
		 "--virtual: '80' is not an address and port; allowed: ADDR:PORT or [ADDR6]:PORT, one "
		 "address and no host name"},
		{"--steer connect --virtual 198.18.0.1:80 --pid x",
		 "--cgroup: 'pid:x' is not a cgroup; allowed: a directory such as "
		 "/sys/fs/cgroup/system.slice/nginx.service, pid:N or unit:NAME"},
		{"--steer connect --pid 1 --unit nginx",
		 "--unit: a cgroup is given already; allowed: one of --cgroup, --pid and --unit"},
		{"--steer connect --virtual 198.18.0.1:80 --pid 1 --on-full drop",
		 "--on-full: 'drop' is not known; allowed: answer, refuse"},
		{"--steer local --worker 127.0.0.1:8001",
		 "nothing to guard or to steer; give --guard PORT, --steer connect or --config FILE, see "
		 "--help"},
		{"--steer local --guard 80 --worker h:8001",
		 "--worker: 'h:8001' is not an address and port; allowed: ADDR:PORT or [ADDR6]:PORT, one "
		 "address and no host name"},
		{"--steer local --guard 80 --worker 127.0.0.1:81 --engine-request-limit 0",
		 "--engine-request-limit: '0' is out of range; allowed: 1 to 1000000"},
		{"--steer local --guard 80 --worker 127.0.0.1:81 --engine-request-limit 4 "
		 "--request-queue-limit 1",
		 "--request-queue-limit: '1' is too small: one request may always be on its way from "
		 "the queue to the engine, so that N + Q is an exact cap from 2 on only; allowed: 2 to "
		 "1000000"},
		{"--steer local --guard 80 --worker 127.0.0.1:81 --kv-total 5",
		 "--kv-total: never used; allowed: with scrape"},
		{"--guard 80 --close-idle",
		 "--close-idle: never used; allowed: with steer: connect"},
		{"--remove --guard 80",
		 "--guard: not beside --remove; allowed: --pin-root, --config, --log-level"},
		{"--remove --check-config",
		 "--check-config: not beside --remove; allowed: --pin-root, --config, --log-level"},
		{"--remove --pin-root x",
		 "--pin-root: 'x' will not do; allowed: an absolute path of up to 2047 bytes"},
		{"--config c.yaml --worker 127.0.0.1:81",
		 "--worker: not beside --config; set pools.workers.address in c.yaml instead"},
		{"--config c.yaml --guard 80",
		 "--guard: not beside --config; set listeners.listen in c.yaml instead"},
		{"--observe --config c.yaml",
		 "--observe: not beside --config; set pools.observe in c.yaml instead"},
		{"--config c.yaml --config d.yaml", "--config: given twice; allowed: once"},
		{"--config c.yaml --control s",
		 "--control: 's' will not do; allowed: an absolute path of up to 107 bytes"},
		{"--config d.yaml", "d.yaml: cannot be opened: No such file or directory"},
	};

	(void)state;
	conf_write(POOL(""));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_config former, *c = &former;
		struct sw_error err = {""};

		assert_int_equal(run(table[i].line, &c, &err), SW_ARGS_ERROR);
		assert_string_equal(err.text, table[i].error);
		assert_ptr_equal(c, &former);
	}
}

static void file_and_flags(void **state)
{
	struct sw_config *c;

	(void)state;
	conf_write("control: /tmp/file\nlog_level: error\n" POOL(""));
	c = good("--config c.yaml");
	assert_string_equal(c->file, "c.yaml");
	assert_string_equal(c->control, "/tmp/file");
	assert_int_equal(c->log_level, SW_ERROR);
	sw_config_free(c);
	c = good("--log-level debug --config c.yaml --control /tmp/flag");
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
	assert_int_equal(run("--config c.yaml --check-config", &c, &err), SW_ARGS_ERROR);
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
		sw_config_free(good(lines[i]));
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
		cmocka_unit_test(mistakes),
		cmocka_unit_test(file_and_flags),
		cmocka_unit_test(check_config),
		cmocka_unit_test(help),
		cmocka_unit_test(help_examples),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
