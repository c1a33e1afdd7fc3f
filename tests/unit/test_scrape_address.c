// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where a page is scraped from: addresses, proxies and redirects, and the token that is sent. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/scraping.h"

static void a_bad_url_is_refused_at_once(void **state)
{
	static const char *const bad[] = {"",
					  "127.0.0.1:8000/metrics",
					  "/metrics",
					  "ftp://127.0.0.1/metrics",
					  "file:///etc/passwd",
					  "http://",
					  "http:// /",
					  "http://host:99999/"};
	struct sw_target t = {.engine = SW_ENGINE_TGI};
	int id = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		t.url = bad[i];
		if (sw_scraper_add(scraper, &t, NULL, NULL, &id, &scrape_error) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_non_null(strstr(scrape_error.text, "http://HOST[:PORT]/PATH"));
	}
	run_ms(30);
	assert_int_equal(seen.calls, 0);
}

static void a_password_is_not_shown(void **state)
{
	struct sw_target t = target_of("");
	char url[128];

	(void)state;
	snprintf(url, sizeof(url), "HTTP://joe:secret@127.0.0.1:%u/503", web.port);
	t.url = url;
	scrape(t);
	assert_failed(-EPROTO, "//127.0.0.1");
	assert_null(strstr(seen.text, "secret"));
	assert_non_null(strstr(web.request, "Authorization: Basic"));
}

static void the_environment_names_no_proxy_for_us(void **state)
{
	(void)state;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	scrape(target_of("/metrics"));
	unsetenv("http_proxy");
	assert_page();
}

static void a_few_redirects_are_followed(void **state)
{
	(void)state;
	scrape(target_of("/hops/3"));
	assert_page();
	scrape(target_of("/hops/4"));
	assert_failed(-ELOOP, "set url to the page's final address");
	scrape(target_of("/loop"));
	assert_failed(-ELOOP, "set url to the page's final address");
	assert_int_equal(web.requests, 4 + 4 + 4);
	scrape(target_of("/to/file:///etc/passwd"));
	assert_true(seen.n < 0);
}

static void a_token_is_sent_and_read_anew(void **state)
{
	struct sw_target t = target_of("/metrics");

	(void)state;
	write_file(in_dir("token"), "first\n");
	t.bearer_token_file = in_dir("token");
	add_target(t);
	await(1);
	assert_page();
	assert_non_null(strstr(web.request, "\r\nAuthorization: Bearer first\r\n"));
	write_file(in_dir("token"), "second");
	await(2);
	assert_page();
	assert_non_null(strstr(web.request, "\r\nAuthorization: Bearer second\r\n"));
}

static void a_token_stays_with_its_host(void **state)
{
	struct sw_target t;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/to/http://localhost:%u/metrics", web.port);
	write_file(in_dir("token"), "first\n");
	t = target_of(path);
	t.bearer_token_file = in_dir("token");
	scrape(t);
	assert_page();
	assert_null(strstr(web.request, "first"));
	t = target_of("/hops/1");
	t.bearer_token_file = in_dir("token");
	scrape(t);
	assert_page();
	assert_non_null(strstr(web.request, "\r\nAuthorization: Bearer first\r\n"));
}

static void a_bad_token_file_is_an_error(void **state)
{
	static const char *const bad[] = {"", "\n\n", "one two", "one\r\nX-Header: two",
					  "one\ntwo\n"};
	struct sw_target t = target_of("/metrics");

	(void)state;
	unlink(in_dir("token"));
	t.bearer_token_file = in_dir("token");
	scrape(t);
	assert_failed(-ENOENT, "/metrics: cannot read bearer_token_file");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		write_file(in_dir("token"), bad[i]);
		t.bearer_token_file = in_dir("token");
		scrape(t);
		assert_failed(-EINVAL, "has to hold one token");
	}
	unlink(in_dir("token"));
	mkfifo(in_dir("token"), 0600); /* must not stop the loop */
	t.bearer_token_file = in_dir("token");
	scrape(t);
	assert_failed(-EINVAL, "has to hold one token");
	unlink(in_dir("token"));
	assert_int_equal(web.requests, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRAPING_TEST(a_bad_url_is_refused_at_once),
		SCRAPING_TEST(a_password_is_not_shown),
		SCRAPING_TEST(the_environment_names_no_proxy_for_us),
		SCRAPING_TEST(a_few_redirects_are_followed),
		SCRAPING_TEST(a_token_is_sent_and_read_anew),
		SCRAPING_TEST(a_token_stays_with_its_host),
		SCRAPING_TEST(a_bad_token_file_is_an_error),
	};

	return cmocka_run_group_tests(tests, scraping_group_setup, scraping_group_teardown);
}
