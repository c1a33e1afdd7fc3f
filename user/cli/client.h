/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One question to the daemon and its answer, for who cannot wait for it in cli_ask(). */
#ifndef SPILLWAY_CLIENT_H
#define SPILLWAY_CLIENT_H

#include <curl/curl.h>

#include "cli/cli.h"

struct cli_exchange {
	CURL *curl; /* ready to be performed */
	const struct cli_options *o;
	struct curl_slist *headers;
	char *body, *text;
	size_t length;
};

/* Has `curl` ask the daemon for `path`: on its socket, or at its URL with the token. */
void cli_target(CURL *curl, const struct cli_options *o, const char *path);
/* Where that is, for people. */
const char *cli_where(const struct cli_options *o);

/* Readies a question: GET when `body` is NULL, else POST. `x` must stay where it is until the end.
 * -ENOMEM. */
int cli_exchange_begin(struct cli_exchange *x, const struct cli_options *o, const char *path,
		       const json_t *body);
/* What came of it, `e` being how the transfer ended: CLI_OK and *out, a new reference; or another
 * CLI_* and the reason in *err. Frees what the exchange holds. */
int cli_exchange_end(struct cli_exchange *x, CURLcode e, json_t **out, struct sw_error *err);

#endif
