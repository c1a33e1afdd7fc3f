// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Features by trying; see probe.h. Nothing stays loaded or attached. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "kernel/bpflog.h"
#include "kernel/idle.h"
#include "kernel/iface.h"
#include "kernel/link.h"
#include "kernel/probe.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"

/* ---- tiny programs -------------------------------------------------------------------------- */

#define MOV_IMM(d, i)	   {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (d), .imm = (i)}
#define MOV_REG(d, s)	   {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (d), .src_reg = (s)}
#define ADD_IMM(d, i)	   {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (d), .imm = (i)}
#define STORE_ZERO(o)	   {.code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = (o)}
#define CALL(f)		   {.code = BPF_JMP | BPF_CALL, .imm = (f)}
#define CALL_KERNEL(id)	   {.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_KFUNC_CALL, .imm = (id)}
#define SKIP_IF_ZERO(r, n) {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = (r), .off = (n)}
#define LOAD_MAP(d, fd)                                                                            \
	{.code = BPF_LD | BPF_DW | BPF_IMM,                                                        \
	 .dst_reg = (d),                                                                           \
	 .src_reg = BPF_PSEUDO_MAP_FD,                                                             \
	 .imm = (fd)},                                                                             \
	{                                                                                          \
	}
#define RETURN	  {.code = BPF_JMP | BPF_EXIT}
#define LENGTH(a) (sizeof(a) / sizeof(*(a)))

static int load_insns(enum bpf_prog_type type, const struct bpf_insn *code, size_t n)
{
	return bpf_prog_load(type, "spillway_probe", "GPL", code, n, NULL);
}

/* A program that lets everything pass. */
static int load_empty(enum bpf_prog_type type, int verdict)
{
	const struct bpf_insn code[] = {MOV_IMM(BPF_REG_0, verdict), RETURN};

	return load_insns(type, code, LENGTH(code));
}

bool sw_probe_hand_over(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "bpf_sk_assign_tcp_reqsk", BTF_KIND_FUNC) : -1;
	/* sk = bpf_sk_lookup_tcp(skb, {0}, 12, BPF_F_CURRENT_NETNS, 0);
	 * if (sk) { bpf_sk_assign_tcp_reqsk(skb, sk, {0}, 20); bpf_sk_release(sk); } */
	const struct bpf_insn code[] = {
		STORE_ZERO(-8),
		STORE_ZERO(-16),
		STORE_ZERO(-24),
		MOV_REG(BPF_REG_6, BPF_REG_1),
		MOV_REG(BPF_REG_2, BPF_REG_10),
		ADD_IMM(BPF_REG_2, -24),
		MOV_IMM(BPF_REG_3, 12),
		MOV_IMM(BPF_REG_4, -1),
		MOV_IMM(BPF_REG_5, 0),
		CALL(BPF_FUNC_sk_lookup_tcp),
		SKIP_IF_ZERO(BPF_REG_0, 9),
		MOV_REG(BPF_REG_7, BPF_REG_0),
		MOV_REG(BPF_REG_1, BPF_REG_6),
		MOV_REG(BPF_REG_2, BPF_REG_7),
		MOV_REG(BPF_REG_3, BPF_REG_10),
		ADD_IMM(BPF_REG_3, -24),
		MOV_IMM(BPF_REG_4, 20),
		CALL_KERNEL(id),
		MOV_REG(BPF_REG_1, BPF_REG_7),
		CALL(BPF_FUNC_sk_release),
		MOV_IMM(BPF_REG_0, 0),
		RETURN,
	};
	int prog = id > 0 ? load_insns(BPF_PROG_TYPE_SCHED_CLS, code, LENGTH(code)) : -1;

	btf__free(btf);
	if (prog >= 0)
		close(prog);
	return prog >= 0;
}

bool sw_probe_note_socket(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_SOCKMAP, "spillway_probe", 4, 8, 1, NULL), prog;
	/* sk = bpf_map_lookup_elem(map, {0});
	 * if (sk) { bpf_map_update_elem(map, {0}, sk, 0); bpf_sk_release(sk); } */
	const struct bpf_insn code[] = {
		STORE_ZERO(-8),
		LOAD_MAP(BPF_REG_1, map),
		MOV_REG(BPF_REG_2, BPF_REG_10),
		ADD_IMM(BPF_REG_2, -8),
		CALL(BPF_FUNC_map_lookup_elem),
		SKIP_IF_ZERO(BPF_REG_0, 10),
		MOV_REG(BPF_REG_7, BPF_REG_0),
		LOAD_MAP(BPF_REG_1, map),
		MOV_REG(BPF_REG_2, BPF_REG_10),
		ADD_IMM(BPF_REG_2, -8),
		MOV_REG(BPF_REG_3, BPF_REG_7),
		MOV_IMM(BPF_REG_4, 0),
		CALL(BPF_FUNC_map_update_elem),
		MOV_REG(BPF_REG_1, BPF_REG_7),
		CALL(BPF_FUNC_sk_release),
		MOV_IMM(BPF_REG_0, 0),
		RETURN,
	};

	if (map < 0)
		return false;
	prog = load_insns(BPF_PROG_TYPE_SCHED_CLS, code, LENGTH(code));
	close(map);
	if (prog >= 0)
		close(prog);
	return prog >= 0;
}

/* May a program walk these? `walk` is what the kernel calls for each of them. */
static bool may_walk(const struct btf *btf, const char *walk)
{
	static const struct bpf_insn code[] = {MOV_IMM(BPF_REG_0, 0), RETURN};
	int id = btf__find_by_name_kind(btf, walk, BTF_KIND_FUNC), prog = -1;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_ITER,
		    .attach_btf_id = id > 0 ? (__u32)id : 0);

	if (id > 0)
		prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "spillway_probe", "GPL", code,
				     LENGTH(code), &opts);
	if (prog >= 0)
		close(prog);
	return prog >= 0;
}

/* The walk has held another lock since it may destroy sockets. */
bool sw_probe_note_socket_in_walk(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool can = btf && btf__find_by_name_kind(btf, "bpf_sock_destroy", BTF_KIND_FUNC) > 0 &&
		   may_walk(btf, "bpf_iter_tcp");

	btf__free(btf);
	return can;
}

/* It came with the state that elements of storage got so that they can be unlinked without locks;
 * nothing that can be seen from here came with a repair. */
bool sw_probe_storage_walk(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "bpf_local_storage_elem", BTF_KIND_STRUCT) : -1;
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	bool can = t && may_walk(btf, "bpf_iter_bpf_sk_storage_map");

	for (int i = 0; can && i < btf_vlen(t); i++)
		can = strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), "state") != 0;
	btf__free(btf);
	return can;
}

bool sw_probe_xdp_store(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_xdp_store_bytes, NULL) == 1;
}

/* With what error does the kernel refuse to attach there? 0: it did not refuse. */
static int try_link(enum bpf_prog_type type, int ifindex, int attach_type, uint32_t flags)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = flags);
	int prog = load_empty(type, type == BPF_PROG_TYPE_XDP ? XDP_PASS : -1), link, err;

	if (prog < 0)
		return prog;
	link = bpf_link_create(prog, ifindex, attach_type, &opts);
	err = link < 0 ? -errno : 0;
	if (link >= 0)
		close(link);
	close(prog);
	return err;
}

bool sw_probe_tcx(void)
{
	/* A kernel that knows TCX looks for the interface first. */
	return !getenv("SPILLWAY_NO_TCX") &&
	       try_link(BPF_PROG_TYPE_SCHED_CLS, INT_MAX, SW_LINK_TCX, 0) == -ENODEV;
}

static bool probe_xdp_link(void)
{
	/* No loopback does native XDP, but a kernel without XDP links does not get as far. */
	return try_link(BPF_PROG_TYPE_XDP, if_nametoindex("lo"), SW_LINK_XDP, XDP_FLAGS_DRV_MODE) !=
	       -EINVAL;
}

/* ---- the system ----------------------------------------------------------------------------- */

static uint64_t effective_caps(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &head, data))
		return 0;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

static bool has_cap(int cap)
{
	return effective_caps() >> cap & 1;
}

bool sw_probe_caps(void)
{
	if (!has_cap(CAP_NET_ADMIN))
		return false;
	if (has_cap(CAP_SYS_ADMIN))
		return true;
	/* Where the kernel itself lacks the function for the hand-over, libbpf looks for it in all
	 * modules, and only CAP_SYS_ADMIN may list those. */
	return has_cap(CAP_BPF) && has_cap(CAP_PERFMON) && sw_probe_hand_over();
}

static void say_caps(char *detail, size_t size)
{
	static const struct {
		int cap;
		const char *name;
	} needed[] = {{CAP_NET_ADMIN, " CAP_NET_ADMIN"},
		      {CAP_BPF, " CAP_BPF"},
		      {CAP_PERFMON, " CAP_PERFMON"}};
	bool present = sw_probe_caps(), named = false;
	size_t at = snprintf(detail, size, present ? "present" : "missing:");

	for (size_t i = 0; !present && i < LENGTH(needed); i++)
		if (!has_cap(needed[i].cap)) {
			at += snprintf(detail + at, size - at, "%s", needed[i].name);
			named = true;
		}
	if (!present && !named)
		snprintf(detail + at, size - at, " CAP_SYS_ADMIN (before kernel 6.9)");
}

bool sw_probe_bpffs(const char *path)
{
	char part[PATH_MAX];
	struct statfs fs;
	char *slash;

	snprintf(part, sizeof(part), "%s", path);
	while (access(part, F_OK) && (slash = strrchr(part, '/')) && slash != part)
		*slash = 0;
	return !statfs(part, &fs) && fs.f_type == BPF_FS_MAGIC;
}

static bool probe_cgroup2(char *detail, size_t size)
{
	FILE *mounts = fopen("/proc/self/mounts", "re");
	char line[1024], path[128] = "", type[32];

	while (mounts && fgets(line, sizeof(line), mounts)) {
		if (sscanf(line, "%*s %127s %31s", path, type) == 2 && !strcmp(type, "cgroup2"))
			break;
		path[0] = 0;
	}
	if (mounts)
		fclose(mounts);
	snprintf(detail, size, "%s", path[0] ? path : "not mounted");
	return path[0];
}

static bool probe_syncookies(char *detail, size_t size)
{
	long value = sw_sysctl_ipv4("tcp_syncookies", -1);

	snprintf(detail, size,
		 value < 0 ? "net.ipv4.tcp_syncookies cannot be read"
			   : "net.ipv4.tcp_syncookies = %ld",
		 value);
	return value > 0;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static const struct {
	const char *name, *cost;
} features[SW_FEATURES] = {
	[SW_FEAT_CAPS] = {"capabilities", "nothing can be loaded: run as root"},
	[SW_FEAT_BTF] = {"kernel BTF", "nothing can be loaded: CONFIG_DEBUG_INFO_BTF=y"},
	[SW_FEAT_BPFFS] = {"bpf file system", "nothing can be pinned"},
	[SW_FEAT_XDP_STORE] = {"bpf_xdp_store_bytes",
			       "no XDP: TC does all the work, at about twice "
			       "the cost a packet"},
	[SW_FEAT_HAND_OVER] = {"bpf_sk_assign_tcp_reqsk",
			       "no hand-over: listeners with paths that must pass are not closed"},
	[SW_FEAT_SYNCOOKIES] = {"SYN cookies", "no hand-over: sysctl net.ipv4.tcp_syncookies=1"},
	[SW_FEAT_TCX] = {"TCX", "a filter under a clsact qdisc is used, which others may replace"},
	[SW_FEAT_XDP_LINK] = {"XDP links", "no XDP: TC does all the work"},
	[SW_FEAT_CGROUP2] = {"cgroup v2", "upstream connections cannot be steered"},
	[SW_FEAT_WALK] = {"socket storage walk",
			  "no recount: a wrong count of connections is not put right"},
	[SW_FEAT_DESTROY] = {"bpf_sock_destroy",
			     "no pooled_upstreams: close_idle, idle connections stay"},
};

void sw_probe_all(struct sw_probe out[SW_FEATURES], const char *bpffs)
{
	bool present[SW_FEATURES] = {0};

	sw_bpflog_start();
	for (int i = 0; i < SW_FEATURES; i++)
		out[i] = (struct sw_probe){
			.feature = i, .name = features[i].name, .cost = features[i].cost};
	present[SW_FEAT_CAPS] = sw_probe_caps();
	present[SW_FEAT_BTF] = !access(BTF_PATH, R_OK);
	present[SW_FEAT_BPFFS] = sw_probe_bpffs(bpffs);
	present[SW_FEAT_XDP_STORE] = sw_probe_xdp_store();
	present[SW_FEAT_HAND_OVER] = sw_probe_hand_over();
	present[SW_FEAT_SYNCOOKIES] = probe_syncookies(out[SW_FEAT_SYNCOOKIES].detail, 160);
	present[SW_FEAT_TCX] = sw_probe_tcx();
	present[SW_FEAT_XDP_LINK] = probe_xdp_link();
	present[SW_FEAT_CGROUP2] = probe_cgroup2(out[SW_FEAT_CGROUP2].detail, 160);
	present[SW_FEAT_WALK] = sw_probe_storage_walk();
	present[SW_FEAT_DESTROY] = sw_idle_supported();
	say_caps(out[SW_FEAT_CAPS].detail, 160);
	snprintf(out[SW_FEAT_BTF].detail, 160, "%s", BTF_PATH);
	snprintf(out[SW_FEAT_BPFFS].detail, 160,
		 present[SW_FEAT_BPFFS] ? "%s" : "none at %s: mount -t bpf bpf /sys/fs/bpf", bpffs);
	for (int i = 0; i < SW_FEATURES; i++) {
		out[i].present = present[i];
		if (!out[i].detail[0])
			snprintf(out[i].detail, 160, "%s",
				 present[i] ? "tried, works" : "tried, refused");
	}
}
