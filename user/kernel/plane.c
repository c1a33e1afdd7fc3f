// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A plane is opened; see plane.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "kernel/attach.h"
#include "kernel/keep.h"
#include "kernel/load.h"
#include "kernel/lookup.h"
#include "kernel/pins.h"
#include "kernel/probe.h"

#define FEWEST_SETS 8 /* room for answers before a configuration is known */

void sw_plane_free(struct sw_plane *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		for (int place = 0; place < SW_TC_PLACES; place++)
			if (p->hold[i].tc[place].link >= 0)
				close(p->hold[i].tc[place].link);
		if (p->hold[i].xdp_link >= 0)
			close(p->hold[i].xdp_link);
	}
	if (p->lookup_link >= 0)
		close(p->lookup_link);
	sw_attach_free(p);
	sw_unload(p);
	for (size_t i = 0; i < p->n_interfaces; i++)
		free(p->interfaces[i]);
	free(p->interfaces);
	free(p->netns);
	free(p);
}

static int copy_conf(struct sw_plane *p, const struct sw_plane_conf *conf)
{
	p->attach = conf->attach;
	p->slots = conf->slots;
	p->lookup = conf->lookup;
	p->lookup_link = -1;
	p->keep.room = conf->flows;
	snprintf(p->root, sizeof(p->root), "%s", conf->pin_root);
	p->netns = conf->netns ? strdup(conf->netns) : NULL;
	p->interfaces = calloc(conf->n_interfaces + 1, sizeof(*p->interfaces));
	if (!p->interfaces || (conf->netns && !p->netns))
		return -ENOMEM;
	for (; p->n_interfaces < conf->n_interfaces; p->n_interfaces++) {
		p->interfaces[p->n_interfaces] = strdup(conf->interfaces[p->n_interfaces]);
		if (!p->interfaces[p->n_interfaces])
			return -ENOMEM;
	}
	return 0;
}

/* Conversations that a former daemon left under way are brought to an end, nothing new begins. */
static int calm_pools(struct sw_plane *p)
{
	for (unsigned pool = 0; pool < SW_MAX_POOLS; pool++) {
		struct sw_pool now;
		int err;

		if (bpf_map_lookup_elem(p->maps.pools, &pool, &now))
			return -errno;
		if (now.mode != SW_MODE_SHED && now.mode != SW_MODE_METERED)
			continue;
		err = sw_plane_set_pool(p, pool, SW_MODE_FINISH, now.cause, false,
					sw_now_ns() + SW_LIFETIME_NS);
		if (err)
			return err;
	}
	return 0;
}

int sw_plane_load(struct sw_plane *p, unsigned answer_sets, struct sw_error *err)
{
	/* what is translated goes on, wanted or not */
	struct sw_wanted want = {.answer_sets = answer_sets,
				 .lookup = p->lookup,
				 .keep = p->keep.room || sw_keep_use(p)};

	for (size_t i = 0; i < p->n; i++) {
		want.xdp |= p->at[i].xdp && p->at[i].xdp_hook == SW_HOOK_XDP_NATIVE;
		want.xdp_redirect |= p->at[i].xdp && p->at[i].xdp_hook == SW_HOOK_XDP_REDIRECT;
		want.xdp_generic |= p->at[i].xdp && p->at[i].xdp_hook == SW_HOOK_XDP_GENERIC;
	}
	return sw_load(p, &want, err);
}

static int attach(struct sw_plane *p, const struct sw_iface *ifaces, struct sw_error *err)
{
	int ret = sw_lookup_attach(p, err);

	if (ret)
		return ret;
	ret = sw_attach_all(p, ifaces, err);
	if (ret ? p->lookup_is_new : !p->lookup)
		sw_lookup_remove(p);
	return ret;
}

/* Inside the namespace. */
static int open_here(struct sw_plane *p, struct sw_error *err)
{
	struct sw_iface *ifaces = NULL;
	int n, ret;

	ret = sw_netns_identify(&p->id);
	if (ret)
		return sw_fail(err, ret, "identifying the network namespace: %s", strerror(-ret));
	if (p->netns)
		snprintf(p->dir, sizeof(p->dir), "%s/v%d/netns-%lu", p->root, SW_LAYOUT,
			 (unsigned long)p->id.ino);
	else
		snprintf(p->dir, sizeof(p->dir), "%s/v%d/host", p->root, SW_LAYOUT);
	n = sw_attach_list(p, &ifaces, err);
	if (n < 0)
		return n;
	ret = sw_pins_open(p, err);
	if (!ret)
		ret = sw_attach_plan(p, ifaces, n, err);
	if (!ret)
		ret = sw_plane_load(p, FEWEST_SETS, err);
	if (!ret)
		ret = calm_pools(p);
	if (!ret)
		ret = sw_tables_write_local(&p->maps, err);
	if (!ret)
		ret = sw_plane_write_levers(p, ifaces, n, err);
	if (!ret)
		ret = attach(p, ifaces, err);
	free(ifaces);
	sw_plane_ask_hand_over(p);
	return ret;
}

int sw_plane_open(struct sw_plane **out, const struct sw_plane_conf *conf, struct sw_error *err)
{
	struct sw_plane *p = calloc(1, sizeof(*p));
	struct sw_error why = {0};
	int former, ret;

	if (!p)
		return sw_fail(err, -ENOMEM, "no memory");
	ret = copy_conf(p, conf);
	if (!ret)
		ret = sw_load_check_kernel(&why);
	if (ret)
		goto fail;
	p->kfunc = sw_probe_hand_over();
	ret = sw_netns_enter(p->netns, &former, &why);
	if (ret)
		goto fail;
	ret = open_here(p, &why);
	sw_netns_leave(former);
	if (ret)
		goto fail;
	sw_pins_forget_others(p);
	*out = p;
	return 0;
fail:
	/* Pins of a daemon before us go on holding what was attached before. */
	if (p->dir[0] && !sw_pins_hold_links(p))
		sw_pins_remove(p);
	sw_plane_free(p);
	return sw_fail(err, ret, "%s", why.text[0] ? why.text : strerror(-ret));
}
