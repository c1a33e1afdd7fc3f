// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What operators see of slots and do about them: JSON, metrics, and the `spillway` command as it
 * prints them and waits for a drain. The kernel's rows are made up and shared with the child that
 * serves them, so that the test can have connections come and go. */
#include "lib/asking.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "control/status.h"

#define V4(a, b, c, d) {[10] = 0xff, 0xff, a, b, c, d}

/* How long some have been what they are, shown in minutes: a slow machine changes nothing. */
#define BUSY_MS	   ((2 * 3600 + 5 * 60 + 30) * 1000ull)
#define DRAIN_MS   ((3 * 3600 + 10 * 60 + 30) * 1000ull)
#define SUSPECT_MS ((4 * 3600 + 30) * 1000ull)

enum { A, B, C, D, GUARD, REPORTS, OLD, ROWS };

/* ---- rows, in the kernel's place ---------------------------------------------------------- */

static struct sw_slot *rows;

void sw_steer_slot(const struct sw_steer *s, unsigned id, struct sw_slot *out)
{
	(void)s;
	*out = rows[id];
}

int sw_steer_get_worker(const struct sw_steer *s, unsigned id, struct sw_worker_row *out)
{
	(void)s;
	*out = (struct sw_worker_row){.cap = id == REPORTS ? 1004 : 0};
	return 0;
}

int sw_steer_counts(const struct sw_steer *s, unsigned pool, struct sw_steer_counts *out)
{
	(void)s;
	*out = (struct sw_steer_counts){0};
	if (pool == 0)
		*out = (struct sw_steer_counts){.steered = 120, .answered = 3, .no_slot = 3};
	return 0;
}

int sw_steer_use(const struct sw_steer *s, unsigned pool, struct sw_pool_use *out)
{
	(void)s;
	*out = (struct sw_pool_use){.half_open = pool == 1 ? 2 : 0};
	return 0;
}

/* ---- the daemon --------------------------------------------------------------------------- */

static struct sw_worker_conf chat_workers[] = {
	{.name = (char *)"10.0.0.1:8000",
	 .at = {V4(10, 0, 0, 1), 8000},
	 .engine_limit = 8,
	 .queue_limit = 16},
	{.name = (char *)"half",
	 .at = {V4(10, 0, 0, 2), 8000},
	 .engine_limit = 8,
	 .queue_limit = 16},
	{.name = (char *)"[2001:db8:1:2::10]:8000",
	 .at = {{0x20, 1, 0x0d, 0xb8, 0, 1, 0, 2, [15] = 0x10}, 8000}},
};
static struct sw_worker_conf local_workers[] = {
	{.name = (char *)"d", .at = {V4(127, 0, 0, 1), 9000}}, {.name = (char *)"plain"}};
static struct sw_worker_conf guard_workers[] = {
	{.name = (char *)"g", .engine_limit = 8, .queue_limit = 16}};
static struct sw_worker_conf report_workers[] = {{.name = (char *)"r"}};
static struct sw_endpoint virtuals[] = {{V4(10, 9, 0, 1), 80}, {{0xfd, [15] = 9}, 80}};
static struct sw_pool_conf confs[] = {
	{.name = (char *)"chat",
	 .model = (char *)"chat",
	 .steer = {.by = SW_STEER_CONNECT, .virtuals = virtuals, .n_virtuals = 2}},
	{.name = (char *)"local", .model = (char *)"local", .steer.by = SW_STEER_LOCAL},
	{.name = (char *)"guard", .model = (char *)"guard", .steer.count = SW_COUNT_CONNECTIONS},
	{.name = (char *)"reports", .model = (char *)"reports", .steer.count = SW_COUNT_REPORTS},
	{.name = (char *)"plain", .model = (char *)"plain"},
};
#define POOLS (sizeof(confs) / sizeof(confs[0]))

static struct sw_live_worker workers[] = {
	{.conf = &chat_workers[0], .id = A, .cap = 24, .load.busy = true},
	{.conf = &chat_workers[1], .id = B, .cap = 12, .suspect = true},
	{.conf = &chat_workers[2], .id = C, .cap = 64, .drain = true},
	{.conf = &local_workers[0], .id = D, .cap = SW_NO_CAP},
	{.conf = &guard_workers[0], .id = -1, .cap = 24},
	{.conf = &report_workers[0], .id = -1, .cap = 12},
	{.conf = &local_workers[1], .id = -1, .cap = SW_NO_CAP},
};
static struct sw_live_worker *lists[POOLS][3] = {
	{&workers[0], &workers[1], &workers[2]},
	{&workers[3]},
	{&workers[4]},
	{&workers[5]},
	{&workers[6]},
};
static const size_t how_many[POOLS] = {3, 1, 1, 1, 1};
static struct sw_config conf = {.pools = confs, .n_pools = POOLS};
static struct sw_live_pool pools[POOLS];
static struct sw_live_leaving leaving[] = {{.name = "chat/old", .id = OLD}};
static struct sw_live live = {.conf = &conf,
			      .pools = pools,
			      .n_pools = POOLS,
			      .steer = (struct sw_steer *)&live, /* never looked into */
			      .leaving = leaving,
			      .n_leaving = 1,
			      .recount = {.rows = 2, .corrected = 5, .took_ns = 80000},
			      .recounts = 9};

static void make_live(void)
{
	const uint64_t now_ms = sw_now_ms();

	live.started_ms = now_ms;
	leaving[0].since_ms = now_ms;
	for (size_t i = 0; i < POOLS; i++) {
		pools[i] = (struct sw_live_pool){.conf = &confs[i],
						 .limits = confs[i].limits,
						 .live = &live,
						 .workers = lists[i],
						 .n_workers = how_many[i],
						 .since_ms = now_ms,
						 .row = -1,
						 .cap = UINT64_MAX};
		for (size_t j = 0; j < how_many[i]; j++)
			lists[i][j]->pool = &pools[i];
	}
	pools[0].cap = 100;
	pools[2].row = GUARD;
	pools[2].cap = 24;
	pools[3].row = REPORTS;
	pools[3].cap = 12;
	pools[2].full = true;
	workers[0].busy_since_ms = now_ms - BUSY_MS;
	workers[1].suspect_since_ms = now_ms - SUSPECT_MS;
	workers[2].drain_since_ms = now_ms - DRAIN_MS;
	workers[5].load.n_ranks = 1;
	workers[5].load.rank[0].value[SW_SIG_RUNNING] = 3;
	workers[5].load.rank[0].value[SW_SIG_WAITING] = 2;
}

static void on_change(struct sw_live_pool *pool)
{
	pool->state = pool->drain ? SW_POOL_DRAINING : SW_POOL_OPEN;
	pool->steer.flags = pool->drain ? SW_SF_CLOSED : 0;
}

static int start(void **state)
{
	(void)state;
	rows = mmap(NULL, sizeof(*rows) * ROWS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	return rows == MAP_FAILED ? -1 : asking_start(&live, make_live, on_change);
}

static int stop(void **state)
{
	(void)state;
	return asking_stop();
}

static int fill(void **state)
{
	(void)state;
	memset(rows, 0, sizeof(*rows) * ROWS);
	rows[A] = (struct sw_slot){.inuse = 12,
				   .most = 24,
				   .takes = 1234567,
				   .gives = 1234555,
				   .refusals = 345678,
				   .failures = 2,
				   .corrected = 5};
	rows[C] = (struct sw_slot){.inuse = 3, .most = 7, .takes = 9};
	rows[D] = (struct sw_slot){.inuse = 5};
	rows[GUARD] = (struct sw_slot){.inuse = 10, .most = 24, .takes = 1203, .refusals = 3};
	rows[REPORTS] = (struct sw_slot){.inuse = 1000, .takes = 1000};
	rows[OLD] = (struct sw_slot){.inuse = 2};
	return 0;
}

/* ---- the command -------------------------------------------------------------------------- */

static char output[16384];

/* `spillway ARGUMENTS`, in the background; its output goes to a file. */
static pid_t run(const char *arguments)
{
	char self[512], command[1024];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	pid_t pid;

	assert_true(n > 0);
	self[n] = '\0';
	snprintf(command, sizeof(command),
		 "exec '%s/../../spillway' --control '%s' %s >'%s/output' 2>&1", dirname(self),
		 asking_path, arguments, asking_dir);
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	return pid;
}

/* Its exit code; what it printed is in `output`. */
static int finished(pid_t pid)
{
	char file[96];
	int status, fd;
	ssize_t n;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	snprintf(file, sizeof(file), "%s/output", asking_dir);
	fd = open(file, O_RDONLY);
	n = read(fd, output, sizeof(output) - 1);
	assert_true(n >= 0);
	output[n] = '\0';
	close(fd);
	unlink(file);
	return WEXITSTATUS(status);
}

static void prints(const char *part)
{
	if (!strstr(output, part))
		fail_msg("no '%s' in\n%s", part, output);
}

static void says(const char *arguments, int code, const char *part)
{
	int got = finished(run(arguments));

	if (got != code)
		fail_msg("%s: exit %d, not %d\n%s", arguments, got, code, output);
	prints(part);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static const json_t *pool_of(const json_t *status, size_t i)
{
	return json_array_get(json_object_get(status, "pools"), i);
}

/* Each key's value as JSON text. */
static void has(const json_t *object, const char *const (*pairs)[2], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_object_get(object, pairs[i][0]);
		char *got = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

		if (!got || strcmp(got, pairs[i][1]))
			fail_msg("%s: %s, not %s", pairs[i][0], got ? got : "absent", pairs[i][1]);
		free(got);
	}
}
#define HAS(object, ...)                                                                           \
	has(object, (const char *const[][2]){__VA_ARGS__},                                         \
	    sizeof((const char *const[][2]){__VA_ARGS__}) / sizeof(char *[2]))

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

/* ---- metrics ------------------------------------------------------------------------------ */

static void metrics_have_slots(void **state)
{
	static const char *const lines[] = {
		"spillway_worker_slots_inuse{pool=\"chat\",worker=\"10.0.0.1:8000\"} 12\n",
		"spillway_worker_slots_cap{pool=\"chat\",worker=\"half\"} 12\n",
		"spillway_worker_slots_inuse{pool=\"guard\",worker=\"\"} 10\n",
		"spillway_worker_slots_inuse{pool=\"reports\",worker=\"\"} 5\n",
		"spillway_worker_picks_total{pool=\"chat\",worker=\"10.0.0.1:8000\"} 1234567\n",
		"spillway_worker_refusals_total{pool=\"guard\",worker=\"\"} 3\n",
		"spillway_worker_connect_failures_total{pool=\"chat\",worker=\"10.0.0.1:8000\"} "
		"2\n",
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

/* ---- drain -------------------------------------------------------------------------------- */

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
	pid = run("drain 10.0.0.1:8000 --wait --timeout 20");
	for (int left = 1; left >= 0; left--) {
		usleep(1500 * 1000);
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		rows[A].inuse = (__u32)left;
	}
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
	usleep(1500 * 1000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	rows[OLD].inuse = 0;
	assert_int_equal(finished(pid), 0);
	prints("pool chat: 2 connections left, ");
	prints("pool chat is empty after ");
	says("drain chat --off", 0, "");
	pid = run("drain guard --wait");
	usleep(1500 * 1000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
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
	usleep(1500 * 1000);
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
		cmocka_unit_test_setup(workers_show_their_rows, fill),
		cmocka_unit_test_setup(pools_add_up, fill),
		cmocka_unit_test_setup(the_furthest_mode_is_shown, fill),
		cmocka_unit_test_setup(a_drained_pool_has_nothing_free, fill),
		cmocka_unit_test_setup(a_drain_begins_when_it_begins, fill),
		cmocka_unit_test_setup(metrics_have_slots, fill),
		cmocka_unit_test_setup(the_page_is_well_formed, fill),
		cmocka_unit_test_setup(status_is_a_table, fill),
		cmocka_unit_test_setup(tables_fit_100_columns, fill),
		cmocka_unit_test_setup(explain_shows_the_cap, fill),
		cmocka_unit_test_setup(names_are_told_apart, fill),
		cmocka_unit_test_setup(wrong_usage_is_refused, fill),
		cmocka_unit_test_setup(waits_until_a_worker_is_empty, fill),
		cmocka_unit_test_setup(waits_until_a_pool_is_empty, fill),
		cmocka_unit_test_setup(waiting_ends, fill),
	};

	return cmocka_run_group_tests_name("slots shown", tests, start, stop);
}
