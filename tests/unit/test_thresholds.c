// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Thresholds set over the API while daemons come and go: what is kept in the state file, what is
 * dropped, and what becomes of a file that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/state_file.h"
#include "control/thresholds.h"

static char dir[64], path[96], bad[104];
static struct sw_thresholds *set;
static struct sw_pool_conf pool_confs[2] = {
	{.name = (char *)"p",
	 .model = (char *)"m",
	 .limits = {.set = 1U << SW_LIM_PREFILL, .count = {[SW_LIM_PREFILL] = 7}}},
	{.name = (char *)"q", .model = (char *)"n"},
};
static struct sw_config conf = {.pools = pool_confs, .n_pools = 2};

static int start(void **state)
{
	(void)state;
	sw_log_level(SW_ERROR);
	strcpy(dir, "/tmp/spillway-thresholds-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/state.json", dir);
	snprintf(bad, sizeof(bad), "%s.bad", path);
	conf.n_pools = 2;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	sw_thresholds_free(set);
	set = NULL;
	chmod(dir, 0700);
	unlink(path);
	rmdir(path);
	unlink(bad);
	rmdir(bad);
	return rmdir(dir);
}

/* A daemon ends, and another one starts. */
static void restart(void)
{
	struct sw_error err;

	sw_thresholds_free(set);
	set = NULL;
	assert_int_equal(sw_thresholds_new(&set, path, &err), 0);
}

static void write_file(const char *name, const char *text, size_t n)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

static const char *read_file(const char *name)
{
	static char text[4096];
	FILE *f = fopen(name, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (!f)
		return NULL;
	fclose(f);
	text[n] = '\0';
	return text;
}

static void assert_limits(size_t pool, uint32_t have, double decode, uint64_t prefill, double frac)
{
	struct sw_limits l = sw_thresholds_merge(set, &pool_confs[pool]);

	assert_int_equal(l.set, have);
	if (have & 1U << SW_LIM_DECODE)
		assert_true(l.decode == decode);
	if (have & 1U << SW_LIM_PREFILL)
		assert_int_equal(l.count[SW_LIM_PREFILL], prefill);
	if (have & 1U << SW_LIM_PREFILL_FRAC)
		assert_true(l.prefill_frac == frac);
}

#define DECODE	(1U << SW_LIM_DECODE)
#define PREFILL (1U << SW_LIM_PREFILL)
#define FRAC	(1U << SW_LIM_PREFILL_FRAC)

static void set_ones_go_before_the_configuration(void **state)
{
	const struct sw_limits one = {
		.set = DECODE | PREFILL, .decode = 0.1, .count = {[SW_LIM_PREFILL] = 9}};

	(void)state;
	restart();
	assert_limits(0, PREFILL, 0, 7, 0);
	assert_int_equal(sw_thresholds_set(set, "m", &one), 0);
	assert_limits(0, DECODE | PREFILL, 0.1, 9, 0);
	assert_limits(1, 0, 0, 0, 0);
	assert_int_equal(sw_thresholds_set_of(set, "m"), DECODE | PREFILL);
	sw_thresholds_clear(set, "m", PREFILL);
	assert_limits(0, DECODE | PREFILL, 0.1, 7, 0);
	sw_thresholds_clear(set, "m", ~0U);
	assert_limits(0, PREFILL, 0, 7, 0);
	assert_int_equal(sw_thresholds_set_of(set, "m"), 0);
}

static void they_survive_a_restart(void **state)
{
	const struct sw_limits m = {
		.set = DECODE | PREFILL, .decode = 0.1, .count = {[SW_LIM_PREFILL] = 9}};
	const struct sw_limits n = {.set = FRAC, .prefill_frac = 0.3};
	struct stat st;

	(void)state;
	restart();
	assert_null(read_file(path)); /* nothing was set */
	sw_thresholds_set(set, "m", &m);
	sw_thresholds_set(set, "n", &n);
	restart();
	assert_string_equal(read_file(path),
			    "{\"version\":1,\"thresholds\":[{\"model\":\"m\","
			    "\"active_decode_blocks_threshold\":0.1,"
			    "\"active_prefill_tokens_threshold\":9,"
			    "\"active_prefill_tokens_threshold_frac\":null},{\"model\":\"n\","
			    "\"active_decode_blocks_threshold\":null,"
			    "\"active_prefill_tokens_threshold\":null,"
			    "\"active_prefill_tokens_threshold_frac\":0.3}]}");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0137, 0);
	assert_limits(0, DECODE | PREFILL, 0.1, 9, 0);
	assert_limits(1, FRAC, 0, 0, 0.3);
	sw_thresholds_clear(set, "m", DECODE);
	restart();
	assert_limits(0, PREFILL, 0, 9, 0);
	assert_null(read_file(bad));
}

static void the_last_of_many_changes_is_kept(void **state)
{
	struct sw_limits one = {.set = PREFILL};

	(void)state;
	restart();
	for (uint64_t i = 1; i <= 1000; i++) {
		one.count[SW_LIM_PREFILL] = i;
		sw_thresholds_set(set, "m", &one);
	}
	restart();
	assert_limits(0, PREFILL, 0, 1000, 0);
}

static void models_that_nobody_serves_are_dropped(void **state)
{
	const struct sw_limits one = {.set = DECODE, .decode = 0.1};

	(void)state;
	restart();
	sw_thresholds_set(set, "m", &one);
	sw_thresholds_set(set, "n", &one);
	sw_thresholds_prune(set, &conf);
	assert_limits(1, DECODE, 0.1, 0, 0);
	conf.n_pools = 1;
	sw_thresholds_prune(set, &conf);
	assert_limits(0, DECODE | PREFILL, 0.1, 7, 0);
	assert_limits(1, 0, 0, 0, 0);
	restart();
	assert_limits(0, DECODE | PREFILL, 0.1, 7, 0);
	assert_limits(1, 0, 0, 0, 0);
}

/* It is kept aside, and thresholds are kept from then on. */
static void assert_set_aside(const char *text, size_t n)
{
	const struct sw_limits one = {.set = DECODE, .decode = 0.5};

	write_file(path, text, n);
	restart();
	assert_limits(0, PREFILL, 0, 7, 0);
	assert_null(read_file(path));
	assert_non_null(read_file(bad));
	assert_memory_equal(read_file(bad), text, n < 4000 ? n : 4000);
	sw_thresholds_set(set, "m", &one);
	restart();
	assert_limits(0, DECODE | PREFILL, 0.5, 7, 0);
	sw_thresholds_free(set);
	set = NULL;
	unlink(path);
	unlink(bad);
}

static void a_file_that_is_none_of_ours_is_kept_aside(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"\x7f"
		"ELF",
		"{\"thresholds\":[]}",
		"{\"version\":\"1\",\"thresholds\":[]}",
		"{\"version\":2,\"thresholds\":[]}",
		"{\"version\":1}",
		"{\"version\":1,\"thresholds\":[1]}",
		"{\"version\":1,\"thresholds\":[{\"active_decode_blocks_threshold\":0.5}]}",
		"{\"version\":1,\"thresholds\":[{\"model\":\"m\","
		"\"active_decode_blocks_threshold\":0.5},{\"model\":\"n\","
		"\"active_decode_blocks_threshold\":1.5}]}",
		"{\"version\":1,\"thresholds\":[],\"thresholds\":[]}",
	};
	static char large[SW_STATE_MAX + 1], deep[100000];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_set_aside(texts[i], strlen(texts[i]));
	assert_set_aside("\0\0\0", 3);
	memset(large, ' ', sizeof(large));
	assert_set_aside(large, sizeof(large));
	memset(deep, '[', sizeof(deep));
	assert_set_aside(deep, sizeof(deep));
}

static void what_is_no_file_does_not_hang(void **state)
{
	const struct sw_limits one = {.set = DECODE, .decode = 0.5};

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	restart();
	assert_limits(0, PREFILL, 0, 7, 0);
	sw_thresholds_free(set);
	set = NULL;
	unlink(bad);
	assert_int_equal(mkdir(path, 0700), 0);
	restart();
	sw_thresholds_set(set, "m", &one);
	restart();
	assert_limits(0, DECODE | PREFILL, 0.5, 7, 0);
}

static void what_cannot_be_written_holds_nevertheless(void **state)
{
	const struct sw_limits one = {.set = DECODE, .decode = 0.5};
	struct sw_error err;

	(void)state;
	sw_thresholds_free(set);
	set = NULL;
	assert_int_equal(sw_thresholds_new(&set, "/proc/no/such/directory/state.json", &err), 0);
	assert_int_equal(sw_thresholds_set(set, "m", &one), 0);
	assert_limits(0, DECODE | PREFILL, 0.5, 7, 0);
	sw_thresholds_free(set);
	set = NULL;
	assert_int_equal(sw_thresholds_new(&set, NULL, &err), 0);
	assert_int_equal(sw_thresholds_set(set, "m", &one), 0);
	assert_limits(0, DECODE | PREFILL, 0.5, 7, 0);
}

/* Whenever it is looked at, it is whole: the old one or the new one. */
static void it_is_replaced_as_a_whole(void **state)
{
	struct sw_limits one = {.set = PREFILL};
	json_t *doc;

	(void)state;
	restart();
	for (uint64_t i = 0; i < 200; i++) {
		one.count[SW_LIM_PREFILL] = i;
		sw_thresholds_set(set, "m", &one);
		for (int j = 0; j < 20; j++) {
			const char *text = read_file(path);

			if (!text)
				continue;
			doc = json_loads(text, 0, NULL);
			assert_non_null(doc);
			json_decref(doc);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(set_ones_go_before_the_configuration, start, stop),
		cmocka_unit_test_setup_teardown(they_survive_a_restart, start, stop),
		cmocka_unit_test_setup_teardown(the_last_of_many_changes_is_kept, start, stop),
		cmocka_unit_test_setup_teardown(models_that_nobody_serves_are_dropped, start, stop),
		cmocka_unit_test_setup_teardown(a_file_that_is_none_of_ours_is_kept_aside, start,
						stop),
		cmocka_unit_test_setup_teardown(what_is_no_file_does_not_hang, start, stop),
		cmocka_unit_test_setup_teardown(what_cannot_be_written_holds_nevertheless, start,
						stop),
		cmocka_unit_test_setup_teardown(it_is_replaced_as_a_whole, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
