// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Targets that read the same page, which is fetched once for all of them, and targets whose engine
 * is found out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/scraping.h"
#include "sources/custom.h"

#define WORKERS 100

static char front_page[16384];

static void make_front_page(void)
{
	size_t n = 0;

	for (int i = 0; i < WORKERS; i++)
		n += snprintf(front_page + n, sizeof(front_page) - n,
			      "dynamo_frontend_worker_active_decode_blocks{dp_rank=\"0\",worker_id="
			      "\"%d\"} %d\n",
			      1000 + i, 7 * i);
	web.page = front_page;
}

static struct told {
	int calls, n, remove[2];
	uint64_t value;
	char text[512];
} told[WORKERS];
static int n_told, enough_told;

static void on_told(void *arg, int n, const struct sw_report *reports, const struct sw_error *err)
{
	struct told *t = arg;

	t->calls++;
	t->n = n;
	t->value = n > 0 ? reports[0].value[SW_SIG_DECODE_BLOCKS] : UINT64_MAX;
	snprintf(t->text, sizeof(t->text), "%s", err->text);
	for (int i = 0; i < 2; i++)
		if (t->remove[i])
			sw_scraper_remove(scraper, t->remove[i]);
	if (++n_told == enough_told)
		event_base_loopbreak(base);
}

static int add_for(struct told *to, int i, struct sw_target t)
{
	int id = 0;

	t.engine = SW_ENGINE_DYNAMO;
	t.hints = (struct sw_engine_hints){.has_worker_id = true, .worker_id = 1000 + i};
	assert_int_equal(sw_scraper_add(scraper, &t, on_told, to, &id, &scrape_error), 0);
	return id;
}

static int add_worker(int i, struct sw_target t)
{
	return add_for(&told[i], i, t);
}

static void await_told(int calls)
{
	enough_told = n_told + calls;
	run_ms(20000);
	assert_true(n_told >= enough_told);
}

static int setup(void **state)
{
	int ret = scraping_setup(state);

	memset(told, 0, sizeof(told));
	make_front_page();
	return ret;
}

#define TARGETS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, scraping_teardown)

/* ---- one page for many ---- */

static void one_fetch_is_for_all(void **state)
{
	(void)state;
	for (int i = 0; i < WORKERS; i++)
		add_worker(i, target_of("/page"));
	await_told(3 * WORKERS);
	for (int i = 0; i < WORKERS; i++) {
		assert_int_equal(told[i].n, 1);
		assert_int_equal(told[i].value, 7 * i);
		assert_int_equal(told[i].calls, 3);
	}
	assert_int_equal(web.requests, 3);
	assert_int_equal(web.accepted, 1);
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* If each of them read all of it, that would be a million lines and more, and most of a second. */
static void a_large_page_is_read_once(void **state)
{
	enum { MANY = 1000 };
	char *page = malloc(500 * MANY);
	size_t n = 0;
	double begun;

	(void)state;
	for (int i = 0; i < 3 * MANY; i++)
		n += sprintf(page + n, "dynamo_frontend_worker_%s{worker_id=\"%d\"} %d\n",
			     i < MANY	    ? "active_decode_blocks"
			     : i < 2 * MANY ? "active_prefill_tokens"
					    : "last_time_to_first_token_seconds",
			     1000 + i % MANY, 7 * (i % WORKERS));
	web.page = page;
	for (int i = 0; i < MANY; i++)
		add_for(&told[i % WORKERS], i, target_of("/page"));
	begun = cpu_ms();
	await_told(MANY);
	assert_true(cpu_ms() - begun < 300);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(told[i].value, 7 * i);
	assert_int_equal(web.requests, 1);
	web.page = front_page;
	free(page);
}

static void a_failure_is_told_to_all(void **state)
{
	struct sw_target t = target_of("/503");
	int id[2];

	(void)state;
	id[0] = add_worker(0, t);
	id[1] = add_worker(1, t);
	await_told(2);
	assert_int_equal(told[0].n, -EPROTO);
	assert_int_equal(told[1].n, -EPROTO);
	assert_non_null(strstr(told[1].text, "/503: HTTP status 503"));
	sw_scraper_remove(scraper, id[0]);
	sw_scraper_remove(scraper, id[1]);
	web.requests = 0;
	t = target_of("/page");
	t.bearer_token_file = "/nonexistent"; /* it is not even asked */
	add_worker(2, t);
	add_worker(3, t);
	await_told(2);
	assert_int_equal(web.requests, 0);
	assert_int_equal(told[2].n, -ENOENT);
	assert_int_equal(told[3].n, -ENOENT);
}

static void many_targets_keep_their_connections(void **state)
{
	struct sw_target t = target_of("/metrics");

	(void)state;
	for (int i = 0; i < 20; i++) {
		t.timeout_ms++; /* or it were the same page, fetched once for all */
		add_target(t);
	}
	await(200);
	assert_page();
	assert_in_range(web.accepted, 1, 20);
	assert_true(web.requests >= 200);
}

/* What is fetched in another way is another page. */
static void what_differs_is_fetched_apart(void **state)
{
	struct sw_target t = target_of("/page");

	(void)state;
	t.period_ms = 5000;
	add_worker(0, t);
	t.period_ms = 6000;
	add_worker(1, t);
	t.once = 1;
	add_worker(2, t);
	t.insecure = 1;
	add_worker(3, t);
	t.ca_file = "/etc/hostname";
	add_worker(4, t);
	write_file(in_dir("token"), "one");
	t.bearer_token_file = in_dir("token");
	add_worker(5, t);
	t.netns = "/proc/self/ns/net";
	add_worker(6, t);
	await_told(7);
	assert_in_range(web.requests, 6, 7); /* the last may have no right to */
}

static void who_joins_is_told_at_once(void **state)
{
	struct sw_target t = target_of("/page");

	(void)state;
	t.period_ms = 60000;
	add_worker(0, t);
	await_told(1);
	add_worker(1, t);
	await_told(2);
	assert_int_equal(told[1].calls, 1);
	assert_int_equal(told[1].value, 7);
}

static void any_may_be_removed_while_they_are_told(void **state)
{
	int id[4], files = open_files();

	(void)state;
	for (int first = 0; first < 4; first++) {
		for (int other = 0; other < 4; other++) {
			memset(told, 0, sizeof(told));
			for (int i = 0; i < 4; i++)
				id[i] = add_worker(i, target_of("/page"));
			told[first].remove[0] = id[other];
			told[first].remove[1] = id[first];
			await_told(4);
			assert_int_equal(told[first].calls, 1);
			assert_in_range(told[other].calls, first == other, 1);
			for (int i = 0; i < 4; i++)
				sw_scraper_remove(scraper, id[i]);
		}
	}
	settle();
	assert_int_equal(web.waiting, 0);
	assert_in_range(open_files(), files, files + 2); /* an idle connection, both ends */
}

static void the_last_one_ends_it(void **state)
{
	int a, b;

	(void)state;
	a = add_worker(0, target_of("/page"));
	b = add_worker(1, target_of("/page"));
	await_told(2);
	sw_scraper_remove(scraper, a);
	await_told(3); /* goes on for the other */
	sw_scraper_remove(scraper, b);
	run_ms(20);
	told[0].calls = told[1].calls = web.requests = 0;
	run_ms(80);
	assert_int_equal(told[0].calls + told[1].calls + web.requests, 0);
}

/* ---- auto ---- */

static void an_engine_is_found_and_found_anew(void **state)
{
	struct sw_target t = target_of("/page");
	int id;

	(void)state;
	t.engine = SW_ENGINE_AUTO;
	web.page = "go_goroutines 3\n"; /* still starting */
	id = add_target(t);
	await(1);
	assert_failed(-ENODATA, "/page: no series of a known engine among the 1");
	assert_int_equal(sw_scraper_engine(scraper, id), SW_ENGINE_AUTO);
	web.page = "vllm:num_requests_waiting 3\n";
	await(2);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.reports[0].value[SW_SIG_WAITING], 3);
	assert_int_equal(sw_scraper_engine(scraper, id), SW_ENGINE_VLLM);
	web.page = "sglang:num_queue_reqs 4\n"; /* another runs there now */
	await(2);
	assert_int_equal(seen.reports[0].value[SW_SIG_WAITING], 4);
	assert_int_equal(sw_scraper_engine(scraper, id), SW_ENGINE_SGLANG);
	web.page = "<html>"; /* says nothing about what runs there */
	await(2);
	assert_int_equal(seen.n, -EBADMSG);
	assert_int_equal(sw_scraper_engine(scraper, id), SW_ENGINE_SGLANG);
	sw_scraper_remove(scraper, id);
	assert_int_equal(sw_scraper_engine(scraper, id), SW_ENGINE_AUTO);
}

static void an_engine_that_is_set_stays(void **state)
{
	int id = add_target(target_of("/page"));

	(void)state;
	web.page = "vllm:num_requests_waiting 3\n";
	await(1);
	assert_failed(-ENODATA, "set engine: vllm");
	assert_int_equal(sw_scraper_engine(scraper, id), SW_ENGINE_TGI);
}

/* The configuration that they came from may be gone. */
static void hints_are_copied(void **state)
{
	struct sw_target t = target_of("/page");
	struct sw_custom *custom;
	char model[] = "qwen";

	(void)state;
	assert_int_equal(sw_custom_new(&custom, NULL), 0);
	assert_int_equal(sw_custom_add(custom, SW_FIELD_WAITING, "mine", &scrape_error), 0);
	t.engine = SW_ENGINE_CUSTOM;
	t.hints = (struct sw_engine_hints){.custom = custom, .model = model};
	web.page = "mine 12\n";
	add_target(t);
	sw_custom_drop(custom);
	memset(model, 'x', sizeof(model));
	await(2);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.reports[0].value[SW_SIG_WAITING], 12);
}

/* ---- bad pages ---- */

/* A page of 4 MB is read in one go: it must not keep the loop from its other work. */
static void the_largest_page_is_read_quickly(void **state)
{
	size_t size = SW_SCRAPE_LIMIT, n = 0;
	char *page = malloc(size + 1);
	clock_t start;

	(void)state;
	assert_non_null(page);
	while (n + 200 < size)
		n += sprintf(page + n, "vllm:num_requests_running{engine=\"%zu\",a=\"\\\\\"} %zu\n",
			     n, n);
	page[n] = '\0';
	start = clock(); /* of the CPU, which others may take */
	for (int e = 0; e < SW_ENGINES; e++) {
		struct sw_engine_hints hints = {};
		struct sw_report reports[SW_MAX_RANKS];

		if (e != SW_ENGINE_CUSTOM)
			sw_engine_read(e, &hints, page, n, reports, SW_MAX_RANKS, NULL);
	}
	assert_true((clock() - start) / CLOCKS_PER_SEC < 9);
	free(page);
}

static void what_never_ends_is_given_up(void **state)
{
	(void)state;
	scrape(target_of("/endless"));
	assert_failed(-EFBIG, ": the page is over 4 MB");
	await_open(0);
	assert_in_range(web.endless, SW_SCRAPE_LIMIT, 32 << 20);
}

static void duplicates_and_wrong_types_are_no_load(void **state)
{
	static const struct {
		const char *page, *error;
	} bad[] = {
		{"tgi_queue_size twelve\n", "line 1: its value is not a number"},
		{"tgi_queue_size \"12\"\n", "its value is not a number"},
		{"tgi_queue_size 0x\n", "its value is not a number"},
		{"tgi_queue_size{a=1} 12\n", "its labels are malformed"},
		{"tgi_queue_size NaN\n", "no load in them"},
		{"tgi_queue_size -1\n", "no load in them"},
		{"# TYPE tgi_queue_size histogram\ntgi_queue_size_bucket{le=\"+Inf\"} 12\n"
		 "tgi_queue_size_sum 12\ntgi_queue_size_count 12\n",
		 "no series of tgi among the 3"},
		{"tgi_queue_size 6\ntgi_batch_current_size 5\ntgi_queue_size 6\n",
		 "line 3: tgi_queue_size is on the page twice with the same labels"},
		{"tgi_queue_size{a=\"1\"} 6\ntgi_queue_size{a=\"1\"} 7\n",
		 "line 2: tgi_queue_size"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		web.page = bad[i].page;
		scrape(target_of("/page"));
		assert_true(seen.n < 0);
		assert_non_null(strstr(seen.text, bad[i].error));
	}
	/* what is not read may be there as often as it likes, and parts add up */
	web.page = "go_gc 1\ngo_gc 1\ntgi_queue_size{a=\"1\"} 6\ntgi_queue_size{a=\"2\"} 6\n"
		   "tgi_batch_current_size 5\n";
	scrape(target_of("/page"));
	assert_page();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TARGETS_TEST(one_fetch_is_for_all),
		TARGETS_TEST(a_large_page_is_read_once),
		TARGETS_TEST(a_failure_is_told_to_all),
		TARGETS_TEST(many_targets_keep_their_connections),
		TARGETS_TEST(what_differs_is_fetched_apart),
		TARGETS_TEST(who_joins_is_told_at_once),
		TARGETS_TEST(any_may_be_removed_while_they_are_told),
		TARGETS_TEST(the_last_one_ends_it),
		TARGETS_TEST(an_engine_is_found_and_found_anew),
		TARGETS_TEST(an_engine_that_is_set_stays),
		TARGETS_TEST(hints_are_copied),
		TARGETS_TEST(the_largest_page_is_read_quickly),
		TARGETS_TEST(what_never_ends_is_given_up),
		TARGETS_TEST(duplicates_and_wrong_types_are_no_load),
	};

	return cmocka_run_group_tests(tests, scraping_group_setup, scraping_group_teardown);
}
