// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Namespaces for tests of planes; see nets.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/netns.h"
#include "kernel/probe.h"
#include "nets.h"

char nets_guarded[64], nets_client[64], nets_root[64];

const char *nets_impossible(void)
{
	static bool unshared;

	if (!sw_probe_caps())
		return "loading BPF programs needs root";
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return "the kernel has no BTF";
	if (!unshared && unshare(CLONE_NEWNET))
		return "network namespaces cannot be made here";
	unshared = true;
	snprintf(nets_guarded, sizeof(nets_guarded), "/run/netns/spk-a-%d", getpid());
	snprintf(nets_client, sizeof(nets_client), "/run/netns/spk-b-%d", getpid());
	snprintf(nets_root, sizeof(nets_root), "/sys/fs/bpf/spk-test-%d", getpid());
	return NULL;
}

static int run(const char *netns, const char *fmt, va_list ap)
{
	char command[1024], line[128];
	int status;

	vsnprintf(command, sizeof(command), fmt, ap);
	setenv("NETS_COMMAND", command, 1);
	snprintf(line, sizeof(line), "exec nsenter --net=%s sh -c \"$NETS_COMMAND\"", netns);
	status = system(netns ? line : command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int nets_try(const char *netns, const char *fmt, ...)
{
	va_list ap;
	int status;

	va_start(ap, fmt);
	status = run(netns, fmt, ap);
	va_end(ap);
	return status;
}

void nets_run(const char *netns, const char *fmt, ...)
{
	va_list ap;
	int status;

	va_start(ap, fmt);
	status = run(netns, fmt, ap);
	va_end(ap);
	if (status)
		fail_msg("%s: exit status %d", fmt, status);
}

static const char *name_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

int nets_setup(void **state)
{
	(void)state;
	unsetenv("SPILLWAY_NO_TCX");
	sw_log_level(SW_ERROR);
	nets_run(NULL, "ip netns add %s", name_of(nets_guarded));
	nets_run(NULL, "ip netns add %s", name_of(nets_client));
	nets_run(NULL, "ip link add veth0 netns %s type veth peer name veth1 netns %s",
		 name_of(nets_guarded), name_of(nets_client));
	nets_run(nets_guarded, "ip link set lo up");
	nets_run(nets_guarded, "ip link set veth0 up");
	nets_run(nets_guarded, "ip addr add 192.0.2.1/24 dev veth0");
	nets_run(nets_client, "ip link set veth1 up");
	nets_run(nets_client, "ip addr add 192.0.2.2/24 dev veth1");
	return 0;
}

int nets_teardown(void **state)
{
	(void)state;
	nets_try(NULL, "ip netns del %s 2>/dev/null", name_of(nets_guarded));
	nets_try(NULL, "ip netns del %s 2>/dev/null", name_of(nets_client));
	if (!access(nets_root, F_OK))
		nets_try(NULL, "rm -rf %s", nets_root);
	return 0;
}

void nets_peer_gro(void)
{
	nets_run(nets_client, "ethtool -K veth1 gro on");
}

bool nets_has_tcx(void)
{
	if (sw_probe_tcx())
		return true;
	printf("SKIP: the kernel has no TCX\n");
	return false;
}

void nets_use_clsact(void)
{
	setenv("SPILLWAY_NO_TCX", "1", 1);
}

struct sw_plane_conf nets_conf(enum sw_attach attach)
{
	return (struct sw_plane_conf){
		.netns = nets_guarded, .pin_root = nets_root, .attach = attach};
}

struct sw_plane *nets_open(enum sw_attach attach)
{
	struct sw_plane_conf conf = nets_conf(attach);
	struct sw_error err = {0};
	struct sw_plane *p = NULL;

	if (sw_plane_open(&p, &conf, &err))
		fail_msg("%s", err.text);
	return p;
}

int nets_open_bad(const struct sw_plane_conf *conf, struct sw_error *err)
{
	struct sw_plane *p = NULL;
	int ret;

	err->text[0] = 0;
	ret = sw_plane_open(&p, conf, err);
	assert_true(ret < 0);
	assert_null(p);
	assert_null(strchr(err->text, '\n'));
	assert_true(err->text[0]);
	return ret;
}

const struct sw_attachment *nets_attachment(struct sw_plane *p, const char *interface)
{
	const struct sw_attachment *at;
	size_t n = sw_plane_attachments(p, &at);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(at[i].interface, interface))
			return &at[i];
	fail_msg("%s is not guarded", interface);
	return NULL;
}

static int enter(const char *netns, const char *interface, int *ifindex)
{
	int former;

	assert_int_equal(sw_netns_enter(netns, &former, NULL), 0);
	*ifindex = if_nametoindex(interface);
	return former;
}

struct nets_programs nets_tcx(const char *netns, const char *interface)
{
	struct nets_programs out = {0};
	uint32_t ids[16], n = 16;
	int ifindex, former = enter(netns, interface, &ifindex);

	if (!bpf_prog_query(ifindex, TCX_INGRESS, 0, NULL, ids, &n) && n)
		out = (struct nets_programs){.n = n, .id = ids[n - 1]};
	sw_netns_leave(former);
	return out;
}

struct nets_programs nets_xdp(const char *netns, const char *interface)
{
	struct nets_programs out = {0};
	int ifindex, former = enter(netns, interface, &ifindex);

	bpf_xdp_query_id(ifindex, 0, &out.id);
	out.n = out.id != 0;
	sw_netns_leave(former);
	return out;
}

bool nets_filter(const char *pattern)
{
	return !nets_try(nets_guarded, "tc filter show dev veth0 ingress | grep -q '%s'", pattern);
}

bool nets_clsact(void)
{
	return !nets_try(nets_guarded, "tc qdisc show dev veth0 | grep -q clsact");
}

void nets_assert_bare(void)
{
	assert_int_equal(nets_tcx(nets_guarded, "veth0").n, 0);
	assert_int_equal(nets_tcx(nets_guarded, "lo").n, 0);
	assert_int_equal(nets_xdp(nets_guarded, "veth0").n, 0);
	assert_false(nets_filter(""));
	assert_int_not_equal(access(nets_root, F_OK), 0);
}

void nets_stranger_filter(const char *interface, bool egress, uint32_t number)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = number, .priority = number,
		    .prog_fd = nets_stranger(false));
	int former = enter(nets_guarded, interface, &hook.ifindex);

	bpf_tc_hook_create(&hook);
	hook.attach_point = egress ? BPF_TC_EGRESS : BPF_TC_INGRESS;
	assert_int_equal(bpf_tc_attach(&hook, &opts), 0);
	sw_netns_leave(former);
	close(opts.prog_fd);
}

int nets_stranger(bool xdp)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = xdp ? XDP_PASS : -1},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(xdp ? BPF_PROG_TYPE_XDP : BPF_PROG_TYPE_SCHED_CLS, "stranger", "GPL",
			       code, 2, NULL);

	assert_true(fd >= 0);
	return fd;
}

const char *nets_pin(const char *name)
{
	static char path[256];
	struct stat st;

	assert_int_equal(stat(nets_guarded, &st), 0);
	snprintf(path, sizeof(path), "%s/v%d/netns-%lu/%s", nets_root, SW_LAYOUT,
		 (unsigned long)st.st_ino, name);
	return path;
}

struct sw_secrets nets_secrets(void)
{
	struct sw_secrets s;
	uint32_t zero = 0;
	int fd = bpf_obj_get(nets_pin("secrets"));

	assert_int_equal(bpf_map_lookup_elem(fd, &zero, &s), 0);
	close(fd);
	return s;
}
