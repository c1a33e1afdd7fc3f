// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A daemon whose slots are shown; see shown.h. */
#include "shown.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

#define V4(a, b, c, d) {[10] = 0xff, 0xff, a, b, c, d}

/* ---- rows, in the kernel's place ---------------------------------------------------------- */

struct sw_slot *rows;

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
static struct sw_pool_conf confs[POOLS] = {
	{.name = (char *)"chat",
	 .model = (char *)"chat",
	 .steer = {.by = SW_STEER_CONNECT, .virtuals = virtuals, .n_virtuals = 2}},
	{.name = (char *)"local", .model = (char *)"local", .steer.by = SW_STEER_LOCAL},
	{.name = (char *)"guard", .model = (char *)"guard", .steer.count = SW_COUNT_CONNECTIONS},
	{.name = (char *)"reports", .model = (char *)"reports", .steer.count = SW_COUNT_REPORTS},
	{.name = (char *)"plain", .model = (char *)"plain"},
};

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
struct sw_live_pool pools[POOLS];
static struct sw_live_leaving leaving[] = {{.name = "chat/old", .id = OLD}};
struct sw_live live = {.conf = &conf,
		       .pools = pools,
		       .n_pools = POOLS,
		       .steer = (struct sw_steer *)&live, /* never looked into */
		       .leaving = leaving,
		       .n_leaving = 1,
		       .recount = {.rows = 2, .corrected = 5, .took_ns = 80000},
		       .recounts = 9};

void make_live(void)
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

int shown_up(void **state)
{
	(void)state;
	rows = mmap(NULL, sizeof(*rows) * ROWS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	return rows == MAP_FAILED ? -1 : asking_start(&live, make_live, on_change);
}

int shown_down(void **state)
{
	(void)state;
	return asking_stop();
}

int shown_fill(void **state)
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

char output[16384];

/* Its output goes to a file. */
pid_t run(const char *arguments)
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

static const char *output_file(void)
{
	static char file[96];

	snprintf(file, sizeof(file), "%s/output", asking_dir);
	return file;
}

/* What was printed so far. */
static void read_output(void)
{
	int fd = open(output_file(), O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, output, sizeof(output) - 1);

	assert_true(n >= 0);
	output[n] = '\0';
	close(fd);
}

int finished(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	read_output();
	unlink(output_file());
	return WEXITSTATUS(status);
}

void goes_on(pid_t pid, const char *part)
{
	output[0] = '\0';
	for (int i = 0; i < 2000 && !strstr(output, part); i++) {
		usleep(10000);
		read_output();
	}
	prints(part);
	usleep(300000);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
}

void prints(const char *part)
{
	if (!strstr(output, part))
		fail_msg("no '%s' in\n%s", part, output);
}

void says(const char *arguments, int code, const char *part)
{
	int got = finished(run(arguments));

	if (got != code)
		fail_msg("%s: exit %d, not %d\n%s", arguments, got, code, output);
	prints(part);
}

/* ---- JSON --------------------------------------------------------------------------------- */

const json_t *pool_of(const json_t *status, size_t i)
{
	return json_array_get(json_object_get(status, "pools"), i);
}

void has(const json_t *object, const char *const (*pairs)[2], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_object_get(object, pairs[i][0]);
		char *got = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

		if (!got || strcmp(got, pairs[i][1]))
			fail_msg("%s: %s, not %s", pairs[i][0], got ? got : "absent", pairs[i][1]);
		free(got);
	}
}
