// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The event plane over NATS, with a real server on loopback that is started, stopped and asks for
 * passwords. */
#include <arpa/inet.h>
#include <nats/nats.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "lib/publishing.h"

static unsigned port;
static char url[64];
static char *servers[] = {url};
static pid_t server;

/* ---- the server ---- */

static unsigned free_port(void)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (void *)&sin, size), 0);
	assert_int_equal(getsockname(fd, (void *)&sin, &size), 0);
	close(fd);
	return ntohs(sin.sin_port);
}

static bool answers(void)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = !connect(fd, (void *)&sin, sizeof(sin));

	close(fd);
	return ok;
}

static void start_server(const char *option, const char *value)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", port);
	server = fork();
	if (!server) {
		freopen("/dev/null", "w", stderr);
		execlp("nats-server", "nats-server", "-a", "127.0.0.1", "-p", number, option, value,
		       NULL);
		execl("/usr/sbin/nats-server", "nats-server", "-a", "127.0.0.1", "-p", number,
		      option, value, NULL);
		_exit(127);
	}
	for (int i = 0; !answers() && i < 500; i++)
		usleep(20000);
	assert_true(answers());
}

static void stop_server(void)
{
	if (!server)
		return;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	server = 0;
}

static int setup(void **state)
{
	port = free_port();
	snprintf(url, sizeof(url), "nats://127.0.0.1:%u", port);
	return publishing_setup(state);
}

static int teardown(void **state)
{
	int ret = publishing_teardown(state);

	stop_server();
	return ret;
}

static void listen_at(size_t n, const char *credentials)
{
	uint64_t begin_ms = sw_now_ms();

	assert_int_equal(sw_events_nats(plane, servers, n, credentials, &plane_error), 0);
	assert_true(sw_now_ms() - begin_ms < 1000); /* it waits for no server */
}

/* ---- a publisher ---- */

static natsConnection *connect_publisher(void)
{
	natsConnection *nc = NULL;

	assert_int_equal(natsConnection_ConnectTo(&nc, url), NATS_OK);
	return nc;
}

static void tell(natsConnection *nc, const char *subject, struct event_of e)
{
	uint8_t bytes[512];
	size_t length = envelope_of(e, bytes);

	assert_int_equal(natsConnection_Publish(nc, subject, bytes, (int)length), NATS_OK);
}

/* ---- tests ---- */

static void both_subjects_are_heard_and_no_others(void **state)
{
	natsConnection *nc;

	(void)state;
	start_server("-D", NULL);
	nc = connect_publisher();
	listen_at(1, NULL);
	await_state(0, SW_EVENTS_OK);
	tell(nc, SUBJECT, (struct event_of){.publisher = 1, .sequence = 1, .worker = 5, .rank = 3});
	await_heard(1);
	tell(nc, "namespace.n.kv_metrics",
	     (struct event_of){.publisher = 2, .sequence = 1, .worker = 6, .used = 90});
	tell(nc, "namespace.n.component.c.endpoint.e.kv_events",
	     (struct event_of){.publisher = 1, .sequence = 3, .worker = 7});
	tell(nc, "namespace.n.kv_metrics", /* a repeat */
	     (struct event_of){.publisher = 2, .sequence = 1, .worker = 6, .used = 90});
	await_messages(0, 3);
	natsConnection_PublishString(nc, SUBJECT, "{\"worker_id\": 42}");
	await_messages(0, 4);
	assert_int_equal(heard.n, 2);
	assert_int_equal(heard.last.worker_id, 6);
	assert_int_equal(heard.last.report.value[SW_SIG_KV_USED], 90);
	assert_string_equal(plane_status(0).kind, "nats");
	assert_string_equal(plane_status(0).name, url);
	assert_int_equal(plane_status(0).dropped, 1);
	assert_int_equal(plane_status(0).bad, 1);
	assert_non_null(strstr(plane_status(0).error, "MessagePack"));
	natsConnection_Destroy(nc);
}

/* A sanitizer keeps back what was freed, here as little as it can: memory is measured. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=0:thread_local_quarantine_size_kb=0";
}

static void long_messages_are_not_kept(void **state)
{
	static char large[1 << 19];
	natsConnection *nc;
	long before_kb;

	(void)state;
	start_server("-D", NULL);
	nc = connect_publisher();
	listen_at(1, NULL);
	await_state(0, SW_EVENTS_OK);
	natsConnection_Publish(nc, SUBJECT, large, sizeof(large));
	await_messages(0, 1);
	before_kb = resident_kb();
	for (int i = 0; i < 80; i++) {
		assert_int_equal(natsConnection_Publish(nc, SUBJECT, large, sizeof(large)),
				 NATS_OK);
		natsConnection_FlushTimeout(nc, 5000);
	}
	usleep(200000);
	assert_true(resident_kb() - before_kb < 20 * 1024);
	tell(nc, SUBJECT, (struct event_of){.publisher = 1, .sequence = 1, .worker = 5});
	await_heard(1);
	assert_int_equal(heard.last.worker_id, 5);
	assert_in_range(plane_status(0).bad, 2, 81);
	natsConnection_Destroy(nc);
}

static void a_server_that_comes_late_or_again_is_heard(void **state)
{
	natsConnection *nc;

	(void)state;
	listen_at(1, NULL);
	assert_non_null(strstr(await_state(0, SW_EVENTS_FAILING).error, "cannot connect: "));
	for (uint64_t i = 1; i <= 2; i++) {
		start_server("-D", NULL);
		await_state(0, SW_EVENTS_OK);
		nc = connect_publisher();
		tell(nc, SUBJECT, (struct event_of){.publisher = 1, .sequence = i, .worker = i});
		natsConnection_FlushTimeout(nc, 5000);
		await_heard((unsigned)i);
		assert_int_equal(heard.last.worker_id, i);
		natsConnection_Destroy(nc);
		stop_server();
		assert_int_equal(await_state(0, SW_EVENTS_FAILING).bad, 0);
	}
}

static void who_may_not_listen_is_told_so(void **state)
{
	struct sw_events_status status;

	(void)state;
	start_server("--user", "somebody");
	listen_at(1, NULL);
	status = await_state(0, SW_EVENTS_FAILING);
	assert_non_null(strstr(status.error, "uthoriz"));
	listen_at(1, "/nonexistent/file");
	assert_int_equal(plane_status(0).state, SW_EVENTS_CONNECTING);
	status = await_state(0, SW_EVENTS_FAILING);
	assert_non_null(strstr(status.error, "cannot connect: "));
	listen_at(0, NULL);
	assert_false(sw_events_status(plane, 0, &status));
}

static void passwords_are_not_shown(void **state)
{
	char with[96];
	char *list[] = {with, url};
	char name[160];

	(void)state;
	start_server("--auth", "sesame");
	snprintf(with, sizeof(with), "nats://sesame@127.0.0.1:%u", port);
	snprintf(name, sizeof(name), "%s, %s", url, url);
	assert_int_equal(sw_events_nats(plane, list, 2, NULL, &plane_error), 0);
	assert_string_equal(await_state(0, SW_EVENTS_OK).name, name);
}

#define NATS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NATS_TEST(both_subjects_are_heard_and_no_others),
		NATS_TEST(long_messages_are_not_kept),
		NATS_TEST(a_server_that_comes_late_or_again_is_heard),
		NATS_TEST(who_may_not_listen_is_told_so),
		NATS_TEST(passwords_are_not_shown),
	};

	sw_log_level(SW_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
