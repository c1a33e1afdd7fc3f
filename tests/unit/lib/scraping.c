// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What tests of scraping share, see scraping.h. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "scraping.h"

#define AT_LAST_MS 20000 /* a busy machine may need seconds for what takes milliseconds */

struct event_base *base;
struct sw_scraper *scraper;
struct sw_error scrape_error;
struct seen seen;

static struct event *enough;
static char dir[] = "/tmp/spillway-test-scrape-XXXXXX";

static void on_scrape(void *arg, int n, const struct sw_report *reports, const struct sw_error *err)
{
	struct seen *s = arg;

	s->calls++;
	s->n = n;
	if (n > 0)
		memcpy(s->reports, reports, (n < 4 ? n : 4) * sizeof(*reports));
	else
		assert_true(err->text[0]);
	snprintf(s->text, sizeof(s->text), "%s", err->text);
	if (s->remove)
		sw_scraper_remove(scraper, s->remove);
	if (s->calls == s->enough)
		event_base_loopbreak(base);
}

static void on_enough(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	event_base_loopbreak(base);
}

void run_ms(unsigned ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	evtimer_add(enough, &tv);
	event_base_dispatch(base);
}

/* Runs until `calls` more outcomes are there. */
void await(int calls)
{
	int before = seen.calls;

	seen.enough = before + calls;
	run_ms(AT_LAST_MS);
	assert_true(seen.calls >= before + calls);
}

void await_open(int n)
{
	for (uint64_t end = now_ms() + AT_LAST_MS; web.open != n && now_ms() < end;)
		run_ms(5);
	assert_int_equal(web.open, n);
}

/* What is under way gets as many turns on a busy machine as on another. */
void settle(void)
{
	for (int i = 0; i < 50; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		usleep(1000);
	}
}

struct sw_target target_of(const char *path)
{
	static char url[256];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", web.port, path);
	return (struct sw_target){
		.url = url, .engine = SW_ENGINE_TGI, .period_ms = 20, .timeout_ms = AT_LAST_MS};
}

int add_target(struct sw_target t)
{
	int id = 0;

	assert_int_equal(sw_scraper_add(scraper, &t, on_scrape, &seen, &id, &scrape_error), 0);
	assert_true(id > 0);
	return id;
}

/* Scrapes once and takes the target off again. */
void scrape(struct sw_target t)
{
	int id = add_target(t);

	await(1);
	sw_scraper_remove(scraper, id);
}

void assert_page(void)
{
	if (seen.n != 1)
		fail_msg("%d: %s", seen.n, seen.text);
	assert_int_equal(seen.reports[0].value[SW_SIG_WAITING], 12);
	assert_int_equal(seen.reports[0].value[SW_SIG_RUNNING], 5);
}

void assert_failed(int err, const char *part)
{
	if (seen.n != err || !strstr(seen.text, part))
		fail_msg("%d: %s; expected %d: %s", seen.n, seen.text, err, part);
}

int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

const char *in_dir(const char *name)
{
	static char path[2][128];
	static int i;

	i = !i;
	snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

int run_in_dir(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %.900s", dir, command);
	return system(line);
}

int scraping_setup(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	base = event_base_new();
	enough = evtimer_new(base, on_enough, NULL);
	return web_start(base, 0) || sw_scraper_new(&scraper, base, &scrape_error);
}

int scraping_teardown(void **state)
{
	(void)state;
	sw_scraper_free(scraper);
	await_open(0);
	web_stop();
	event_free(enough);
	event_base_free(base);
	return 0;
}

int scraping_group_setup(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	return mkdtemp(dir) ? 0 : -1;
}

int scraping_group_teardown(void **state)
{
	(void)state;
	return run_in_dir("rm -f token metrics *.pem") || rmdir(dir);
}
