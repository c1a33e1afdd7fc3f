// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The life of a plane: what it refuses to open, what it notices while it runs, how it ends. Needs
 * root; what it attaches is test_attach.c's matter. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "kernel/netns.h"
#include "kernel/probe.h"
#include "lib/nets.h"

static void assert_nothing_attached(void)
{
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 0);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 0);
	assert_int_not_equal(access(nets_root, F_OK), 0);
}

/* ---- what cannot be opened ---------------------------------------------------------------------
 */

static void bad_settings_give_one_clear_line(void **state)
{
	char nope[] = "nope0", tun[] = "tun0", *names[] = {nope}, *tuns[] = {tun};
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	struct sw_error err;

	(void)state;
	conf.interfaces = names;
	conf.n_interfaces = 1;
	assert_int_equal(nets_open_bad(&conf, &err), -ENODEV);
	assert_non_null(strstr(err.text, "nope0"));
	if (nets_try(nets_guarded, "ip tuntap add tun0 mode tun 2>/dev/null")) {
		printf("SKIP: no tun devices here\n");
	} else {
		conf.interfaces = tuns;
		assert_int_equal(nets_open_bad(&conf, &err), -EPFNOSUPPORT);
		assert_non_null(strstr(err.text, "tun0"));
	}
	conf = nets_conf(SW_ATTACH_TC);
	conf.netns = "/run/netns/spk-nowhere";
	assert_int_equal(nets_open_bad(&conf, &err), -ENOENT);
	assert_non_null(strstr(err.text, "spk-nowhere"));
	conf.netns = "/proc/self/status";
	assert_int_equal(nets_open_bad(&conf, &err), -EINVAL);
	conf.netns = "pid:x";
	assert_int_equal(nets_open_bad(&conf, &err), -EINVAL);
	conf = nets_conf(SW_ATTACH_TC);
	conf.pin_root = "/tmp/spk-pins";
	assert_int_equal(nets_open_bad(&conf, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "mount -t bpf"));
	assert_nothing_attached();
}

/* A second interface that cannot be had takes the first one down again. */
static void no_half_attached_state(void **state)
{
	char veth0[] = "veth0", other[] = "other0", *names[] = {veth0, other};
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_XDP);
	struct sw_error err;

	(void)state;
	nets_run(nets_client, "ethtool -K veth1 gro on");
	nets_run(nets_guarded, "ip link add other0 type veth");
	nets_run(nets_guarded, "ip link set other0 up");
	conf.interfaces = names;
	conf.n_interfaces = 2;
	assert_true(nets_open_bad(&conf, &err) < 0);
	assert_non_null(strstr(err.text, "other0"));
	assert_nothing_attached();
}

static void keep_caps(uint32_t low, uint32_t high)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{.effective = low, .permitted = low},
						 {.effective = high, .permitted = high}};

	if (syscall(SYS_capset, &head, data))
		_exit(9);
}

static void without_capabilities(void **state)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		struct sw_error err = {0};
		struct sw_plane *p;

		if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
			_exit(2);
		_exit(sw_plane_open(&p, &conf, &err) != -EPERM || !strstr(err.text, "CAP_BPF"));
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_nothing_attached();
}

/* What a child with only the capabilities that are named comes to. */
static int live_with_few_caps(void)
{
	struct sw_plane_conf conf = {.pin_root = nets_root};
	bool enough = sw_probe_hand_over(); /* before 6.9 CAP_SYS_ADMIN is needed too */
	struct sw_error err = {0};
	struct sw_plane *p;
	int ret;

	keep_caps(1U << CAP_NET_ADMIN, 1U << (CAP_BPF - 32) | 1U << (CAP_PERFMON - 32));
	ret = sw_plane_open(&p, &conf, &err);
	if (!enough)
		return ret == -EPERM && strstr(err.text, "CAP_SYS_ADMIN") ? 0 : 1;
	if (ret) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	sw_plane_leave(p);
	if (sw_plane_open(&p, &conf, NULL))
		return 2;
	if (sw_plane_changed(p))
		return 3;
	sw_plane_close(p, 0);
	return access(nets_root, F_OK) ? 0 : 4;
}

/* As a service has them; entering a namespace would take CAP_SYS_ADMIN. */
static void with_no_more_capabilities_than_needed(void **state)
{
	(void)state;
	nets_run(NULL, "ip link set lo up");
	for (int clsact = 0; clsact < 2; clsact++) {
		int status;
		pid_t pid;

		if (clsact)
			setenv("SPILLWAY_NO_TCX", "1", 1);
		pid = fork();
		if (!pid)
			_exit(live_with_few_caps());
		waitpid(pid, &status, 0);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_int_equal(nets_tcx(NULL, "lo").n, 0);
		assert_int_not_equal(nets_try(NULL, "tc qdisc show dev lo | grep -q clsact"), 0);
	}
}

/* ---- what it notices ---------------------------------------------------------------------------
 */

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
	assert_nothing_attached();
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
	setenv("SPILLWAY_NO_TCX", "1", 1);
	p = nets_open(SW_ATTACH_TC);
	assert_int_equal(sw_plane_changed(p), 0);
	nets_run(nets_guarded, "tc filter del dev veth0 ingress");
	assert_int_equal(sw_plane_changed(p), 1);
	sw_plane_close(p, 0);
	assert_nothing_attached();
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

/* ---- while it runs ------------------------------------------------------------------------------
 */

static void configure(struct sw_plane *p, size_t n_pools)
{
	struct sw_pool_conf *pools = calloc(n_pools, sizeof(*pools));
	struct sw_listener_conf *listeners = calloc(n_pools, sizeof(*listeners));
	struct sw_config c = {
		.pools = pools, .n_pools = n_pools, .listeners = listeners, .n_listeners = n_pools};
	struct sw_error err = {0};

	for (size_t i = 0; i < n_pools; i++) {
		pools[i].answer = (struct sw_answer_spec){
			.status = 500 + i, .drain_status = 503, .max_bytes = SW_ANSWER_DEFAULT};
		listeners[i] = (struct sw_listener_conf){
			.v4 = true, .port = 8000 + i, .pool = i, .netns = nets_guarded};
	}
	if (sw_plane_configure(p, &c, &err))
		fail_msg("%s", err.text);
	free(pools);
	free(listeners);
}

static struct sw_listener listener(uint32_t id)
{
	struct sw_listener l;
	int fd = bpf_obj_get(nets_pin("listeners"));

	assert_int_equal(bpf_map_lookup_elem(fd, &id, &l), 0);
	close(fd);
	return l;
}

static struct sw_answer answer(uint32_t set)
{
	uint32_t index = SW_ANSWER_INDEX(set, 0, 0, 0);
	struct sw_answer a;
	int fd = bpf_obj_get(nets_pin("answers"));

	assert_int_equal(bpf_map_lookup_elem(fd, &index, &a), 0);
	close(fd);
	return a;
}

/* More pools than there was room for: larger map, new programs, in place. */
static void answers_grow(void **state)
{
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	struct nets_programs before = nets_tcx(nets_guarded, "veth0");
	unsigned first;

	(void)state;
	configure(p, 4);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").id, before.id);
	first = listener(1).answers;
	configure(p, 9);
	if (sw_probe_tcx()) {
		assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 1);
		assert_int_not_equal(nets_tcx(nets_guarded, "veth0").id, before.id);
	}
	assert_memory_equal(answer(listener(9).answers).bytes, "HTTP/1.1 508", 12);
	/* What was there was moved, not made anew. */
	assert_int_equal(listener(1).answers, first);
	assert_memory_equal(answer(first).bytes, "HTTP/1.1 500", 12);
	assert_int_equal(sw_plane_changed(p), 0);
	/* A new daemon keeps the larger map. */
	sw_plane_leave(p);
	p = nets_open(SW_ATTACH_TC);
	before = nets_tcx(nets_guarded, "veth0");
	configure(p, 9);
	assert_int_equal(nets_tcx(nets_guarded, "veth0").id, before.id);
	sw_plane_close(p, 0);
	assert_nothing_attached();
}

static void send_datagrams(const char *addr, int n)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	int former, fd;

	inet_pton(AF_INET, addr, &to.sin_addr);
	assert_int_equal(sw_netns_enter(nets_client, &former, NULL), 0);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	sw_netns_leave(former);
	while (n--)
		assert_int_equal(sendto(fd, "x", 1, 0, (void *)&to, sizeof(to)), 1);
	close(fd);
	usleep(100000);
}

static void packets_are_counted_over_all_cpus(void **state)
{
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	struct sw_counts tc, xdp;
	struct sw_counts *each = calloc(libbpf_num_possible_cpus(), sizeof(*each));
	uint32_t id = 5;
	int fd = bpf_obj_get(nets_pin("counts_tc"));

	(void)state;
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		each[cpu].syn_ack = 100 + cpu;
	assert_int_equal(bpf_map_update_elem(fd, &id, each, BPF_ANY), 0);
	assert_int_equal(sw_plane_counts(p, 5, &xdp, &tc, NULL), 0);
	assert_int_equal(xdp.syn_ack, 0);
	assert_int_equal(tc.syn_ack,
			 libbpf_num_possible_cpus() * 100 +
				 libbpf_num_possible_cpus() * (libbpf_num_possible_cpus() - 1) / 2);
	assert_int_equal(sw_plane_counts(p, 5, NULL, NULL, NULL), 0);
	assert_true(sw_plane_counts(p, SW_MAX_LISTENERS, NULL, &tc, NULL) < 0);
	close(fd);
	free(each);
	/* And for real: what comes in is counted. */
	send_datagrams("192.0.2.1", 3);
	assert_int_equal(sw_plane_counts(p, 0, NULL, &tc, NULL), 0);
	assert_true(tc.pass_other >= 3);
	sw_plane_close(p, 0);
}

static struct sw_secrets secrets(void)
{
	struct sw_secrets s;
	uint32_t zero = 0;
	int fd = bpf_obj_get(nets_pin("secrets"));

	assert_int_equal(bpf_map_lookup_elem(fd, &zero, &s), 0);
	close(fd);
	return s;
}

static void the_previous_key_is_kept(void **state)
{
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	struct sw_secrets first = secrets(), second;
	uint64_t now = sw_now_ns();

	(void)state;
	assert_int_equal(sw_plane_rotate_key(p), 0);
	second = secrets();
	assert_memory_equal(second.key[1], first.key[0], 16);
	assert_memory_not_equal(second.key[0], first.key[0], 16);
	assert_true(second.previous_until_ns >= now + SW_LIFETIME_NS);
	assert_true(second.previous_until_ns < now + SW_LIFETIME_NS + 1000000000);
	sw_plane_close(p, 0);
}

static void two_planes_at_once(void **state)
{
	struct sw_plane_conf here = {.pin_root = nets_root, .attach = SW_ATTACH_TC};
	struct sw_plane *a = nets_open(SW_ATTACH_TC), *b;
	struct sw_error err = {0};
	char host[128];

	(void)state;
	nets_run(NULL, "ip link set lo up");
	if (sw_plane_open(&b, &here, &err))
		fail_msg("%s", err.text);
	snprintf(host, sizeof(host), "%s/v%d/host/ports", nets_root, SW_LAYOUT);
	assert_int_equal(access(host, F_OK), 0);
	sw_plane_close(a, 0);
	assert_int_equal(access(host, F_OK), 0);
	assert_int_equal(sw_plane_changed(b), 0);
	sw_plane_close(b, 0);
	assert_nothing_attached();
}

/* ---- the end ------------------------------------------------------------------------------------
 */

static uint64_t close_ms(struct sw_plane *p, unsigned linger_ms)
{
	uint64_t start = sw_now_ms();

	sw_plane_close(p, linger_ms);
	return sw_now_ms() - start;
}

/* How long closing takes by itself depends on the host; it is measured first. */
static void closing_waits_for_conversations(void **state)
{
	uint64_t bare, quiet, busy;
	struct sw_plane *p = nets_open(SW_ATTACH_TC);
	int fd, status;
	pid_t pid;

	(void)state;
	configure(p, 1);
	sw_plane_set_pool(p, 0, SW_MODE_OPEN, 0, false, 0);
	bare = close_ms(p, 3000);

	p = nets_open(SW_ATTACH_TC);
	configure(p, 1);
	sw_plane_set_pool(p, 0, SW_MODE_SHED, 0, false, sw_now_ns() + 2000000000);
	quiet = close_ms(p, 3000);
	assert_true(quiet >= 200);
	assert_true(quiet < bare + 1500);

	/* Somebody who goes on sending; told apart from quiet by the mode it finds. */
	p = nets_open(SW_ATTACH_TC);
	configure(p, 1);
	sw_plane_set_pool(p, 0, SW_MODE_SHED, 0, false, sw_now_ns() + 2000000000);
	fd = bpf_obj_get(nets_pin("counts_tc"));
	pid = fork();
	if (!pid) {
		struct sw_counts *each = calloc(libbpf_num_possible_cpus(), sizeof(*each));
		uint32_t id = 1;

		for (;; usleep(20000)) {
			each[0].drain_data++;
			bpf_map_update_elem(fd, &id, each, BPF_ANY);
		}
	}
	busy = close_ms(p, 3000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(fd);
	assert_true(busy >= 3000);
	assert_nothing_attached();
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, nets_setup, nets_teardown)
	const struct CMUnitTest tests[] = {
		T(bad_settings_give_one_clear_line),
		T(no_half_attached_state),
		T(without_capabilities),
		T(with_no_more_capabilities_than_needed),
		T(nothing_changed),
		T(interfaces_come_and_go),
		T(an_attachment_that_is_taken_away),
		T(a_namespace_that_comes_back),
		T(a_namespace_is_more_than_a_number),
		T(pins_of_an_earlier_life_go),
		T(the_namespace_s_own_settings),
		T(a_server_is_seen),
		T(answers_grow),
		T(packets_are_counted_over_all_cpus),
		T(the_previous_key_is_kept),
		T(two_planes_at_once),
		T(closing_waits_for_conversations),
	};
	const char *why = nets_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
