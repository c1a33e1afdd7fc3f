// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The event plane over ZeroMQ, with real publishers: what is heard, what is not, and connections
 * that come and go. Floods are in test_events_flood.c, NATS in test_events_nats.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "lib/publishing.h"

static void listen_to(const char *address, bool broker)
{
	assert_int_equal(sw_events_zmq(plane, address, broker, &plane_error), 0);
}

/* ---- what is heard ---- */

static uint8_t *bytes_of(const char *hex, uint8_t *out)
{
	for (size_t i = 0; hex[2 * i]; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1]};

		out[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return out;
}

static void the_documented_frames_are_heard(void **state)
{
	static const char id[] = "\0\0\0\0\0\0\0\7", sequence[] = "\0\0\0\0\0\0\0\3";
	uint8_t last[5 + 156];
	const struct frame frames[] = {{"kv_metrics", 10}, {id, 8}, {sequence, 8}, {last, 161}};
	char address[64];
	void *p = publisher_new(0, address);

	(void)state;
	bytes_of("010000009c"
		 "85a5746f706963aa6b765f6d657472696373ac7075626c69736865725f696407a873657175656e63"
		 "6503ac7075626c69736865645f6174cf0000018bcfe56800a77061796c6f6164c452"
		 "85a9776f726b65725f69642aa764705f72616e6b00b46163746976655f6465636f64655f626c6f63"
		 "6b73c0b56163746976655f70726566696c6c5f746f6b656e73c0ae6b765f757365645f626c6f636b"
		 "735a",
		 last);
	listen_to(address, false);
	await_subscribed(p, "kv_metrics");
	publish_frames(p, frames, 4);
	await_heard(1);
	assert_int_equal(heard.last.worker_id, 42);
	assert_int_equal(heard.last.publisher, 7);
	assert_int_equal(heard.last.report.rank, 0);
	assert_int_equal(heard.last.report.have, 1u << SW_SIG_KV_USED);
	assert_int_equal(heard.last.report.value[SW_SIG_KV_USED], 90);
	publisher_free(p);
}

static void assert_bad(void *p, const struct frame *frames, size_t n, const char *why)
{
	uint64_t before = plane_status(0).bad;

	publish_frames(p, frames, n);
	for (int i = 0; plane_status(0).bad == before && i < 1000; i++)
		plane_run_ms(5);
	assert_int_equal(plane_status(0).bad, before + 1);
	assert_non_null(strstr(plane_status(0).error, why));
	assert_int_equal(plane_status(0).state, SW_EVENTS_OK);
}

static void each_frame_is_checked(void **state)
{
	static const uint8_t id[8] = {7}, sequence[9] = {3};
	static uint8_t large[5 + 4097] = {1, 0, 0, 16, 1};
	uint8_t short_one[] = {1, 0, 0, 0, 9, 0x80}, other[] = {2, 0, 0, 0, 1, 0x80};
	uint8_t empty[] = {1, 0, 0, 0, 1, 0x80};
	const struct frame topic = {"kv_metrics", 10};
	char address[64];
	void *p = publisher_new(0, address);

	(void)state;
	listen_to(address, false);
	await_subscribed(p, "kv_metrics");
	assert_bad(p, (struct frame[]){topic}, 1, "4 frames");
	assert_bad(p, (struct frame[]){topic, {id, 8}, {sequence, 8}}, 3, "4 frames");
	assert_bad(p, (struct frame[]){topic, {id, 8}, {sequence, 8}, {empty, 6}, {empty, 6}}, 5,
		   "4 frames");
	assert_bad(p, (struct frame[]){topic, {id, 7}, {sequence, 8}, {empty, 6}}, 4, "8 bytes");
	assert_bad(p, (struct frame[]){topic, {id, 8}, {sequence, 9}, {empty, 6}}, 4, "8 bytes");
	assert_bad(p, (struct frame[]){topic, {id, 8}, {sequence, 8}, {"", 0}}, 4, "version");
	assert_bad(p, (struct frame[]){topic, {id, 8}, {sequence, 8}, {other, 6}}, 4, "version");
	assert_bad(p, (struct frame[]){topic, {id, 8}, {sequence, 8}, {short_one, 6}}, 4, "length");
	assert_bad(p, (struct frame[]){topic, {id, 8}, {sequence, 8}, {empty, 6}}, 4, "is missing");
	assert_bad(p, (struct frame[]){topic, {id, 8}, {sequence, 8}, {large, sizeof(large)}}, 4,
		   "too long");
	assert_int_equal(heard.n, 0);
	/* another topic is no mistake, and the next good one is heard */
	publish_frames(p, (struct frame[]){{"kv_metrics_2", 12}}, 1);
	publish(p, "kv_metrics", (struct event_of){.publisher = 1, .sequence = 1, .worker = 5});
	await_heard(1);
	assert_int_equal(plane_status(0).bad, 10);
	assert_string_equal(plane_status(0).error, "");
	assert_non_null(strstr(plane_status(0).last_error, "too long"));
	assert_in_range(plane_status(0).last_error_ms, 1, sw_now_ms());
	publisher_free(p);
}

/* ---- brokers ---- */

static void repeats_of_several_brokers_are_heard_once(void **state)
{
	char address[2][64];
	void *p[2] = {publisher_new(0, address[0]), publisher_new(0, address[1])};

	(void)state;
	listen_to(address[0], true);
	listen_to(address[1], true);
	await_subscribed(p[0], SUBJECT);
	plane_run_ms(100);
	await_heard(0);
	for (uint64_t i = 1; i <= 20; i++)
		for (int broker = 0; broker < 2; broker++)
			publish(p[broker], i % 2 ? SUBJECT : "namespace.n.kv_metrics",
				(struct event_of){.publisher = 9,
						  .sequence = i,
						  .published_ms = 1000 + i,
						  .worker = i});
	await_heard(20);
	plane_run_ms(50);
	assert_int_equal(heard.n, 20);
	assert_int_equal(heard.last.worker_id, 20);
	assert_int_equal(plane_status(0).dropped + plane_status(1).dropped, 20);
	publisher_free(p[0]);
	publisher_free(p[1]);
}

static void only_subjects_of_load_are_read(void **state)
{
	static const char *const others[] = {
		"namespace.n.component.c.endpoint.e.kv_events",
		"namespace.n.component.c.endpoint.e.x.kv_metrics",
		"namespace.n.component.c.endpoint.kv_metrics",
		"namespace..component.c.endpoint.e.kv_metrics",
		"namespace.n.other.c.endpoint.e.kv_metrics",
		"namespace.n.component.c.endpoint.e.kv_metrics.",
		"namespace..kv_metrics",
		"namespace.kv_metrics",
		"namespace.",
	};
	char address[64];
	void *p = publisher_new(0, address);
	uint64_t before;

	(void)state;
	listen_to(address, true);
	await_subscribed(p, SUBJECT);
	before = plane_status(0).messages;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		publish(p, others[i], (struct event_of){.publisher = 2, .sequence = i});
	publish(p, "namespace.%41-b_c.component.c.endpoint.e.kv_metrics",
		(struct event_of){.publisher = 3, .sequence = 1, .worker = 77});
	await_heard(1);
	assert_int_equal(heard.n, 1);
	assert_int_equal(heard.last.worker_id, 77);
	assert_int_equal(plane_status(0).messages, before + 1);
	publisher_free(p);
}

/* ---- connections ---- */

static void a_publisher_that_comes_back_is_heard_again(void **state)
{
	char address[64];
	void *p = publisher_new(0, address);
	unsigned port = (unsigned)strtoul(strrchr(address, ':') + 1, NULL, 10);

	(void)state;
	listen_to(address, false);
	await_subscribed(p, "kv_metrics");
	publish(p, "kv_metrics",
		(struct event_of){.publisher = 4, .sequence = 900, .published_ms = 5000});
	await_heard(1);
	publisher_free(p);
	await_state(0, SW_EVENTS_FAILING);
	assert_true(plane_status(0).errors > 0);
	assert_true(plane_status(0).error[0] != '\0');

	p = publisher_new(port, address);
	await_state(0, SW_EVENTS_OK);
	await_subscribed(p, "kv_metrics");
	/* its numbers begin anew */
	publish(p, "kv_metrics",
		(struct event_of){
			.publisher = 4, .sequence = 1, .published_ms = 5001, .worker = 6});
	await_heard(1);
	assert_int_equal(heard.last.worker_id, 6);
	publisher_free(p);
}

/* Listens on any port of loopback and says nothing of its own accord. */
static int silent_server(char address[64])
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (void *)&sin, size), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (void *)&sin, &size), 0);
	snprintf(address, 64, "tcp://127.0.0.1:%u", ntohs(sin.sin_port));
	return fd;
}

static void what_is_no_publisher_is_told_from_what_is_silent(void **state)
{
	static const char reply[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
	char silent[64], web[64];
	int fd = silent_server(silent), web_fd = silent_server(web), peer;
	struct pollfd connecting = {.fd = web_fd, .events = POLLIN};
	uint64_t begin_ms = sw_now_ms();

	(void)state;
	close(fd);
	listen_to(silent, false); /* nobody is there */
	listen_to(web, false);
	assert_true(sw_now_ms() - begin_ms < 1000);
	assert_int_equal(plane_status(0).state, SW_EVENTS_CONNECTING);
	for (int i = 0; i < 2000 && poll(&connecting, 1, 0) <= 0; i++)
		plane_run_ms(10);
	assert_int_equal(connecting.revents, POLLIN);
	peer = accept(web_fd, NULL, NULL);
	assert_int_equal(write(peer, reply, sizeof(reply) - 1), sizeof(reply) - 1);
	close(peer);
	assert_non_null(strstr(await_state(0, SW_EVENTS_FAILING).error, "cannot connect"));
	await_state(1, SW_EVENTS_FAILING);
	close(web_fd);
}

/* CPU time: others may take the CPU meanwhile. */
static uint64_t spent_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* To open one takes a while, and there may be thousands. */
static void many_endpoints_hold_nobody_up(void **state)
{
	uint64_t begin_ms = spent_ms();
	struct sw_events_status status;
	char address[64];

	(void)state;
	for (int i = 0; i < 200; i++) {
		snprintf(address, sizeof(address), "ipc:///tmp/spillway-test-none/%d", i);
		listen_to(address, false);
	}
	listen_to("tcp://no-such-address:x1:1", false);
	assert_true(spent_ms() - begin_ms < 50);
	await_state(199, SW_EVENTS_FAILING);
	status = await_state(200, SW_EVENTS_FAILING);
	assert_non_null(strstr(status.error, "cannot"));
}

static void endpoints_come_and_go(void **state)
{
	struct sw_events_status status;
	char address[64];
	void *p = publisher_new(0, address);

	(void)state;
	assert_int_equal(sw_events_zmq(plane, "nonsense", false, &plane_error), -EINVAL);
	assert_non_null(strstr(plane_error.text, "cannot listen to nonsense: it is neither"));
	assert_int_equal(sw_events_zmq(plane, "tcp://127.0.0.1", false, &plane_error), -EINVAL);
	assert_int_equal(sw_events_zmq(plane, "tcp://h:65536", false, &plane_error), -EINVAL);
	assert_int_equal(sw_events_zmq(plane, "ipc://", false, &plane_error), -EINVAL);
	assert_false(sw_events_status(plane, 0, &status));
	listen_to(address, false);
	listen_to(address, false);
	assert_true(sw_events_status(plane, 0, &status));
	assert_string_equal(status.kind, "zmq");
	assert_string_equal(status.name, address);
	assert_false(sw_events_status(plane, 1, &status));
	await_subscribed(p, "kv_metrics");
	listen_to(address, true); /* it is a broker after all */
	assert_false(sw_events_status(plane, 1, &status));
	await_subscribed(p, SUBJECT);
	sw_events_zmq_drop(plane, address);
	sw_events_zmq_drop(plane, address);
	assert_false(sw_events_status(plane, 0, &status));
	publish(p, SUBJECT, (struct event_of){.publisher = 8, .sequence = 1});
	plane_run_ms(50);
	assert_int_equal(heard.n, 0);
	publisher_free(p);
}

/* Nobody is there, of which libzmq's thread tells at that very moment: it must not wait for who
 * listens no more, nor may that one wait for it. */
static void endpoints_go_while_something_happens_to_them(void **state)
{
	struct sw_events_status status;
	char address[64];

	(void)state;
	close(silent_server(address));
	for (int i = 0; i < 3000; i++) {
		listen_to(address, false);
		for (int turn = 0; turn < 3; turn++)
			event_base_loop(plane_base, EVLOOP_NONBLOCK);
		usleep((unsigned)i % 8 * 20);
		sw_events_zmq_drop(plane, address);
	}
	assert_false(sw_events_status(plane, 0, &status));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PUBLISHING_TEST(the_documented_frames_are_heard),
		PUBLISHING_TEST(each_frame_is_checked),
		PUBLISHING_TEST(repeats_of_several_brokers_are_heard_once),
		PUBLISHING_TEST(only_subjects_of_load_are_read),
		PUBLISHING_TEST(a_publisher_that_comes_back_is_heard_again),
		PUBLISHING_TEST(what_is_no_publisher_is_told_from_what_is_silent),
		PUBLISHING_TEST(many_endpoints_hold_nobody_up),
		PUBLISHING_TEST(endpoints_come_and_go),
		PUBLISHING_TEST(endpoints_go_while_something_happens_to_them),
	};

	sw_log_level(SW_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
