// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What operators see of slots: JSON, metrics, and the tables that `spillway` prints. Drains are in
 * test_slots_shown_drain.c. */
#include "slots/shown.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"

static void workers_show_their_rows(void **state)
{
	json_t *j = asking_json("/v1/status", NULL, 200), *list, *w;

	(void)state;
	list = json_object_get(pool_of(j, 0), "workers");
	w = json_array_get(list, 0);
	HAS(w, {"at", "\"10.0.0.1:8000\""}, {"busy", "true"}, {"suspect", "false"},
	    {"suspect_ms", "null"}, {"drain", "false"}, {"drain_ms", "null"});
	assert_in_range(json_integer_value(json_object_get(w, "busy_ms")), BUSY_MS,
			BUSY_MS + 29000);
	HAS(json_object_get(w, "slots"), {"id", "0"}, {"inuse", "12"}, {"engine", "8"},
	    {"queue", "4"}, {"cap", "24"}, {"free", "12"}, {"engine_limit", "8"},
	    {"queue_limit", "16"}, {"most", "24"}, {"picks", "1234567"}, {"refusals", "345678"},
	    {"failures", "2"});
	w = json_array_get(list, 1);
	HAS(w, {"suspect", "true"}, {"busy_ms", "null"});
	assert_in_range(json_integer_value(json_object_get(w, "suspect_ms")), SUSPECT_MS,
			SUSPECT_MS + 29000);
	w = json_array_get(list, 2);
	HAS(w, {"at", "\"[2001:db8:1:2::10]:8000\""}, {"drain", "true"});
	assert_in_range(json_integer_value(json_object_get(w, "drain_ms")), DRAIN_MS,
			DRAIN_MS + 29000);
	HAS(json_object_get(w, "slots"), {"engine", "3"}, {"queue", "0"}, {"cap", "64"},
	    {"engine_limit", "null"}, {"queue_limit", "null"});
	w = json_array_get(json_object_get(pool_of(j, 1), "workers"), 0);
	HAS(json_object_get(w, "slots"), {"inuse", "5"}, {"cap", "null"}, {"free", "null"});
	w = json_array_get(json_object_get(pool_of(j, 2), "workers"), 0);
	HAS(w, {"slots", "null"}, {"at", "null"});
	json_decref(j);
}

static void pools_add_up(void **state)
{
	json_t *j = asking_json("/v1/status", NULL, 200);

	(void)state;
	HAS(pool_of(j, 0), {"steer", "\"connect\""});
	/* free: what is neither busy nor draining */
	HAS(json_object_get(pool_of(j, 0), "slots"), {"inuse", "15"}, {"engine", "11"},
	    {"queue", "4"}, {"cap", "100"}, {"free", "12"}, {"full", "false"},
	    {"count", "\"connections\""}, {"virtuals", "[\"10.9.0.1:80\",\"[fd00::9]:80\"]"},
	    {"counts", "{\"steered\":120,\"answered\":3,\"no_slot\":3}"}, {"row", "null"});
	HAS(pool_of(j, 1), {"steer", "\"local\""});
	HAS(json_object_get(pool_of(j, 1), "slots"), {"cap", "null"}, {"free", "null"},
	    {"half_open", "2"}, {"virtuals", "[]"}, {"counts", "{}"});
	HAS(pool_of(j, 2), {"steer", "null"});
	HAS(json_object_get(pool_of(j, 2), "slots"), {"inuse", "10"}, {"engine", "8"},
	    {"queue", "2"}, {"cap", "24"}, {"free", "14"}, {"full", "true"},
	    {"row", "{\"id\":4,\"most\":24,\"picks\":1203,\"refusals\":3,\"failures\":0}"});
	/* with reports the row only grows: in use is what they show, free what was granted */
	HAS(json_object_get(pool_of(j, 3), "slots"), {"inuse", "5"}, {"cap", "12"}, {"free", "4"},
	    {"count", "\"reports\""});
	HAS(pool_of(j, 4), {"slots", "null"}, {"steer", "null"});
	HAS(json_array_get(json_object_get(j, "leaving"), 0), {"name", "\"chat/old\""},
	    {"inuse", "2"});
	HAS(json_object_get(j, "recount"), {"recounts", "9"}, {"rows", "2"}, {"corrected", "5"},
	    {"took_us", "80"});
	json_decref(j);
}

/* Metered is less than shed, whatever their numbers. */
static void the_furthest_mode_is_shown(void **state)
{
	static struct sw_live_gate gates[2][POOLS];
	static struct sw_live_plane planes[2];
	static const struct {
		enum sw_mode a, b;
		const char *shown;
	} modes[] = {
		{SW_MODE_METERED, SW_MODE_SHED, "\"shed\""},
		{SW_MODE_SHED, SW_MODE_METERED, "\"shed\""},
		{SW_MODE_METERED, SW_MODE_FINISH, "\"metered\""},
		{SW_MODE_OPEN, SW_MODE_FINISH, "\"finish\""},
	};

	(void)state;
	make_live();
	for (size_t i = 0; i < 2; i++)
		planes[i] = (struct sw_live_plane){.plane = (struct sw_plane *)planes,
						   .gates = gates[i]};
	live.planes = planes;
	live.n_planes = 2;
	gates[0][2].used = gates[1][2].used = true;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		json_t *j;

		gates[0][2].gate.mode = modes[i].a;
		gates[1][2].gate.mode = modes[i].b;
		j = sw_explain_json(&live, &pools[2], sw_now_ms());
		HAS(pool_of(j, 0), {"mode", modes[i].shown});
		json_decref(j);
	}
	live.n_planes = 0;
}

static void metrics_have_slots(void **state)
{
	static const char *const lines[] = {
		"spillway_worker_slots_inuse{pool=\"chat\",worker=\"10.0.0.1:8000\"} 12\n",
		"spillway_worker_slots_cap{pool=\"chat\",worker=\"half\"} 12\n",
		"spillway_worker_slots_inuse{pool=\"guard\",worker=\"\"} 10\n",
		"spillway_worker_slots_inuse{pool=\"reports\",worker=\"\"} 5\n",
		"spillway_worker_picks_total{pool=\"chat\",worker=\"10.0.0.1:8000\"} 1234567\n",
		"spillway_worker_refusals_total{pool=\"guard\",worker=\"\"} 3\n",
		("spillway_worker_connect_failures_total{pool=\"chat\",worker=\"10.0.0.1:8000\"} "
		 "2\n"),
		"spillway_worker_suspect{pool=\"chat\",worker=\"half\"} 1\n",
		"spillway_worker_draining{pool=\"chat\",worker=\"[2001:db8:1:2::10]:8000\"} 1\n",
		"spillway_worker_draining{pool=\"plain\",worker=\"plain\"} 0\n",
		"spillway_recount_corrected_total{pool=\"chat\",worker=\"10.0.0.1:8000\"} 5\n",
		"spillway_recounts_total 9\n",
		"spillway_pool_slots_free{pool=\"chat\"} 12\n",
		"spillway_pool_slots_free{pool=\"reports\"} 4\n",
		"spillway_reservations{pool=\"local\"} 2\n",
		"spillway_steer_total{pool=\"chat\",result=\"steered\"} 120\n",
		"spillway_steer_total{pool=\"chat\",result=\"refused\"} 0\n",
		"dynamo_engine_request{pool=\"chat\",worker=\"10.0.0.1:8000\"} 8\n",
		"dynamo_request_queue{pool=\"chat\",worker=\"10.0.0.1:8000\"} 4\n",
		"dynamo_rejection_request_total 3\n",
	};

	(void)state;
	assert_int_equal(asking("/metrics", NULL), CURLE_OK);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strstr(asking_reply.text, lines[i]))
			fail_msg("no line %s in\n%s", lines[i], asking_reply.text);
	/* no limit, no sample; not counted, none either */
	assert_null(strstr(asking_reply.text, "spillway_worker_slots_cap{pool=\"local\""));
	assert_null(strstr(asking_reply.text, "spillway_pool_slots_free{pool=\"local\""));
	assert_null(strstr(asking_reply.text, "slots_inuse{pool=\"plain\""));
	assert_null(strstr(asking_reply.text, "spillway_steer_total{pool=\"plain\""));
}

/* HELP and TYPE once for each series, and its samples right behind them. */
static void the_page_is_well_formed(void **state)
{
	char *line, *rest, name[128] = "", seen[16384] = "\n", key[160];

	(void)state;
	assert_int_equal(asking("/metrics", NULL), CURLE_OK);
	for (line = strtok_r(asking_reply.text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (!strncmp(line, "# HELP ", 7)) {
			assert_int_equal(sscanf(line + 7, "%127s", name), 1);
			snprintf(key, sizeof(key), "\n%s\n", name);
			assert_null(strstr(seen, key));
			assert_true(strlen(seen) + strlen(key) < sizeof(seen));
			strcat(seen, key + 1);
		} else if (!strncmp(line, "# TYPE ", 7)) {
			snprintf(key, sizeof(key), "# TYPE %s ", name);
			assert_int_equal(strncmp(line, key, strlen(key)), 0);
			/* a counter is named _total, and nothing else is */
			assert_int_equal(!strcmp(line + strlen(key), "counter"),
					 strlen(name) > 6 &&
						 !strcmp(name + strlen(name) - 6, "_total"));
		} else if (strcspn(line, "{ ") != strlen(name) ||
			   strncmp(line, name, strlen(name))) {
			fail_msg("'%s' under %s", line, name);
		}
	}
}

/* ---- what people see ---------------------------------------------------------------------- */

static void status_is_a_table(void **state)
{
	(void)state;
	says("status", 0,
	     "\npool chat, steered by connect at 10.9.0.1:80, [fd00::9]:80: 15 of 100 slots in "
	     "use, 12 free\n"
	     "  steered 120, answered 3, no_slot 3\n"
	     "WORKER                   BUSY   SUSPECT  DRAINING  IN USE / N + Q   ENGINE  QUEUE  "
	     "PICKS    REFUSALS\n"
	     "10.0.0.1:8000            2h05m  -        -         12 / 8 + 16      8       4      "
	     "1234567  345678\n");
	prints("\nhalf                     -      4h00m");
	prints("  0 / 12 (8 + 16)  ");
	prints("\n[2001:db8:1:2::10]:8000  -      -        3h10m     3 / 64           3       0 "
	       "     9        0\n");
	prints("\npool local, steered by local: 5 slots in use\n"
	       "WORKER  BUSY  SUSPECT  DRAINING  IN USE / N + Q  ENGINE  QUEUE  PICKS  REFUSALS\n"
	       "d       -     -        -         5               5       0      0      0\n");
	/* a row is one line */
	prints("\n\npool guard, counted by connections: 10 of 24 slots in use, 14 free, FULL "
	       "(engine 8, queue 2), 1203 picks, 3 refusals\n\n");
	prints("\npool reports, counted by reports: 5 of 12 slots in use, 4 free (engine 5, "
	       "queue 0), 1000 picks, 0 refusals\n");
	prints("\nchat/old is gone from the configuration for ");
	prints("2 connections left\n");
	prints("\nthe last recount that found something wrong put 5 slots of 2 rows right\n");
	assert_null(strstr(output, "pool plain,"));
}

static void tables_fit_100_columns(void **state)
{
	char *line, *rest;

	(void)state;
	rows[C].inuse = 64;
	rows[C].takes = 1234567;
	assert_int_equal(finished(run("status")), 0);
	for (line = strtok_r(output, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (strstr(line, "  ") && strlen(line) > 100)
			fail_msg("%zu columns: %s", strlen(line), line);
}

static void explain_shows_the_cap(void **state)
{
	(void)state;
	rows[A].inuse = 24;
	says("explain chat", 0, "10.0.0.1:8000            all   slots      in_use  24        24 ");
	prints("    FULL\n");
	prints("half                     all   slots      in_use  0         12 ");
	/* why a worker with room is given nothing */
	prints("\nhalf is suspect for 4h00m");
	prints("\n[2001:db8:1:2::10]:8000 is draining for 3h10m");
	says("explain guard", 0,
	     "\n(all)   all   slots                 in_use  10        24     -    free\n");
	says("explain local", 0, "no load was told yet");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHOWN_TEST(workers_show_their_rows),	SHOWN_TEST(pools_add_up),
		SHOWN_TEST(the_furthest_mode_is_shown), SHOWN_TEST(metrics_have_slots),
		SHOWN_TEST(the_page_is_well_formed),	SHOWN_TEST(status_is_a_table),
		SHOWN_TEST(tables_fit_100_columns),	SHOWN_TEST(explain_shows_the_cap),
	};

	return cmocka_run_group_tests_name("slots shown", tests, shown_up, shown_down);
}
