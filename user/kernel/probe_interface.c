// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What one interface can do: native XDP is tried with an empty program, which is taken off again.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel/iface.h"
#include "kernel/link.h"
#include "kernel/probe.h"
#include "kernel/xdp.h"

struct text {
	char *out;
	size_t size, at;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (t->at < t->size)
		t->at += vsnprintf(t->out + t->at, t->size - t->at, fmt, ap);
	va_end(ap);
}

static void say_program(struct text *t, const char *hook, uint32_t id)
{
	struct bpf_prog_info info = {0};
	__u32 size = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd >= 0) {
		bpf_obj_get_info_by_fd(fd, &info, &size);
		close(fd);
	}
	say(t, "%s: program %s (id %u) is attached\n", hook, info.name[0] ? info.name : "?", id);
}

static void try_native(struct text *t, const struct sw_iface *iface)
{
	const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);
	int prog = bpf_prog_load(BPF_PROG_TYPE_XDP, "spillway_probe", "GPL", pass, 2, NULL), link;
	char why[128];

	if (prog < 0) {
		say(t, "native XDP: cannot be tried: %s\n", strerror(-prog));
		return;
	}
	link = bpf_link_create(prog, iface->index, SW_LINK_XDP, &opts);
	if (link < 0) {
		sw_xdp_ask_reason(iface->index, prog, XDP_FLAGS_DRV_MODE, -errno, why, sizeof(why));
		say(t, "native XDP: no: %s\n", why);
	} else {
		say(t, "native XDP: %s\n",
		    sw_xdp_transmits(iface) ? "yes" : "receives, but cannot transmit: TC is used");
		close(link);
	}
	close(prog);
}

int sw_probe_interface(const char *name, char *out, size_t size)
{
	struct text t = {.out = out, .size = size};
	__u32 ids[64], n = sizeof(ids) / sizeof(*ids), xdp;
	struct sw_iface iface;
	char driver[32];
	bool generic;
	int err = sw_iface_get(name, &iface);

	if (err)
		return err;
	sw_iface_driver(name, driver);
	say(&t, "driver %s, MTU %u, %s\n", driver, iface.mtu, iface.up ? "up" : "down");
	if (!iface.ethernet && !iface.loopback) {
		say(&t, "neither Ethernet nor loopback: cannot be guarded\n");
		return 0;
	}
	xdp = sw_xdp_program(iface.index, &generic);
	if (xdp)
		say_program(&t, generic ? "generic XDP" : "native XDP", xdp);
	else if (iface.loopback)
		say(&t, "native XDP: no, TC is used on loopback\n");
	else
		try_native(&t, &iface);
	if (!bpf_prog_query(iface.index, SW_LINK_TCX, 0, NULL, ids, &n))
		for (__u32 i = 0; i < n; i++)
			say_program(&t, "TCX ingress", ids[i]);
	return 0;
}
