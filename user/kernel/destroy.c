// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sockets of translated connections are looked for and destroyed by sock_diag; see destroy.h. */
#include <bpf/bpf.h>
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

struct search {
	int flows;
	void *value; /* room for one of that map */
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
	int ret;

	set_address(key.peer, m->idiag_family, m->id.idiag_dst);
	set_address(key.local, m->idiag_family, m->id.idiag_src);
	if (bpf_map_lookup_elem(s->flows, &key, s->value))
		return 0;
	ret = destroy(m);
	s->found += !ret;
	return ret == -ENOENT ? 0 : ret;
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
	ret = bpf_obj_get_info_by_fd(s.flows, &info, &size) ? -errno : 0;
	s.value = ret ? NULL : malloc(info.value_size);
	if (!ret)
		ret = s.value ? destroy_all(&s) : -ENOMEM;
	free(s.value);
	close(s.flows);
	return ret;
}
