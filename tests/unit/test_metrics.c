// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The metrics page of made-up daemons: NVIDIA Dynamo's names, one series for each source, no series
 * twice, and what a page costs where there are a thousand workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "control/metrics.h"
#include "daemon/daemon.h"

#define NOW_MS 100000
#define MANY   1000

static struct sw_worker_conf confs[MANY];
static struct sw_live_worker workers[MANY];
static struct sw_live_worker *list[MANY + 1];
static struct sw_feed feeds[MANY];
static struct sw_discover_conf prefill = {.component = (char *)"prefill"};
static struct sw_pool_conf pool_confs[3] = {
	{.name = (char *)"a", .model = (char *)"m"},
	{.name = (char *)"b", .model = (char *)"m"},
	{.name = (char *)"c", .model = (char *)"other", .discover = &prefill},
};
static struct sw_live_pool pools[3];
static struct sw_config conf = {.pools = pool_confs};
static struct sw_live live = {.conf = &conf, .pools = pools};
static char *page;

/* `n` workers in the first pool, each with a source, and the two other pools empty. */
static void make(size_t n)
{
	const struct sw_report r = {.have = 1U << SW_SIG_KV_USED | 1U << SW_SIG_KV_TOTAL |
					    1U << SW_SIG_PREFILL_TOKENS | 1U << SW_SIG_MAX_BATCHED,
				    .value = {[SW_SIG_KV_USED] = 123,
					      [SW_SIG_KV_TOTAL] = 16384,
					      [SW_SIG_PREFILL_TOKENS] = 456,
					      [SW_SIG_MAX_BATCHED] = 8192}};

	for (int i = 0; i < 3; i++) {
		pool_confs[i].ageing.stale_after_ms = 5000;
		pools[i] = (struct sw_live_pool){
			.conf = &pool_confs[i],
			.live = &live,
			.workers = list,
			.row = -1,
			.limits = {.set = 1U << SW_LIM_DECODE | 1U << SW_LIM_QUEUED_REQS,
				   .decode = 0.85}};
	}
	pools[0].n_workers = n;
	conf.n_pools = live.n_pools = 3;
	for (size_t i = 0; i < n; i++) {
		free(confs[i].name);
		assert_true(asprintf(&confs[i].name, "10.0.%zu.%zu:8000", i / 250, i % 250) > 0);
		confs[i].has_worker_id = false;
		feeds[i] = (struct sw_feed){.told = 7, .failures = 2, .at_ms = NOW_MS - 250};
		workers[i] = (struct sw_live_worker){.conf = &confs[i],
						     .pool = &pools[0],
						     .id = -1,
						     .feeds = &feeds[i],
						     .n_feeds = 1};
		sw_worker_init(&workers[i].load, 0, -1);
		sw_worker_report(&workers[i].load, &pools[0].limits, &r, NOW_MS);
		list[i] = &workers[i];
	}
}

static void write_page(uint64_t now_ms)
{
	struct evbuffer *out = evbuffer_new();

	sw_metrics_write(&live, now_ms, out);
	free(page);
	page = calloc(1, evbuffer_get_length(out) + 1);
	assert_non_null(page);
	evbuffer_remove(out, page, evbuffer_get_length(out));
	evbuffer_free(out);
}

static void has(const char *line)
{
	if (!strstr(page, line))
		fail_msg("no line %s in\n%s", line, page);
}

static void has_not(const char *part)
{
	if (strstr(page, part))
		fail_msg("%s in\n%s", part, page);
}

#define RANK(name, rank, id, type)                                                                 \
	name "{dp_rank=\"" rank "\",worker_id=\"" id "\",worker_type=\"" type "\"} "
#define DECODE(rank, id, type)	RANK("dynamo_frontend_worker_active_decode_blocks", rank, id, type)
#define PREFILL(rank, id, type) RANK("dynamo_frontend_worker_active_prefill_tokens", rank, id, type)

static void workers_have_dynamos_labels(void **state)
{
	(void)state;
	make(2);
	confs[1].has_worker_id = true;
	confs[1].worker_id = 18446744073709551615ULL;
	write_page(NOW_MS);
	has("\n" DECODE("0", "10.0.0.0:8000", "decode") "123\n");
	has("\n" PREFILL("0", "10.0.0.0:8000", "decode") "456\n");
	has("\n" DECODE("0", "18446744073709551615", "decode") "123\n");
	has_not("worker_id=\"10.0.0.1:8000\"");

	workers[1].pool = &pools[2]; /* the component that it discovers */
	workers[1].load.rank[0].have |= 1U << SW_SIG_DECODE_BLOCKS;
	workers[1].load.rank[0].at_ms[SW_SIG_DECODE_BLOCKS] = NOW_MS;
	workers[1].load.rank[0].value[SW_SIG_DECODE_BLOCKS] = 200;
	workers[1].load.start_rank = 4;
	write_page(NOW_MS);
	has("\n" DECODE("4", "18446744073709551615", "prefill") "200\n");
}

static void what_is_too_old_is_no_sample(void **state)
{
	(void)state;
	make(1);
	write_page(NOW_MS + 5000);
	has(DECODE("0", "10.0.0.0:8000", "decode") "123\n");
	write_page(NOW_MS + 5001);
	has_not("dynamo_frontend_worker_active_decode_blocks{");
	has_not("dynamo_frontend_worker_active_prefill_tokens{");
	/* a property, and no load */
	has("dynamo_frontend_model_total_kv_blocks{model=\"m\"} 16384\n");
}

static void a_model_is_one_series(void **state)
{
	(void)state;
	make(2);
	pools[1].n_workers = 1; /* the first one is in two pools of one model */
	pools[0].answered[SW_API_EP_CHAT_COMPLETIONS] = 3;
	pools[1].answered[SW_API_EP_CHAT_COMPLETIONS] = 4;
	pools[2].answered[SW_API_EP_EMBEDDINGS] = 5;
	workers[1].load.rank[0].value[SW_SIG_KV_TOTAL] = 9000;
	write_page(NOW_MS);
	has("\ndynamo_frontend_model_total_kv_blocks{model=\"m\"} 9000\n");
	has("\ndynamo_frontend_model_max_num_batched_tokens{model=\"m\"} 8192\n");
	has_not("{model=\"other\"}"); /* nobody tells */
	has("\ndynamo_frontend_model_rejection_total{model=\"m\",endpoint=\"chat_completions\"} 7\n");
	has("\ndynamo_frontend_model_rejection_total{model=\"other\",endpoint=\"embeddings\"} 5\n");
}

static void each_source_has_its_own(void **state)
{
	struct sw_feed two[] = {
		{.kind = SW_FEED_EVENTS, .publisher = 0xab, .told = 3, .at_ms = NOW_MS - 1500},
		{.kind = SW_FEED_PUSH, .told = 9, .failures = 4},
	};

	(void)state;
	make(1);
	workers[0].feeds = two;
	workers[0].n_feeds = 2;
	write_page(NOW_MS);
#define SOURCE "{pool=\"a\",worker=\"10.0.0.0:8000\",kind="
	has("\nspillway_source_age_seconds" SOURCE "\"events\",publisher=\"ab\"} 1.5\n");
	has("\nspillway_source_reports_total" SOURCE "\"events\",publisher=\"ab\"} 3\n");
	has("\nspillway_source_failures_total" SOURCE "\"push\",publisher=\"\"} 4\n");
	has_not("spillway_source_age_seconds" SOURCE "\"push\""); /* told no load yet */
}

static bool fleet(const struct sw_live *l, size_t index, struct sw_live_source *out)
{
	(void)l;
	*out = (struct sw_live_source){.kind = "zmq",
				       .name = index ? "tcp://b:1" : "tcp://a:1",
				       .state = index ? "failing" : "ok",
				       .at_ms = index ? 0 : NOW_MS - 250,
				       .messages = 7,
				       .dropped = 3,
				       .bad = 2,
				       .errors = index,
				       .error = ""};
	return index < 2;
}

static void sources_of_the_fleet_are_shown(void **state)
{
	(void)state;
	make(1);
	live.source = fleet;
	live.strangers = 5;
	write_page(NOW_MS);
	live.source = NULL;
	live.strangers = 0;
	has("\nspillway_fleet_source_up{kind=\"zmq\",name=\"tcp://a:1\"} 1\n");
	has("\nspillway_fleet_source_up{kind=\"zmq\",name=\"tcp://b:1\"} 0\n");
	has("\nspillway_fleet_source_age_seconds{kind=\"zmq\",name=\"tcp://a:1\"} 0.25\n");
	has_not("spillway_fleet_source_age_seconds{kind=\"zmq\",name=\"tcp://b:1\"}");
	has("\nspillway_fleet_source_messages_total{kind=\"zmq\",name=\"tcp://b:1\"} 7\n");
	has("\nspillway_fleet_source_dropped_total{kind=\"zmq\",name=\"tcp://b:1\"} 3\n");
	has("\nspillway_fleet_source_bad_total{kind=\"zmq\",name=\"tcp://b:1\"} 2\n");
	has("\nspillway_fleet_source_errors_total{kind=\"zmq\",name=\"tcp://b:1\"} 1\n");
	has("\nspillway_fleet_unknown_worker_events_total 5\n");
}

/* The pool's own, which the API changes, and not the configuration's. */
static void checks_are_of_the_pools_limits(void **state)
{
	(void)state;
	make(1);
	write_page(NOW_MS);
#define CHECK "{pool=\"a\",worker=\"10.0.0.0:8000\",rank=\"0\",threshold=\"active_decode_blocks_"
	has("\nspillway_check_limit" CHECK "threshold\"} 13926.4\n");
	has("\nspillway_check_measured" CHECK "threshold\"} 123\n");
	has("\nspillway_check_over" CHECK "threshold\"} 0\n");
}

/* Of a heartbeat that comes this long after the one before; in seconds. */
static double margin_after(double s)
{
	live.beat_ns = sw_now_ns() - (uint64_t)(s * 1e9);
	sw_gates_beat(&live);
	return (double)live.least_margin_ns / 1e9;
}

static void a_late_heartbeat_is_seen_for_a_minute_or_two(void **state)
{
	const uint64_t minute = 61 * 1000000000ULL;

	(void)state;
	conf.deadline_ms = 2000;
	live.minute_ns = 0;
	live.beat_ns = 0;
	sw_gates_beat(&live); /* the first has nothing before it */
	assert_true(margin_after(0.2) > 1.5);
	assert_true(margin_after(1.5) < 0.55);
	assert_true(margin_after(0.2) < 0.55);
	live.minute_ns -= minute;
	assert_true(margin_after(0.2) < 0.55);
	live.minute_ns -= minute;
	assert_true(margin_after(0.2) > 1.5);
	write_page(NOW_MS);
	has("\nspillway_heartbeat_deadline_seconds 2\n");
	has("\nspillway_heartbeat_margin_seconds 1.");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The same name and labels twice cost Prometheus one of the two. */
static void no_series_is_there_twice(void **state)
{
	char *lines[4096], *rest, *line;
	size_t n = 0;

	(void)state;
	make(3);
	pools[1].n_workers = 2;
	pools[2].n_workers = 1;
	confs[1].has_worker_id = true;
	confs[1].worker_id = 5;
	write_page(NOW_MS);
	for (line = strtok_r(page, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (*line == '#' || !strncmp(line, "spillway_", 9))
			continue; /* those have the pool of each worker, which is made up here */
		*strrchr(line, ' ') = '\0';
		assert_true(n < 4096);
		lines[n++] = line;
	}
	assert_true(n > 5);
	qsort(lines, n, sizeof(*lines), by_text);
	for (size_t i = 1; i < n; i++)
		assert_string_not_equal(lines[i - 1], lines[i]);
}

static double cost_ms(size_t n)
{
	double best = 1e9;

	make(n);
	for (int i = 0; i < 5; i++) {
		struct evbuffer *out = evbuffer_new();
		struct timespec a, b;
		double ms;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		sw_metrics_write(&live, NOW_MS, out);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
		best = ms < best ? ms : best;
		if (!i)
			print_message("%zu workers: %zu bytes\n", n, evbuffer_get_length(out));
		evbuffer_free(out);
	}
	print_message("%zu workers: %.1f ms\n", n, best);
	return best;
}

/* The heartbeat waits while a page is written. */
static void a_thousand_workers_are_cheap(void **state)
{
	double few = cost_ms(MANY / 4), many = cost_ms(MANY);

	(void)state;
	assert_true(many < 150);      /* 15 ms without sanitizers */
	assert_true(many < 10 * few); /* four times as many */
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < MANY; i++)
		free(confs[i].name);
	free(page);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_have_dynamos_labels),
		cmocka_unit_test(what_is_too_old_is_no_sample),
		cmocka_unit_test(a_model_is_one_series),
		cmocka_unit_test(each_source_has_its_own),
		cmocka_unit_test(sources_of_the_fleet_are_shown),
		cmocka_unit_test(checks_are_of_the_pools_limits),
		cmocka_unit_test(a_late_heartbeat_is_seen_for_a_minute_or_two),
		cmocka_unit_test(no_series_is_there_twice),
		cmocka_unit_test(a_thousand_workers_are_cheap),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, end);
}
