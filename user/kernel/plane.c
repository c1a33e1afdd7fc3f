// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The life of a plane; see plane.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "kernel/attach.h"
#include "kernel/load.h"
#include "kernel/pins.h"
#include "kernel/probe.h"

#define FEWEST_SETS 8 /* room for answers before a configuration is known */

/* ---- opening -------------------------------------------------------------------------------- */

static void free_plane(struct sw_plane *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		if (p->hold[i].tc_link >= 0)
			close(p->hold[i].tc_link);
		if (p->hold[i].xdp_link >= 0)
			close(p->hold[i].xdp_link);
	}
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
		if (now.mode != SW_MODE_SHED)
			continue;
		err = sw_plane_set_pool(p, pool, SW_MODE_FINISH, now.cause,
					sw_now_ns() + SW_LIFETIME_NS);
		if (err)
			return err;
	}
	return 0;
}

static int write_levers(struct sw_plane *p, const struct sw_iface *guarded, size_t n,
			struct sw_error *err)
{
	struct sw_levers levers;
	uint32_t zero = 0;

	sw_iface_levers(guarded, n, &levers);
	if (!memcmp(&levers, &p->levers, sizeof(levers)))
		return 0;
	if (bpf_map_update_elem(p->maps.levers, &zero, &levers, BPF_ANY))
		return sw_fail(err, -errno, "writing the map levers: %s", strerror(errno));
	p->levers = levers;
	return 0;
}

/* Can connections be handed over here? Asked anew, a sysctl may be changed at any time. */
static void ask_hand_over(struct sw_plane *p)
{
	p->why_not = NULL;
	if (!p->kfunc)
		p->why_not = "the kernel lacks bpf_sk_assign_tcp_reqsk (6.9)";
	else if (!sw_sysctl_ipv4("tcp_syncookies", 1))
		p->why_not = "net.ipv4.tcp_syncookies is 0";
}

static int load_as_planned(struct sw_plane *p, unsigned answer_sets, struct sw_error *err)
{
	struct sw_wanted want = {.answer_sets = answer_sets};

	for (size_t i = 0; i < p->n; i++) {
		want.xdp |= p->at[i].xdp && p->at[i].xdp_hook == SW_HOOK_XDP_NATIVE;
		want.xdp_redirect |= p->at[i].xdp && p->at[i].xdp_hook == SW_HOOK_XDP_REDIRECT;
		want.xdp_generic |= p->at[i].xdp && p->at[i].xdp_hook == SW_HOOK_XDP_GENERIC;
	}
	return sw_load(p, &want, err);
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
		ret = load_as_planned(p, FEWEST_SETS, err);
	if (!ret)
		ret = calm_pools(p);
	if (!ret)
		ret = sw_tables_write_local(&p->maps, err);
	if (!ret)
		ret = write_levers(p, ifaces, n, err);
	if (!ret)
		ret = sw_attach_all(p, ifaces, err);
	free(ifaces);
	ask_hand_over(p);
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
	free_plane(p);
	return sw_fail(err, ret, "%s", why.text[0] ? why.text : strerror(-ret));
}

/* ---- closing -------------------------------------------------------------------------------- */

/* Packets of conversations that are still under way. */
static uint64_t sum_under_way(struct sw_plane *p)
{
	static const enum sw_reason reasons[] = {
		SW_R_shed_saturated,   SW_R_shed_no_slots,    SW_R_shed_draining,
		SW_R_shed_unavailable, SW_R_shed_no_handover, SW_R_shed_again,
		SW_R_drain_data,       SW_R_drain_fin,	      SW_R_close_silent,
		SW_R_drop_handshake,   SW_R_drop_ack,	      SW_R_drop_order,
		SW_R_handover_path,    SW_R_handover_open,    SW_R_handover_exempt,
		SW_R_handover_unread,
	};
	uint64_t sum = 0;

	for (unsigned id = 1; id < p->listeners; id++) {
		struct sw_counts hook[2];

		if (sw_plane_counts(p, id, &hook[0], &hook[1]))
			continue;
		for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
			sum += ((__u64 *)&hook[0])[reasons[i]] + ((__u64 *)&hook[1])[reasons[i]];
	}
	return sum;
}

/* True when there may be conversations to wait for. */
static bool stop_shedding(struct sw_plane *p)
{
	bool any = false;

	for (unsigned pool = 0; pool < p->pools; pool++) {
		struct sw_pool now;

		if (bpf_map_lookup_elem(p->maps.pools, &pool, &now) || now.mode == SW_MODE_OPEN)
			continue;
		any = true;
		sw_plane_set_pool(p, pool, SW_MODE_FINISH, now.cause, sw_now_ns() + SW_LIFETIME_NS);
	}
	return any;
}

static void linger(struct sw_plane *p, unsigned ms)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	uint64_t end = sw_now_ms() + ms, quiet_since = sw_now_ms(), seen = sum_under_way(p);

	while (sw_now_ms() < end && sw_now_ms() - quiet_since < 200) {
		uint64_t sum;

		nanosleep(&pause, NULL);
		sum = sum_under_way(p);
		if (sum != seen)
			quiet_since = sw_now_ms();
		seen = sum;
	}
}

void sw_plane_close(struct sw_plane *p, unsigned linger_ms)
{
	struct sw_netns_id here;
	int former;

	if (!p)
		return;
	if (stop_shedding(p) && linger_ms)
		linger(p, linger_ms);
	/* Links know where they are; filters have to be looked for, in the right place. */
	if (!sw_netns_enter(p->netns, &former, NULL)) {
		if (!sw_netns_identify(&here) && sw_netns_same(&here, &p->id))
			sw_attach_none(p);
		sw_netns_leave(former);
	}
	sw_pins_remove(p);
	free_plane(p);
}

void sw_plane_leave(struct sw_plane *p)
{
	free_plane(p);
}

/* ---- while it runs -------------------------------------------------------------------------- */

bool sw_plane_can_hand_over(const struct sw_plane *p, const char **why)
{
	if (why)
		*why = p->why_not;
	return !p->why_not;
}

static int changed_here(struct sw_plane *p)
{
	struct sw_netns_id here;
	struct sw_iface *ifaces;
	struct sw_error err;
	bool holds;
	int n;

	if (sw_netns_identify(&here) || !sw_netns_same(&here, &p->id))
		return 1;
	n = sw_attach_list(p, &ifaces, &err);
	if (n < 0)
		return 1;
	holds = sw_attach_holds(p, ifaces, n);
	if (holds && (sw_tables_write_local(&p->maps, &err) || write_levers(p, ifaces, n, &err)))
		sw_log(SW_WARN, "%s", err.text);
	free(ifaces);
	ask_hand_over(p);
	return !holds;
}

int sw_plane_changed(struct sw_plane *p)
{
	int former, ret = sw_netns_enter(p->netns, &former, NULL);

	if (ret)
		return ret;
	ret = changed_here(p);
	sw_netns_leave(former);
	return ret;
}

size_t sw_plane_attachments(const struct sw_plane *p, const struct sw_attachment **out)
{
	*out = p->at;
	return p->n;
}

/* ---- maps ----------------------------------------------------------------------------------- */

/* More pools than there is room for answers: the programs are loaded anew over a larger map. */
static int grow_answers(struct sw_plane *p, unsigned sets, struct sw_error *err)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	int former, ret;

	if (bpf_obj_get_info_by_fd(p->maps.answers, &info, &size))
		return sw_fail(err, -errno, "asking for the map answers: %s", strerror(errno));
	if (info.max_entries >= sets * SW_ANSWERS_PER_SET)
		return 0;
	ret = sw_netns_enter(p->netns, &former, err);
	if (ret)
		return ret;
	ret = load_as_planned(p, sets, err);
	if (!ret)
		ret = sw_attach_renew(p, err);
	sw_netns_leave(former);
	return ret;
}

int sw_plane_configure(struct sw_plane *p, const struct sw_config *c, struct sw_error *err)
{
	int ret = grow_answers(p, sw_answer_sets(c->n_pools), err);

	if (ret)
		return ret;
	ret = sw_tables_write(&p->maps, c, p->netns, sw_now_ns(), err);
	if (!ret && p->listeners < c->n_listeners + 1)
		p->listeners = c->n_listeners + 1;
	return ret;
}

int sw_plane_set_pool(struct sw_plane *p, unsigned pool, enum sw_mode mode, enum sw_cause cause,
		      uint64_t deadline_ns)
{
	struct sw_pool value = {.deadline_ns = deadline_ns, .mode = mode, .cause = cause};

	if (pool >= SW_MAX_POOLS)
		return -EINVAL;
	if (p->pools <= pool)
		p->pools = pool + 1;
	return bpf_map_update_elem(p->maps.pools, &pool, &value, BPF_ANY) ? -errno : 0;
}

int sw_plane_rotate_key(struct sw_plane *p)
{
	struct sw_secrets s;
	uint32_t zero = 0;
	int ret = 0;

	if (bpf_map_lookup_elem(p->maps.secrets, &zero, &s))
		return -errno;
	memcpy(s.key[1], s.key[0], sizeof(s.key[1]));
	s.previous_until_ns = sw_now_ns() + SW_LIFETIME_NS;
	if (getrandom(s.key[0], sizeof(s.key[0]), 0) != sizeof(s.key[0]) ||
	    bpf_map_update_elem(p->maps.secrets, &zero, &s, BPF_ANY))
		ret = -errno;
	explicit_bzero(&s, sizeof(s));
	return ret;
}
