/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tests of scraping share: a loop, a scraper, a web server, a directory, and what the last
 * outcome was. */
#ifndef TEST_SCRAPING_H
#define TEST_SCRAPING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "web.h"
#include "sources/scrape.h"

extern struct event_base *base;
extern struct sw_scraper *scraper;
extern struct sw_error scrape_error;

extern struct seen {
	int calls, n, enough; /* `enough` calls stop the loop */
	struct sw_report reports[4];
	char text[512];
	int remove; /* id to remove in the call; 0: none */
} seen;

int scraping_group_setup(void **state);
int scraping_group_teardown(void **state);
int scraping_setup(void **state);
int scraping_teardown(void **state); /* a connection left open fails the test */

#define SCRAPING_TEST(f) cmocka_unit_test_setup_teardown(f, scraping_setup, scraping_teardown)

void run_ms(unsigned ms);
void await(int calls);	/* runs until as many more outcomes are there */
void await_open(int n); /* until the server has so many connections */
void settle(void);	/* until what is under way is over */

/* A target for a page of the web server: engine tgi, period 20 ms, time-out 20 s. Good until the
 * next call. */
struct sw_target target_of(const char *path);
int add_target(struct sw_target t); /* its id */
void scrape(struct sw_target t);    /* adds, awaits one outcome, removes */

void assert_page(void); /* the last outcome is what WEB_PAGE says */
void assert_failed(int err, const char *part);

int open_files(void);
uint64_t now_ms(void);
const char *in_dir(const char *name); /* a path; good until the next call but one */
void write_file(const char *path, const char *text);
int run_in_dir(const char *command);

#endif
