/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tests of the engines' pages share: read a page, look at the reports. */
#ifndef TEST_LOAD_H
#define TEST_LOAD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sources/engine.h"

#define ABSENT UINT64_MAX

extern struct sw_report load_reports[SW_MAX_RANKS];
extern struct sw_error load_error;

/* What sw_engine_read() returns. */
int read_hinted(enum sw_engine e, struct sw_engine_hints hints, const char *page);
int read_page(enum sw_engine e, const char *page);

uint64_t load_value(int report, enum sw_signal signal); /* ABSENT: not in the report */
void assert_load(int report, unsigned rank, uint64_t running, uint64_t waiting, uint64_t used,
		 uint64_t total);
void assert_error(int got, int want, const char *part); /* `part` is in the error's text */

#endif
