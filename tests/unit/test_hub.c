// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events to followers: what they hear, who is forgotten, and what a slow one costs. Followers are
 * plain sockets; server and followers take turns in one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/hub.h"

static struct event_base *base;
static struct evhttp *http;
static struct sw_hub *hub;
static struct sockaddr_un addr = {.sun_family = AF_UNIX};
static char heard[4 * 1024 * 1024];

static void serve(struct evhttp_request *req, void *arg)
{
	(void)arg;
	sw_hub_join(hub, req);
}

static int start(void **state)
{
	socklen_t n = sizeof(addr);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sw_error err;

	(void)state;
	/* the kernel finds an abstract name */
	addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr.sun_family)) ||
	    getsockname(fd, (struct sockaddr *)&addr, &n) || listen(fd, 128))
		return -1;
	base = event_base_new();
	http = evhttp_new(base);
	evhttp_bind_listener(http,
			     evconnlistener_new(base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE, 0, fd));
	evhttp_set_gencb(http, serve, NULL);
	return sw_hub_new(&hub, base, &err);
}

static int stop(void **state)
{
	(void)state;
	sw_hub_free(hub);
	evhttp_free(http);
	event_base_free(base);
	return 0;
}

static void turn(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

static int follow(void)
{
	static const char ask[] = "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(
		connect(fd, (struct sockaddr *)&addr, offsetof(struct sockaddr_un, sun_path) + 6),
		0);
	assert_int_equal(write(fd, ask, sizeof(ask) - 1), sizeof(ask) - 1);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	turn();
	return fd;
}

/* What there is to read, with headers and chunk lengths. */
static const char *hear(int fd)
{
	size_t n = 0;
	ssize_t k;

	turn();
	while ((k = read(fd, heard + n, sizeof(heard) - 1 - n)) > 0) {
		n += (size_t)k;
		turn();
	}
	heard[n] = '\0';
	return heard;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		n++;
	return n;
}

static void followers_hear_what_is_sent_from_then_on(void **state)
{
	int a, b;
	const char *text;

	(void)state;
	assert_false(sw_hub_followed(NULL));
	sw_hub_send(NULL, "shed", json_pack("{s:i}", "n", 0)); /* is fine */
	assert_false(sw_hub_followed(hub));
	sw_hub_send(hub, "shed", json_pack("{s:i}", "n", 1));
	a = follow();
	assert_true(sw_hub_followed(hub));
	text = hear(a);
	assert_non_null(strstr(text, "HTTP/1.1 200 OK\r\n"));
	assert_non_null(strstr(text, "Content-Type: text/event-stream\r\n"));
	assert_null(strstr(text, "event:"));
	sw_hub_send(hub, "pool", json_pack("{s:s}", "pool", "two\nlines"));
	b = follow();
	sw_hub_send(hub, "shed", json_pack("{s:i}", "n", 2));
	text = hear(a);
	assert_non_null(strstr(text, "event: pool\ndata: {\"pool\":\"two\\nlines\"}\n\n"));
	assert_non_null(strstr(text, "event: shed\ndata: {\"n\":2}\n\n"));
	assert_int_equal(count(hear(b), "event: "), 1);
	close(a);
	close(b);
}

static void who_goes_away_is_forgotten(void **state)
{
	int a = follow(), b = follow();

	(void)state;
	close(a);
	turn();
	assert_true(sw_hub_followed(hub));
	sw_hub_send(hub, "shed", json_pack("{s:i}", "n", 1));
	assert_int_equal(count(hear(b), "event: "), 1);
	close(b);
	turn();
	assert_false(sw_hub_followed(hub));
	sw_hub_send(hub, "shed", json_pack("{s:i}", "n", 2));
}

static void a_slow_one_misses_events_and_is_told_how_many(void **state)
{
	enum { EVENTS = 2000 };
	char pad[1001];
	int slow = follow(), quick = follow();
	unsigned long long missed = 0;
	const char *text, *told;
	unsigned got;

	(void)state;
	memset(pad, 'x', sizeof(pad) - 1);
	pad[sizeof(pad) - 1] = '\0';
	for (int i = 0; i < EVENTS; i++) {
		sw_hub_send(hub, "shed", json_pack("{s:s}", "pad", pad));
		if (i % 50 == 0)
			assert_true(strlen(hear(quick)));
	}
	assert_null(strstr(hear(quick), "event: missed"));
	text = hear(slow);
	got = count(text, "event: shed");
	/* its backlog and what its socket holds, not more */
	assert_in_range(got, SW_HUB_BACKLOG / 1100, SW_HUB_BACKLOG / 1000 + 600);
	assert_null(strstr(text, "event: missed"));
	sw_hub_send(hub, "shed", json_pack("{s:s}", "pad", "last"));
	text = hear(slow);
	told = strstr(text, "event: missed\ndata: {\"count\":");
	assert_non_null(told);
	assert_int_equal(sscanf(told, "event: missed\ndata: {\"count\":%llu}", &missed), 1);
	assert_int_equal(got + missed, EVENTS);
	assert_non_null(strstr(told, "\"last\"")); /* after it */
	close(slow);
	close(quick);
}

static void there_are_not_too_many(void **state)
{
	int fds[SW_HUB_FOLLOWERS], more;

	(void)state;
	for (int i = 0; i < SW_HUB_FOLLOWERS; i++)
		fds[i] = follow();
	more = follow();
	assert_non_null(strstr(hear(more), "HTTP/1.1 503 "));
	assert_non_null(strstr(heard, "{\"error\":"));
	close(more);
	close(fds[0]);
	turn();
	more = follow();
	assert_non_null(strstr(hear(more), "HTTP/1.1 200 "));
	for (int i = 1; i < SW_HUB_FOLLOWERS; i++)
		close(fds[i]);
	close(more);
}

/* The timer that repeats every 15 s. */
static int fire(const struct event_base *b, const struct event *e, void *arg)
{
	struct timeval now, due;

	(void)b;
	(void)arg;
	if (event_get_fd(e) >= 0 || !(event_get_events(e) & EV_PERSIST) ||
	    !event_pending(e, EV_TIMEOUT, &due))
		return 0;
	gettimeofday(&now, NULL);
	assert_in_range(due.tv_sec - now.tv_sec, 13, 15);
	event_active((struct event *)e, EV_TIMEOUT, 0);
	return 1;
}

static void silence_is_filled(void **state)
{
	int fd = follow();

	(void)state;
	hear(fd);
	assert_int_equal(event_base_foreach_event(base, fire, NULL), 1);
	assert_non_null(strstr(hear(fd), "\r\n: "));
	assert_null(strstr(heard, "event:"));
	close(fd);
}

static void what_followers_say_is_not_kept(void **state)
{
	static char noise[65536];
	size_t sent = 0;
	int fd = follow();
	ssize_t k;

	(void)state;
	do {
		k = write(fd, noise, sizeof(noise));
		sent += k > 0 ? (size_t)k : 0;
		turn();
	} while (k > 0 && sent < 4 * 1024 * 1024);
	assert_in_range(sent, 1, 1024 * 1024);
	sw_hub_send(hub, "shed", json_pack("{s:i}", "n", 1));
	assert_int_equal(count(hear(fd), "event: "), 1);
	close(fd);
}

static void the_end_of_the_hub_ends_streams(void **state)
{
	int fd = follow(), old = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char ask[] = "GET / HTTP/1.0\r\n\r\n";

	(void)state;
	assert_int_equal(
		connect(old, (struct sockaddr *)&addr, offsetof(struct sockaddr_un, sun_path) + 6),
		0);
	assert_int_equal(write(old, ask, sizeof(ask) - 1), sizeof(ask) - 1);
	turn();
	sw_hub_free(hub);
	hub = NULL;
	assert_non_null(strstr(hear(fd), "0\r\n\r\n"));
	fcntl(old, F_SETFL, O_NONBLOCK);
	hear(old);
	assert_int_equal(read(old, heard, 1), 0);
	close(fd);
	close(old);
	assert_non_null(strstr(hear(fd = follow()), "HTTP/1.1 503 "));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(followers_hear_what_is_sent_from_then_on, start,
						stop),
		cmocka_unit_test_setup_teardown(who_goes_away_is_forgotten, start, stop),
		cmocka_unit_test_setup_teardown(a_slow_one_misses_events_and_is_told_how_many,
						start, stop),
		cmocka_unit_test_setup_teardown(there_are_not_too_many, start, stop),
		cmocka_unit_test_setup_teardown(silence_is_filled, start, stop),
		cmocka_unit_test_setup_teardown(what_followers_say_is_not_kept, start, stop),
		cmocka_unit_test_setup_teardown(the_end_of_the_hub_ends_streams, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
