// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sockets of translated connections are looked for and destroyed by sock_diag; see destroy.h. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/destroy.h"
#include "kernel/netlink.h"
#include <spillway/abi.h>

#define TRANSLATED (1U << 3) /* FLOW_TRANSLATED of bpf/flow.h, in the member `flags` */

struct search {
	int flows;
	uint8_t *value; /* room for one of that map */
	size_t flags;	/* where its flags are */
	int found;
};

static void set_address(uint8_t to[16], uint8_t family, const __be32 from[4])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (family == AF_INET) {
		memcpy(to, mapped, sizeof(mapped));
		memcpy(to + sizeof(mapped), from, 4);
	} else {
		memcpy(to, from, 16);
	}
}

static int destroy(const struct inet_diag_msg *m)
{
	const struct inet_diag_req_v2 req = {
		.sdiag_family = m->idiag_family, .sdiag_protocol = IPPROTO_TCP, .id = m->id};

	return sw_netlink_order(NETLINK_SOCK_DIAG, SOCK_DESTROY, &req, sizeof(req));
}

/* One socket. That it has ended meanwhile is as good. */
static int look_at(const struct nlmsghdr *nh, void *arg)
{
	const struct inet_diag_msg *m = NLMSG_DATA(nh);
	struct search *s = arg;
	struct sw_tuple key = {.peer_port = ntohs(m->id.idiag_dport),
			       .local_port = ntohs(m->id.idiag_sport)};
	uint32_t flags;
	int ret;

	set_address(key.peer, m->idiag_family, m->id.idiag_dst);
	set_address(key.local, m->idiag_family, m->id.idiag_src);
	if (bpf_map_lookup_elem(s->flows, &key, s->value))
		return 0;
	memcpy(&flags, s->value + s->flags, sizeof(flags));
	if (!(flags & TRANSLATED))
		return 0;
	ret = destroy(m);
	s->found += !ret;
	return ret == -ENOENT ? 0 : ret;
}

/* The programs' own affair otherwise, so the map itself is asked. Negative: it does not tell. */
static int find_flags(const struct bpf_map_info *info)
{
	struct btf *btf = btf__load_from_kernel_by_id(info->btf_id);
	const struct btf_type *t = btf ? btf__type_by_id(btf, info->btf_value_type_id) : NULL;
	int at = -ENOENT;

	for (int i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), "flags"))
			at = (int)(btf_members(t)[i].offset / 8);
	btf__free(btf);
	return at;
}

static int destroy_all(struct search *s)
{
	struct inet_diag_req_v2 req = {.sdiag_protocol = IPPROTO_TCP,
				       .idiag_states = ~(1U << TCP_LISTEN)};
	int ret = 0;

	for (int i = 0; !ret && i < 2; i++) {
		req.sdiag_family = i ? AF_INET6 : AF_INET;
		ret = sw_netlink_dump(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, &req, sizeof(req),
				      look_at, s);
	}
	return ret ? ret : s->found;
}

int sw_flows_destroy(const char *dir)
{
	struct bpf_map_info info = {0};
	__u32 size = sizeof(info);
	struct search s = {0};
	char pin[256];
	int ret;

	snprintf(pin, sizeof(pin), "%s/flows", dir);
	s.flows = bpf_obj_get(pin);
	if (s.flows < 0)
		return 0;
	ret = bpf_obj_get_info_by_fd(s.flows, &info, &size) ? -errno : find_flags(&info);
	s.flags = ret < 0 ? 0 : (size_t)ret;
	s.value = ret < 0 ? NULL : malloc(info.value_size);
	if (ret >= 0)
		ret = s.value ? destroy_all(&s) : -ENOMEM;
	free(s.value);
	close(s.flows);
	return ret;
}
