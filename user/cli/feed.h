/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions to the daemon while keys are waited for: one of each kind may be under way. */
#ifndef SPILLWAY_FEED_H
#define SPILLWAY_FEED_H

#include "cli/client.h"

enum feed_kind { FEED_STATUS, FEED_HISTORY, FEED_ACTION, FEED_KINDS };

struct feed_answer {
	int code;	     /* CLI_* */
	json_t *json;	     /* with CLI_OK; the caller's to release */
	struct sw_error err; /* otherwise */
};

struct feed;

/* `o` must outlive it. NULL: no memory. */
struct feed *feed_new(const struct cli_options *o);
void feed_free(struct feed *f);
/* Asks as cli_ask() does, unless a question of this kind is under way; false: it is, or there is
 * no memory. An answer has to come within 3 s. */
bool feed_ask(struct feed *f, enum feed_kind kind, const char *path, const json_t *body);
bool feed_waits(const struct feed *f, enum feed_kind kind);
/* Returns when `fd` can be read, something came from the daemon, a signal was caught or after
 * `ms`. */
void feed_wait(struct feed *f, int fd, int ms);
/* The next answer that has come; false: none. */
bool feed_take(struct feed *f, enum feed_kind *kind, struct feed_answer *answer);

#endif
