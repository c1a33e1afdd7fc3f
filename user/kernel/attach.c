// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Decides which programs are attached to the interfaces of attach_list.c, and attaches them; see
 * attach.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/attach.h"
#include "kernel/keep.h"
#include "kernel/link.h"
#include "kernel/load.h"
#include "kernel/pins.h"
#include "kernel/probe.h"
#include "kernel/tc.h"
#include "kernel/xdp.h"

/* ---- the plan ------------------------------------------------------------------------------- */

/* XDP is not to be had here: the note says why; whoever asked for it gets an error instead. */
static int without_xdp(const struct sw_plane *p, struct sw_attachment *at, const char *why,
		       struct sw_error *err)
{
	at->xdp = false;
	snprintf(at->note, sizeof(at->note), "%s", why);
	if (p->attach == SW_ATTACH_AUTO)
		return 0;
	return sw_fail(err, -EOPNOTSUPP, "interface %s: no XDP: %s; or use mode auto, or tc",
		       at->interface, why);
}

static bool is_veth(const char *interface)
{
	char driver[32];

	sw_iface_driver(interface, driver);
	return !strcmp(driver, "veth");
}

static int plan_xdp(const struct sw_plane *p, struct sw_attachment *at, struct sw_error *err)
{
	uint32_t present;
	char why[128], pin[256];
	bool generic;

	if (!sw_probe_xdp_store())
		return without_xdp(p, at, "the kernel lacks bpf_xdp_store_bytes (5.18)", err);
	sw_pins_path(p, "link_xdp", at->interface, pin, sizeof(pin));
	present = sw_xdp_program(at->ifindex, &generic);
	if (present && present != sw_link_program(pin)) {
		snprintf(why, sizeof(why), "another XDP program (id %u) is attached, it stays",
			 present);
		return without_xdp(p, at, why, err);
	}
	at->xdp = true;
	at->xdp_hook = p->attach == SW_ATTACH_XDP_GENERIC ? SW_HOOK_XDP_GENERIC
		       : is_veth(at->interface)		  ? SW_HOOK_XDP_REDIRECT
							  : SW_HOOK_XDP_NATIVE;
	return 0;
}

int sw_attach_plan(struct sw_plane *p, const struct sw_iface *ifaces, size_t n,
		   struct sw_error *err)
{
	bool tcx = sw_probe_tcx();
	int ret = 0;

	p->at = calloc(n, sizeof(*p->at));
	p->hold = calloc(n, sizeof(*p->hold));
	if (!p->at || !p->hold)
		return -ENOMEM;
	p->n = n;
	for (size_t i = 0; !ret && i < n; i++) {
		struct sw_attachment *at = &p->at[i];

		memcpy(at->interface, ifaces[i].name, sizeof(at->interface));
		at->ifindex = ifaces[i].index;
		at->tc_hook = tcx ? SW_HOOK_TCX : SW_HOOK_CLSACT;
		p->hold[i].xdp_link = -1;
		for (int place = 0; place < SW_TC_PLACES; place++)
			p->hold[i].tc[place].link = -1;
		if (!ifaces[i].loopback && p->attach != SW_ATTACH_TC)
			ret = plan_xdp(p, at, err);
	}
	return ret;
}

/* ---- attaching ------------------------------------------------------------------------------ */

static void drop_xdp(const struct sw_plane *p, size_t i)
{
	char pin[256];

	sw_pins_path(p, "link_xdp", p->at[i].interface, pin, sizeof(pin));
	sw_link_remove(pin, p->hold[i].xdp_link);
	p->hold[i].xdp_link = -1;
}

static void drop_tc(const struct sw_plane *p, size_t i, enum sw_tc_place place)
{
	struct sw_tc_hold *hold = &p->hold[i].tc[place];
	char pin[256];

	if (hold->filter)
		sw_tc_remove_filter(p, p->at[i].interface, place);
	hold->filter = false;
	if (hold->link < 0)
		return;
	sw_pins_path(p, sw_tc_pin(place), p->at[i].interface, pin, sizeof(pin));
	sw_link_remove(pin, hold->link);
	hold->link = -1;
}

static const char *silent(const struct sw_iface *iface)
{
	if (!iface->up)
		return "the interface is down, so it cannot be seen whether XDP can transmit";
	if (is_veth(iface->name))
		return "XDP cannot transmit, the veth's peer needs GRO for it: ethtool -K PEER gro on";
	return "XDP cannot transmit, frames sent on trial did not leave";
}

static int attach_xdp(struct sw_plane *p, size_t i, const struct sw_iface *iface,
		      struct sw_error *err)
{
	struct sw_attachment *at = &p->at[i];
	struct sw_hold *hold = &p->hold[i];
	char why[128] = "";

	hold->xdp_link = sw_xdp_attach(p, iface, at->xdp_hook, &hold->xdp_is_new, why, sizeof(why));
	if (hold->xdp_link < 0)
		return without_xdp(p, at, why, err);
	if (at->xdp_hook == SW_HOOK_XDP_GENERIC || sw_xdp_transmits(iface))
		return 0;
	drop_xdp(p, i);
	return without_xdp(p, at, silent(iface), err);
}

/* As a filter, or by a link? */
static bool is_held(const struct sw_plane *p, const char *interface, enum sw_tc_place place,
		    bool filter)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->at[i].interface, interface))
			return filter ? p->hold[i].tc[place].filter
				      : p->hold[i].tc[place].link >= 0;
	return false;
}

static bool is_accelerated(const struct sw_plane *p, const char *interface)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->at[i].interface, interface))
			return p->hold[i].xdp_link >= 0;
	return false;
}

/* May what an earlier daemon left be taken off? What translates stays while there is anything to
 * translate, unless this plane does it there in the other way. */
static bool may_go(struct sw_plane *p, const char *interface, enum sw_tc_place place, bool filter)
{
	if (is_held(p, interface, place, filter))
		return false;
	if (place == SW_TC_GUARD || is_held(p, interface, place, !filter) || !sw_keep_use(p))
		return true;
	p->keep.left = true;
	return false;
}

static void sweep(struct sw_plane *p, const char *name)
{
	char interface[IF_NAMESIZE], path[512];
	bool filter;

	snprintf(path, sizeof(path), "%s/%s", p->dir, name);
	if (sw_pins_interface(name, "link_xdp", interface) && !is_accelerated(p, interface))
		sw_link_remove_pinned(path);
	filter = sw_pins_interface(name, "clsact", interface);
	for (int place = 0; place < SW_TC_PLACES; place++) {
		if (!filter && !sw_pins_interface(name, sw_tc_pin(place), interface))
			continue;
		if (!may_go(p, interface, place, filter))
			continue;
		if (filter)
			sw_tc_remove_filter(p, interface, place);
		else
			sw_link_remove_pinned(path);
	}
}

static void roll_back(struct sw_plane *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->hold[i].xdp_link >= 0 && p->hold[i].xdp_is_new)
			drop_xdp(p, i);
		for (int place = 0; place < SW_TC_PLACES; place++)
			if (p->hold[i].tc[place].is_new)
				drop_tc(p, i, place);
	}
}

/* Those that are loaded. */
static int places(const struct sw_plane *p)
{
	return p->keep.on ? SW_TC_PLACES : SW_TC_GUARD + 1;
}

static int attach_tc(struct sw_plane *p, size_t i, const struct sw_iface *iface,
		     struct sw_error *err)
{
	bool tcx = p->at[i].tc_hook == SW_HOOK_TCX;
	int ret = 0;

	for (int place = 0; !ret && place < places(p); place++)
		ret = sw_tc_attach(p, iface, place, tcx, &p->hold[i], err);
	return ret;
}

int sw_attach_all(struct sw_plane *p, const struct sw_iface *ifaces, struct sw_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < p->n; i++) {
		ret = attach_tc(p, i, &ifaces[i], err);
		if (!ret && p->at[i].xdp)
			ret = attach_xdp(p, i, &ifaces[i], err);
	}
	if (ret)
		roll_back(p);
	else
		sw_attach_sweep(p);
	return ret;
}

void sw_attach_sweep(struct sw_plane *p)
{
	p->keep.left = false;
	sw_pins_each(p, sweep);
}

void sw_attach_end_keep(struct sw_plane *p)
{
	for (size_t i = 0; i < p->n; i++)
		for (int place = SW_TC_KEEP; place < SW_TC_PLACES; place++)
			drop_tc(p, i, place);
	sw_attach_sweep(p);
}

static int renew_tc(struct sw_plane *p, size_t i, const struct sw_iface *iface,
		    struct sw_error *err)
{
	int ret = 0;

	for (int place = 0; !ret && place < SW_TC_PLACES; place++) {
		const struct sw_tc_hold *hold = &p->hold[i].tc[place];

		if (hold->filter)
			ret = sw_tc_attach(p, iface, place, false, &p->hold[i], err);
		else if (hold->link >= 0 &&
			 bpf_link_update(hold->link, sw_tc_program(p, place), NULL))
			ret = -errno;
	}
	return ret;
}

int sw_attach_renew(struct sw_plane *p, struct sw_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < p->n; i++) {
		const struct sw_attachment *at = &p->at[i];
		struct sw_iface iface = {.index = at->ifindex};

		memcpy(iface.name, at->interface, sizeof(iface.name));
		ret = renew_tc(p, i, &iface, err);
		if (!ret && at->xdp &&
		    bpf_link_update(p->hold[i].xdp_link, sw_program(p, at->xdp_hook), NULL))
			ret = -errno;
		if (ret)
			sw_fail(err, ret, "interface %s: replacing the programs: %s", at->interface,
				strerror(-ret));
	}
	return ret;
}

void sw_attach_none(struct sw_plane *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->hold[i].xdp_link >= 0)
			drop_xdp(p, i);
		drop_tc(p, i, SW_TC_GUARD);
	}
	if (!sw_keep_use(p))
		sw_attach_end_keep(p);
}

/* ---- watching ------------------------------------------------------------------------------- */

static bool one_holds(const struct sw_attachment *at, const struct sw_hold *hold)
{
	for (int place = 0; place < SW_TC_PLACES; place++) {
		const struct sw_tc_hold *tc = &hold->tc[place];

		if (tc->filter && !sw_tc_filter_present(at->ifindex, place))
			return false;
		if (tc->link >= 0 && sw_link_target(tc->link) != (uint64_t)at->ifindex)
			return false;
	}
	return !at->xdp || sw_link_target(hold->xdp_link) == (uint64_t)at->ifindex;
}

bool sw_attach_holds(const struct sw_plane *p, const struct sw_iface *ifaces, size_t n)
{
	if (n != p->n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct sw_iface *iface = sw_iface_find(ifaces, n, p->at[i].interface);

		if (!iface || iface->index != p->at[i].ifindex ||
		    !one_holds(&p->at[i], &p->hold[i]))
			return false;
	}
	return true;
}

void sw_attach_free(struct sw_plane *p)
{
	free(p->at);
	free(p->hold);
	p->at = NULL;
	p->hold = NULL;
	p->n = 0;
}
