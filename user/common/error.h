/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Errors and logs. A function that can fail returns 0 or a negative errno and, where a person has
 * to act on it, leaves one line in a struct sw_error that says what happened and what to do.
 * The line is printed once, at the top.
 */
#ifndef SPILLWAY_ERROR_H
#define SPILLWAY_ERROR_H

struct sw_error {
	char text[512]; /* empty: no error */
};

/* Stores the formatted line in `e` (may be NULL) and returns `err`, a negative errno. */
__attribute__((format(printf, 3, 4))) int sw_fail(struct sw_error *e, int err, const char *fmt,
						  ...);

enum sw_level { SW_ERROR, SW_WARN, SW_INFO, SW_DEBUG };

/* Messages above this level are not printed. Default SW_INFO. */
void sw_log_level(enum sw_level level);

/* One line to stderr: "<3>..." priorities when stderr is the journal (JOURNAL_STREAM), else
 * "TIME LEVEL text". */
__attribute__((format(printf, 2, 3))) void sw_log(enum sw_level level, const char *fmt, ...);

#endif
