// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frames of `spillway top`: as a whole at two sizes, and that no size and no answer breaks one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "top/scene.h"

/* A file without its first line, which names the licence. */
static char *read_frame(const char *path)
{
	static char all[65536];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		fail_msg("%s: cannot be read", path);
	n = fread(all, 1, sizeof(all) - 1, f);
	fclose(f);
	all[n] = '\0';
	return strchr(all, '\n') + 1;
}

static void is_frame(const char *path)
{
	const char *want = read_frame(path);

	if (strcmp(text, want)) {
		fprintf(stderr, "want\n%sgot\n%s", want, text);
		fail_msg("not the frame of %s", path);
	}
}

static void small_screen(void **state)
{
	(void)state;
	frame(80, 24, false);
	is_frame(SCENE "80x24.txt");
}

static void large_screen(void **state)
{
	(void)state;
	frame(200, 60, false);
	is_frame(SCENE "200x60.txt");
}

static void without_utf8(void **state)
{
	(void)state;
	frame(80, 24, true);
	is_frame(SCENE "80x24-ascii.txt");
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
}

static void any_size(void **state)
{
	(void)state;
	for (int h = 1; h < 70; h++)
		for (int w = 1; w < 220; w += 3) {
			const char *line = frame(w, h, false);
			int lines = 0;

			for (; *line; lines++) {
				const char *end = strchr(line, '\n');
				char copy[2000] = "";

				memcpy(copy, line, (size_t)(end - line));
				assert_true(cv_width(&canvas, copy) <= w);
				line = end + 1;
			}
			assert_int_equal(lines, h);
		}
	assert_non_null(strstr(frame(40, 10, false), "Too small: 40x10"));
}

static void names_are_harmless(void **state)
{
	char json[1024];

	(void)state;
	assert_null(strchr(frame(200, 60, false), 27)); /* an escape is in an error text */
	for (int n = 0; n < 300; n++) {
		snprintf(
			json, sizeof(json),
			"{\"pools\":[{\"name\":\"%0*d\\u4e1c\\u0301\\u001b[2J\",\"state\":\"open\"}]}",
			n, 0);
		show(json, NULL);
		shows("open         ");
	}
}

static void any_answer(void **state)
{
	static const char *const answers[] = {
		"[]",
		"{}",
		"{\"pools\":5,\"planes\":{},\"sources\":\"x\",\"heartbeat\":[]}",
		"{\"pools\":[1,null,\"x\",[],{}]}",
		"{\"pools\":[{\"name\":7,\"workers\":[3,{},{\"ranks\":[2,{\"checks\":[4,{}]}]}]}]}",
		"{\"pools\":[{\"name\":\"a\",\"slots\":7,\"workers\":{\"a\":1}}]}",
		"{\"pools\":[{\"name\":\"a\",\"state\":\"open\",\"slots\":{},\"workers\":[{\"slots\":{},"
		"\"checks\":[{\"limit\":\"new\",\"measured\":\"x\",\"threshold\":0,\"state\":\"?\"}]}]}]}",
	};
	static const char *const histories[] = {
		"[]", "{\"pools\":[{}]}",
		"{\"period_ms\":0,\"pools\":[{\"name\":\"a\",\"shed\":[\"x\"]}]}"};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		for (size_t j = 0; j < 3; j++) {
			show(answers[i], histories[j]);
			frame(80, 24, false);
			press("wjjj\n");
			frame(200, 60, true);
		}
}

static void many_kinds_of_limits(void **state)
{
	char json[4096] = "{\"pools\":[{\"name\":\"a\",\"workers\":[{\"name\":\"w\",\"checks\":[";

	(void)state;
	for (int i = 0; i < 20; i++)
		sprintf(json + strlen(json),
			"%s{\"limit\":\"limit%d\",\"measured\":1,\"threshold\":2}", i ? "," : "",
			i);
	strcat(json, "]}]}]}");
	show(json, NULL);
	assert_int_equal(model.n_limits, TOP_LIMITS);
	frame(80, 60, false);
	assert_non_null(strstr(text, "limit15"));
}

static void daemon_gone(void **state)
{
	(void)state;
	hides("DAEMON GONE");
	model.gone = "spillwayd is not reachable";
	model.gone_s = 12;
	shows("DAEMON GONE for 12 s, what you see is old: spillwayd is not reachable");
	shows("qwen3-235b");
}

static void what_decides_over_a_worker(void **state)
{
	const struct top_worker *w = &model.pools[1].workers[1];

	(void)state;
	/* One of two ranks is over: the worker is not busy, and its bar is the other's */
	assert_string_equal(w->name, "node-b");
	assert_int_equal(w->ranks_busy, 1);
	assert_true(w->shown[0]->measured == 7400);
	assert_true(fabs(w->load - 7400 / 8500.0) < 1e-9);
	press("/llama\n");
	shows("free 1/2");
}

static void rates(void **state)
{
	const char *status = "{\"pools\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"d\"}]}";

	(void)state;
	/* Their last entries are of the same second */
	show(status,
	     "{\"period_ms\":500,\"pools\":[{\"name\":\"a\",\"shed\":[1,2,3]},"
	     "{\"name\":\"b\",\"shed\":[7,8,9,10]},{\"name\":\"c\",\"shed\":[100]},{\"name\":\"d\",\"shed\":[1]}]}");
	assert_true(top_rate(&model.pools[0].shed) == 6);
	assert_true(top_rate(&model.pools[1].shed) == 20);
	assert_int_equal(model.shed.n, 4);
	assert_true(model.shed.value[0] == 14 && model.shed.value[3] == 28);
	show(status, NULL);
	assert_true(isnan(top_rate(&model.shed)));
}

static void reasons(void **state)
{
	(void)state;
	shows("4 of 4 busy: decode blocks 9990 over 8500 on gpu-3");
	shows("drained by hand: new requests get 503");
	shows("forced saturated by hand, 9m15s left");
	shows("0 of 4 busy, 1 draining: decode blocks 7400 of 8500 on node-b");
	show("{\"pools\":[{\"name\":\"a\",\"state\":\"unavailable\",\"observe\":true}]}", NULL);
	shows("observed only; it has no worker");
	show("{\"pools\":[{\"name\":\"a\",\"state\":\"open\",\"slots\":{\"full\":true,\"inuse\":24,"
	     "\"cap\":24},\"workers\":[{\"name\":\"w\"}]}]}",
	     NULL);
	shows("no free slot: 24 of 24 in use");
	show("{\"pools\":[{\"name\":\"a\",\"state\":\"open\",\"slots\":{\"inuse\":20,\"cap\":24}}]}",
	     "{\"pools\":[{\"name\":\"a\",\"shed\":[3]}]}");
	shows("no free slot at times: 20 of 24 in use");
}

static void texts_are_cut(void **state)
{
	(void)state;
	assert_true(cv_start(&canvas, 10, 1, false));
	assert_int_equal(cv_text(&canvas, 0, 0, 4, CV_PLAIN, "東京都"), 3);
	cv_text(&canvas, 5, 0, 20, CV_PLAIN, "to the edge");
	assert_string_equal(canvas.cells[2].text, "…"); /* half of a wide one is not shown */
	assert_string_equal(canvas.cells[8].text, "t");
	assert_string_equal(canvas.cells[9].text, "…");
	assert_int_equal(cv_text(&canvas, 10, 0, 5, CV_PLAIN, "x"), 0);
}

static void numbers(void **state)
{
	static const struct {
		double v;
		const char *want;
	} table[] = {{0, "0"},		 {7, "7"},	   {0.85, "0.85"},    {9999, "9999"},
		     {99999.6, "100k"},	 {12345, "12345"}, {1234567, "1.2M"}, {123456, "123k"},
		     {999600, "1.0M"},	 {NAN, "-"},	   {1e18, "1.0E"},    {-5, "-5"},
		     {10000000, "10.0M"}};
	char out[32];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_string_equal(top_number(table[i].v, out), table[i].want);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_start, scene_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(small_screen),
		TEST(large_screen),
		TEST(without_utf8),
		TEST(any_size),
		TEST(names_are_harmless),
		TEST(any_answer),
		TEST(many_kinds_of_limits),
		TEST(daemon_gone),
		TEST(what_decides_over_a_worker),
		TEST(rates),
		TEST(reasons),
		TEST(texts_are_cut),
		TEST(numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
