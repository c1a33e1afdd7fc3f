// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Keys of `spillway top`: what they select, fold, sort and find, and that only a confirmed question
 * leads to an action. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "top/scene.h"

static const char *selected_name(void)
{
	const struct top_row *r = top_selected(&view);

	return !r ? "" : r->worker ? r->worker->name : r->pool->name;
}

/* Names of all rows, in their order. */
static const char *order(void)
{
	static char all[2048];

	all[0] = '\0';
	for (size_t i = 0; i < view.n_rows; i++) {
		const struct top_row *r = &view.rows[i];

		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "",
			 r->worker ? r->worker->name : r->pool->name);
	}
	return all;
}

/* The request that a confirmed action is. */
static void sends(const char *path, const char *body)
{
	json_t *got = NULL, *want = json_loads(body, 0, NULL);

	assert_string_equal(top_request(&view.action, &got), path);
	if (!json_equal(got, want))
		fail_msg("want %s, got %s", body, json_dumps(got, 0));
	json_decref(got);
	json_decref(want);
}

static void selects(void **state)
{
	(void)state;
	assert_string_equal(selected_name(), "qwen3-235b");
	press("jj");
	assert_string_equal(selected_name(), "gpu-1");
	press("k");
	assert_string_equal(selected_name(), "gpu-3");
	press("kkkk");
	assert_string_equal(selected_name(), "qwen3-235b");
	press("Gj");
	assert_string_equal(selected_name(), "node-c");
	press("g");
	assert_string_equal(selected_name(), "qwen3-235b");
}

static void sorts(void **state)
{
	(void)state;
	assert_string_equal(order(),
			    "qwen3-235b gpu-3 gpu-1 gpu-2 gpu-10 embeddings-for-search 東京-embed "
			    "spare llama node-b node-a "
			    "a-worker-with-a-rather-long-name-in-rack-17 node-c");
	press("s");
	shows("by name");
	assert_string_equal(order(),
			    "embeddings-for-search 東京-embed llama "
			    "a-worker-with-a-rather-long-name-in-rack-17 node-a node-b node-c "
			    "qwen3-235b gpu-1 gpu-2 gpu-3 gpu-10 spare");
	press("s"); /* by shed; of workers, by how often they were full */
	assert_memory_equal(order(), "qwen3-235b gpu-3 gpu-1 gpu-2 gpu-10 embeddings", 40);
	press("s"); /* by slots */
	assert_memory_equal(order(), "qwen3-235b gpu-1 gpu-3 gpu-2 gpu-10 embeddings", 40);
	press("s");
	shows("by load");
}

static void stays_on_what_is_selected(void **state)
{
	(void)state;
	press("jj");
	assert_string_equal(selected_name(), "gpu-1");
	press("s");
	assert_string_equal(selected_name(), "gpu-1");
	show("{\"pools\":[{\"name\":\"qwen3-235b\",\"workers\":[{\"name\":\"a\"},{\"name\":\"gpu-1\"}]}]}",
	     NULL);
	assert_string_equal(selected_name(), "gpu-1");
	show("{\"pools\":[{\"name\":\"qwen3-235b\",\"workers\":[{\"name\":\"a\"}]}]}", NULL);
	assert_string_equal(selected_name(), "a");
	show("{\"pools\":[]}", NULL);
	assert_null(top_selected(&view));
	assert_int_equal(press("fyyy\n\ndyjkgG"), TOP_GO_ON);
	shows("No pool is configured.");
}

static void folds(void **state)
{
	(void)state;
	press("\n");
	hides("gpu-10");
	shows("+qwen3-235b");
	show("{\"pools\":[{\"name\":\"qwen3-235b\",\"workers\":[{\"name\":\"gpu-1\"}]}]}", NULL);
	hides("gpu-1");
	press("\n");
	shows("gpu-1");
	hides("takes requests at");
	press("j\n");
	shows("takes requests at");
	press("\n");
	hides("takes requests at");
}

static void unfolds_ranks(void **state)
{
	(void)state;
	press("/node-b\n");
	press("j\n");
	assert_string_equal(selected_name(), "node-b");
	shows("rank 1 decode blocks");
	shows("9000/8500");
	shows("scrape : 812 told, 3 of them no load");
}

static void lists_all_workers(void **state)
{
	(void)state;
	press("w");
	assert_memory_equal(order(), "gpu-3 gpu-1 gpu-2 gpu-10 node-b", 31);
	shows("gpu-10        qwen3-235b BUSY        120ms ██████ 8701/8500    decode blocks");
	press("j\n");
	shows("rank 0 decode blocks");
	press("w");
	assert_memory_equal(order(), "qwen3-235b gpu-3", 16);
}

static void finds(void **state)
{
	(void)state;
	press("/GPU-1");
	shows("Filter: GPU-1_");
	assert_string_equal(order(), "qwen3-235b gpu-1 gpu-10");
	press("0\n");
	assert_string_equal(order(), "qwen3-235b gpu-10");
	press("\033");
	assert_int_equal(view.n_rows, 13);
	press("/stale\n"); /* states too */
	assert_string_equal(order(), "llama a-worker-with-a-rather-long-name-in-rack-17");
	press("\033/llama\n"); /* a pool with all its workers */
	assert_int_equal(view.n_rows, 5);
	press("\033/nothing");
	shows("Nothing fits the filter");
	press("\033/x\b\b\b");
	assert_int_equal(view.n_rows, 13);
	press("\033/");
	top_press(&view, &model, 0x6771); /* of a name in Japanese */
	assert_string_equal(order(), "embeddings-for-search 東京-embed");
	press("\b");
	assert_string_equal(view.filter, "");
}

static void forces_when_confirmed(void **state)
{
	(void)state;
	press("j"); /* a worker: its pool */
	press("f");
	shows("Force pool qwen3-235b: s saturated, o open, a auto; Esc: no");
	press("s");
	shows("for how long (30s, 5m, 1h)? 10m_");
	press("\b\b\b5m\n");
	shows("[y/n] Force pool qwen3-235b saturated for 5m?");
	assert_int_equal(press("y"), TOP_ACT);
	sends("/v1/force", "{\"pool\":\"qwen3-235b\",\"state\":\"saturated\",\"for_ms\":300000}");
	press("fo\n");
	shows("open for 10m? All is admitted, however busy.");
	assert_int_equal(press("y"), TOP_ACT);
	sends("/v1/force", "{\"pool\":\"qwen3-235b\",\"state\":\"open\",\"for_ms\":600000}");
	assert_int_equal(press("fay"), TOP_ACT);
	sends("/v1/force", "{\"pool\":\"qwen3-235b\",\"state\":\"auto\"}");
}

static void nothing_unconfirmed(void **state)
{
	static const char *const keys[] = {"fs\nn",  "fs\n\n",	     "fs\n\033",   "fs\nj",
					   "fs\033", "fx",	     "f\033",	   "fan",
					   "fa\n",   "dn",	     "d\n",	   "d\033",
					   "dj",     "fs\b\b\bx\ny", "fs\b\b\b\ny"};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		for (const char *k = keys[i]; *k; k++)
			assert_int_not_equal(press((char[]){*k, '\0'}), TOP_ACT);
		assert_int_equal(view.mode, TOP_BROWSE);
		shows(strstr(keys[i], "\ny") ? "Not a duration" : "Nothing was changed.");
	}
}

static void drains_and_ends_it(void **state)
{
	(void)state;
	press("d");
	shows("[y/n] Drain pool qwen3-235b? New requests get 503.");
	assert_int_equal(press("y"), TOP_ACT);
	sends("/v1/drain", "{\"pool\":\"qwen3-235b\",\"on\":true}");
	press("jd");
	shows("[y/n] Drain worker gpu-3 of pool qwen3-235b? New conn");
	assert_int_equal(press("y"), TOP_ACT);
	sends("/v1/drain", "{\"pool\":\"qwen3-235b\",\"worker\":\"gpu-3\",\"on\":true}");
	press("/node-c\njd"); /* which is draining */
	shows("[y/n] End the drain of worker node-c of pool llama?");
	assert_int_equal(press("y"), TOP_ACT);
	sends("/v1/drain", "{\"pool\":\"llama\",\"worker\":\"node-c\",\"on\":false}");
}

static void tells_what_was_done(void **state)
{
	json_t *answer = json_loads("{\"pools\":[{\"name\":\"a\",\"state\":\"saturated\","
				    "\"forced\":\"saturated\",\"forced_left_ms\":300000}]}",
				    0, NULL);
	char out[512];

	(void)state;
	press("fs\ny");
	top_outcome(&view.action, answer, out);
	assert_string_equal(out, "Pool qwen3-235b is saturated, forced for 5m00s.");
	press("jdy");
	top_outcome(&view.action, answer, out);
	assert_string_equal(out, "Worker gpu-3 of pool qwen3-235b is draining.");
	json_decref(answer);
}

static void other_keys(void **state)
{
	(void)state;
	press("p");
	shows("PAUSED");
	press("p");
	hides("PAUSED");
	press("?");
	shows("Keys (any key goes back)");
	assert_int_equal(press("q"), TOP_GO_ON); /* of the help only */
	hides("Keys (any key goes back)");
	for (uint32_t key = 0; key < 256; key++)
		if (!strchr("?hpqwsfd/", (int)key))
			assert_int_equal(top_press(&view, &model, key), TOP_GO_ON);
	assert_int_equal(press("q"), TOP_QUIT);
}

/* Wherever one goes, what is selected is on the screen, marker and all. */
static void thousand_workers(void **state)
{
	json_t *workers = json_array(), *status;
	char *json;

	(void)state;
	for (int i = 0; i < 1000; i++)
		json_array_append_new(workers,
				      json_pack("{s:o, s:s}", "name", json_sprintf("w%d", i),
						"error", i % 3 ? "" : "no answer"));
	status = json_pack("{s:[{s:s, s:s, s:o}]}", "pools", "name", "big", "state", "open",
			   "workers", workers);
	json = json_dumps(status, 0);
	json_decref(status);
	show(json, NULL);
	free(json);
	press("G");
	shows("w999");
	shows("    big         STATE");
	for (int i = 0; i < 300; i++) {
		const size_t to = (size_t)i * 7919 % 1001;
		char want[64];

		top_select(&view, to);
		snprintf(want, sizeof(want), "▶%s%s ", to ? "+" : "-", selected_name());
		shows(want);
	}
	top_press(&view, &model, TOP_KEY_HOME);
	top_press(&view, &model, TOP_KEY_PAGE_DOWN);
	assert_int_equal(view.selected, view.page - 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_start, scene_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(selects),
		TEST(sorts),
		TEST(stays_on_what_is_selected),
		TEST(folds),
		TEST(unfolds_ranks),
		TEST(lists_all_workers),
		TEST(finds),
		TEST(forces_when_confirmed),
		TEST(nothing_unconfirmed),
		TEST(drains_and_ends_it),
		TEST(tells_what_was_done),
		TEST(other_keys),
		TEST(thousand_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
