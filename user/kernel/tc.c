// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attaching to TC; see tc.h. */
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

/* Ours by priority and handle: before filters whose priority the kernel chose (from 49152 down). */
#define HANDLE 529

static const struct {
	const char *pin, *program;
	enum bpf_tc_attach_point point;
	uint32_t direction; /* the same, as a part of a qdisc */
	int link;
	unsigned priority;
} places[SW_TC_PLACES] = {
	[SW_TC_GUARD] = {"link_tc", "spillway_tc", BPF_TC_INGRESS, TC_H_MIN_INGRESS, SW_LINK_TCX,
			 529},
	[SW_TC_KEEP] = {"link_keep", "spillway_keep", BPF_TC_INGRESS, TC_H_MIN_INGRESS, SW_LINK_TCX,
			530},
	[SW_TC_EGRESS] = {"link_egress", "spillway_egress", BPF_TC_EGRESS, TC_H_MIN_EGRESS,
			  SW_LINK_TCX_EGRESS, 529},
};

const char *sw_tc_pin(enum sw_tc_place place)
{
	return places[place].pin;
}

enum owner { NOBODY, WE, ANOTHER };

static struct bpf_tc_hook hook_at(int ifindex, enum sw_tc_place place)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = places[place].point);

	return hook;
}

/* ---- what is there ----------------------------------------------------------------------------
 */

struct filters {
	enum sw_tc_place place;
	enum owner owner; /* of this place */
	unsigned n;	  /* in all places of the direction */
};

/* A filter of ours, by the name that the kernel keeps with it: reading programs by their ids would
 * take CAP_SYS_ADMIN. */
static bool is_ours(const struct nlmsghdr *nh, const char *program)
{
	const struct tcmsg *tc = NLMSG_DATA(nh);
	const struct rtattr *a =
		sw_netlink_attr(TCA_RTA(tc), NLMSG_PAYLOAD(nh, sizeof(*tc)), TCA_OPTIONS);

	if (a)
		a = sw_netlink_attr(RTA_DATA(a), RTA_PAYLOAD(a), TCA_BPF_NAME);
	return a && RTA_PAYLOAD(a) > strlen(program) &&
	       !memcmp(RTA_DATA(a), program, strlen(program));
}

static int take_filter(const struct nlmsghdr *nh, void *arg)
{
	const struct tcmsg *tc = NLMSG_DATA(nh);
	struct filters *f = arg;

	f->n++;
	if (TC_H_MAJ(tc->tcm_info) >> 16 == places[f->place].priority && tc->tcm_handle == HANDLE)
		f->owner = is_ours(nh, places[f->place].program) ? WE : ANOTHER;
	return 0;
}

static int look(int ifindex, enum sw_tc_place place, struct filters *f)
{
	struct tcmsg tc = {.tcm_ifindex = ifindex,
			   .tcm_parent = TC_H_MAKE(TC_H_CLSACT, places[place].direction)};

	*f = (struct filters){.place = place};
	return sw_netlink_dump(NETLINK_ROUTE, RTM_GETTFILTER, &tc, sizeof(tc), take_filter, f);
}

static enum owner filter_owner(int ifindex, enum sw_tc_place place)
{
	struct filters f;

	return look(ifindex, place, &f) ? NOBODY : f.owner;
}

/* A question that fails is answered with no. */
static bool is_unused(int ifindex)
{
	struct filters in, out;

	return !look(ifindex, SW_TC_GUARD, &in) && !look(ifindex, SW_TC_EGRESS, &out) && !in.n &&
	       !out.n;
}

bool sw_tc_filter_present(int ifindex, enum sw_tc_place place)
{
	return filter_owner(ifindex, place) == WE;
}

/* ---- attaching ------------------------------------------------------------------------------ */

static int attach_filter(const struct sw_plane *p, const struct sw_iface *iface,
			 enum sw_tc_place place, struct sw_tc_hold *hold)
{
	struct bpf_tc_hook hook = hook_at(iface->index, place);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = places[place].priority,
		    .prog_fd = sw_tc_program(p, place), .flags = BPF_TC_F_REPLACE);
	enum owner owner = filter_owner(iface->index, place);
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
	hold->is_new = owner == NOBODY;
	if (err && hold->is_new)
		sw_tc_remove_filter(p, iface->name, place);
	return err;
}

/* The guard comes before what is behind it, which may be there yet from an earlier daemon. */
static int make_link(const struct sw_plane *p, const struct sw_iface *iface, enum sw_tc_place place,
		     struct sw_link_at *at)
{
	char pin[256];
	int link;

	if (place == SW_TC_GUARD) {
		sw_pins_path(p, places[SW_TC_KEEP].pin, iface->name, pin, sizeof(pin));
		at->before = sw_link_open(pin, iface->index);
	}
	link = sw_link_make(at, sw_tc_program(p, place));
	if (at->before)
		close(at->before);
	return link;
}

static int attach_link(const struct sw_plane *p, const struct sw_iface *iface,
		       enum sw_tc_place place, struct sw_tc_hold *hold)
{
	char pin[256];
	struct sw_link_at at = {
		.pin = pin, .target = iface->index, .id = iface->index, .type = places[place].link};

	sw_pins_path(p, places[place].pin, iface->name, pin, sizeof(pin));
	hold->link = sw_link_take_over(&at, sw_tc_program(p, place));
	hold->is_new = hold->link < 0;
	if (hold->is_new)
		hold->link = make_link(p, iface, place, &at);
	return hold->link < 0 ? hold->link : 0;
}

int sw_tc_attach(const struct sw_plane *p, const struct sw_iface *iface, enum sw_tc_place place,
		 bool tcx, struct sw_hold *hold, struct sw_error *err)
{
	int ret = tcx ? attach_link(p, iface, place, &hold->tc[place])
		      : attach_filter(p, iface, place, &hold->tc[place]);

	if (ret == -EEXIST && !tcx)
		return sw_fail(err, ret,
			       "%s: another filter has priority %u and handle %d, which are ours: "
			       "tc filter show dev %s %s",
			       iface->name, places[place].priority, HANDLE, iface->name,
			       place == SW_TC_EGRESS ? "egress" : "ingress");
	if (ret)
		return sw_fail(err, ret, "attaching to %s: %s%s", iface->name, strerror(-ret),
			       ret == -EPERM	? " (needs CAP_NET_ADMIN)"
			       : ret == -ENOENT ? " (is the kernel module sch_ingress there?)"
						: "");
	return 0;
}

/* ---- taking off ----------------------------------------------------------------------------- */

static void detach(int ifindex, enum sw_tc_place place)
{
	struct bpf_tc_hook hook = hook_at(ifindex, place);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = places[place].priority);

	if (filter_owner(ifindex, place) == WE)
		bpf_tc_detach(&hook, &opts);
}

static bool any_of_ours(int ifindex)
{
	for (int place = 0; place < SW_TC_PLACES; place++)
		if (filter_owner(ifindex, place) == WE)
			return true;
	return false;
}

/* None of our filters is there any more. */
static void clean_up(const struct sw_plane *p, const char *interface, int ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, qdisc, .ifindex = ifindex,
		    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);
	char mark[256], made[8] = "";

	sw_pins_path(p, "clsact", interface, mark, sizeof(mark));
	if (readlink(mark, made, sizeof(made) - 1) < 0)
		made[0] = 0;
	unlink(mark);
	if (ifindex && !strcmp(made, "qdisc") && is_unused(ifindex))
		bpf_tc_hook_destroy(&qdisc);
}

void sw_tc_remove_filter(const struct sw_plane *p, const char *interface, enum sw_tc_place place)
{
	int ifindex = if_nametoindex(interface);

	if (ifindex)
		detach(ifindex, place);
	if (!ifindex || !any_of_ours(ifindex))
		clean_up(p, interface, ifindex);
}

void sw_tc_remove_filters(const struct sw_plane *p, const char *interface)
{
	for (int place = 0; place < SW_TC_PLACES; place++)
		sw_tc_remove_filter(p, interface, place);
}
