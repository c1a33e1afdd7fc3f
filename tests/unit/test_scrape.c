// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Scraping: pages good and bad, time, and targets that come and go. Addresses, redirects and tokens
 * are in test_scrape_address.c, TLS and other network namespaces in test_scrape_remote.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/scraping.h"

/* ---- pages ---- */

static void a_page_becomes_reports(void **state)
{
	(void)state;
	scrape(target_of("/metrics"));
	assert_page();
	assert_non_null(strstr(web.request, "Accept-Encoding: gzip"));
	assert_null(strstr(web.request, "Authorization"));
}

static void scraping_goes_on_over_one_connection(void **state)
{
	uint64_t start = now_ms();

	(void)state;
	add_target(target_of("/metrics"));
	await(5);
	assert_page();
	assert_true(now_ms() - start >= 60); /* the first time may be shorter */
	assert_int_equal(web.requests, 5);
	assert_int_equal(web.accepted, 1);
}

static void the_first_scrape_does_not_wait_for_a_period(void **state)
{
	struct sw_target t = target_of("/metrics");

	(void)state;
	t.period_ms = 60000;
	scrape(t);
	assert_page();
}

static void a_connection_is_not_kept_where_it_counts(void **state)
{
	struct sw_target t = target_of("/metrics");
	int id;

	(void)state;
	t.once = 1;
	id = add_target(t);
	await(4);
	sw_scraper_remove(scraper, id);
	assert_in_range(web.accepted, 4, 5);
	assert_page();
}

static void defaults_stand_for_zero(void **state)
{
	struct sw_target t = target_of("/metrics");
	uint64_t start, least = UINT64_MAX;

	(void)state;
	t.period_ms = t.timeout_ms = 0;
	for (int tries = 0; least > 500 && tries < 5; tries++) { /* the machine may be busy */
		int id;

		id = add_target(t);
		await(2); /* the first time may be shorter */
		start = now_ms();
		await(1);
		assert_page();
		sw_scraper_remove(scraper, id);
		least = now_ms() - start < least ? now_ms() - start : least;
	}
	assert_in_range(least, 150, 500);
	t = target_of("/silent");
	t.timeout_ms = 0;
	start = now_ms();
	scrape(t);
	assert_failed(-ETIMEDOUT, "timed out");
	assert_true(now_ms() - start >= 990);
}

static void an_error_status_is_unknown(void **state)
{
	(void)state;
	scrape(target_of("/503"));
	assert_failed(-EPROTO, "/503: HTTP status 503 instead of 200");
	scrape(target_of("/204"));
	assert_failed(-EPROTO, "HTTP status 204");
	scrape(target_of("/404"));
	assert_failed(-ENOENT, "HTTP status 404: check the path in url");
	scrape(target_of("/401"));
	assert_failed(-EACCES, "HTTP status 401: set bearer_token_file");
}

static void what_is_not_metrics_is_unknown(void **state)
{
	(void)state;
	scrape(target_of("/html"));
	assert_failed(-EBADMSG, "/html: got HTML instead of Prometheus metrics");
	scrape(target_of("/other"));
	assert_failed(-ENODATA, "/other: no series of tgi among the 1");
	scrape(target_of("/empty"));
	assert_failed(-ENODATA, "no series of tgi among the 0");
}

static void gzip_is_unpacked(void **state)
{
	(void)state;
	scrape(target_of("/gzip"));
	assert_page();
	scrape(target_of("/gzip-bad"));
	assert_true(seen.n < 0);
	scrape(target_of("/gzip-cut"));
	assert_true(seen.n < 0);
}

static void over_four_mb_is_refused(void **state)
{
	char path[32];

	(void)state;
	snprintf(path, sizeof(path), "/size/%u", SW_SCRAPE_LIMIT);
	scrape(target_of(path));
	assert_page();
	snprintf(path, sizeof(path), "/size/%u", SW_SCRAPE_LIMIT + 1);
	scrape(target_of(path));
	assert_failed(-EFBIG, ": the page is over 4 MB");
	scrape(target_of("/size/5000000"));
	assert_failed(-EFBIG, ": the page is over 4 MB");
	scrape(target_of("/bomb/5000000")); /* some 10 kB on the wire */
	assert_failed(-EFBIG, ": the page is over 4 MB");

	add_target(target_of("/size/5000000")); /* the next error is its own */
	await(1);
	assert_failed(-EFBIG, ": the page is over 4 MB");
	web_stop();
	await(2);
	assert_failed(-ECONNREFUSED, "Connection refused");
	assert_int_equal(web_start(base, web.port), 0);
}

static void a_cut_page_is_unknown(void **state)
{
	(void)state;
	scrape(target_of("/short"));
	assert_failed(-EBADMSG, "cut short");
	scrape(target_of("/chunk-cut"));
	assert_failed(-EBADMSG, "cut short");
	scrape(target_of("/long"));
	assert_failed(-EBADMSG, "cut short");
	scrape(target_of("/drop"));
	assert_true(seen.n < 0);
}

/* ---- time ---- */

static void a_slow_server_times_out(void **state)
{
	struct sw_target t = target_of("/slow");
	uint64_t start = now_ms();

	(void)state;
	t.timeout_ms = 200;
	scrape(t);
	assert_failed(-ETIMEDOUT, "timed out");
	assert_true(now_ms() - start >= 190); /* the page would take 100 s */

	t = target_of("/silent");
	t.timeout_ms = 100;
	add_target(t);
	await(2); /* and is tried again */
	assert_failed(-ETIMEDOUT, "timed out");
}

static void a_scrape_never_overlaps_itself(void **state)
{
	(void)state;
	add_target(target_of("/late")); /* 150 ms each, due each 20 ms */
	await(3);
	assert_page();
	assert_int_equal(web.most_waiting, 1);
	assert_int_equal(web.requests, 3);
}

static void a_dead_server_is_unknown_until_it_is_back(void **state)
{
	struct sw_target t = target_of("/metrics");

	(void)state;
	web_stop();
	add_target(t);
	await(1);
	assert_failed(-ECONNREFUSED, "Connection refused; does the engine run");
	assert_int_equal(web_start(base, web.port), 0);
	await(2);
	assert_page();
}

/* ---- removal ---- */

static void removing_ends_a_transfer(void **state)
{
	int id, files = open_files();

	(void)state;
	id = add_target(target_of("/silent"));
	await_open(1);
	sw_scraper_remove(scraper, id);
	await_open(0);
	assert_int_equal(seen.calls, 0);
	assert_int_equal(open_files(), files);
	sw_scraper_remove(scraper, id); /* gone already: nothing happens */
	sw_scraper_remove(scraper, 4711);

	id = add_target(target_of("/metrics")); /* before it has begun */
	sw_scraper_remove(scraper, id);
	run_ms(50);
	assert_int_equal(seen.calls, 0);
	assert_int_equal(web.requests, 1);
}

static void freeing_ends_all_transfers(void **state)
{
	int files;

	(void)state;
	sw_scraper_free(scraper);
	files = open_files();
	assert_int_equal(sw_scraper_new(&scraper, base, &scrape_error), 0);
	for (int i = 0; i < 5; i++) {
		struct sw_target t = target_of(i % 2 ? "/silent" : "/metrics");

		t.timeout_ms += i;
		add_target(t);
	}
	await(6);
	sw_scraper_free(scraper);
	scraper = NULL;
	await_open(0);
	assert_int_equal(open_files(), files);
}

static void adding_and_removing_leaves_nothing(void **state)
{
	int files;

	(void)state;
	scrape(target_of("/metrics"));
	files = open_files();
	for (int i = 0; i < 50; i++) {
		scrape(target_of("/metrics"));
		scrape(target_of("/short"));
	}
	settle();
	assert_in_range(open_files(), files - 2, files + 2); /* one idle connection, both ends */
}

static void a_callback_may_remove(void **state)
{
	struct sw_target t = target_of("/metrics");

	(void)state;
	seen.remove = add_target(t); /* itself */
	await(1);
	run_ms(60);
	assert_int_equal(seen.calls, 1);
	t.bearer_token_file = "/nonexistent"; /* itself, from a scrape that never began */
	seen.remove = add_target(t);
	await(1);
	run_ms(60);
	assert_int_equal(seen.calls, 2);
	seen.remove = add_target(target_of("/silent")); /* another, whose transfer is under way */
	add_target(target_of("/metrics"));
	await(3);
	assert_page();
	settle();
	assert_int_equal(web.waiting, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRAPING_TEST(a_page_becomes_reports),
		SCRAPING_TEST(scraping_goes_on_over_one_connection),
		SCRAPING_TEST(the_first_scrape_does_not_wait_for_a_period),
		SCRAPING_TEST(a_connection_is_not_kept_where_it_counts),
		SCRAPING_TEST(defaults_stand_for_zero),
		SCRAPING_TEST(an_error_status_is_unknown),
		SCRAPING_TEST(what_is_not_metrics_is_unknown),
		SCRAPING_TEST(gzip_is_unpacked),
		SCRAPING_TEST(over_four_mb_is_refused),
		SCRAPING_TEST(a_cut_page_is_unknown),
		SCRAPING_TEST(a_slow_server_times_out),
		SCRAPING_TEST(a_scrape_never_overlaps_itself),
		SCRAPING_TEST(a_dead_server_is_unknown_until_it_is_back),
		SCRAPING_TEST(removing_ends_a_transfer),
		SCRAPING_TEST(freeing_ends_all_transfers),
		SCRAPING_TEST(adding_and_removing_leaves_nothing),
		SCRAPING_TEST(a_callback_may_remove),
	};

	return cmocka_run_group_tests(tests, scraping_group_setup, scraping_group_teardown);
}
