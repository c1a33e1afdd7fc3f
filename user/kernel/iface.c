// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Facts about network interfaces; see iface.h. By ioctl, because /sys shows the interfaces of the
 * namespace that mounted it. */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/iface.h"
#include "kernel/netlink.h"

static int ask(int fd, unsigned long what, const char *name, struct ifreq *ifr)
{
	memset(ifr, 0, sizeof(*ifr));
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	return ioctl(fd, what, ifr) ? -errno : 0;
}

static int ask_ethtool(int fd, const char *name, void *cmd)
{
	struct ifreq ifr = {.ifr_data = cmd};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	return ioctl(fd, SIOCETHTOOL, &ifr) ? -errno : 0;
}

static int any_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int sw_iface_get(const char *name, struct sw_iface *out)
{
	int fd, err;
	struct ifreq ifr;

	if (strlen(name) >= sizeof(out->name))
		return -ENODEV;
	fd = any_socket();
	if (fd < 0)
		return fd;
	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "%s", name);
	err = ask(fd, SIOCGIFINDEX, name, &ifr);
	out->index = ifr.ifr_ifindex;
	if (!err)
		err = ask(fd, SIOCGIFFLAGS, name, &ifr);
	out->up = ifr.ifr_flags & IFF_UP;
	out->loopback = ifr.ifr_flags & IFF_LOOPBACK;
	if (!err)
		err = ask(fd, SIOCGIFMTU, name, &ifr);
	out->mtu = ifr.ifr_mtu;
	if (!err)
		err = ask(fd, SIOCGIFHWADDR, name, &ifr);
	out->ethernet = ifr.ifr_hwaddr.sa_family == ARPHRD_ETHER;
	memcpy(out->mac, ifr.ifr_hwaddr.sa_data, sizeof(out->mac));
	close(fd);
	return err;
}

void sw_iface_driver(const char *name, char out[32])
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	int fd = any_socket();

	snprintf(out, 32, "none");
	if (fd >= 0 && !ask_ethtool(fd, name, &info))
		snprintf(out, 32, "%.31s", info.driver);
	if (fd >= 0)
		close(fd);
}

int sw_iface_list(struct sw_iface **out)
{
	struct if_nameindex *names = if_nameindex();
	size_t n = 0, kept = 0;

	if (!names)
		return -errno;
	while (names[n].if_index)
		n++;
	*out = calloc(n + 1, sizeof(**out));
	for (size_t i = 0; *out && i < n; i++)
		kept += !sw_iface_get(names[i].if_name, &(*out)[kept]); /* may just have gone */
	if_freenameindex(names);
	return *out ? (int)kept : -ENOMEM;
}

const struct sw_iface *sw_iface_find(const struct sw_iface *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

/* Sum of the driver's own counters of packets that XDP sent, for drivers that keep those apart. */
static uint64_t sent_by_driver(int fd, const char *name)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ethtool_gstrings *names;
	struct ethtool_stats *stats;
	uint64_t sum = 0;

	if (ask_ethtool(fd, name, &info) || !info.n_stats || info.n_stats > 65536)
		return 0;
	names = calloc(1, sizeof(*names) + info.n_stats * ETH_GSTRING_LEN);
	stats = calloc(1, sizeof(*stats) + info.n_stats * sizeof(stats->data[0]));
	if (!names || !stats)
		goto out;
	*names = (struct ethtool_gstrings){
		.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = info.n_stats};
	stats->cmd = ETHTOOL_GSTATS;
	stats->n_stats = info.n_stats;
	if (ask_ethtool(fd, name, names) || ask_ethtool(fd, name, stats))
		goto out;
	for (unsigned i = 0; i < names->len && i < stats->n_stats; i++) {
		char s[ETH_GSTRING_LEN + 1] = "";

		memcpy(s, names->data + i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
		if (strstr(s, "xdp") && strstr(s, "xmit") && !strstr(s, "err") &&
		    !strstr(s, "drop"))
			sum += stats->data[i];
	}
out:
	free(names);
	free(stats);
	return sum;
}

uint64_t sw_iface_sent(const char *name)
{
	struct ifaddrs *all, *a;
	int fd = any_socket();
	uint64_t sum = 0;

	if (fd < 0)
		return 0;
	if (!getifaddrs(&all)) {
		for (a = all; a; a = a->ifa_next)
			if (a->ifa_addr && a->ifa_addr->sa_family == AF_PACKET && a->ifa_data &&
			    !strcmp(a->ifa_name, name))
				sum = ((struct rtnl_link_stats *)a->ifa_data)->tx_packets;
		freeifaddrs(all);
	}
	sum += sent_by_driver(fd, name);
	close(fd);
	return sum;
}

struct addresses {
	struct sw_local *out;
	size_t n, max;
};

/* An address of ours: IFA_LOCAL where there is a peer's beside it (IPv4), else IFA_ADDRESS. */
static int take_address(const struct nlmsghdr *nh, void *arg)
{
	const struct ifaddrmsg *m = NLMSG_DATA(nh);
	const struct rtattr *a = sw_netlink_attr(IFA_RTA(m), IFA_PAYLOAD(nh), IFA_LOCAL);
	struct addresses *all = arg;
	struct sw_local *to = &all->out[all->n];

	if (!a)
		a = sw_netlink_attr(IFA_RTA(m), IFA_PAYLOAD(nh), IFA_ADDRESS);
	if (!a || all->n == all->max)
		return 0;
	memset(to, 0, sizeof(*to));
	if (m->ifa_family == AF_INET && RTA_PAYLOAD(a) == 4) {
		to->addr[10] = to->addr[11] = 0xff;
		memcpy(to->addr + 12, RTA_DATA(a), 4);
		all->n++;
	} else if (m->ifa_family == AF_INET6 && RTA_PAYLOAD(a) == 16) {
		memcpy(to->addr, RTA_DATA(a), 16);
		all->n++;
	}
	return 0;
}

int sw_iface_addresses(struct sw_local *out, size_t max)
{
	const struct ifaddrmsg every = {.ifa_family = AF_UNSPEC};
	struct addresses all = {.out = out, .max = max};
	int err = sw_netlink_dump(NETLINK_ROUTE, RTM_GETADDR, &every, sizeof(every), take_address,
				  &all);

	return err ? err : (int)all.n;
}

long sw_sysctl_ipv4(const char *name, long otherwise)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", name);
	f = fopen(path, "re");
	if (!f)
		return otherwise;
	if (fscanf(f, "%ld", &otherwise) != 1)
		errno = EINVAL; /* `otherwise` is untouched */
	fclose(f);
	return otherwise;
}

void sw_iface_levers(const struct sw_iface *guarded, size_t n, struct sw_levers *out)
{
	unsigned mtu = 1500;

	*out = (struct sw_levers){0};
	if (sw_sysctl_ipv4("tcp_timestamps", 1))
		out->tcp |= SW_TCP_TIMESTAMPS;
	if (sw_sysctl_ipv4("tcp_sack", 1))
		out->tcp |= SW_TCP_SACK;
	if (sw_sysctl_ipv4("tcp_window_scaling", 1))
		out->tcp |= SW_TCP_WSCALE;
	if (sw_sysctl_ipv4("tcp_ecn", 2))
		out->tcp |= SW_TCP_ECN;
	for (size_t i = 0; i < n; i++)
		if (!guarded[i].loopback && guarded[i].mtu >= 576 && guarded[i].mtu < mtu)
			mtu = guarded[i].mtu;
	out->mss4 = mtu - 40;
	out->mss6 = mtu - 60;
}
