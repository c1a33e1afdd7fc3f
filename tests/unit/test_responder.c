// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The responder over real sockets: whole answers to requests of every shape, nothing to what is no
 * request, and no more connections at a time than it may have. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/responder.h"

#define ANSWER "HTTP/1.1 529 Overloaded\r\nContent-Length: 2\r\n\r\nno"

static struct event_base *base;
static struct sw_responder *responder;
static struct sw_answer canned = {.length = sizeof(ANSWER) - 1, .bytes = ANSWER};
static enum sw_method method;
static char path[512];
static unsigned asked;
static bool refuse;

static const struct sw_answer *answer(void *arg, int connection, enum sw_method m, const char *p)
{
	assert_ptr_equal(arg, &canned);
	assert_true(connection >= 0);
	method = m;
	strncpy(path, p, sizeof(path) - 1);
	asked++;
	return refuse ? NULL : &canned;
}

static int setup(void **state)
{
	struct sw_error err = {0};

	(void)state;
	asked = 0;
	refuse = false;
	base = event_base_new();
	if (sw_responder_open(&responder, base, NULL, answer, &canned, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sw_responder_close(responder);
	event_base_free(base);
	return 0;
}

/* Lets the responder work until nothing happened for `ms`. */
static void turn(int ms)
{
	for (int i = 0; i < ms; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		usleep(1000);
	}
}

static int dial(bool v6)
{
	struct sockaddr_in at4 = {.sin_family = AF_INET,
				  .sin_port = htons(sw_responder_port(responder)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 at6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(sw_responder_port(responder)),
				   .sin6_addr = in6addr_loopback};
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int failed = v6 ? connect(fd, (struct sockaddr *)&at6, sizeof(at6))
			: connect(fd, (struct sockaddr *)&at4, sizeof(at4));

	if (failed) {
		close(fd);
		return -1;
	}
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	turn(5);
}

/* What there is to read now; `ended`: up to the end. -1: reset, or nothing yet. */
static int hear(int fd, char *out, size_t size)
{
	int n = (int)recv(fd, out, size - 1, MSG_DONTWAIT);

	out[n > 0 ? n : 0] = '\0';
	return n;
}

static void expect_answer(int fd)
{
	char text[512];

	assert_int_equal(hear(fd, text, sizeof(text)), canned.length);
	assert_string_equal(text, ANSWER);
	assert_int_equal(hear(fd, text, sizeof(text)), 0); /* our side is closed in order */
}

static void answers(void **state)
{
	int fd = dial(false);

	(void)state;
	say(fd, "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
	expect_answer(fd);
	assert_int_equal(method, SW_METHOD_POST);
	assert_string_equal(path, "/v1/chat/completions");
	close(fd);
}

static void answers_over_ipv6(void **state)
{
	int fd = dial(true);

	(void)state;
	if (fd < 0) {
		print_message("skip: there is no IPv6 here\n");
		skip();
	}
	say(fd, "GET / HTTP/1.1\r\n\r\n");
	expect_answer(fd);
	assert_int_equal(method, SW_METHOD_GET);
	close(fd);
}

static void takes_a_head_byte_by_byte(void **state)
{
	const char *head = "\r\nPOST http://host:80/v1/messages HTTP/1.1\nHost: a\r\n\n";
	int fd = dial(false);

	(void)state;
	for (const char *s = head; *s; s++) {
		assert_int_equal(asked, 0);
		say(fd, (char[]){*s, '\0'});
	}
	expect_answer(fd);
	assert_string_equal(path, "/v1/messages");
	close(fd);
}

/* Closing while a body is still on its way would reset the connection and lose the answer. */
static void reads_the_body_to_its_end(void **state)
{
	static char body[1 << 20];
	int fd = dial(false);
	size_t sent = 0;

	(void)state;
	say(fd, "POST /v1/completions HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n");
	while (sent < sizeof(body)) {
		ssize_t n = send(fd, body + sent, sizeof(body) - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		assert_true(n > 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	turn(5);
	expect_answer(fd);
	close(fd);
	assert_int_equal(asked, 1);
}

static void answers_a_long_line_and_an_endless_head(void **state)
{
	static char line[70000];
	int fd = dial(false);

	(void)state;
	memset(line, 'a', sizeof(line) - 1);
	memcpy(line, "GET /", 5);
	say(fd, line);
	turn(20);
	expect_answer(fd);
	assert_int_equal(method, SW_METHOD_GET);
	assert_in_range(strlen(path), 200, 256);
	close(fd);
}

static void closes_what_is_no_request(void **state)
{
	const char *const others[] = {"\x16\x03\x01\x02", "{}", " GET /", "get /"};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		int fd = dial(false);

		say(fd, others[i]);
		assert_int_equal(hear(fd, text, sizeof(text)), 0);
		close(fd);
	}
	assert_int_equal(asked, 0);
}

static void closes_without_an_answer(void **state)
{
	int fd = dial(false);
	char text[512];

	(void)state;
	refuse = true;
	say(fd, "GET / HTTP/1.1\r\n\r\n");
	assert_int_equal(asked, 1);
	assert_int_equal(hear(fd, text, sizeof(text)), 0);
	close(fd);
}

/* More clients than it may have: those wait, and get their answers when others have gone. */
static void bounds_connections(void **state)
{
	enum { ALL = SW_RESPONDER_CONNECTIONS + 50 };
	struct rlimit files;
	static int fds[ALL];
	unsigned late = 0;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 2 * ALL + 100) {
		print_message("skip: too few files may be open here\n");
		skip();
	}
	for (int i = 0; i < ALL; i++) {
		fds[i] = dial(false);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	turn(20);
	for (int i = 0; i < ALL; i++)
		send(fds[i], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
	turn(20);
	assert_int_equal(asked, SW_RESPONDER_CONNECTIONS);
	for (int i = 0; i < 100; i++)
		close(fds[i]);
	turn(20);
	assert_int_equal(asked, ALL);
	for (int i = 100; i < ALL; i++) {
		char text[512];

		late += hear(fds[i], text, sizeof(text)) == (int)canned.length;
		close(fds[i]);
	}
	assert_int_equal(late, ALL - 100);
}

/* No file for a connection: it waits, and the loop does not spin on it. */
static void waits_for_files(void **state)
{
	struct rlimit files, few;
	int fd = dial(false), top = dup(fd);
	char text[512];

	(void)state;
	send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
	close(top);
	getrlimit(RLIMIT_NOFILE, &files);
	few = files;
	few.rlim_cur = (rlim_t)top;
	setrlimit(RLIMIT_NOFILE, &few);
	turn(10);
	assert_int_equal(asked, 0);
	assert_int_equal(hear(fd, text, sizeof(text)), -1);
	setrlimit(RLIMIT_NOFILE, &files);
	turn(150);
	expect_answer(fd);
	close(fd);
}

/* What lingers of its connections is at a server's port where it answers in a server's place. */
static void leaves_its_port_to_others(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(sw_responder_port(responder)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = dial(false), server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	(void)state;
	say(fd, "GET / HTTP/1.1\r\n\r\n");
	expect_answer(fd);
	close(fd);
	turn(5);
	sw_responder_close(responder);
	responder = NULL;
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(server, (struct sockaddr *)&at, sizeof(at)), 0);
	close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers, setup, teardown),
		cmocka_unit_test_setup_teardown(answers_over_ipv6, setup, teardown),
		cmocka_unit_test_setup_teardown(takes_a_head_byte_by_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_the_body_to_its_end, setup, teardown),
		cmocka_unit_test_setup_teardown(answers_a_long_line_and_an_endless_head, setup,
						teardown),
		cmocka_unit_test_setup_teardown(closes_what_is_no_request, setup, teardown),
		cmocka_unit_test_setup_teardown(closes_without_an_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(waits_for_files, setup, teardown),
		cmocka_unit_test_setup_teardown(bounds_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves_its_port_to_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
