/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A web server on loopback that answers by path: well, badly, slowly, or not at all. It runs on the
 * loop of the test, which sees what it saw. */
#ifndef TEST_WEB_H
#define TEST_WEB_H

#include <event2/event.h>

#define WEB_PAGE "# TYPE tgi_queue_size gauge\ntgi_queue_size 12\ntgi_batch_current_size 5\n"

extern struct web {
	struct event_base *base;
	struct evconnlistener *listener;
	unsigned port;
	int accepted, open, requests;
	int waiting, most_waiting; /* requests to /slow, /silent and /late without their answer */
	char request[2048];	   /* the last one */
	const char *page;	   /* what /page gives */
	size_t endless;		   /* bytes of /endless that were written */
} web;

/* Serves on `port`, 0: any free one. */
int web_start(struct event_base *base, unsigned port);
/* Refuses new connections. */
void web_stop(void);

/*
 * /metrics          WEB_PAGE, and so do, unless it says otherwise:
 * /503 /404 ...     this status
 * /html /other      a page that is not metrics; metrics of something else
 * /empty            nothing
 * /gzip             packed; /gzip-cut without its end; /gzip-bad with a byte changed
 * /size/N           padded to N bytes; /bomb/N the same, packed
 * /page             web.page, from time to time another
 * /endless          goes on as long as somebody reads
 * /short /long      less, or more, than Content-Length says
 * /chunk-cut        chunked, without the last chunk
 * /drop             closes the connection
 * /slow             a byte each 20 ms
 * /silent           never answers
 * /late             answers after 150 ms
 * /hops/N /loop     as many redirects to /metrics; redirects to itself
 * /to/URL           redirects to URL
 */

#endif
