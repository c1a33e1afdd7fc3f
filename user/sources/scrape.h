/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Periodic scraping of metrics pages with libcurl's multi interface on a libevent loop. Knows
 * nothing of policy: each page becomes reports, or an error text. */
#ifndef SPILLWAY_SCRAPE_H
#define SPILLWAY_SCRAPE_H

#include <event2/event.h>
#include <stddef.h>

#include "sources/engine.h"

struct sw_scraper;

struct sw_target {
	const char *url; /* http:// or https:// */
	enum sw_engine engine;
	struct sw_engine_hints hints;
	unsigned period_ms;	       /* default 250 */
	unsigned timeout_ms;	       /* default 1000, of one whole scrape */
	const char *bearer_token_file; /* read anew when it changes; NULL: none */
	const char *ca_file;	       /* NULL: the system's */
	int insecure;		       /* 1: do not verify the certificate */
	const char *netns; /* path of a network namespace to connect from; NULL: the daemon's own */
	int once;	   /* 1: a connection for each scrape, none is kept */
};

/* Called on the loop after each scrape; may add and remove targets, its own too. n >= 0: that many
 * reports; n < 0: negative errno, and err->text says why (unreachable, time-out, over 4 MB, HTTP
 * status, not metrics text, ...). */
typedef void (*sw_scrape_cb)(void *arg, int n, const struct sw_report *reports,
			     const struct sw_error *err);

#define SW_SCRAPE_LIMIT (4u << 20) /* bytes of a page after decompression */

/* The caller ignores SIGPIPE. Targets that differ in engine and hints only share one fetch. */
int sw_scraper_new(struct sw_scraper **out, struct event_base *base, struct sw_error *err);
/* Starts scraping a target at once, then each period, the first one being shorter. Strings are
 * copied. *id is for remove. */
int sw_scraper_add(struct sw_scraper *s, const struct sw_target *t, sw_scrape_cb cb, void *arg,
		   int *id, struct sw_error *err);
void sw_scraper_remove(struct sw_scraper *s, int id);
/* The engine of a target; with SW_ENGINE_AUTO the one that its page was last recognised as, if it
 * was. */
enum sw_engine sw_scraper_engine(const struct sw_scraper *s, int id);
/* Not from a callback. */
void sw_scraper_free(struct sw_scraper *s);

#endif
