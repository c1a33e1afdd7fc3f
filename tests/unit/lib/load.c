// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What tests of the engines' pages share, see load.h. */
#include <string.h>

#include "load.h"

struct sw_report load_reports[SW_MAX_RANKS];
struct sw_error load_error;

/* Taken apart for many workers, the page must say the same. */
static void read_apart(struct sw_engine_hints hints, const char *page, int n)
{
	struct sw_report reports[SW_MAX_RANKS];
	struct sw_error error = {""};
	struct sw_front *f = sw_front_new(page, strlen(page));

	memset(reports, 0xee, sizeof(reports));
	assert_non_null(f);
	assert_int_equal(sw_front_read(f, &hints, reports, SW_MAX_RANKS, &error), n);
	assert_memory_equal(reports, load_reports, sizeof(reports));
	assert_string_equal(error.text, load_error.text);
	sw_front_free(f);
}

int read_hinted(enum sw_engine e, struct sw_engine_hints hints, const char *page)
{
	int n;

	memset(load_reports, 0xee, sizeof(load_reports));
	load_error.text[0] = '\0';
	n = sw_engine_read(e, &hints, page, strlen(page), load_reports, SW_MAX_RANKS, &load_error);
	if (e == SW_ENGINE_DYNAMO)
		read_apart(hints, page, n);
	return n;
}

int read_page(enum sw_engine e, const char *page)
{
	return read_hinted(e, (struct sw_engine_hints){}, page);
}

uint64_t load_value(int report, enum sw_signal signal)
{
	return load_reports[report].have & (1u << signal) ? load_reports[report].value[signal]
							  : ABSENT;
}

void assert_load(int report, unsigned rank, uint64_t running, uint64_t waiting, uint64_t used,
		 uint64_t total)
{
	assert_int_equal(load_reports[report].rank, rank);
	assert_int_equal(load_value(report, SW_SIG_RUNNING), running);
	assert_int_equal(load_value(report, SW_SIG_WAITING), waiting);
	assert_int_equal(load_value(report, SW_SIG_KV_USED), used);
	assert_int_equal(load_value(report, SW_SIG_KV_TOTAL), total);
	/* what no engine page tells */
	assert_int_equal(load_value(report, SW_SIG_DECODE_BLOCKS), ABSENT);
	assert_int_equal(load_value(report, SW_SIG_QUEUED_TOKENS), ABSENT);
}

void assert_error(int got, int want, const char *part)
{
	assert_int_equal(got, want);
	if (!strstr(load_error.text, part))
		fail_msg("'%s' not in: %s", part, load_error.text);
}
