// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A plane while it runs: what it notices, and what is written into it; see plane.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "kernel/attach.h"
#include "kernel/lookup.h"

/* ---- facts of the namespace ----------------------------------------------------------------- */

int sw_plane_write_levers(struct sw_plane *p, const struct sw_iface *guarded, size_t n,
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
void sw_plane_ask_hand_over(struct sw_plane *p)
{
	p->why_not = NULL;
	if (!p->kfunc)
		p->why_not = "the kernel lacks bpf_sk_assign_tcp_reqsk (6.9)";
	else if (!sw_sysctl_ipv4("tcp_syncookies", 1))
		p->why_not = "net.ipv4.tcp_syncookies is 0";
}

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
	holds = sw_attach_holds(p, ifaces, n) && sw_lookup_holds(p);
	if (holds &&
	    (sw_tables_write_local(&p->maps, &err) || sw_plane_write_levers(p, ifaces, n, &err)))
		sw_log(SW_WARN, "%s", err.text);
	free(ifaces);
	sw_plane_ask_hand_over(p);
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
	ret = sw_plane_load(p, sets, err);
	if (!ret)
		ret = sw_attach_renew(p, err);
	if (!ret)
		ret = sw_lookup_renew(p, err);
	sw_netns_leave(former);
	return ret;
}

int sw_plane_configure(struct sw_plane *p, const struct sw_config *c, struct sw_error *err)
{
	/* one more, so that a pool's can be exchanged */
	int ret = grow_answers(p, sw_answer_sets(c->n_pools + 1), err);

	if (ret)
		return ret;
	ret = sw_tables_write(&p->maps, c, p->netns, sw_now_ns(), err);
	if (!ret && p->listeners < c->n_listeners + 1)
		p->listeners = c->n_listeners + 1;
	return ret;
}

int sw_plane_set_pool(struct sw_plane *p, unsigned pool, enum sw_mode mode, enum sw_cause cause,
		      bool armed, uint64_t deadline_ns)
{
	struct sw_pool value = {
		.deadline_ns = deadline_ns, .mode = mode, .cause = cause, .armed = armed};

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
