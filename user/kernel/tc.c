// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attaching to TC ingress; see tc.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel/link.h"
#include "kernel/load.h"
#include "kernel/netlink.h"
#include "kernel/pins.h"
#include "kernel/tc.h"

/* Ours by these two numbers: before filters whose priority the kernel chose (from 49152 down). */
#define PRIORITY 529
#define HANDLE	 529
#define PROGRAM	 "spillway_tc"

enum owner { NOBODY, WE, ANOTHER };

static struct bpf_tc_hook ingress(int ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);

	return hook;
}

/* ---- what is there ----------------------------------------------------------------------------
 */

struct filters {
	enum owner owner; /* of the place that is ours */
	unsigned n;	  /* in all places */
};

/* A filter of ours, by the name that the kernel keeps with it: reading programs by their ids would
 * take CAP_SYS_ADMIN. */
static bool is_ours(const struct nlmsghdr *nh)
{
	const struct tcmsg *tc = NLMSG_DATA(nh);
	const struct rtattr *a =
		sw_netlink_attr(TCA_RTA(tc), NLMSG_PAYLOAD(nh, sizeof(*tc)), TCA_OPTIONS);

	if (a)
		a = sw_netlink_attr(RTA_DATA(a), RTA_PAYLOAD(a), TCA_BPF_NAME);
	return a && RTA_PAYLOAD(a) > strlen(PROGRAM) &&
	       !memcmp(RTA_DATA(a), PROGRAM, strlen(PROGRAM));
}

static int take_filter(const struct nlmsghdr *nh, void *arg)
{
	const struct tcmsg *tc = NLMSG_DATA(nh);
	struct filters *f = arg;

	f->n++;
	if (TC_H_MAJ(tc->tcm_info) >> 16 == PRIORITY && tc->tcm_handle == HANDLE)
		f->owner = is_ours(nh) ? WE : ANOTHER;
	return 0;
}

static int look(int ifindex, uint32_t direction, struct filters *f)
{
	struct tcmsg tc = {.tcm_ifindex = ifindex, .tcm_parent = TC_H_MAKE(TC_H_CLSACT, direction)};

	*f = (struct filters){0};
	return sw_netlink_dump(NETLINK_ROUTE, RTM_GETTFILTER, &tc, sizeof(tc), take_filter, f);
}

static enum owner filter_owner(int ifindex)
{
	struct filters f;

	return look(ifindex, TC_H_MIN_INGRESS, &f) ? NOBODY : f.owner;
}

/* A question that fails is answered with no. */
static bool is_unused(int ifindex)
{
	struct filters in, out;

	return !look(ifindex, TC_H_MIN_INGRESS, &in) && !look(ifindex, TC_H_MIN_EGRESS, &out) &&
	       !in.n && !out.n;
}

bool sw_tc_filter_present(int ifindex)
{
	return filter_owner(ifindex) == WE;
}

static int attach_filter(const struct sw_plane *p, const struct sw_iface *iface,
			 struct sw_hold *hold)
{
	struct bpf_tc_hook hook = ingress(iface->index);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = PRIORITY,
		    .prog_fd = sw_program(p, SW_HOOK_CLSACT), .flags = BPF_TC_F_REPLACE);
	enum owner owner = filter_owner(iface->index);
	char mark[256];
	int err;

	if (owner == ANOTHER)
		return -EEXIST;
	sw_pins_path(p, "clsact", iface->name, mark, sizeof(mark));
	err = bpf_tc_hook_create(&hook);
	if (err && err != -EEXIST)
		return err;
	/* A mark that is there already tells what it was when we first came. */
	if (!err)
		unlink(mark);
	if (symlink(err ? "filter" : "qdisc", mark) && errno != EEXIST)
		sw_log(SW_DEBUG, "%s: %s", mark, strerror(errno));
	err = bpf_tc_attach(&hook, &opts);
	hold->filter = !err;
	hold->tc_is_new = owner == NOBODY;
	if (err && hold->tc_is_new)
		sw_tc_remove_filter(p, iface->name);
	return err;
}

static int attach_link(const struct sw_plane *p, const struct sw_iface *iface, struct sw_hold *hold)
{
	int prog = sw_program(p, SW_HOOK_TCX);
	char pin[256];
	struct sw_link_at at = {
		.pin = pin, .target = iface->index, .id = iface->index, .type = SW_LINK_TCX};

	sw_pins_path(p, "link_tc", iface->name, pin, sizeof(pin));
	hold->tc_link = sw_link_take_over(&at, prog);
	hold->tc_is_new = hold->tc_link < 0;
	if (hold->tc_is_new)
		hold->tc_link = sw_link_make(&at, prog);
	return hold->tc_link < 0 ? hold->tc_link : 0;
}

int sw_tc_attach(const struct sw_plane *p, const struct sw_iface *iface, bool tcx,
		 struct sw_hold *hold, struct sw_error *err)
{
	int ret = tcx ? attach_link(p, iface, hold) : attach_filter(p, iface, hold);

	if (ret == -EEXIST && !tcx)
		return sw_fail(err, ret,
			       "%s: another filter has priority %d and handle %d, which are ours: "
			       "tc filter show dev %s ingress",
			       iface->name, PRIORITY, HANDLE, iface->name);
	if (ret)
		return sw_fail(err, ret, "attaching to %s: %s%s", iface->name, strerror(-ret),
			       ret == -EPERM	? " (needs CAP_NET_ADMIN)"
			       : ret == -ENOENT ? " (is the kernel module sch_ingress there?)"
						: "");
	return 0;
}

/* ---- taking off ----------------------------------------------------------------------------- */

void sw_tc_remove_filter(const struct sw_plane *p, const char *interface)
{
	int ifindex = if_nametoindex(interface);
	struct bpf_tc_hook hook = ingress(ifindex);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = PRIORITY);
	char mark[256], made[8] = "";

	sw_pins_path(p, "clsact", interface, mark, sizeof(mark));
	if (readlink(mark, made, sizeof(made) - 1) < 0)
		made[0] = 0;
	unlink(mark);
	if (!ifindex)
		return;
	if (filter_owner(ifindex) == WE)
		bpf_tc_detach(&hook, &opts);
	if (!strcmp(made, "qdisc") && is_unused(ifindex)) {
		hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
		bpf_tc_hook_destroy(&hook);
	}
}
