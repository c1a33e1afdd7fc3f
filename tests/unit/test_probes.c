// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Probes of workers over real sockets: who listens answers, who does not is not heard of. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/probes.h"

static const uint8_t loopback4[16] = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1};
static const uint8_t loopback6[16] = {[15] = 1};
static const uint8_t nowhere[16] = {[10] = 0xff, [11] = 0xff, 127, 1, 2, 3};

static struct event_base *base;
static struct sw_probes *probes;
static int answered, last;

static void note(void *arg, int id)
{
	assert_ptr_equal(arg, &answered);
	answered++;
	last = id;
}

static int setup(void **state)
{
	(void)state;
	answered = 0;
	base = event_base_new();
	probes = sw_probes_new(base, note, &answered);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sw_probes_free(probes);
	event_base_free(base);
	return 0;
}

static void turn(void)
{
	for (int i = 0; i < 50; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		usleep(1000);
	}
}

/* A socket on a free port; it listens only if told to. */
static int server(bool v6, uint16_t *port, bool listens)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct sockaddr_in at4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = v6 ? sizeof(at) : sizeof(at4);
	struct sockaddr *any = v6 ? (void *)&at : (void *)&at4;
	int fd = socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, any, size) || getsockname(fd, any, &size)) {
		print_message("skip: there is no IPv6 here\n");
		skip();
	}
	if (listens)
		assert_int_equal(listen(fd, 16), 0);
	*port = ntohs(v6 ? at.sin6_port : at4.sin_port);
	return fd;
}

static void who_listens_answers(void **state)
{
	uint16_t port;
	int fd = server(false, &port, true);

	(void)state;
	assert_int_equal(sw_probe_start(probes, 7, loopback4, port, NULL), 0);
	turn();
	assert_int_equal(answered, 1);
	assert_int_equal(last, 7);
	close(fd);
}

static void over_ipv6_too(void **state)
{
	uint16_t port;
	int fd = server(true, &port, true);

	(void)state;
	assert_int_equal(sw_probe_start(probes, 9, loopback6, port, NULL), 0);
	turn();
	assert_int_equal(answered, 1);
	close(fd);
}

static void who_does_not_is_not_heard_of(void **state)
{
	uint16_t port;
	int fd = server(false, &port, false);

	(void)state;
	assert_int_equal(sw_probe_start(probes, 7, loopback4, port, NULL), 0);
	turn();
	assert_int_equal(answered, 0);
	assert_int_equal(sw_probe_start(probes, 7, loopback4, port, NULL), 0); /* it ended */
	assert_int_equal(listen(fd, 1), 0);
	turn();
	assert_int_equal(sw_probe_start(probes, 7, loopback4, port, NULL), 0);
	turn();
	assert_int_equal(answered, 1);
	close(fd);
}

static void a_few_at_a_time(void **state)
{
	(void)state;
	for (int id = 0; id < SW_PROBES; id++) {
		assert_int_equal(sw_probe_start(probes, id, nowhere, 9, NULL), 0);
		assert_int_equal(sw_probe_start(probes, id, nowhere, 9, NULL), -EBUSY);
	}
	assert_int_equal(sw_probe_start(probes, SW_PROBES, nowhere, 9, NULL), -EBUSY);
	turn();
	assert_int_equal(sw_probe_start(probes, SW_PROBES, nowhere, 9, NULL), 0);
}

static void a_namespace_that_is_gone(void **state)
{
	(void)state;
	assert_int_equal(sw_probe_start(probes, 1, loopback4, 9, "/run/netns/spw-none"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_listens_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(over_ipv6_too, setup, teardown),
		cmocka_unit_test_setup_teardown(who_does_not_is_not_heard_of, setup, teardown),
		cmocka_unit_test_setup_teardown(a_few_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_namespace_that_is_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
