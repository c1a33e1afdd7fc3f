/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Command lines of spillwayd, for tests to run. */
#ifndef SPILLWAY_TEST_ARGS_H
#define SPILLWAY_TEST_ARGS_H

#include "config/config.h"

/* Splits `line` at blanks and runs it. */
enum sw_args_result args_run(const char *line, struct sw_config **out, struct sw_error *err);
/* What a good one becomes, or the test fails. */
struct sw_config *args_good(const char *line);

#endif
