// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a plane notices of its namespace: interfaces that come and go, attachments that are taken
 * away, settings, servers, another namespace under the same name. Needs root. What it refuses to
 * open is in test_plane_refuse.c, what it attaches in test_attach.c, what it does as it runs and
 * ends in test_plane_life.c. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/netns.h"
#include "kernel/probe.h"
#include "lib/nets.h"

static void nothing_changed(void **state)
{
	struct sw_plane *p = nets_open(SW_ATTACH_TC);

	(void)state;
	assert_int_equal(sw_plane_changed(p), 0);
	sw_plane_close(p, 0);
}

static void interfaces_come_and_go(void **state)
{
	struct sw_plane *p = nets_open(SW_ATTACH_TC);

	(void)state;
	nets_run(nets_guarded, "ip link add other0 type veth");
	assert_int_equal(sw_plane_changed(p), 0); /* it is down */
	nets_run(nets_guarded, "ip link set other0 up");
	assert_int_equal(sw_plane_changed(p), 1);
	sw_plane_close(p, 0);
	p = nets_open(SW_ATTACH_TC);
	nets_attachment(p, "other0");
	nets_run(nets_guarded, "ip link del other0");
	assert_int_equal(sw_plane_changed(p), 1);
	sw_plane_close(p, 0);
	nets_assert_bare();
}

static void an_attachment_that_is_taken_away(void **state)
{
	struct sw_plane *p;
	int link;

	(void)state;
	if (sw_probe_tcx()) {
		p = nets_open(SW_ATTACH_TC);
		link = bpf_obj_get(nets_pin("link_tc_veth0"));
		assert_int_equal(bpf_link_detach(link), 0);
		close(link);
		assert_int_equal(sw_plane_changed(p), 1);
		sw_plane_close(p, 0);
	}
	nets_use_clsact();
	p = nets_open(SW_ATTACH_TC);
	assert_int_equal(sw_plane_changed(p), 0);
	nets_run(nets_guarded, "tc filter del dev veth0 ingress");
	assert_int_equal(sw_plane_changed(p), 1);
	sw_plane_close(p, 0);
	nets_assert_bare();
}

/* A container that is restarted: the same name, other insides. */
static void a_namespace_that_comes_back(void **state)
{
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	const char *name = strrchr(nets_guarded, '/') + 1;
	int tries = 0;

	(void)state;
	nets_run(NULL, "ip netns del %s", name);
	assert_true(sw_plane_changed(p) < 0);
	/* Nobody holds it, we neither: its interfaces go, and with them the peer. */
	while (!nets_try(nets_client, "ip link show veth1 >/dev/null 2>&1") && tries++ < 50)
		usleep(100000);
	assert_true(tries < 50);
	nets_run(NULL, "ip netns add %s", name);
	nets_run(nets_guarded, "ip link set lo up");
	assert_int_equal(sw_plane_changed(p), 1);
	sw_plane_close(p, 0);
	p = nets_open(SW_ATTACH_TC);
	assert_int_equal(sw_plane_changed(p), 0);
	sw_plane_close(p, 0);
	assert_int_not_equal(access(nets_root, F_OK), 0);
}

/* Inode numbers of namespaces that are gone are given away again. */
static void a_namespace_is_more_than_a_number(void **state)
{
	struct sw_netns_id id[2], again;
	const char *paths[] = {nets_guarded, nets_client};
	int former;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sw_netns_enter(paths[i], &former, NULL), 0);
		assert_int_equal(sw_netns_identify(&id[i]), 0);
		sw_netns_leave(former);
	}
	again = id[0];
	assert_true(sw_netns_same(&id[0], &again));
	assert_false(sw_netns_same(&id[0], &id[1]));
	again = id[1];
	again.ino = id[0].ino;
	assert_false(sw_netns_same(&id[0], &again));
}

/* A daemon was killed, then the container restarted, then the daemon. */
static void pins_of_an_earlier_life_go(void **state)
{
	const char *name = strrchr(nets_guarded, '/') + 1;
	char before[256];
	struct sw_plane *p = nets_open(SW_ATTACH_TC);

	(void)state;
	sw_plane_leave(p);
	snprintf(before, sizeof(before), "%s", nets_pin("ports"));
	assert_int_equal(access(before, F_OK), 0);
	nets_run(NULL, "ip netns add %s-new", name);
	nets_run(NULL, "umount %s && mount --bind %s-new %s && ip netns del %s-new", nets_guarded,
		 nets_guarded, nets_guarded, name);
	nets_run(nets_guarded, "ip link set lo up");
	p = nets_open(SW_ATTACH_TC);
	assert_string_not_equal(before, nets_pin("ports"));
	assert_int_not_equal(access(before, F_OK), 0);
	sw_plane_close(p, 0);
	assert_int_not_equal(access(nets_root, F_OK), 0);
}

static struct sw_levers levers(void)
{
	struct sw_levers l;
	uint32_t zero = 0;
	int fd = bpf_obj_get(nets_pin("levers"));

	assert_int_equal(bpf_map_lookup_elem(fd, &zero, &l), 0);
	close(fd);
	return l;
}

static bool is_local(const char *addr)
{
	struct sw_local key = {.addr = {[10] = 0xff, [11] = 0xff}};
	int fd = bpf_obj_get(nets_pin("local")), err;
	uint32_t value;

	inet_pton(AF_INET, addr, key.addr + 12);
	err = bpf_map_lookup_elem(fd, &key, &value);
	close(fd);
	return !err;
}

/* Sysctls, MTU and addresses of the namespace, not of where the daemon runs. */
static void the_namespace_s_own_settings(void **state)
{
	struct sw_plane *p;
	const char *why;

	(void)state;
	nets_run(nets_guarded, "sysctl -qw net.ipv4.tcp_timestamps=0 net.ipv4.tcp_ecn=1");
	nets_run(nets_guarded, "ip link set veth0 mtu 1400");
	p = nets_open(SW_ATTACH_TC);
	assert_int_equal(levers().tcp, SW_TCP_SACK | SW_TCP_WSCALE | SW_TCP_ECN);
	assert_int_equal(levers().mss4, 1360);
	assert_int_equal(levers().mss6, 1340);
	assert_true(is_local("192.0.2.1"));
	assert_false(is_local("192.0.2.7"));
	nets_run(nets_guarded, "sysctl -qw net.ipv4.tcp_timestamps=1 net.ipv4.tcp_ecn=0");
	nets_run(nets_guarded, "ip addr add 192.0.2.7/32 dev veth0");
	nets_run(nets_guarded, "ip addr del 192.0.2.1/24 dev veth0");
	assert_int_equal(sw_plane_changed(p), 0);
	assert_int_equal(levers().tcp, SW_TCP_SACK | SW_TCP_WSCALE | SW_TCP_TIMESTAMPS);
	assert_true(is_local("192.0.2.7"));
	assert_false(is_local("192.0.2.1"));

	assert_int_equal(sw_plane_can_hand_over(p, &why), sw_probe_hand_over());
	nets_run(nets_guarded, "sysctl -qw net.ipv4.tcp_syncookies=0");
	assert_int_equal(sw_plane_changed(p), 0);
	assert_false(sw_plane_can_hand_over(p, &why));
	if (sw_probe_hand_over())
		assert_non_null(strstr(why, "tcp_syncookies"));
	else
		assert_non_null(strstr(why, "6.9"));
	sw_plane_close(p, 0);
}

static void listen_on(const char *addr, uint16_t port, bool only6)
{
	bool v6 = strchr(addr, ':');
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	int former, fd, one = only6;

	assert_int_equal(sw_netns_enter(nets_guarded, &former, NULL), 0);
	fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
	sw_netns_leave(former);
	inet_pton(v6 ? AF_INET6 : AF_INET, addr, v6 ? (void *)&a6.sin6_addr : (void *)&a4.sin_addr);
	if (v6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	assert_int_equal(bind(fd, v6 ? (void *)&a6 : (void *)&a4, v6 ? sizeof(a6) : sizeof(a4)), 0);
	assert_int_equal(listen(fd, 1), 0);
	/* Left open: it goes with the test's process. */
}

static void a_server_is_seen(void **state)
{
	static const struct {
		const char *what, *addr; /* addr NULL: any */
		bool v4, v6;
		uint16_t port;
		bool want;
	} rows[] = {
		{"any on any4", NULL, true, true, 8000, true},
		{"any6 on any4", NULL, false, true, 8000, false},
		{"one address on any4", "192.0.2.1", true, false, 8000, true},
		{"one address on itself", "192.0.2.1", true, false, 8001, true},
		{"any on one address", NULL, true, true, 8001, true},
		{"another address", "127.0.0.1", true, false, 8001, false},
		{"any4 on [::]", NULL, true, false, 8002, true},
		{"one address on [::]", "192.0.2.1", true, false, 8002, true},
		{"any4 on [::] with IPV6_V6ONLY", NULL, true, false, 8003, false},
		{"any6 on [::] with IPV6_V6ONLY", NULL, false, true, 8003, true},
		{"nobody", NULL, true, true, 8004, false},
	};
	struct sw_plane *p = nets_open(SW_ATTACH_TC);

	(void)state;
	listen_on("0.0.0.0", 8000, false);
	listen_on("192.0.2.1", 8001, false);
	listen_on("::", 8002, false);
	listen_on("::", 8003, true);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sw_listener_conf l = {
			.v4 = rows[i].v4, .v6 = rows[i].v6, .port = rows[i].port};

		if (rows[i].addr) {
			l.addr[10] = l.addr[11] = 0xff;
			inet_pton(AF_INET, rows[i].addr, l.addr + 12);
		}
		if (sw_plane_has_server(p, &l) != rows[i].want)
			fail_msg("%s: not %d", rows[i].what, rows[i].want);
	}
	sw_plane_close(p, 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, nets_setup, nets_teardown)
	const struct CMUnitTest tests[] = {
		T(nothing_changed),
		T(interfaces_come_and_go),
		T(an_attachment_that_is_taken_away),
		T(a_namespace_that_comes_back),
		T(a_namespace_is_more_than_a_number),
		T(pins_of_an_earlier_life_go),
		T(the_namespace_s_own_settings),
		T(a_server_is_seen),
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
