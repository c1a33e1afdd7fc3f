/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The `spillway` command: what its parts share. Each command is a function from its arguments to an
 * exit code and prints for people unless asked for JSON. */
#ifndef SPILLWAY_CLI_H
#define SPILLWAY_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum { CLI_OK, CLI_FAILED, CLI_USAGE, CLI_UNREACHABLE, CLI_TIMED_OUT };

struct cli_options {
	const char *control; /* unix socket of the daemon */
	const char *url;     /* its http://HOST:PORT instead; NULL: not given */
	const char *token;   /* for that; NULL: none */
	const char *pool;
	const char *interface;
	const char *types;	     /* of events, separated by commas; NULL: all */
	uint64_t for_ms, timeout_ms; /* 0: not given */
	uint64_t interval_ms;	     /* 0: not given */
	unsigned width, height;	     /* 0: not given */
	unsigned count;		     /* of events; 0: not given */
	bool json, watch, off, wait, once, clear;
};

/* ---- client.c ---------------------------------------------------------------------------- */

/* Asks the daemon: GET when `body` is NULL, else POST. *out is a new reference. Returns CLI_*; what
 * went wrong is printed. */
int cli_ask(const struct cli_options *o, const char *path, const json_t *body, json_t **out);
/* The same, but what went wrong is in *err and not printed. */
int cli_try(const struct cli_options *o, const char *path, const json_t *body, json_t **out,
	    struct sw_error *err);
/* As cli_ask(), with DELETE. */
int cli_delete(const struct cli_options *o, const char *path, json_t **out);
/* Prints a line for people to stderr and returns `code`. */
__attribute__((format(printf, 2, 3))) int cli_fail(int code, const char *fmt, ...);
void cli_print_json(const json_t *j);

/* ---- json.c: fields that may be missing, for an older or newer daemon --------------------- */

const char *cli_text(const json_t *object, const char *key); /* "" when missing */
bool cli_true(const json_t *object, const char *key);
json_int_t cli_int(const json_t *object, const char *key);
const json_t *cli_list(const json_t *object, const char *key);
/* A measured number as it reads best; "-" when it is null. */
const char *cli_number(const json_t *value, char out[32]);
/* Milliseconds as "850ms", "12.3s", "4m10s", "2h05m"; "-" when it is null. */
const char *cli_time(const json_t *value, char out[32]);
/* A counter and, where `old` is the object of a former answer, what it gained a second since. */
const char *cli_rate(const json_t *object, const json_t *old, const char *key, double seconds,
		     char out[64]);
/* "30s", "5m", "1h", "500ms", "30": seconds. -EINVAL. */
int cli_parse_duration(const char *text, uint64_t *ms);

/* ---- table.c ------------------------------------------------------------------------------ */

#define CLI_COLUMNS 10

struct cli_table {
	char *(*cells)[CLI_COLUMNS];
	size_t columns, rows, room;
};

/* Adds a row; the number of columns is that of the first one, the heading. */
void cli_row(struct cli_table *t, const char *const *cells, size_t n);
#define CLI_ROW(t, ...)                                                                            \
	cli_row(t, (const char *const[]){__VA_ARGS__},                                             \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
/* Prints the rows with columns aligned, and frees them. */
void cli_table_print(struct cli_table *t);

/* ---- slots.c ------------------------------------------------------------------------------ */

/* The part of a status that is about slots; nothing where nothing is steered or counted. */
void cli_print_slots(const json_t *status, const json_t *before, double seconds);

/* ---- commands ---------------------------------------------------------------------------- */

int cli_status(const struct cli_options *o, int argc, char **argv);
int cli_explain(const struct cli_options *o, int argc, char **argv);
int cli_force(const struct cli_options *o, int argc, char **argv);
int cli_drain(const struct cli_options *o, int argc, char **argv);
int cli_threshold(const struct cli_options *o, int argc, char **argv);
int cli_check(const struct cli_options *o, int argc, char **argv);
int cli_reasons(const struct cli_options *o, int argc, char **argv);
int cli_events(const struct cli_options *o, int argc, char **argv);
int cli_top(const struct cli_options *o, int argc, char **argv);

#endif
