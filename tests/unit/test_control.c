// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The control interface over a real unix socket: routes, limits, JSON and metrics. A child serves a
 * made-up daemon that guards nothing, the test asks it with libcurl. */
#include "lib/asking.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

#define BAD_NAME "a \"quoted\" \\ name\n"

/* ---- the daemon -------------------------------------------------------------------------- */

static struct sw_worker_conf worker_confs[1] = {
	{.name = (char *)"w1", .source = {.url = (char *)"http://h:1/metrics"}}};
static struct sw_pool_conf pool_confs[2] = {
	{.name = (char *)"qwen",
	 .model = (char *)"Qwen/Qwen3",
	 .workers = worker_confs,
	 .n_workers = 1,
	 .limits = {.set = 1U << SW_LIM_DECODE | 1U << SW_LIM_QUEUED_REQS,
		    .decode = 0.85,
		    .release_ratio = 1,
		    .count = {[SW_LIM_QUEUED_REQS] = 64}},
	 .answer = {.status = 529, .drain_status = 503},
	 .ageing = {.stale_after_ms = 60000}},
	{.name = (char *)BAD_NAME, .model = (char *)BAD_NAME, .observe = true},
};
static struct sw_listener_conf listener_confs[1] = {{.v4 = true, .v6 = true, .port = 8000}};
static struct sw_config conf = {
	.pools = pool_confs, .n_pools = 2, .listeners = listener_confs, .n_listeners = 1};
static struct sw_feed feeds[] = {
	{.failing = -EIO, .error = {"it is \xff away"}},
	{.kind = SW_FEED_PUSH, .error = {"was away"}},
	{.kind = SW_FEED_EVENTS, .publisher = 1, .error = {"was away long ago"}},
	{.kind = SW_FEED_EVENTS, .publisher = 2},
};
static struct sw_live_worker worker = {.conf = worker_confs, .feeds = feeds, .n_feeds = 4};
static struct sw_live_worker *workers[] = {&worker};
static struct sw_live_pool pools[2];
static struct sw_live_gate gates[2];
static struct sw_live_plane plane = {.gates = gates, .error = {"no such namespace"}};
static enum sw_server servers[1];
static struct sw_listener_counts offsets[1];
static struct sw_live live = {.conf = &conf,
			      .pools = pools,
			      .n_pools = 2,
			      .planes = &plane,
			      .n_planes = 1,
			      .servers = servers,
			      .offsets = offsets};

static bool a_source(const struct sw_live *l, size_t index, struct sw_live_source *out)
{
	*out = (struct sw_live_source){.kind = "zmq",
				       .name = "tcp://h:1",
				       .state = "ok",
				       .error = "",
				       .last_error = "cut short",
				       .last_error_ms = l->started_ms - 12000};
	return index == 0;
}

static void make_live(void)
{
	struct sw_report r = {.have = 1U << SW_SIG_KV_USED | 1U << SW_SIG_KV_TOTAL,
			      .value = {[SW_SIG_KV_USED] = 9000, [SW_SIG_KV_TOTAL] = 10000}};

	live.started_ms = sw_now_ms();
	for (int i = 0; i < 2; i++)
		pools[i] = (struct sw_live_pool){.conf = &pool_confs[i],
						 .limits = pool_confs[i].limits,
						 .live = &live,
						 .workers = workers,
						 .n_workers = i ? 0 : 1,
						 .since_ms = live.started_ms};
	feeds[0].error_ms = live.started_ms - 1000;
	feeds[1].error_ms = live.started_ms - 3500000;
	feeds[2].error_ms = live.started_ms - 3600000;
	live.source = a_source;
	worker.pool = &pools[0];
	sw_worker_init(&worker.load, 0, 1);
	sw_worker_report(&worker.load, &pool_confs[0].limits, &r, sw_now_ms());
	sw_worker_eval(&worker.load, &pool_confs[0].limits, &pool_confs[0].ageing, sw_now_ms());
}

static void on_change(struct sw_live_pool *pool)
{
	pool->state = pool->force == SW_FORCE_SATURATED ? SW_POOL_SATURATED : SW_POOL_OPEN;
}

static int start(void **state)
{
	(void)state;
	return asking_start(&live, make_live, on_change);
}

static int stop(void **state)
{
	(void)state;
	return asking_stop();
}

/* ---- tests ------------------------------------------------------------------------------- */

static void socket_is_for_owner_and_group(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat(asking_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
}

static void routes(void **state)
{
	static const struct {
		const char *target, *body;
		long status;
	} rows[] = {
		{"/health", NULL, 200},
		{"/v1/status", NULL, 200},
		{"/v1/explain", NULL, 200},
		{"/v1/explain?pool=qwen", NULL, 200},
		{"/v1/explain?pool=a%20%22quoted%22%20%5C%20name%0A", NULL, 200},
		{"/v1/explain?pool=none", NULL, 404},
		{"/v1/explain?pool=", NULL, 404},
		{"/v1/statu", NULL, 404},
		{"/v1/status/", NULL, 404},
		{"/v1/status", "{}", 405},
		{"/v1/force", NULL, 405},
		{"/v1/force", "{", 400},
		{"/v1/force", "", 400},
		{"/v1/force", "{\"state\":\"open\",\"state\":\"auto\"}", 400},
		{"/v1/force", "{\"state\":\"no\"}", 422},
		{"/v1/drain", "{\"on\":true,\"pool\":\"none\"}", 404},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *j = asking_json(rows[i].target, rows[i].body, rows[i].status);

		if (rows[i].status != 200)
			assert_true(asking_text(j, "error")[0]);
		json_decref(j);
	}
}

static void refused(const char *target, size_t length, const char *error)
{
	char *body = malloc(length + 1);
	json_t *j;

	memset(body, ' ', length);
	body[length] = '\0';
	j = asking_json(target, body, 413);
	assert_string_equal(asking_text(j, "error"), error);
	json_decref(j);
	free(body);
}

static void large_bodies_are_refused(void **state)
{
	(void)state;
	refused("/v1/force", 99999, "the request's body is over 65536 bytes");
	refused("/v1/load", 1048577, "the request's body is over 1048576 bytes");
	refused("/v1/load", 2097152, "the request's body is over 1048576 bytes");
	json_decref(asking_json("/health", NULL, 200));
}

static void status_shows_what_is_known(void **state)
{
	json_t *j = asking_json("/v1/status", NULL, 200), *pool, *w, *check, *l, *p;

	(void)state;
	assert_string_equal(asking_text(j, "version"), SW_VERSION);
	assert_int_equal(json_array_size(json_object_get(j, "pools")), 2);
	pool = json_array_get(json_object_get(j, "pools"), 0);
	assert_string_equal(asking_text(pool, "name"), "qwen");
	assert_string_equal(asking_text(pool, "mode"), "open");
	assert_true(json_is_null(json_object_get(pool, "forced")));
	w = json_array_get(json_object_get(pool, "workers"), 0);
	assert_true(json_is_true(json_object_get(w, "busy")));
	/* text that is no UTF-8 does not cost the whole answer */
	assert_string_equal(asking_text(w, "error"), "(not UTF-8)");
	check = json_array_get(
		json_object_get(json_array_get(json_object_get(w, "ranks"), 0), "checks"), 0);
	assert_string_equal(asking_text(check, "limit"), "active_decode_blocks_threshold");
	assert_string_equal(asking_text(check, "state"), "over");
	assert_int_equal(json_integer_value(json_object_get(check, "measured")), 9000);
	assert_int_equal(json_integer_value(json_object_get(check, "threshold")), 8500);
	/* a limit on the worker whose signal never came: null, not 0 */
	check = json_array_get(json_object_get(w, "checks"), 0);
	assert_string_equal(asking_text(check, "state"), "inert");
	assert_true(json_is_null(json_object_get(check, "measured")));
	assert_true(json_is_null(json_object_get(check, "age_ms")));
	p = json_array_get(json_object_get(j, "planes"), 0);
	assert_true(json_is_false(json_object_get(p, "guarded")));
	assert_string_equal(asking_text(p, "error"), "no such namespace");
	l = json_array_get(json_object_get(j, "listeners"), 0);
	assert_string_equal(asking_text(l, "address"), "*:8000");
	assert_string_equal(asking_text(l, "pool"), "qwen");
	assert_true(json_is_false(json_object_get(l, "intercept")));
	json_decref(j);
}

static void last_error_is(const json_t *source, const char *now, const char *last, unsigned ms)
{
	const json_t *age = json_object_get(source, "last_error_ms");

	assert_string_equal(asking_text(source, "error"), now);
	if (!last) {
		assert_true(json_is_null(json_object_get(source, "last_error")));
		assert_true(json_is_null(age));
		return;
	}
	assert_string_equal(asking_text(source, "last_error"), last);
	assert_in_range(json_integer_value(age), ms, ms + 20000);
}

static void the_last_error_is_shown_for_an_hour(void **state)
{
	json_t *j = asking_json("/v1/status", NULL, 200), *sources, *w;

	(void)state;
	last_error_is(json_array_get(json_object_get(j, "sources"), 0), "", "cut short", 12000);
	w = json_array_get(json_object_get(j, "pools"), 0);
	w = json_array_get(json_object_get(w, "workers"), 0);
	sources = json_object_get(w, "sources");
	last_error_is(json_array_get(sources, 0), "(not UTF-8)", "(not UTF-8)", 1000);
	last_error_is(json_array_get(sources, 1), "", "was away", 3500000);
	last_error_is(json_array_get(sources, 2), "", NULL, 0);
	last_error_is(json_array_get(sources, 3), "", NULL, 0);
	json_decref(j);
}

static void force_takes_effect_before_the_answer(void **state)
{
	json_t *j = asking_json(
		"/v1/force", "{\"pool\":\"qwen\",\"state\":\"saturated\",\"for_ms\":60000}", 200);
	json_t *pool = json_array_get(json_object_get(j, "pools"), 0);
	json_int_t left = json_integer_value(json_object_get(pool, "forced_left_ms"));

	(void)state;
	assert_int_equal(json_array_size(json_object_get(j, "pools")), 1);
	assert_string_equal(asking_text(pool, "state"), "saturated");
	assert_string_equal(asking_text(pool, "forced"), "saturated");
	assert_in_range(left, 50000, 60000);
	json_decref(j);
	json_decref(asking_json("/v1/force", "{\"state\":\"auto\"}", 200));
}

static void metrics_are_a_page(void **state)
{
	static const char *const lines[] = {
		"spillway_build_info{version=\"" SW_VERSION "\"} 1\n",
		"spillway_pool_state{pool=\"qwen\",state=\"open\"} 1\n",
		/* escaped as the format wants it */
		"spillway_pool_forced{pool=\"a \\\"quoted\\\" \\\\ name\\n\"} 0\n",
		"spillway_worker_busy{pool=\"qwen\",worker=\"w1\"} 1\n",
		"spillway_check_measured{pool=\"qwen\",worker=\"w1\",rank=\"0\",threshold=\"active_"
		"decode_blocks_threshold\"} 9000\n",
		"spillway_check_limit{pool=\"qwen\",worker=\"w1\",rank=\"0\",threshold=\"active_"
		"decode_blocks_threshold\"} 8500\n",
		"spillway_check_inert{pool=\"qwen\",worker=\"w1\",rank=\"\",threshold=\"max_num_"
		"queued_reqs\"} 1\n",
		"spillway_shed_total{listener=\"*:8000\",netns=\"\",pool=\"qwen\",reason="
		"\"saturated\",status=\"529\"} 0\n",
		"spillway_source_failures_total{pool=\"qwen\",worker=\"w1\",kind=\"scrape\","
		"publisher=\"\"} 0\n",
		"dynamo_frontend_worker_active_decode_blocks{dp_rank=\"0\",worker_id=\"w1\","
		"worker_type=\"decode\"} 9000\n",
		"dynamo_frontend_model_total_kv_blocks{model=\"Qwen/Qwen3\"} 10000\n",
		"dynamo_frontend_model_rejection_total{model=\"Qwen/Qwen3\",endpoint=\"chat_"
		"completions\"} 0\n",
		"spillway_plane_guarded{netns=\"\"} 0\n",
		"# TYPE spillway_shed_total counter\n",
	};

	(void)state;
	assert_int_equal(asking("/metrics", NULL), CURLE_OK);
	assert_int_equal(asking_reply.status, 200);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strstr(asking_reply.text, lines[i]))
			fail_msg("no line %s in\n%s", lines[i], asking_reply.text);
	/* nothing was measured, so there is no sample */
	assert_null(strstr(asking_reply.text, "spillway_check_measured{pool=\"qwen\",worker=\"w1\","
					      "rank=\"\""));
	assert_null(strstr(asking_reply.text, "nan"));
}

static void second_daemon_is_refused(void **state)
{
	struct event_base *base = event_base_new();
	struct sw_control *c = NULL;
	struct sw_error err = {0};

	(void)state;
	assert_int_equal(sw_control_open(&c, base, asking_path, &live, on_change, &err),
			 -EADDRINUSE);
	assert_non_null(strstr(err.text, "another spillwayd answers on"));
	json_decref(asking_json("/health", NULL, 200));
	event_base_free(base);
}

static void dead_socket_is_replaced_and_files_are_not(void **state)
{
	struct event_base *base = event_base_new();
	struct sw_control *c = NULL;
	struct sw_error err = {0};
	char file[96], too_long[200];
	FILE *f;

	(void)state;
	kill(asking_child, SIGKILL);
	waitpid(asking_child, NULL, 0);
	assert_int_equal(access(asking_path, F_OK), 0);
	assert_int_equal(sw_control_open(&c, base, asking_path, &live, on_change, &err), 0);
	sw_control_close(c);
	assert_int_equal(access(asking_path, F_OK), -1);

	snprintf(file, sizeof(file), "%s/file", asking_dir);
	f = fopen(file, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(sw_control_open(&c, base, file, &live, on_change, &err), -EEXIST);
	assert_int_equal(unlink(file), 0);

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	assert_int_equal(sw_control_open(&c, base, too_long, &live, on_change, &err),
			 -ENAMETOOLONG);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(socket_is_for_owner_and_group),
		cmocka_unit_test(routes),
		cmocka_unit_test(large_bodies_are_refused),
		cmocka_unit_test(status_shows_what_is_known),
		cmocka_unit_test(the_last_error_is_shown_for_an_hour),
		cmocka_unit_test(force_takes_effect_before_the_answer),
		cmocka_unit_test(metrics_are_a_page),
		cmocka_unit_test(second_daemon_is_refused),
		cmocka_unit_test(dead_socket_is_replaced_and_files_are_not),
	};

	return cmocka_run_group_tests_name("control", tests, start, stop);
}
