/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Configuration files for tests to write and load, in a directory of their own, and what is printed
 * meanwhile. */
#ifndef SPILLWAY_TEST_CONF_H
#define SPILLWAY_TEST_CONF_H

#include "config/config.h"

/* A pool with `keys` from line 5 on, and a listener with `keys` from line 4 on. */
#define POOL(keys)                                                                                 \
	"pools:\n  - name: a\n    engine: vllm\n    workers: [{scrape: \"http://h:1/m\"}]\n" keys  \
	"listeners:\n  - listen: 8000\n"
#define LISTENER(keys) "pools: [{name: a, engine: vllm}]\nlisteners:\n  - listen: 8000\n" keys
/* A worker with `keys` on line 3. */
#define WORKER(keys)                                                                               \
	"pools:\n  - {name: a, engine: vllm, workers: [\n   {" keys                                \
	"}]}\nlisteners: [{listen: 1}]\n"

/* For cmocka_run_group_tests(): enters and removes the directory; warnings are not printed. */
int conf_setup(void **state);
int conf_teardown(void **state);

/* PATH in the source tree, where the tests are started. */
const char *conf_source(const char *path);

void conf_write(const char *text); /* c.yaml */
int conf_load(const char *text, struct sw_config **out, struct sw_error *err);
struct sw_config *conf_good(const char *text); /* or the test fails */

/* A path of a listener, NULL: it has none such. */
const struct sw_path_conf *conf_path(const struct sw_listener_conf *l, enum sw_method method,
				     const char *path);

/* Each text has to fail with -EINVAL and exactly this error, and to leave *out alone. */
struct conf_mistake {
	const char *text, *error;
};
void conf_check(const struct conf_mistake *table, size_t n);
#define CONF_CHECK(table) conf_check(table, sizeof(table) / sizeof(table[0]))

/* What goes to a file descriptor between the two calls, valid until the next. */
void conf_capture(int fd);
const char *conf_captured(void);

#endif
