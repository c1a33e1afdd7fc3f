// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Does a socket listen where a listener is guarded? Asked of sock_diag inside the namespace. */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "kernel/netlink.h"
#include "kernel/netns.h"
#include "kernel/plane_impl.h"

static const uint8_t any[16];
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

struct server { /* where one socket listens; addr all zero: anywhere */
	uint8_t addr[16];
	bool v4, v6;
};

static struct server server_of(const struct nlmsghdr *nh)
{
	const struct inet_diag_msg *m = NLMSG_DATA(nh);
	const struct rtattr *only;
	struct server s = {0};

	if (m->idiag_family == AF_INET) {
		s.v4 = true;
		if (m->id.idiag_src[0]) {
			memcpy(s.addr, mapped, sizeof(mapped));
			memcpy(s.addr + sizeof(mapped), m->id.idiag_src, 4);
		}
		return s;
	}
	memcpy(s.addr, m->id.idiag_src, sizeof(s.addr));
	only = sw_netlink_attr((const struct rtattr *)(m + 1), NLMSG_PAYLOAD(nh, sizeof(*m)),
			       INET_DIAG_SKV6ONLY);
	s.v4 = !memcmp(s.addr, mapped, sizeof(mapped)) ||
	       (!memcmp(s.addr, any, 16) && !(only && *(uint8_t *)RTA_DATA(only)));
	s.v6 = memcmp(s.addr, mapped, sizeof(mapped));
	return s;
}

static int match(const struct nlmsghdr *nh, void *arg)
{
	const struct sw_listener_conf *l = arg;
	const struct inet_diag_msg *m = NLMSG_DATA(nh);
	struct server s;

	if (ntohs(m->id.idiag_sport) != l->port)
		return 0;
	s = server_of(nh);
	if (!(s.v4 && l->v4) && !(s.v6 && l->v6))
		return 0;
	return !memcmp(s.addr, any, 16) || !memcmp(l->addr, any, 16) ||
	       !memcmp(s.addr, l->addr, 16);
}

/* The request, with room for a protocol that does not fit its own field. */
struct question {
	struct inet_diag_req_v2 req;
	struct rtattr attr;
	uint32_t protocol;
};

static bool any_server(struct sw_plane *p, const struct sw_listener_conf *l, uint32_t protocol)
{
	struct question q = {
		.req = {.sdiag_protocol = protocol & 0xff, .idiag_states = 1U << TCP_LISTEN},
		.attr = {.rta_type = INET_DIAG_REQ_PROTOCOL,
			 .rta_len = RTA_LENGTH(sizeof(uint32_t))},
		.protocol = protocol,
	};
	size_t size = protocol > 0xff ? sizeof(q) : sizeof(q.req);
	int former, found = 0;

	if (sw_netns_enter(p->netns, &former, NULL))
		return false;
	for (int i = 0; i < 2 && found <= 0; i++) {
		q.req.sdiag_family = i ? AF_INET6 : AF_INET;
		found = sw_netlink_dump(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, &q, size, match,
					(void *)l);
	}
	sw_netns_leave(former);
	return found > 0;
}

bool sw_plane_has_server(struct sw_plane *p, const struct sw_listener_conf *l)
{
	return any_server(p, l, IPPROTO_TCP);
}

bool sw_plane_has_mptcp_server(struct sw_plane *p, const struct sw_listener_conf *l)
{
	return any_server(p, l, IPPROTO_MPTCP);
}
