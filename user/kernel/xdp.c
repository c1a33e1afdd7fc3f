// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attaching to XDP; see xdp.h. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel/bpflog.h"
#include "kernel/link.h"
#include "kernel/load.h"
#include "kernel/pins.h"
#include "kernel/xdp.h"

#define TRIAL_FRAMES 64	    /* enough to stand out of whatever else is sent meanwhile */
#define TRIAL_TYPE   0x88b5 /* IEEE: local experiments */

#ifndef BPF_F_TEST_XDP_LIVE_FRAMES
#define BPF_F_TEST_XDP_LIVE_FRAMES (1U << 1)
#endif

uint32_t sw_xdp_program(int ifindex, bool *generic)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);

	if (bpf_xdp_query(ifindex, 0, &opts))
		return 0;
	*generic = opts.attach_mode == XDP_ATTACHED_SKB;
	if (opts.prog_id)
		return opts.prog_id;
	return opts.drv_prog_id ? opts.drv_prog_id : opts.hw_prog_id;
}

void sw_xdp_ask_reason(int ifindex, int prog, uint32_t flags, int err, char *why, size_t size)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts);

	sw_bpflog_start();
	if (!bpf_xdp_attach(ifindex, prog, flags | XDP_FLAGS_UPDATE_IF_NOEXIST, &opts))
		bpf_xdp_detach(ifindex, flags, &opts);
	snprintf(why, size, "%s", *sw_bpflog_reason() ? sw_bpflog_reason() : strerror(-err));
}

int sw_xdp_attach(const struct sw_plane *p, const struct sw_iface *iface, enum sw_hook hook,
		  bool *is_new, char *why, size_t size)
{
	int prog = sw_program(p, hook), link;
	bool want_generic = hook == SW_HOOK_XDP_GENERIC, generic;
	char pin[256];
	struct sw_link_at at = {
		.pin = pin,
		.target = iface->index,
		.id = iface->index,
		.type = SW_LINK_XDP,
		.flags = want_generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE,
	};

	sw_pins_path(p, "link_xdp", iface->name, pin, sizeof(pin));
	/* A link stays in its mode: another one needs another link. */
	if (sw_xdp_program(iface->index, &generic) && generic != want_generic)
		sw_link_remove_pinned(pin);
	*is_new = false;
	link = sw_link_take_over(&at, prog);
	if (link >= 0)
		return link;
	*is_new = true;
	link = sw_link_make(&at, prog);
	if (link < 0)
		sw_xdp_ask_reason(iface->index, prog, at.flags, link, why, size);
	return link;
}

/* return bpf_redirect(ifindex, 0); */
static int load_sender(int ifindex)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = ifindex},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 0},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "spillway_trial", "GPL", code, 4, NULL);
}

bool sw_xdp_transmits(const struct sw_iface *iface)
{
	/* From and to ourselves: a switch learns nothing new and sends it nowhere. */
	struct {
		struct ethhdr eth;
		char rest[ETH_ZLEN - sizeof(struct ethhdr)];
	} frame = {.eth.h_proto = htons(TRIAL_TYPE)};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = &frame, .data_size_in = sizeof(frame),
		    .repeat = TRIAL_FRAMES, .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	const struct timespec pause = {.tv_nsec = 5000000};
	uint64_t before = sw_iface_sent(iface->name);
	int prog = load_sender(iface->index), tries = 0;
	bool sent = false;

	if (prog < 0)
		return false;
	memcpy(frame.eth.h_dest, iface->mac, ETH_ALEN);
	memcpy(frame.eth.h_source, iface->mac, ETH_ALEN);
	if (!bpf_prog_test_run_opts(prog, &opts))
		/* Drivers count when the frame has left, some later than others. */
		while (!(sent = sw_iface_sent(iface->name) - before >= TRIAL_FRAMES) &&
		       tries++ < 20)
			nanosleep(&pause, NULL);
	close(prog);
	return sent;
}
