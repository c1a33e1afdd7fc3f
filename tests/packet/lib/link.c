// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Makes, sets up and removes a veth pair by system calls alone, so that it works where there is no
// `ip` command.

#include "link.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
	struct nlmsghdr header;
	struct ifinfomsg link;
	char attributes[256];
};

static struct rtattr *add(struct request *r, int type, const void *data, size_t len)
{
	struct rtattr *a = (void *)((char *)r + NLMSG_ALIGN(r->header.nlmsg_len));

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), data, len);
	r->header.nlmsg_len = NLMSG_ALIGN(r->header.nlmsg_len) + RTA_ALIGN(a->rta_len);
	return a;
}

static void end(struct request *r, struct rtattr *a)
{
	a->rta_len = (char *)r + r->header.nlmsg_len - (char *)a;
}

static int transact(struct request *r)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), err = -EIO;
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512];
	} answer;

	if (fd < 0)
		return -errno;
	if (send(fd, r, r->header.nlmsg_len, 0) > 0 && recv(fd, &answer, sizeof(answer), 0) > 0 &&
	    answer.header.nlmsg_type == NLMSG_ERROR)
		err = answer.error.error;
	close(fd);
	return err;
}

int link_make(void)
{
	static const struct ifinfomsg peer;
	struct request r = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.link)),
			   .nlmsg_type = RTM_NEWLINK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
	};
	struct rtattr *info, *data, *other;

	add(&r, IFLA_IFNAME, LINK_HOST, sizeof(LINK_HOST));
	info = add(&r, IFLA_LINKINFO, NULL, 0);
	add(&r, IFLA_INFO_KIND, "veth", 4);
	data = add(&r, IFLA_INFO_DATA, NULL, 0);
	other = add(&r, VETH_INFO_PEER, &peer, sizeof(peer));
	add(&r, IFLA_IFNAME, LINK_CLIENT, sizeof(LINK_CLIENT));
	end(&r, other);
	end(&r, data);
	end(&r, info);
	return transact(&r);
}

/* The client's end has no business with IPv6 but ours. */
static void be_quiet(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/" LINK_CLIENT "/disable_ipv6", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1", 1) != 1)
		perror("disable_ipv6");
	close(fd);
}

/* A new IPv6 address is tentative for a moment, and cannot be bound to or reached. */
static void wait_for_address(const struct in6_addr *addr)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = *addr};
	struct ifreq ifr = {.ifr_name = LINK_HOST};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), tries = 2000;

	while (bind(fd, (struct sockaddr *)&at, sizeof(at)) && tries--)
		usleep(2000);
	/* its route follows in the same critical section, for which this waits */
	ioctl(fd, SIOCGIFFLAGS, &ifr);
	ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
}

void link_configure(bool ipv6)
{
	struct ethtool_value gro = {.cmd = ETHTOOL_SGRO, .data = 1}; /* gives an end a NAPI */
	struct ifreq host = {.ifr_name = LINK_HOST}, client = {.ifr_name = LINK_CLIENT};
	struct in6_ifreq {
		struct in6_addr addr;
		uint32_t prefixlen;
		int ifindex;
	} v6 = {.prefixlen = 64};
	struct sockaddr_in *sin = (struct sockaddr_in *)&host.ifr_addr;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), fd6;
	uint8_t src[16], dst[16];

	be_quiet();
	client.ifr_data = (void *)&gro;
	ioctl(fd, SIOCETHTOOL, &client);
	/* the server's address of all frames, see frame.c; neighbours are not asked for */
	host.ifr_hwaddr = (struct sockaddr){.sa_family = 1, .sa_data = {2, 0, 0, 0, 0, 0x5e}};
	ioctl(fd, SIOCSIFHWADDR, &host);
	host.ifr_flags = client.ifr_flags = IFF_UP | IFF_NOARP;
	ioctl(fd, SIOCSIFFLAGS, &client);
	ioctl(fd, SIOCSIFFLAGS, &host);
	memset(&host.ifr_addr, 0, sizeof(host.ifr_addr));
	sin->sin_family = AF_INET;
	world_addresses(4, 0, src, dst);
	memcpy(&sin->sin_addr, dst, 4);
	ioctl(fd, SIOCSIFADDR, &host);
	close(fd);
	if (!ipv6)
		return;
	fd6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	world_addresses(6, 0, src, dst);
	memcpy(&v6.addr, dst, 16);
	v6.ifindex = if_nametoindex(LINK_HOST);
	ioctl(fd6, SIOCSIFADDR, &v6);
	close(fd6);
	wait_for_address(&v6.addr);
}

void link_large_frames(void)
{
	struct ifreq host = {.ifr_name = LINK_HOST}, client = {.ifr_name = LINK_CLIENT};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	host.ifr_mtu = client.ifr_mtu = 9000;
	if (ioctl(fd, SIOCSIFMTU, &host) || ioctl(fd, SIOCSIFMTU, &client))
		perror("MTU 9000");
	close(fd);
}

void link_remove(void)
{
	struct request r = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.link)),
			   .nlmsg_type = RTM_DELLINK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.link = {.ifi_index = if_nametoindex(LINK_HOST)},
	};

	transact(&r);
}
