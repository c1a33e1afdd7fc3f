// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The test's web server, see web.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "web.h"

struct web web;

static void end_connection(struct bufferevent *bev)
{
	web.open--;
	bufferevent_free(bev);
}

static void on_sent(struct bufferevent *bev, void *arg)
{
	(void)arg;
	if (!evbuffer_get_length(bufferevent_get_output(bev)))
		end_connection(bev);
}

/* A request that is answered later, or never, has a timer that goes with its connection. */
static void release(struct bufferevent *bev)
{
	void *timer;

	bufferevent_getcb(bev, NULL, NULL, NULL, &timer);
	if (!timer)
		return;
	event_free(timer);
	web.waiting--;
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)what;
	(void)arg;
	release(bev);
	end_connection(bev);
}

/* Calls `cb` with the connection in `ms`, or then and again and again; 0: never. */
static void hold(struct bufferevent *bev, short repeat, event_callback_fn cb, unsigned ms)
{
	struct event *timer = event_new(web.base, -1, repeat, cb, bev);

	if (++web.waiting > web.most_waiting)
		web.most_waiting = web.waiting;
	bufferevent_setcb(bev, NULL, NULL, on_event, timer);
	if (ms)
		event_add(timer, &(struct timeval){.tv_usec = ms * 1000});
}

static void send_head(struct bufferevent *bev, const char *status, const char *headers,
		      size_t length)
{
	evbuffer_add_printf(bufferevent_get_output(bev),
			    "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n", status, length,
			    headers);
}

static void send_page(struct bufferevent *bev, const char *status, const char *headers,
		      const char *body)
{
	send_head(bev, status, headers, strlen(body));
	bufferevent_write(bev, body, strlen(body));
}

static void close_when_sent(struct bufferevent *bev)
{
	bufferevent_setcb(bev, NULL, on_sent, on_event, NULL);
	bufferevent_disable(bev, EV_READ);
}

static void send_redirect(struct bufferevent *bev, const char *to)
{
	char headers[256];

	snprintf(headers, sizeof(headers), "Location: %s\r\n", to);
	send_page(bev, "302 Found", headers, "over there\n");
}

/* A page of comments, `size` bytes long, in which one sample is. */
static char *make_page(size_t size)
{
	char *page = malloc(size + 1);

	memset(page, '#', size);
	for (size_t i = 99; i < size; i += 100)
		page[i] = '\n';
	memcpy(page, WEB_PAGE, strlen(WEB_PAGE));
	page[size - 1] = '\n';
	page[size] = '\0';
	return page;
}

/* Sends `size` bytes of `body` packed, less `cut` at the end, the byte at `flip` changed. */
static void send_gzip(struct bufferevent *bev, const char *body, size_t cut, size_t flip)
{
	size_t length = strlen(body), room = length + 1024;
	unsigned char *packed = malloc(room);
	z_stream z = {};

	deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
	z.next_in = (void *)body;
	z.avail_in = length;
	z.next_out = packed;
	z.avail_out = room;
	deflate(&z, Z_FINISH);
	deflateEnd(&z);
	if (flip)
		packed[flip] ^= 0xff;
	send_head(bev, "200 OK", "Content-Encoding: gzip\r\n", z.total_out - cut);
	bufferevent_write(bev, packed, z.total_out - cut);
	free(packed);
}

static void on_trickle(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	bufferevent_write(arg, "#", 1);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	struct bufferevent *bev = arg;

	(void)fd;
	(void)what;
	release(bev);
	send_page(bev, "200 OK", "Connection: close\r\n", WEB_PAGE);
	close_when_sent(bev);
}

static void on_room(struct bufferevent *bev, void *arg)
{
	char *page = make_page(65536);

	(void)arg;
	bufferevent_write(bev, page, 65536);
	web.endless += 65536;
	free(page);
}

static void answer(struct bufferevent *bev, const char *path)
{
	if (!strcmp(path, "/metrics")) {
		send_page(bev, "200 OK", "Content-Type: text/plain\r\n", WEB_PAGE);
	} else if (!strcmp(path, "/503") || !strcmp(path, "/404") || !strcmp(path, "/401") ||
		   !strcmp(path, "/204")) {
		send_page(bev, path + 1, "", *path == '4' ? "" : WEB_PAGE);
	} else if (!strcmp(path, "/html")) {
		send_page(bev, "200 OK", "Content-Type: text/html\r\n",
			  "<!DOCTYPE html>\n<html><body>Welcome to nginx!</body></html>\n");
	} else if (!strcmp(path, "/page")) {
		send_page(bev, "200 OK", "", web.page);
	} else if (!strcmp(path, "/endless")) {
		evbuffer_add_printf(bufferevent_get_output(bev), "HTTP/1.1 200 OK\r\n\r\n");
		bufferevent_setcb(bev, NULL, on_room, on_event, NULL);
	} else if (!strcmp(path, "/other")) {
		send_page(bev, "200 OK", "", "go_goroutines 12\n");
	} else if (!strcmp(path, "/empty")) {
		send_page(bev, "200 OK", "", "");
	} else if (!strcmp(path, "/gzip")) {
		send_gzip(bev, WEB_PAGE, 0, 0);
	} else if (!strcmp(path, "/gzip-cut")) {
		send_gzip(bev, WEB_PAGE, 20, 0);
	} else if (!strcmp(path, "/gzip-bad")) {
		send_gzip(bev, WEB_PAGE, 0, 20);
	} else if (!strncmp(path, "/size/", 6) || !strncmp(path, "/bomb/", 6)) {
		char *page = make_page(strtoul(path + 6, NULL, 10));

		if (path[1] == 's')
			send_page(bev, "200 OK", "", page);
		else
			send_gzip(bev, page, 0, 0);
		free(page);
	} else if (!strcmp(path, "/short")) { /* less than promised */
		send_head(bev, "200 OK", "", 5000);
		bufferevent_write(bev, WEB_PAGE, strlen(WEB_PAGE));
		close_when_sent(bev);
	} else if (!strcmp(path, "/long")) { /* more than promised */
		send_head(bev, "200 OK", "Connection: close\r\n", strlen(WEB_PAGE) - 2);
		bufferevent_write(bev, WEB_PAGE, strlen(WEB_PAGE));
		close_when_sent(bev);
	} else if (!strcmp(path, "/chunk-cut")) {
		evbuffer_add_printf(
			bufferevent_get_output(bev),
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n",
			strlen(WEB_PAGE), WEB_PAGE);
		close_when_sent(bev);
	} else if (!strcmp(path, "/drop")) {
		end_connection(bev);
	} else if (!strcmp(path, "/slow")) { /* a byte each 20 ms, for ever */
		send_head(bev, "200 OK", "", 5000);
		hold(bev, EV_PERSIST, on_trickle, 20);
	} else if (!strcmp(path, "/silent")) {
		hold(bev, 0, on_late, 0);
	} else if (!strcmp(path, "/late")) {
		hold(bev, 0, on_late, 150);
	} else if (!strcmp(path, "/loop")) {
		send_redirect(bev, "/loop");
	} else if (!strncmp(path, "/hops/", 6)) {
		int hops = atoi(path + 6);
		char to[32];

		snprintf(to, sizeof(to), "/hops/%d", hops - 1);
		send_redirect(bev, hops > 1 ? to : "/metrics");
	} else if (!strncmp(path, "/to/", 4)) {
		send_redirect(bev, path + 4);
	} else {
		fail_msg("no such page: %s", path);
	}
}

static void on_request(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	char path[512];
	int n;

	(void)arg;
	if (*evbuffer_pullup(in, 1) ==
	    0x16) { /* TLS: the answer of a server that does not speak it */
		send_page(bev, "400 Bad Request", "", "no TLS here\n");
		close_when_sent(bev);
	}
	if (end.pos < 0)
		return;
	n = evbuffer_remove(in, web.request, sizeof(web.request) - 1);
	web.request[n] = '\0';
	web.requests++;
	assert_int_equal(sscanf(web.request, "GET %511s", path), 1);
	answer(bev, path);
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *a, int length,
		      void *arg)
{
	struct bufferevent *bev = bufferevent_socket_new(web.base, fd, BEV_OPT_CLOSE_ON_FREE);

	(void)l;
	(void)a;
	(void)length;
	(void)arg;
	web.accepted++;
	web.open++;
	bufferevent_setcb(bev, on_request, NULL, on_event, NULL);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

int web_start(struct event_base *base, unsigned port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(a);

	web = (struct web){.base = base};
	web.listener = evconnlistener_new_bind(base, on_accept, NULL,
					       LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, -1,
					       (struct sockaddr *)&a, sizeof(a));
	if (!web.listener)
		return -1;
	getsockname(evconnlistener_get_fd(web.listener), (struct sockaddr *)&a, &length);
	web.port = ntohs(a.sin_port);
	return 0;
}

void web_stop(void)
{
	evconnlistener_free(web.listener);
	web.listener = NULL;
}
