// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Members from Dynamo's file store: files that come, go, change and expire. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "sources/filestore.h"

#define AT(n) "{\"transport\":{\"tcp\":\"10.0.0." #n ":9000\"}}"
#define CARD  "{\"card_json\":{\"display_name\":\"m\"}}"
#define ONE   "v1/instances/d%2Fb%2Fgen%2Derate%2F1"
#define MODEL "v1/mdc/d%2Fb%2Fgen%2Derate%2F1"

#define SOON_MS	   1000	 /* told of: looked for it would be a second and more */
#define AT_LAST_MS 20000 /* a busy machine may need seconds for what takes milliseconds */

static char dir[] = "/tmp/spillway-test-filestore-XXXXXX";
static struct event_base *base;
static struct sw_members *members;
static struct sw_filestore *store;
static int changes;

static const char *in_dir(const char *name)
{
	static char path[2][512];
	static int i;

	i = !i;
	snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

/* As Dynamo does: a file that is complete gets its name. */
static void put(const char *name, const char *value)
{
	FILE *f = fopen(in_dir("v1/.tmp_0"), "w");

	assert_non_null(f);
	fputs(value, f);
	fclose(f);
	assert_int_equal(rename(in_dir("v1/.tmp_0"), in_dir(name)), 0);
}

static void set_age(const char *name, int seconds)
{
	struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}};

	clock_gettime(CLOCK_REALTIME, &t[1]);
	t[1].tv_sec -= seconds;
	assert_int_equal(utimensat(AT_FDCWD, in_dir(name), t, 0), 0);
}

static void make_buckets(void)
{
	mkdir(in_dir("v1"), 0755);
	mkdir(in_dir("v1/instances"), 0755);
	mkdir(in_dir("v1/mdc"), 0755);
	mkdir(in_dir("v1/event_channels"), 0755);
}

static void on_change(void *arg)
{
	(void)arg;
	changes++;
}

static void run_ms(unsigned ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
}

/* Runs until a change is told. Returns in how many ms; fails after 20 s. */
static uint64_t await_change(void)
{
	uint64_t start = sw_now_ms();
	int before = changes;

	while (changes == before && sw_now_ms() - start < AT_LAST_MS)
		run_ms(10);
	assert_true(changes > before);
	return sw_now_ms() - start;
}

static void await_state(enum sw_store_state state)
{
	uint64_t start = sw_now_ms();

	while (sw_filestore_status(store)->state != state && sw_now_ms() - start < AT_LAST_MS)
		run_ms(10);
	assert_int_equal(sw_filestore_status(store)->state, state);
}

static void await_bad(uint64_t n)
{
	uint64_t start = sw_now_ms();

	while (sw_members_counts(members)->bad != n && sw_now_ms() - start < AT_LAST_MS)
		run_ms(10);
	assert_int_equal(sw_members_counts(members)->bad, n);
}

/* The address of the only member; "": there is none. */
static const char *address(void)
{
	static char out[64];
	size_t n;
	struct sw_member *list = sw_members_list(members, &n);

	assert_true(n <= 1);
	snprintf(out, sizeof(out), "%s", n ? list[0].instance->address : "");
	free(list);
	return out;
}

static int setup(void **state)
{
	struct sw_error err;

	(void)state;
	changes = 0;
	base = event_base_new();
	members = sw_members_new(base, on_change, NULL);
	if (!mkdtemp(dir))
		return -1;
	make_buckets();
	return sw_filestore_new(&store, base, dir, members, &err);
}

static int teardown(void **state)
{
	char command[160];

	(void)state;
	sw_filestore_free(store);
	sw_members_free(members);
	event_base_free(base);
	snprintf(command, sizeof(command), "rm -rf %s %s-away", dir, dir);
	memcpy(strrchr(dir, '-') + 1, "XXXXXX", 6);
	return system(command);
}

static void files_come_change_and_go(void **state)
{
	(void)state;
	await_state(SW_STORE_OK);
	put(ONE, AT(5));
	put(MODEL, CARD);
	assert_true(await_change() < SOON_MS);
	assert_string_equal(address(), "10.0.0.5:9000");
	put(ONE, AT(6));
	assert_true(await_change() < SOON_MS);
	assert_string_equal(address(), "10.0.0.6:9000");
	unlink(in_dir(ONE));
	assert_true(await_change() < SOON_MS);
	assert_string_equal(address(), "");
}

static void a_file_that_nobody_touches_expires(void **state)
{
	(void)state;
	put(ONE, AT(5));
	put(MODEL, CARD);
	await_change();
	set_age(ONE, 6); /* with seconds to spare for a machine that is busy */
	run_ms(1100);
	assert_string_equal(address(), "10.0.0.5:9000");
	set_age(ONE, 11);
	await_change();
	assert_string_equal(address(), "");
	set_age(ONE, 0); /* and is back when somebody does */
	await_change();
	assert_string_equal(address(), "10.0.0.5:9000");
}

static void a_file_is_read_once(void **state)
{
	(void)state;
	put(ONE, "{");
	put(MODEL, CARD);
	await_change();
	set_age(ONE, 3);
	run_ms(1100);
	assert_int_equal(sw_members_counts(members)->bad, 1);
	assert_int_equal(sw_members_counts(members)->told, 2);
	put(ONE, "[");
	await_bad(2);
}

static void other_files_are_left_alone(void **state)
{
	(void)state;
	put("v1/instances/.tmp_0123", AT(5));
	put("v1/instances/d%2Fb%2F%00%2F1", AT(5));
	mkdir(in_dir(ONE), 0755);
	symlink("/etc/passwd", in_dir("v1/instances/d%2Fb%2Fg%2F1"));
	mkfifo(in_dir("v1/instances/d%2Fb%2Fg%2F2"), 0644);
	put(MODEL, CARD);
	await_change();
	assert_int_equal(sw_members_counts(members)->told, 1);
}

static void a_huge_file_is_refused(void **state)
{
	(void)state;
	put(MODEL, CARD);
	put(ONE, AT(5));
	assert_int_equal(truncate(in_dir(ONE), 1LL << 40), 0);
	await_change();
	assert_string_equal(address(), "");
	assert_non_null(strstr(sw_members_counts(members)->error.text, "over 64 kB"));
	assert_in_range(sw_members_counts(members)->error_ms, 1, sw_now_ms());
}

static void many_are_read_in_turns(void **state)
{
	char name[64];
	size_t n;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "v1/instances/d%%2Fb%%2Fg%%2F%x", i);
		put(name, AT(5));
		snprintf(name, sizeof(name), "v1/mdc/d%%2Fb%%2Fg%%2F%x", i);
		put(name, CARD);
	}
	await_change();
	free(sw_members_list(members, &n));
	assert_int_equal(n, 1000);
}

static void a_store_that_is_away_is_waited_for(void **state)
{
	char away[64];

	(void)state;
	put(ONE, AT(5));
	put(MODEL, CARD);
	await_change();
	snprintf(away, sizeof(away), "%s-away", dir);
	assert_int_equal(rename(dir, away), 0);
	await_state(SW_STORE_FAILING);
	assert_non_null(strstr(sw_filestore_status(store)->error.text, "No such file"));
	assert_string_equal(address(), "10.0.0.5:9000");
	assert_int_equal(rename(away, dir), 0);
	unlink(in_dir(ONE));
	await_change();
	assert_int_equal(sw_filestore_status(store)->state, SW_STORE_OK);
	assert_non_null(strstr(sw_filestore_status(store)->error.text, "No such file"));
	assert_in_range(sw_filestore_status(store)->error_ms, 1, sw_now_ms());
	assert_string_equal(address(), "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_come_change_and_go),
		TEST(a_file_that_nobody_touches_expires),
		TEST(a_file_is_read_once),
		TEST(other_files_are_left_alone),
		TEST(a_huge_file_is_refused),
		TEST(many_are_read_in_turns),
		TEST(a_store_that_is_away_is_waited_for),
	};

	sw_log_level(SW_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
