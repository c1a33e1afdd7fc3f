// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Mistakes in configuration files: the exact line that each gives, with file, line, field and what
 * is allowed, and that the former configuration stays. */
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

#define POOL_KEYS                                                                                                                    \
	"name, model, discover, engine, series, rank_label, preset, overload_status, body, templates, retry_after, retry_after_ms, " \
	"max_answer_bytes, observe, thresholds, stale_after_ms, on_stale, hold_for_ms, "                                             \
	"release_ratio, min_hold_ms, workers, steer, virtual, cgroup, netns, on_full, "                                              \
	"refuse_errno, pooled_upstreams, idle_close_after_ms, engine_request_limit, "                                                \
	"request_queue_limit, count, report_lag_ms"
#define ENGINES                                                                                    \
	"vllm, sglang, tgi, llamacpp, triton, trtllm-serve, lmdeploy, dynamo-frontend, custom, auto"

static void not_yaml(void **state)
{
	static const struct conf_mistake table[] = {
		{"", "c.yaml:1: empty; pools and listeners have to be given"},
		{"# only a comment\n", "c.yaml:1: empty; pools and listeners have to be given"},
		{"pools:\n\t- name: a\n",
		 "c.yaml:2: not YAML: found character that cannot start any token, column 1 (indent "
		 "with spaces only)"},
		{"pools: [\n", "c.yaml:2: not YAML: did not find expected node content, column 1 "
			       "(indent with spaces only)"},
		{"pools: *x\n", "c.yaml:1: not YAML: found undefined alias, column 8 (indent with "
				"spaces only)"},
		{POOL("") "---\nmode: tc\n",
		 "c.yaml:8: a second YAML document; allowed: one in a file"},
		{POOL("") "---\n\t",
		 "c.yaml:8: not YAML: found character that cannot start any token, "
		 "column 1 (indent with spaces only)"},
		{"hello\n",
		 "c.yaml:1: not a mapping; allowed: KEY: VALUE with the keys interfaces, "
		 "mode, control, control_tcp, control_token_file, state_file, dynamo, pin_root, heartbeat_ms, deadline_ms, established_flows, "
		 "log_level, pools, listeners"},
		{"[1]: 2\n", "c.yaml:1: a key is not text; allowed: KEY: VALUE"},
	};

	(void)state;
	CONF_CHECK(table);
}

static void schema(void **state)
{
	static const struct conf_mistake table[] = {
		{POOL("    engin: vllm\n"),
		 "c.yaml:5: pools[0].engin: unknown key; did you mean 'engine'? allowed: " POOL_KEYS},
		{POOL("    overload-status: 503\n"),
		 "c.yaml:5: pools[0].overload-status: unknown key; did you mean 'overload_status'? "
		 "allowed: " POOL_KEYS},
		{POOL("\n    retry_after:\n      min: 1\n\n      maxx: 2\n"),
		 "c.yaml:9: pools[0].retry_after.maxx: unknown key; did you mean 'max'? allowed: min, "
		 "max"},
		{WORKER("url: \"http://h\""),
		 "c.yaml:3: pools[0].workers[0].url: unknown key; did you mean 'name'? allowed: name, "
		 "scrape, address, engine, kv_total, max_num_batched_tokens, period_ms, timeout_ms, "
		 "bearer_token_file, ca_file, insecure, netns, data_parallel_start_rank, "
		 "data_parallel_size, engine_request_limit, request_queue_limit, share, drain, "
		 "worker_id, series, rank_label"},
		{"interface: [lo]\n" POOL(""),
		 "c.yaml:1: interface: unknown key; did you mean 'interfaces'? allowed: interfaces, "
		 "mode, control, control_tcp, control_token_file, state_file, dynamo, pin_root, heartbeat_ms, deadline_ms, established_flows, log_level, "
		 "pools, listeners"},
		{POOL("    observe: true\n    observe: false\n"),
		 "c.yaml:6: pools[0].observe: given twice, first on line 5; allowed: once"},
		{"mode: tc\n", "c.yaml:1: pools: missing; it has to be given"},
		{"pools: [{name: a}]\n", "c.yaml:1: listeners: none; allowed: 1 to 1023, or none "
					 "where a pool has steer: connect"},
		{"\n\npools:\n  - engine: vllm\nlisteners: []\n",
		 "c.yaml:4: pools[0].name: missing; it has to be given"},
		{"control_tcp: 9300\ncontrol_token_file: /t\n" POOL(""),
		 "c.yaml:1: control_tcp: '9300' is not an address and port; allowed: ADDR:PORT or "
		 "[ADDR6]:PORT, no host name; [::] is every address, 0.0.0.0 every one of IPv4"},
		{WORKER("share: 0.5"),
		 "c.yaml:3: pools[0].workers[0].scrape: missing; it has to be given, or worker_id, or "
		 "address in a pool that is steered or counts connections, or name alone where the "
		 "load is pushed"},
		{WORKER("name: x, kv_total: 7, period_ms: 100"),
		 "c.yaml:3: pools[0].workers[0].period_ms: never used; allowed: with scrape"},
		{"interfaces: eth0\n" POOL(""),
		 "c.yaml:1: interfaces: not a list; allowed: [ITEM, ...]"},
		{"interfaces: [[eth0]]\n" POOL(""),
		 "c.yaml:1: interfaces[0]: not a single value; allowed: one value"},
		{POOL("    body:\n      openai: 1\n"),
		 "c.yaml:6: pools[0].body: not a single value; allowed: one value"},
		{POOL("    body:\n"),
		 "c.yaml:5: pools[0].body: empty; allowed: a value, or leave the key out"},
		{POOL("    retry_after: 3\n"),
		 "c.yaml:5: pools[0].retry_after: not a mapping; allowed: KEY: VALUE with the keys min, "
		 "max"},
		{POOL("    thresholds:\n      decode: 0.5\n"),
		 "c.yaml:6: pools[0].thresholds.decode: unknown key; did you mean "
		 "'max_num_queued_reqs'? allowed: active_decode_blocks_threshold, "
		 "active_prefill_tokens_threshold, active_prefill_tokens_threshold_frac, "
		 "max_num_queued_reqs, max_num_queued_tokens, max_queued_requests, "
		 "max_concurrent_requests"},
	};

	(void)state;
	CONF_CHECK(table);
}

static void daemon_keys(void **state)
{
	static const struct conf_mistake table[] = {
		{"mode: fast\n" POOL(""),
		 "c.yaml:1: mode: 'fast' is not known; allowed: auto, xdp, xdp-generic, tc"},
		{POOL("") "log_level: loud\n",
		 "c.yaml:7: log_level: 'loud' is not known; allowed: error, warning, info, debug"},
		{"control: sock\n" POOL(""),
		 "c.yaml:1: control: 'sock' will not do; allowed: an absolute path of up to 107 bytes"},
		{"pin_root: bpf\n" POOL(""), "c.yaml:1: pin_root: 'bpf' will not do; allowed: an "
					     "absolute path of up to 2047 bytes"},
		{"heartbeat_ms: 5\n" POOL(""),
		 "c.yaml:1: heartbeat_ms: '5' is out of range; allowed: 10 to 10000"},
		{"heartbeat_ms: 1000\ndeadline_ms: 1500\n" POOL(""),
		 "c.yaml:2: deadline_ms: '1500' is out of range; allowed: 2000 to 60000"},
		{"heartbeat_ms: 1001\n" POOL(""),
		 "c.yaml:1: heartbeat_ms: 1001 is over half of "
		 "deadline_ms, 2000; allowed: with a longer deadline_ms"},
		{"interfaces:\n  - lo\n  - averylongname016\n" POOL(""),
		 "c.yaml:3: interfaces[1]: 'averylongname016' is not an interface; allowed: a name of "
		 "1 to 15 bytes"},
		{"interfaces: [a/b]\n" POOL(""),
		 "c.yaml:1: interfaces[0]: 'a/b' is not an interface; "
		 "allowed: a name of 1 to 15 bytes"},
		{"interfaces: [lo, lo]\n" POOL(""),
		 "c.yaml:1: interfaces[1]: 'lo' is given twice; allowed: once"},
	};

	(void)state;
	CONF_CHECK(table);
}

static void numbers(void **state)
{
	static const struct conf_mistake table[] = {
#define NUMBER(text)                                                                               \
	{"heartbeat_ms: " text "\n" POOL(""),                                                      \
	 "c.yaml:1: heartbeat_ms: '" text "' is not a whole number; allowed: 10 to "               \
	 "10000"}
		NUMBER("-5"),
		NUMBER("+50"),
		NUMBER("1_000"),
		NUMBER("200ms"),
		NUMBER("1.5"),
		NUMBER("0x20"),
		NUMBER("~"),
		{"heartbeat_ms: 99999999999999999999\n" POOL(""),
		 "c.yaml:1: heartbeat_ms: '99999999999999999999' is out of range; allowed: 10 to "
		 "10000"},
#define THRESHOLD(key, value, wrong)                                                               \
	{POOL("    thresholds:\n      " key ": " value "\n"),                                      \
	 "c.yaml:6: pools[0].thresholds." key ": '" value "' " wrong}
#define DECODE(value, wrong) THRESHOLD("active_decode_blocks_threshold", value, wrong)
#define FRAC(value, wrong)   THRESHOLD("active_prefill_tokens_threshold_frac", value, wrong)
		DECODE("1.01", "is out of range; allowed: 0.0 to 1.0"),
		DECODE("-0.1", "is out of range; allowed: 0.0 to 1.0"),
		DECODE("nan", "is out of range; allowed: 0.0 to 1.0"),
		DECODE("85%", "is not a number; allowed: a decimal number such as 0.85"),
		DECODE(".", "is not a number; allowed: a decimal number such as 0.85"),
		FRAC("inf", "is out of range; allowed: a finite number from 0.0"),
		FRAC("NaN", "is out of range; allowed: a finite number from 0.0"),
		FRAC("1e999", "is out of range; allowed: a finite number from 0.0"),
		FRAC("-1", "is out of range; allowed: a finite number from 0.0"),
		THRESHOLD("active_prefill_tokens_threshold", "-1.0",
			  "is not a whole number; allowed: 0 to 18446744073709551615"),
		THRESHOLD("max_num_queued_reqs", "18446744073709551616",
			  "is out of range; allowed: 0 to 18446744073709551615"),
	};

	(void)state;
	CONF_CHECK(table);
}

static void pools(void **state)
{
	static const struct conf_mistake table[] = {
		{"pools: []\nlisteners: [{listen: 1}]\n",
		 "c.yaml:1: pools: 0 entries; allowed: 1 to 256"},
		{"pools: [{name: a b}]\nlisteners: [{listen: 1}]\n",
		 "c.yaml:1: pools[0].name: 'a b' is not a name; allowed: 1 to 128 characters, no "
		 "blanks, quotes, backslashes"},
		{"pools:\n  - name: a\n  - name: a\nlisteners: [{listen: 1}]\n",
		 "c.yaml:3: pools[1].name: 'a' is pools[0] already; allowed: a name that is not taken"},
		{"pools: [{name: a, engine: ollama}]\nlisteners: [{listen: 1}]\n",
		 "c.yaml:1: pools[0].engine: 'ollama' is not known; allowed: " ENGINES},
		{POOL("    preset: azure\n"),
		 "c.yaml:5: pools[0].preset: 'azure' is not known; allowed: "
		 "dynamo, vllm, sglang, tgi, smg, anthropic"},
		{POOL("    body: xml\n"),
		 "c.yaml:5: pools[0].body: 'xml' is not known; allowed: auto, "
		 "dynamo, openai, anthropic, vllm, sglang, tgi, smg"},
		{POOL("    observe: maybe\n"),
		 "c.yaml:5: pools[0].observe: 'maybe' is not known; allowed: false, true"},
		{POOL("    overload_status: 199\n"),
		 "c.yaml:5: pools[0].overload_status: '199' is out of range; allowed: 200 to 999"},
		{POOL("    overload_status: 1000\n"),
		 "c.yaml:5: pools[0].overload_status: '1000' is out of range; allowed: 200 to 999"},
		{POOL("    retry_after: {max: 3}\n"),
		 "c.yaml:5: pools[0].retry_after.min: missing; it has to be given"},
		{POOL("    retry_after:\n      min: 0\n"),
		 "c.yaml:6: pools[0].retry_after.min: '0' is out of range; allowed: 1 to 60"},
		{POOL("    retry_after:\n      min: 5\n      max: 4\n"),
		 "c.yaml:7: pools[0].retry_after.max: '4' is out of range; allowed: 5 to 60"},
		{POOL("    retry_after:\n      min: 5\n      max: 61\n"),
		 "c.yaml:7: pools[0].retry_after.max: '61' is out of range; allowed: 5 to 60"},
		{POOL("    retry_after_ms: true\n"),
		 "c.yaml:5: pools[0].retry_after_ms: there is no "
		 "time to tell; allowed: with retry_after"},
		{POOL("    max_answer_bytes: 1025\n"),
		 "c.yaml:5: pools[0].max_answer_bytes: '1025' is out of range; allowed: 256 to 1024"},
		{POOL("    body: openai\n    templates:\n      tgi: x\n"),
		 "c.yaml:7: pools[0].templates.tgi: never used, since body: openai gives every path the "
		 "same body; allowed: templates.default"},
		{POOL("    preset: smg\n    templates: {anthropic: x}\n"),
		 "c.yaml:6: pools[0].templates.anthropic: never used, since preset: smg gives every "
		 "path the same body; allowed: templates.default"},
		{POOL("    release_ratio: 0\n"),
		 "c.yaml:5: pools[0].release_ratio: '0' is out of range; allowed: over 0.0, to 1.0"},
		{POOL("    release_ratio: 1.1\n"),
		 "c.yaml:5: pools[0].release_ratio: '1.1' is out of range; allowed: over 0.0, to 1.0"},
		{POOL("    min_hold_ms: 3600001\n"),
		 "c.yaml:5: pools[0].min_hold_ms: '3600001' is out of range; allowed: 0 to 3600000"},
		{POOL("    stale_after_ms: 99\n"),
		 "c.yaml:5: pools[0].stale_after_ms: '99' is out of range; allowed: 100 to 3600000"},
		{POOL("    on_stale: close\n"),
		 "c.yaml:5: pools[0].on_stale: 'close' is not known; allowed: open, hold"},
		{POOL("    on_stale: hold\n"),
		 "c.yaml:2: pools[0].hold_for_ms: missing, on_stale: hold "
		 "needs it; allowed: 1 to 3600000"},
		{POOL("    hold_for_ms: 5\n"),
		 "c.yaml:5: pools[0].hold_for_ms: never used; allowed: with on_stale: hold"},
	};

	(void)state;
	CONF_CHECK(table);
}

static void workers(void **state)
{
#define BAD_URL(url)                                                                               \
	{WORKER("scrape: \"" url "\""),                                                            \
	 "c.yaml:3: pools[0].workers[0].scrape: '" url                                             \
	 "' cannot be scraped; allowed: an http:// or https:// URL"}
	static const struct conf_mistake table[] = {
		BAD_URL("127.0.0.1:8000/metrics"),
		BAD_URL("ftp://h/metrics"),
		BAD_URL("http://h:99999/"),
		BAD_URL("http://"),
		BAD_URL("http://:80/m"),
		BAD_URL("http://a b/"),
		BAD_URL("/metrics"),
		{WORKER("scrape: \"http://h\", period_ms: 9"),
		 "c.yaml:3: pools[0].workers[0].period_ms: '9' is out of range; allowed: 10 to 60000"},
		{WORKER("scrape: \"http://h\", timeout_ms: 60001"),
		 "c.yaml:3: pools[0].workers[0].timeout_ms: '60001' is out of range; allowed: 10 to "
		 "60000"},
		{WORKER("scrape: \"http://h\", kv_total: 0"),
		 "c.yaml:3: pools[0].workers[0].kv_total: '0' is out of range; allowed: 1 to "
		 "18446744073709551615"},
		{WORKER("scrape: \"http://h\", data_parallel_size: 65"),
		 "c.yaml:3: pools[0].workers[0].data_parallel_size: '65' is out of range; allowed: 1 to "
		 "64"},
		{WORKER("scrape: \"http://h\", ca_file: ca.pem"),
		 "c.yaml:3: pools[0].workers[0].ca_file: 'ca.pem' will not do; allowed: an absolute "
		 "path of up to 4095 bytes"},
		{WORKER("scrape: \"http://h\", netns: blue"),
		 "c.yaml:3: pools[0].workers[0].netns: 'blue' is not a network namespace; allowed: "
		 "/PATH or pid:N"},
		{WORKER("scrape: \"http://h\", name: x},\n   {scrape: \"http://g\", name: x"),
		 "c.yaml:4: pools[0].workers[1].name: 'x' is workers[0] already; allowed: a name that "
		 "is not taken"},
		{WORKER("scrape: \"http://h/a\"},\n   {scrape: \"http://h/b\""),
		 "c.yaml:4: pools[0].workers[1].scrape: 'h:80' is workers[0] already; allowed: a name "
		 "that is not taken"},
		{"pools:\n  - name: a\n    workers:\n      - scrape: http://h\nlisteners: [{listen: 1}]\n",
		 "c.yaml:4: pools[0].workers[0].engine: missing; allowed: " ENGINES},
	};

	(void)state;
	CONF_CHECK(table);
}

static void files(void **state)
{
	struct sw_config former, *c = &former;
	struct sw_error err;

	(void)state;
	assert_int_equal(sw_config_load("none.yaml", &c, &err), -ENOENT);
	assert_string_equal(err.text, "none.yaml: cannot be opened: No such file or directory");
	assert_int_equal(sw_config_load("/", &c, &err), -EISDIR);
	assert_string_equal(err.text, "/: cannot be read: Is a directory");
	assert_ptr_equal(c, &former);
}

/* A response that does not fit is found when the file is read. */
static void long_template(void **state)
{
	static const char expected[] = "c.yaml:4: pools[0].templates: ";
	struct sw_config *c = NULL;
	struct sw_error err = {""};
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text),
		 "pools:\n  - name: a\n    engine: vllm\n    templates: {default: \"%0500d\"}\n"
		 "listeners: [{listen: 1}]\n",
		 0);
	assert_int_equal(conf_load(text, &c, &err), -EINVAL);
	assert_memory_equal(err.text, expected, sizeof(expected) - 1);
	assert_non_null(strstr(err.text, "over the limit of 536"));
	assert_null(c);
}

#define LINE "............................................................"

/* What is taken, but hardly meant. */
static void warnings(void **state)
{
	static const char quiet[] = "    thresholds: {max_num_queued_reqs: 1}\n";
	static const struct {
		const char *text, *warning;
	} table[] = {
		{POOL(""),
		 "c.yaml:2: pools[0].thresholds: none is set, so no worker of 'a' is ever busy\n"},
		{POOL("    overload_status: 399\n"),
		 "c.yaml:5: pools[0].overload_status: 399 will not "
		 "look like an error to clients; usual: 400 to 599\n"},
		{POOL("    overload_status: 600\n"),
		 "c.yaml:5: pools[0].overload_status: 600 will not "
		 "look like an error to clients; usual: 400 to 599\n"},
		{POOL("    max_answer_bytes: 1024\n    templates: {default: '" LINE LINE LINE LINE
			      LINE LINE LINE "'}\n"),
		 "c.yaml:5: pools[0].max_answer_bytes: answers of "},
		{POOL("    stale_after_ms: 200\n"),
		 "c.yaml:4: pools[0].workers[0].period_ms: 250 ms is not under stale_after_ms, so this "
		 "worker keeps going stale\n"},
		{LISTENER(""),
		 "c.yaml:1: pools[0].workers: none, so 'a' is unavailable and answered with 503\n"},
		{LISTENER(""),
		 "c.yaml:1: interfaces: none, so only clients on this host are shed\n"},
	};

	(void)state;
	sw_log_level(SW_WARN);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *log;

		conf_capture(STDERR_FILENO);
		sw_config_free(conf_good(table[i].text));
		log = conf_captured();
		if (!strstr(log, table[i].warning))
			fail_msg("no \"%s\" in \"%s\"", table[i].warning, log);
	}
	conf_capture(STDERR_FILENO);
	for (int status = 400; status < 600; status += 199) {
		char text[512];

		snprintf(text, sizeof(text),
			 "interfaces: [lo]\n" POOL("%s    overload_status: %d\n"), quiet, status);
		sw_config_free(conf_good(text));
	}
	assert_string_equal(conf_captured(), "");
	sw_log_level(SW_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_yaml),    cmocka_unit_test(schema),
		cmocka_unit_test(daemon_keys), cmocka_unit_test(numbers),
		cmocka_unit_test(pools),       cmocka_unit_test(workers),
		cmocka_unit_test(files),       cmocka_unit_test(long_template),
		cmocka_unit_test(warnings),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
