// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* When pages are asked for: together with some others, apart from most, and without drifting. */
#include "lib/scraping.h"

#define PAGES	 50
#define STEPS	 20 /* of a period, in which pages are due together */
#define PERIOD	 1000
#define PAUSE	 10 /* ms, by which two groups differ at least */
#define ATTEMPTS 8  /* the machine may be busy */

static struct asked {
	int id[PAGES], calls, first_accepted, enough;
	bool remove_all;
	uint64_t last_ms;
	int groups;
} asked;

static void remove_all(void)
{
	for (int i = 0; i < PAGES; i++)
		if (asked.id[i])
			sw_scraper_remove(scraper, asked.id[i]);
}

static void on_answer(void *arg, int n, const struct sw_report *reports, const struct sw_error *err)
{
	uint64_t now = now_ms();

	(void)arg;
	(void)reports;
	(void)err;
	assert_true(n > 0);
	if (!asked.calls++)
		asked.first_accepted = web.accepted;
	asked.groups += now - asked.last_ms >= PAUSE;
	asked.last_ms = now;
	if (asked.remove_all)
		remove_all();
	if (asked.calls == asked.enough)
		event_base_loopbreak(base);
}

static void add_pages(int n, unsigned period_ms)
{
	struct sw_target t = target_of("/metrics");

	asked = (struct asked){};
	t.period_ms = period_ms;
	for (int i = 0; i < n; i++) {
		t.timeout_ms++; /* or it were the same page, fetched once for all */
		assert_int_equal(
			sw_scraper_add(scraper, &t, on_answer, NULL, &asked.id[i], &scrape_error),
			0);
	}
}

static void await_answers(int n)
{
	asked.enough = asked.calls + n;
	run_ms(20000);
	assert_true(asked.calls >= asked.enough);
}

/* Without that, nobody would be asked for most of a period, and all at its end. */
static void pages_are_spread_over_a_period(void **state)
{
	(void)state;
	add_pages(20, PERIOD);
	await_answers(20); /* all of them at once, to begin with */
	asked.enough = 0;
	run_ms(PERIOD * 8 / 10);
	assert_true(asked.calls >= 25);
}

/* One by one, 50 would be 20 ms apart, and each would wake the loop alone. */
static void some_are_asked_together(void **state)
{
	int least = PAGES;

	(void)state;
	for (int i = 0; i < ATTEMPTS && least > STEPS + 5; i++) {
		add_pages(PAGES, PERIOD);
		await_answers(PAGES);
		asked.groups = 0;
		await_answers(PAGES);
		least = asked.groups < least ? asked.groups : least;
		remove_all();
	}
	assert_in_range(least, STEPS / 2, STEPS + 5);
}

/* An answer would wait until the last one is asked otherwise. */
static void answers_are_read_in_between(void **state)
{
	(void)state;
	add_pages(PAGES, PERIOD);
	await_answers(PAGES);
	assert_in_range(asked.first_accepted, 1, PAGES - 10);
}

static void who_waits_to_be_asked_may_be_removed(void **state)
{
	(void)state;
	add_pages(PAGES, PERIOD);
	asked.remove_all = true;
	await_answers(1);
	asked.enough = 0;
	run_ms(50);
	assert_int_equal(asked.calls, 1);
	assert_in_range(web.accepted, 1, PAGES - 10);
}

/* Each turn of the loop is some ms late, which must not add up. */
static void a_period_does_not_drift(void **state)
{
	uint64_t least = UINT64_MAX;

	(void)state;
	for (int i = 0; i < ATTEMPTS && least > 1030; i++) {
		uint64_t start;

		add_pages(1, 25);
		await_answers(2);
		start = now_ms();
		await_answers(40);
		least = now_ms() - start < least ? now_ms() - start : least;
		remove_all();
	}
	assert_in_range(least, 950, 1030);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRAPING_TEST(pages_are_spread_over_a_period),
		SCRAPING_TEST(some_are_asked_together),
		SCRAPING_TEST(answers_are_read_in_between),
		SCRAPING_TEST(who_waits_to_be_asked_may_be_removed),
		SCRAPING_TEST(a_period_does_not_drift),
	};

	return cmocka_run_group_tests(tests, scraping_group_setup, scraping_group_teardown);
}
