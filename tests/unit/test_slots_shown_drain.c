// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What operators do about slots: drains, as JSON shows them and as the `spillway` command asks for
 * them and waits until nothing is in use. */
#include "slots/shown.h"

#include <string.h>

static void a_drained_pool_has_nothing_free(void **state)
{
	json_t *j = asking_json("/v1/drain", "{\"pool\":\"chat\",\"on\":true}", 200);

	(void)state;
	HAS(json_object_get(pool_of(j, 0), "slots"), {"free", "0"}, {"inuse", "15"});
	json_decref(j);
	json_decref(asking_json("/v1/drain", "{\"pool\":\"chat\",\"on\":false}", 200));
}

static void a_drain_begins_when_it_begins(void **state)
{
	json_t *j = asking_json("/v1/drain", "{\"worker\":\"half\",\"on\":true}", 200), *w;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(j, "pools")), 1);
	w = json_array_get(json_object_get(pool_of(j, 0), "workers"), 1);
	HAS(w, {"drain", "true"});
	assert_in_range(json_integer_value(json_object_get(w, "drain_ms")), 0, 5000);
	HAS(json_object_get(pool_of(j, 0), "slots"), {"free", "0"});
	json_decref(j);
	json_decref(asking_json("/v1/drain", "{\"worker\":\"half\",\"on\":false}", 200));
}

static void names_are_told_apart(void **state)
{
	(void)state;
	says("drain half", 0, "worker half of pool chat is draining\n");
	says("drain half --off", 0, "worker half of pool chat takes new connections again\n");
	says("drain chat half", 0, "worker half of pool chat is draining\n");
	says("drain off --pool chat half", 0, "worker half of pool chat takes new");
	says("drain chat", 0, "pool chat is draining\n");
	says("drain chat --off", 0, "pool chat is open\n");
	says("drain on --pool local", 0, "pool local is draining\n");
	says("drain off", 0, "pool chat is open\npool local is open\n");
	says("drain none", 1,
	     "no pool and no worker is named 'none'; 'spillway status' lists them");
	says("drain plain", 1,
	     "'plain' is a pool and a worker; write 'spillway drain on --pool plain' or 'spillway "
	     "drain plain plain'");
	says("drain guard g", 1, "pool 'guard' is not steered");
	says("drain chat none", 1, "no worker is named 'none'; there are 10.0.0.1:8000, half, ");
	says("drain --pool none x", 1, "no pool is named 'none'");
}

static void wrong_usage_is_refused(void **state)
{
	static const char *const rows_[] = {
		"drain",
		"drain a b c",
		"drain --pool p a b",
		"drain on --off",
		"drain half --timeout 5",
		"drain half --off --wait",
		"drain half --wait --timeout x",
		"status --wait",
		"force open --off",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows_) / sizeof(rows_[0]); i++)
		says(rows_[i], 2, "spillway: ");
}

static void waits_until_a_worker_is_empty(void **state)
{
	pid_t pid;

	(void)state;
	rows[A].inuse = 2;
	rows[OLD].inuse = 0;
	pid = run("drain 10.0.0.1:8000 --wait --timeout 60");
	goes_on(pid, ": 2 connections left, ");
	rows[A].inuse = 1;
	goes_on(pid, ": 1 connections left, ");
	rows[A].inuse = 0;
	assert_int_equal(finished(pid), 0);
	prints("worker 10.0.0.1:8000 of pool chat is draining\n"
	       "idle keep-alive connections stay until the router closes them; "
	       "'pooled_upstreams: close_idle' would close them\n"
	       "worker 10.0.0.1:8000 of pool chat: 2 connections left, ");
	prints("worker 10.0.0.1:8000 of pool chat: 1 connections left, ");
	prints("worker 10.0.0.1:8000 of pool chat is empty after ");
	says("drain 10.0.0.1:8000 --off", 0, "");
}

static void waits_until_a_pool_is_empty(void **state)
{
	pid_t pid;

	(void)state;
	/* a worker that left the configuration counts as well */
	rows[A].inuse = rows[C].inuse = 0;
	pid = run("drain chat --wait");
	goes_on(pid, "pool chat: 2 connections left, ");
	rows[OLD].inuse = 0;
	assert_int_equal(finished(pid), 0);
	prints("pool chat is empty after ");
	says("drain chat --off", 0, "");
	pid = run("drain guard --wait");
	goes_on(pid, "pool guard: 10 connections left, ");
	rows[GUARD].inuse = 0;
	assert_int_equal(finished(pid), 0);
	says("drain guard --off", 0, "");
}

static void waiting_ends(void **state)
{
	pid_t pid;

	(void)state;
	says("drain d --wait --timeout 500ms", 4,
	     "worker d of pool local has 5 connections left after ");
	pid = run("drain d --wait");
	goes_on(pid, ": 5 connections left, ");
	json_decref(asking_json("/v1/drain", "{\"worker\":\"d\",\"on\":false}", 200));
	assert_int_equal(finished(pid), 1);
	prints("worker d of pool local is not draining any more\n");
	/* where nothing is counted nothing is changed */
	says("drain on --pool plain --wait", 1,
	     "connections are neither steered nor counted there");
	says("status", 0, "plain    open ");
	says("drain d --wait --json --timeout 300ms", 4, "\"inuse\": 5");
	assert_null(strstr(output, "0.0/s"));
	says("drain d --off", 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SHOWN_TEST(a_drained_pool_has_nothing_free),
		SHOWN_TEST(a_drain_begins_when_it_begins),
		SHOWN_TEST(names_are_told_apart),
		SHOWN_TEST(wrong_usage_is_refused),
		SHOWN_TEST(waits_until_a_worker_is_empty),
		SHOWN_TEST(waits_until_a_pool_is_empty),
		SHOWN_TEST(waiting_ends),
	};

	return cmocka_run_group_tests_name("slots shown", tests, shown_up, shown_down);
}
