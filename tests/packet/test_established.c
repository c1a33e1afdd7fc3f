// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Which connections requests are shed on, and whose: real sockets on both sides. How requests are
// told apart is in test_established_http.c, what goes over the wire in test_established_wire.c.

#include "lib/ends.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- when a connection is new, followed, or old ---------------------------------------------- */

static void first_request(int family)
{
	struct ends e;

	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_open(family);
	for (int i = 0; i < 5; i++)
		is_shed(&e, GET_CHAT);
	assert_int_equal(counted_kept(SW_R_shed_saturated), family == 4 ? 5 : 11);
	pool_open();
	is_served(&e, GET_CHAT);
	pool_sheds(SW_CAUSE_SATURATED);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(first_request)

static void after_a_served_one(int family)
{
	struct ends e;

	pool_armed();
	e = ends_open(family);
	is_served(&e, GET_CHAT);
	is_served(&e, a_post(3000));
	pool_sheds(SW_CAUSE_SATURATED);
	is_shed(&e, GET_CHAT);
	is_shed(&e, a_post(300));
}
FAMILY_TEST(after_a_served_one)

/* What was asked before nobody knows, so one exchange has to be seen from end to end. */
static void older_connection(int family)
{
	struct ends e = ends_open(family);

	is_served(&e, GET_CHAT);
	assert_int_equal(flows_held(), 0);
	pool_sheds(SW_CAUSE_SATURATED);
	is_served(&e, GET_CHAT);
	is_shed(&e, GET_CHAT);
	ends_reset(&e.client);
}

static void test_older_connection(void **state)
{
	(void)state;
	older_connection(4);
	assert_int_equal(counted_kept(SW_R_keep_unsynced), 1);
}

static void open_again_and_again(int family)
{
	struct ends e;

	pool_armed();
	e = ends_open(family);
	for (int i = 0; i < 40; i++) {
		if (i % 3) {
			pool_sheds(SW_CAUSE_SATURATED);
			is_shed(&e, i % 2 ? GET_CHAT : a_post(100 * i));
		} else {
			pool_finishes();
			is_served(&e, i % 2 ? GET_CHAT : a_post(100 * i));
		}
	}
}
FAMILY_TEST(open_again_and_again)

static void causes_and_families(int family)
{
	struct ends e;

	listener_flags(SW_LF_KEEP);
	pool_armed();
	e = ends_open(family);
	for (enum sw_cause cause = 0; cause < SW_CAUSES; cause++) {
		pool_sheds(cause);
		tell(e.client, a_post(10));
		hear(e.client, kept_answer(cause, SW_FAMILY_DEFAULT));
		tell(e.client, "POST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\n\r\n");
		tell(e.client, "{}");
		hear(e.client, kept_answer(cause, SW_FAMILY_ANTHROPIC));
		hear_nothing(e.server);
		assert_int_equal(counted_kept(SW_R_shed_saturated + cause), family == 4 ? 2 : 4);
	}
}
FAMILY_TEST(causes_and_families)

/* ---- who is not shed ------------------------------------------------------------------------- */

static void paths_that_must_pass(int family)
{
	struct ends e;

	listener_flags(SW_LF_KEEP);
	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_open(family);
	is_served(&e, "GET /health HTTP/1.1\r\nHost: llm\r\n\r\n");
	is_shed(&e, a_post(10));
	is_served(&e, "GET /health HTTP/1.1\r\nHost: llm\r\n\r\n");
	is_served(&e, "GET /v1/chat/completions HTTP/1.1\r\nHost: llm\r\n\r\n");
	is_shed(&e, a_post(10));
	assert_int_equal(counted_kept(SW_R_keep_path), family == 4 ? 3 : 6);
}
FAMILY_TEST(paths_that_must_pass)

static void exempt_sources(int family)
{
	struct ends e;

	listener_flags(SW_LF_KEEP | SW_LF_ALL_PATHS | SW_LF_EXEMPT);
	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_open(family);
	is_shed(&e, GET_CHAT);
	exempt_client(family, true);
	is_served(&e, GET_CHAT);
	exempt_client(family, false);
	is_shed(&e, GET_CHAT);
	assert_int_equal(counted_kept(SW_R_pass_exempt), family == 4 ? 1 : 2);
}
FAMILY_TEST(exempt_sources)

static void observed(int family)
{
	struct ends e = shed_once(family);

	listener_flags(SW_LF_KEEP | SW_LF_ALL_PATHS | SW_LF_OBSERVE);
	is_served(&e, GET_CHAT);
	is_served(&e, a_post(5000));
	assert_int_equal(counted_kept(SW_R_would_shed), family == 4 ? 2 : 4);
	listener_flags(SW_LF_KEEP | SW_LF_ALL_PATHS);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(observed)

static void overdue(int family)
{
	struct ends e = shed_once(family);

	pool_overdue();
	is_served(&e, GET_CHAT);
	pool_sheds(SW_CAUSE_SATURATED);
	is_shed(&e, GET_CHAT);
}
FAMILY_TEST(overdue)

/* A listener that does it no more: what was shed stays true of its connections. */
static void listener_without(int family)
{
	struct ends e = shed_once(family);

	listener_flags(SW_LF_ALL_PATHS);
	is_served(&e, GET_CHAT);
	is_served(&e, a_post(5000));
}
FAMILY_TEST(listener_without)

/* ---- much, and nothing ----------------------------------------------------------------------- */

static void megabytes(int family)
{
	struct ends e = shed_once(family);

	is_shed(&e, a_post(100000));
	pool_finishes();
	begin_bytes(&e, true, 20 << 20);
	move_bytes(e.client, e.server, 20 << 20);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	begin_bytes(&e, false, 20 << 20);
	move_bytes(e.server, e.client, 20 << 20);
	goes_on(&e);
}
FAMILY_TEST(megabytes)

static void test_no_room(void **state)
{
	struct ends e, late;

	(void)state;
	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_open(4);
	is_shed(&e, GET_CHAT);
	fill_flows();
	late = ends_open(4);
	is_served(&late, GET_CHAT);
	is_served(&late, GET_CHAT);
	assert_int_equal(counted_kept(SW_R_keep_full), 2);
	/* those that there are go on */
	is_shed(&e, GET_CHAT);
	pool_finishes();
	is_served(&e, GET_CHAT);
	assert_int_equal(flows_used(), 1);
}

struct reader {
	int fd;
	pid_t thread;
	size_t heard;
};

static void *read_all(void *arg)
{
	struct reader *r = arg;
	char bytes[1000];
	ssize_t n;

	r->thread = syscall(SYS_gettid);
	while ((n = recv(r->fd, bytes, sizeof(bytes), 0)) > 0)
		r->heard += n;
	return NULL;
}

/* How often has this thread gone to sleep? */
static long sleeps_of(pid_t thread)
{
	char path[64], line[128];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
			break;
	fclose(f);
	return n;
}

static void wakes_nobody(int family)
{
	struct ends e;
	struct reader r;
	pthread_t thread;
	long before;

	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_open(family);
	r = (struct reader){.fd = e.server};
	assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
	do { /* until it has begun to wait */
		before = r.thread ? sleeps_of(r.thread) : 0;
		usleep(50000);
	} while (!before || sleeps_of(r.thread) != before);
	for (int i = 0; i < 10000; i++) {
		tell(e.client, i % 4 ? GET_CHAT : a_post(2000));
		hear(e.client, busy());
	}
	assert_int_equal(sleeps_of(r.thread), before);
	assert_int_equal(r.heard, 0);
	shutdown(e.client, SHUT_WR);
	pthread_join(thread, NULL);
}
FAMILY_TEST(wakes_nobody)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_first_request),
		kept_test(test_after_a_served_one),
		kept_test(test_older_connection),
		kept_test(test_open_again_and_again),
		kept_test(test_causes_and_families),
		kept_test(test_paths_that_must_pass),
		kept_test(test_exempt_sources),
		kept_test(test_observed),
		kept_test(test_overdue),
		kept_test(test_listener_without),
		kept_test(test_megabytes),
		kept_test(test_no_room),
		kept_test(test_wakes_nobody),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
