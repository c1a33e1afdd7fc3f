// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* libcurl on libevent, see curl_loop.h: libcurl says which sockets and which timer it waits for,
 * libevent says when they are due. */
#include <errno.h>
#include <stdlib.h>

#include "sources/curl_loop.h"

struct sw_curl_loop {
	struct event_base *base;
	struct event *timer;
	CURLM *multi;
	sw_curl_done done;
};

static void report_done(struct sw_curl_loop *l)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(l->multi, &left))) {
		CURL *easy = m->easy_handle; /* `m` goes with the removal */
		CURLcode result = m->data.result;

		curl_multi_remove_handle(l->multi, easy);
		l->done(easy, result);
	}
}

static void act(struct sw_curl_loop *l, curl_socket_t fd, int what)
{
	int running;

	curl_multi_socket_action(l->multi, fd, what, &running);
	report_done(l);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	act(arg, fd,
	    (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* libcurl wants to be called in `ms`, -1: not at all. Never from in here, hence 0 is a timer too.
 */
static int set_timer(CURLM *multi, long ms, void *arg)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	struct sw_curl_loop *l = arg;

	(void)multi;
	return ms < 0 ? evtimer_del(l->timer) : evtimer_add(l->timer, &tv);
}

/* libcurl wants to know when `fd` can be read or written; the event hangs on the socket. */
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watched)
{
	struct sw_curl_loop *l = arg;
	struct event *ev = watched;
	short events = EV_PERSIST;

	(void)easy;
	if (ev)
		event_free(ev);
	curl_multi_assign(l->multi, fd, NULL);
	if (what == CURL_POLL_REMOVE)
		return 0;
	if (what & CURL_POLL_IN)
		events |= EV_READ;
	if (what & CURL_POLL_OUT)
		events |= EV_WRITE;
	ev = event_new(l->base, fd, events, on_ready, l);
	if (!ev || event_add(ev, NULL)) {
		if (ev)
			event_free(ev);
		return -1;
	}
	curl_multi_assign(l->multi, fd, ev);
	return 0;
}

int sw_curl_loop_new(struct sw_curl_loop **out, struct event_base *base, sw_curl_done done)
{
	struct sw_curl_loop *l = calloc(1, sizeof(*l));

	if (!l || curl_global_init(CURL_GLOBAL_DEFAULT)) {
		free(l);
		return -ENOMEM;
	}
	l->base = base;
	l->done = done;
	l->timer = evtimer_new(base, on_timer, l);
	l->multi = curl_multi_init();
	if (!l->timer || !l->multi) {
		sw_curl_loop_free(l);
		return -ENOMEM;
	}
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
	*out = l;
	return 0;
}

void sw_curl_loop_free(struct sw_curl_loop *l)
{
	if (!l)
		return;
	curl_multi_cleanup(l->multi);
	if (l->timer)
		event_free(l->timer);
	free(l);
	curl_global_cleanup();
}

int sw_curl_loop_start(struct sw_curl_loop *l, CURL *easy)
{
	switch (curl_multi_add_handle(l->multi, easy)) {
	case CURLM_OK: return 0;
	case CURLM_ADDED_ALREADY: return -EBUSY;
	default: return -ENOMEM;
	}
}

void sw_curl_loop_stop(struct sw_curl_loop *l, CURL *easy)
{
	curl_multi_remove_handle(l->multi, easy);
}

void sw_curl_loop_keep(struct sw_curl_loop *l, unsigned connections)
{
	/* libcurl takes 0 for "no limit" */
	curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, connections ? (long)connections : 1L);
}
