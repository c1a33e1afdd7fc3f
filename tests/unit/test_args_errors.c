// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line of spillwayd: the line that each mistake gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/args.h"
#include "lib/conf.h"

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

		assert_int_equal(args_run(table[i].line, &c, &err), SW_ARGS_ERROR);
		assert_string_equal(err.text, table[i].error);
		assert_ptr_equal(c, &former);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
