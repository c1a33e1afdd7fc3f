// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What hosts and devices do differently: windows, options, frames; and connections whose bytes
// somebody else counts too, which are left alone.

#include "lib/spy.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* ---- windows --------------------------------------------------------------------------------- */
/* The client has no room for an answer, so the request is the server's. */
static void no_window(int family)
{
	int least = 1, listener = ends_listen(family, 0), client = ends_socket(family, CLIENT, 0);
	unsigned scale = 14, unread = 0;
	struct segment g = {.window = 0xffff};
	struct tcp_info info;
	socklen_t size = sizeof(info);
	struct ends e;
	struct spy s;

	setsockopt(client, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
	pool_finishes();
	e = ends_connect(family, client, listener, 0);
	assert_int_equal(getsockopt(e.server, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
	scale = info.tcpi_snd_wscale;
	s = spy_on(&e);
	for (; g.window << scale >= KEPT_ANSWER; unread++) {
		struct segment seen;

		assert_true(unread < 1000);
		tell(e.client, GET_CHAT);
		hear(e.server, GET_CHAT);
		tell(e.server, OK_RESPONSE);
		while (spy_next(&s, &seen, 60)) /* its acknowledgement, delayed */
			if (seen.ours)
				g = seen;
	}
	pool_sheds(SW_CAUSE_SATURATED);
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	assert_int_equal(counted_kept(SW_R_keep_window), family == 4 ? 1 : 2);
	while (unread--)
		hear(e.client, OK_RESPONSE);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	goes_on(&e);
}
FAMILY_TEST(no_window)

/* Little room, and no scale to it. */
static void narrow_window(int family)
{
	static const char filler[] = "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n";
	int small = 2304 / 2, listener, client;
	char body[3000], in[3100];
	struct ends e;

	kept_sysctl(CLIENT, "ipv4/tcp_window_scaling", "0");
	listener = ends_listen(family, 0);
	client = ends_socket(family, CLIENT, 0);
	setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_connect(family, client, listener, 0);
	for (int i = 0; i < 20; i++) {
		is_shed(&e, GET_CHAT);
		is_shed(&e, a_post(5000));
	}
	pool_finishes();
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	tell(e.server, filler);
	memset(body, '.', sizeof(body));
	tell_bytes(e.server, body, sizeof(body));
	usleep(50000);
	pool_sheds(SW_CAUSE_SATURATED);
	tell(e.client, GET_CHAT); /* pipelined, with hardly any window */
	hear(e.server, GET_CHAT);
	assert_int_equal(recv(e.client, in, sizeof(filler) - 1 + sizeof(body), MSG_WAITALL),
			 sizeof(filler) - 1 + sizeof(body));
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	is_shed(&e, GET_CHAT);
	kept_sysctl(CLIENT, "ipv4/tcp_window_scaling", "1");
}
FAMILY_TEST(narrow_window)

/* ---- hosts ----------------------------------------------------------------------------------- */

static void conversation(int family)
{
	struct ends e;

	pool_armed();
	e = ends_open(family);
	is_served(&e, GET_CHAT);
	pool_sheds(SW_CAUSE_SATURATED);
	is_shed(&e, GET_CHAT);
	is_shed(&e, a_post(200000));
	pool_finishes();
	begin_bytes(&e, true, 3000000);
	move_bytes(e.client, e.server, 3000000);
	tell(e.server, OK_RESPONSE);
	hear(e.client, OK_RESPONSE);
	begin_bytes(&e, false, 3000000);
	lose(LOSS_IN, 1000, 3, 1);
	move_bytes(e.server, e.client, 3000000);
	lose(LOSS_IN, 0, 0, 0);
	pool_sheds(SW_CAUSE_SATURATED);
	lose(LOSS_OUT, 1000, 3, 1);
	is_shed(&e, a_post(200000));
	lose(LOSS_OUT, 0, 0, 0);
	lose(LOSS_IN, 100, 0, 1);
	is_shed(&e, GET_CHAT);
	goes_on(&e);
	ends_cleanly(&e);
}

static void with_sysctl(const char *name, const char *value, const char *usual)
{
	kept_sysctl(CLIENT, name, value);
	each_family(conversation);
	kept_sysctl(CLIENT, name, usual);
}

static void test_timestamps_off(void **state)
{
	(void)state;
	with_sysctl("ipv4/tcp_timestamps", "0", "1");
}

static void test_sack_off(void **state)
{
	(void)state;
	with_sysctl("ipv4/tcp_sack", "0", "1");
}

static void test_scale_off(void **state)
{
	(void)state;
	with_sysctl("ipv4/tcp_window_scaling", "0", "1");
}

static void test_all_options_off(void **state)
{
	(void)state;
	kept_sysctl(CLIENT, "ipv4/tcp_timestamps", "0");
	kept_sysctl(CLIENT, "ipv4/tcp_sack", "0");
	with_sysctl("ipv4/tcp_window_scaling", "0", "1");
	kept_sysctl(CLIENT, "ipv4/tcp_timestamps", "1");
	kept_sysctl(CLIENT, "ipv4/tcp_sack", "1");
}

static void on_devices(const char *fmt)
{
	for (enum side side = CLIENT; side < SIDES; side++) {
		char command[200];

		snprintf(command, sizeof(command), fmt, side);
		kept_run(side, "%s", command);
	}
}

static void test_large_frames(void **state)
{
	(void)state;
	on_devices("ip link set spkeep%d mtu 9000");
	each_family(conversation);
	on_devices("ip link set spkeep%d mtu 1500");
}

static void test_small_frames(void **state)
{
	(void)state;
	if (system("command -v ethtool >/dev/null")) {
		printf("skip: no ethtool\n");
		skip();
	}
	on_devices("ethtool -K spkeep%d gro off tso off gso off");
	each_family(conversation);
	on_devices("ethtool -K spkeep%d tx off >/dev/null");
	each_family(conversation);
	on_devices("ethtool -K spkeep%d tx on tso on gso on >/dev/null");
	on_devices("ethtool -K spkeep%d gro on");
	each_family(conversation);
	on_devices("ethtool -K spkeep%d gro off");
}

/* ---- left alone ------------------------------------------------------------------------------ */

static void with_mptcp(int family)
{
	int client = ends_socket(family, CLIENT, IPPROTO_MPTCP);
	struct ends e;

	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_connect(family, client, ends_listen(family, IPPROTO_MPTCP), 0);
	for (int i = 0; i < 3; i++)
		is_served(&e, GET_CHAT);
	is_served(&e, a_post(30000));
}

static void test_mptcp(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);

	(void)state;
	if (fd < 0) {
		printf("skip: MPTCP, which this kernel does not have\n");
		skip();
	}
	close(fd);
	each_family(with_mptcp);
}

static bool sign(int fd, int family, enum side peer)
{
	struct tcp_md5sig md5 = {.tcpm_keylen = 6, .tcpm_key = "secret"};
	struct sockaddr_storage to = ends_sockaddr(family, peer, 0);

	memcpy(&md5.tcpm_addr, &to, sizeof(to));
	return !setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5));
}

static void with_signatures(int family)
{
	int listener = ends_listen(family, 0), client = ends_socket(family, CLIENT, 0);
	struct ends e;

	if (!sign(listener, family, CLIENT) || !sign(client, family, SERVER)) {
		printf("skip: signed segments, which this kernel does not have\n");
		return;
	}
	pool_sheds(SW_CAUSE_SATURATED);
	e = ends_connect(family, client, listener, 0);
	for (int i = 0; i < 3; i++)
		is_served(&e, GET_CHAT);
	is_served(&e, a_post(30000));
	assert_int_equal(counted_kept(SW_R_keep_options), family == 4 ? 4 : 8);
}
FAMILY_TEST(with_signatures)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_no_window),	kept_test(test_narrow_window),
		kept_test(test_timestamps_off), kept_test(test_sack_off),
		kept_test(test_scale_off),	kept_test(test_all_options_off),
		kept_test(test_large_frames),	kept_test(test_small_frames),
		kept_test(test_mptcp),		kept_test(test_with_signatures),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
