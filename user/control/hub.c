// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events to followers; see hub.h. Each follower is a reply in chunks that never ends by itself;
 * what waits for a slow one is bounded. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "control/hub.h"
#include "control/reply.h"

#define KEEP_ALIVE_S 15
#define STUCK_S	     60	  /* one that takes nothing for so long is gone */
#define CHATTER	     4096 /* bytes that a follower may send, which nobody reads */

struct follower {
	LIST_ENTRY(follower) next;
	struct sw_hub *hub;
	struct evhttp_request *req;
	unsigned long long missed; /* and not told yet */
};

struct sw_hub {
	LIST_HEAD(, follower) followers;
	unsigned n;
	struct event *keep_alive;
};

static void forget(struct follower *f)
{
	LIST_REMOVE(f, next);
	f->hub->n--;
	free(f);
}

/* The connection is going down. The request is ours until it is ended. */
static void on_gone(struct evhttp_connection *con, void *arg)
{
	struct follower *f = arg;
	struct evhttp_request *req = f->req;

	(void)con;
	forget(f);
	evhttp_send_reply_end(req);
}

static struct bufferevent *line_to(const struct follower *f)
{
	return evhttp_connection_get_bufferevent(evhttp_request_get_connection(f->req));
}

static void write_text(const struct follower *f, const char *text, size_t n)
{
	struct evbuffer *chunk = evbuffer_new();

	if (!chunk)
		return;
	evbuffer_add(chunk, text, n);
	evhttp_send_reply_chunk(f->req, chunk);
	evbuffer_free(chunk);
}

/* What there is room for; the rest is counted as missed. */
static void deliver(struct follower *f, const char *text, size_t n, bool is_event)
{
	char told[80];

	if (evbuffer_get_length(bufferevent_get_output(line_to(f))) + n > SW_HUB_BACKLOG) {
		f->missed += is_event;
		return;
	}
	if (f->missed) {
		int k = snprintf(told, sizeof(told), "event: missed\ndata: {\"count\":%llu}\n\n",
				 f->missed);

		f->missed = 0;
		write_text(f, told, (size_t)k);
	}
	write_text(f, text, n);
}

static void on_keep_alive(evutil_socket_t fd, short what, void *arg)
{
	static const char comment[] = ": still here\n\n";
	struct sw_hub *h = arg;
	struct follower *f;

	(void)fd;
	(void)what;
	LIST_FOREACH (f, &h->followers, next)
		deliver(f, comment, sizeof(comment) - 1, false);
}

int sw_hub_new(struct sw_hub **out, struct event_base *base, struct sw_error *err)
{
	struct timeval period = {.tv_sec = KEEP_ALIVE_S};
	struct sw_hub *h = calloc(1, sizeof(*h));

	if (h)
		h->keep_alive = event_new(base, -1, EV_PERSIST, on_keep_alive, h);
	if (!h || !h->keep_alive || event_add(h->keep_alive, &period)) {
		sw_hub_free(h);
		return sw_fail(err, -ENOMEM, "no memory");
	}
	*out = h;
	return 0;
}

void sw_hub_free(struct sw_hub *h)
{
	struct follower *f;

	if (!h)
		return;
	while ((f = LIST_FIRST(&h->followers))) {
		evhttp_connection_set_closecb(evhttp_request_get_connection(f->req), NULL, NULL);
		evhttp_send_reply_end(f->req);
		forget(f);
	}
	if (h->keep_alive)
		event_free(h->keep_alive);
	free(h);
}

bool sw_hub_followed(const struct sw_hub *h)
{
	return h && h->n;
}

void sw_hub_send(struct sw_hub *h, const char *type, json_t *data)
{
	char *json = sw_hub_followed(h) && data ? json_dumps(data, JSON_COMPACT) : NULL;
	struct evbuffer *text = json ? evbuffer_new() : NULL;
	struct follower *f;

	json_decref(data);
	if (text && evbuffer_add_printf(text, "event: %s\ndata: %s\n\n", type, json) > 0)
		LIST_FOREACH (f, &h->followers, next)
			deliver(f, (const char *)evbuffer_pullup(text, -1),
				evbuffer_get_length(text), true);
	free(json);
	if (text)
		evbuffer_free(text);
}

void sw_hub_join(struct sw_hub *h, struct evhttp_request *req)
{
	struct timeval stuck = {.tv_sec = STUCK_S};
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct follower *f;

	if (!h || h->n >= SW_HUB_FOLLOWERS)
		return sw_reply_error(req, 503, "too many follow already; try again later");
	f = calloc(1, sizeof(*f));
	if (!f)
		return sw_reply_error(req, 503, "no memory");
	f->hub = h;
	f->req = req;
	LIST_INSERT_HEAD(&h->followers, f, next);
	h->n++;
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_gone, f);
	/* in place of the server's, which ends what is idle */
	bufferevent_set_timeouts(line_to(f), NULL, &stuck);
	bufferevent_setwatermark(line_to(f), EV_READ, 0, CHATTER);
	evhttp_add_header(headers, "Content-Type", "text/event-stream");
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_send_reply_start(req, 200, "OK");
}
