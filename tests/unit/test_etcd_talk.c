// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What etcd, or something else at its address, may answer: good, bad, huge, cut short, or that a
 * revision is gone. The real one is in test_etcd.c. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "sources/etcd.h"
#include "sources/etcd_talk.h"

/* Of "v1/instances/d/b/g/1" and "v1/mdc/d/b/g/1", with {"transport":{}} and a card */
#define INSTANCE_KEY "djEvaW5zdGFuY2VzL2QvYi9nLzE="
#define INSTANCE     "{\"key\":\"" INSTANCE_KEY "\",\"value\":\"eyJ0cmFuc3BvcnQiOnt9fQ==\"}"
#define MODEL                                                                                      \
	"{\"key\":\"djEvbWRjL2QvYi9nLzE=\",\"value\":"                                             \
	"\"eyJjYXJkX2pzb24iOnsiZGlzcGxheV9uYW1lIjoibSJ9fQ==\"}"
#define AT_LAST_MS 20000 /* a busy machine may need seconds for what takes milliseconds */

#define HEADER	"\"header\":{\"revision\":\"7\"}"
#define CREATED "{\"result\":{" HEADER ",\"created\":true}}\n"

static struct event_base *base;
static struct sw_members *members;

static void on_change(void *arg)
{
	(void)arg;
}

static size_t count(void)
{
	size_t n;

	free(sw_members_list(members, &n));
	return n;
}

/* ---- answers as text ---- */

static int take_range(const char *text, struct sw_etcd_page *page, struct sw_error *err)
{
	return sw_etcd_take_range(text, strlen(text), members, page, err);
}

static int take_watch(const char *text, struct sw_error *err)
{
	return sw_etcd_take_watch(text, strlen(text), members, err);
}

static void pages_are_read(void **state)
{
	struct sw_etcd_page page;
	struct sw_error err;

	(void)state;
	assert_int_equal(take_range("{" HEADER "}", &page, &err), 0);
	assert_int_equal(page.revision, 7);
	assert_null(page.next);
	assert_int_equal(take_range("{\"header\":{\"revision\":8},\"kvs\":[" INSTANCE "," MODEL
				    "],\"more\":true,\"count\":\"3\"}",
				    &page, &err),
			 0);
	assert_int_equal(page.revision, 8);
	assert_string_equal(page.next, "v1/mdc/d/b/g/1\x01");
	assert_int_equal(count(), 1);
	free(page.next);
}

static void changes_are_read(void **state)
{
	struct sw_error err;

	(void)state;
	assert_int_equal(take_watch("{\"result\":{" HEADER ",\"events\":[{\"kv\":" INSTANCE
				    "},{\"type\":\"PUT\",\"kv\":" MODEL "}]}}",
				    &err),
			 0);
	assert_int_equal(count(), 1);
	assert_int_equal(take_watch("{\"result\":{\"events\":[{\"type\":\"DELETE\",\"kv\":"
				    "{\"key\":\"" INSTANCE_KEY "\",\"mod_revision\":\"9\"}}]}}",
				    &err),
			 0);
	assert_int_equal(count(), 0);
	assert_int_equal(take_watch("{\"result\":{" HEADER "}}", &err), 0); /* progress */
}

static void bad_answers_are_refused(void **state)
{
	static const char *const ranges[] = {
		"",
		"<html>",
		"[]",
		"{}",
		"{\"header\":7}",
		"{" HEADER ",\"kvs\":[7]}",
		"{" HEADER ",\"kvs\":[{\"key\":\"!\"}]}",
		"{" HEADER ",\"kvs\":[{\"key\":\"djE=\",\"value\":7}]}",
		"{" HEADER ",\"more\":true}",
		"{" HEADER ",\"kvs\":\"x\",\"more\":true}",
	};
	static const char *const watches[] = {
		"",
		"7",
		"{}",
		"{\"result\":7}",
		"{\"result\":{\"events\":[7]}}",
		"{\"error\":{\"message\":\"etcdserver: no leader\"}}",
		"{\"error\":\"\",\"message\":\"\"}",
		"{\"result\":{\"canceled\":true,\"cancel_reason\":\"permission denied\"}}",
	};
	struct sw_etcd_page page;
	char *token = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct sw_error err = {""};

		assert_int_equal(take_range(ranges[i], &page, &err), -EBADMSG);
		assert_true(err.text[0]);
	}
	for (size_t i = 0; i < sizeof(watches) / sizeof(watches[0]); i++) {
		struct sw_error err = {""};
		int ret = take_watch(watches[i], &err);

		assert_true(ret < 0 && ret != -ESTALE);
		assert_true(err.text[0]);
	}
	assert_int_equal(sw_etcd_take_token("{\"token\":\"a\\r\\nb\"}", 16, &token, NULL),
			 -EBADMSG);
	assert_null(token);
	assert_int_equal(count(), 0);
}

/* ---- answers over HTTP ---- */

static struct evhttp *http;
static unsigned port;
static int reads, watches;
static const char *range_answer, *watch_answer;
static int range_status;
static bool endless, hang_up, falls_silent;
static struct evhttp_request *watching[16]; /* streams that were not ended */
static size_t n_watching;

static void on_range(struct evhttp_request *req, void *arg)
{
	struct evbuffer *b = evbuffer_new();
	static char piece[1 << 20];

	(void)arg;
	reads++;
	if (falls_silent && reads > 1) {
		evbuffer_free(b);
		return;
	}
	evbuffer_add_printf(b, "%s", range_answer);
	for (int i = 0; i < 17 && endless; i++)
		evbuffer_add(b, memset(piece, ' ', sizeof(piece)), sizeof(piece));
	evhttp_send_reply(req, range_status, NULL, b);
	evbuffer_free(b);
}

static void on_watch(struct evhttp_request *req, void *arg)
{
	struct evbuffer *b = evbuffer_new();

	(void)arg;
	watches++;
	evhttp_send_reply_start(req, 200, NULL);
	evbuffer_add_printf(b, CREATED "%s", watches == 1 ? watch_answer : "");
	evhttp_send_reply_chunk(req, b);
	if (hang_up && watches == 1)
		evhttp_send_reply_end(req);
	else if (n_watching < sizeof(watching) / sizeof(watching[0]))
		watching[n_watching++] = req;
	evbuffer_free(b);
}

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	members = sw_members_new(base, on_change, NULL);
	http = evhttp_new(base);
	port = 0;
	for (int p = 23000; p < 24000 && !port; p++)
		port = evhttp_bind_socket(http, "127.0.0.1", (uint16_t)p) ? 0 : (unsigned)p;
	evhttp_set_cb(http, "/v3/kv/range", on_range, NULL);
	evhttp_set_cb(http, "/v3/watch", on_watch, NULL);
	reads = watches = 0;
	range_answer = "{" HEADER ",\"kvs\":[" INSTANCE "," MODEL "]}";
	watch_answer = "";
	range_status = 200;
	endless = hang_up = falls_silent = false;
	return !port;
}

static int teardown(void **state)
{
	(void)state;
	while (n_watching)
		evhttp_send_reply_end(watching[--n_watching]);
	evhttp_free(http);
	sw_members_free(members);
	event_base_free(base);
	return 0;
}

/* What is under way gets as many turns on a busy machine as on another. */
static void turn(void)
{
	for (int i = 0; i < 20; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		usleep(1000);
	}
}

/* Follows the server until it was read and watched that often and has failed so many times, or for
 * that long. Returns the status as it is then. */
static struct sw_store_status follow(int until_reads, int until_watches, uint64_t until_errors,
				     unsigned ms)
{
	char url[64], *urls[] = {url};
	const struct sw_etcd_conf conf = {.endpoints = urls, .n = 1};
	struct sw_store_status status;
	uint64_t start = sw_now_ms();
	struct sw_etcd *etcd;
	struct sw_error err;

	snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
	assert_int_equal(sw_etcd_new(&etcd, base, &conf, members, &err), 0);
	do {
		turn();
		status = *sw_etcd_status(etcd);
	} while (sw_now_ms() - start < ms &&
		 (reads < until_reads || watches < until_watches || status.errors < until_errors));
	turn();
	status = *sw_etcd_status(etcd);
	sw_etcd_free(etcd);
	return status;
}

static void expect_failure(const char *part)
{
	struct sw_store_status s = follow(1, 0, 1, AT_LAST_MS);

	assert_int_equal(s.state, SW_STORE_FAILING);
	if (!strstr(s.error.text, part))
		fail_msg("'%s' without '%s'", s.error.text, part);
}

static void what_is_no_etcd_is_said_to_be_none(void **state)
{
	(void)state;
	range_answer = "<html>welcome</html>";
	expect_failure("no JSON object");
}

static void an_error_is_told_in_its_words(void **state)
{
	(void)state;
	range_status = 401;
	range_answer = "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}";
	expect_failure("HTTP status 401: etcdserver: invalid auth token");
}

static void a_huge_answer_is_refused(void **state)
{
	(void)state;
	endless = true;
	expect_failure("the answer is over 16 MB");
}

static void a_revision_that_is_gone_is_no_failure(void **state)
{
	struct sw_store_status s;

	(void)state;
	watch_answer = "{\"result\":{\"canceled\":true,\"compact_revision\":\"9\"}}\n";
	s = follow(2, 2, 0, AT_LAST_MS);
	assert_int_equal(reads, 2);
	assert_int_equal(watches, 2);
	assert_int_equal(s.state, SW_STORE_OK);
	assert_int_equal(s.errors, 0);
	assert_int_equal(count(), 1);
}

static void a_watch_that_ends_is_begun_anew(void **state)
{
	struct sw_store_status s;

	(void)state;
	hang_up = true;
	s = follow(2, 2, 1, AT_LAST_MS);
	assert_int_equal(watches, 2);
	assert_int_equal(s.state, SW_STORE_OK);
	assert_int_equal(s.errors, 1);
}

static void a_bad_change_ends_the_watch_and_leaves_members(void **state)
{
	struct sw_store_status s;

	(void)state;
	watch_answer = "{\"result\":\n";
	s = follow(1, 1, 1, AT_LAST_MS);
	assert_int_equal(s.errors, 1);
	assert_int_equal(count(), 1);
}

/* As one without a quorum: its watch stays open, and no question is answered any more. */
static void one_that_falls_silent_is_found_out(void **state)
{
	uint64_t start_ms = sw_now_ms();
	struct sw_store_status s;

	(void)state;
	falls_silent = true;
	s = follow(2, 1, 1, 20000);
	assert_in_range(sw_now_ms() - start_ms, 5000, 13000);
	assert_int_equal(s.state, SW_STORE_FAILING);
	assert_non_null(strstr(s.error.text, "timed out"));
	assert_int_equal(count(), 1);
}

/* Retries come further and further apart, so that a dead etcd is not asked all the time. */
static void retries_back_off(void **state)
{
	uint64_t start = sw_now_ms();

	(void)state;
	range_status = 503;
	follow(4, 0, 0, AT_LAST_MS);
	assert_int_equal(reads, 4);
	assert_true(sw_now_ms() - start >= 800); /* the halves of 250, 500 and 1000 ms */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pages_are_read),
		TEST(changes_are_read),
		TEST(bad_answers_are_refused),
		TEST(what_is_no_etcd_is_said_to_be_none),
		TEST(an_error_is_told_in_its_words),
		TEST(a_huge_answer_is_refused),
		TEST(a_revision_that_is_gone_is_no_failure),
		TEST(a_watch_that_ends_is_begun_anew),
		TEST(a_bad_change_ends_the_watch_and_leaves_members),
		TEST(one_that_falls_silent_is_found_out),
		TEST(retries_back_off),
	};

	signal(SIGPIPE, SIG_IGN);
	sw_log_level(SW_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
