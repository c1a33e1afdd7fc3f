// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Programs on one end of a veth pair, a packet socket on the other. Frames travel with a
// virtio_net_hdr, which says what a NIC would be told: where a checksum is to be completed, and how
// a super-segment is to be cut.

#include "wire.h"
#include "link.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define TCX_INGRESS 46 /* BPF_TCX_INGRESS; not in Debian 12's headers */

/* ---- programs ------------------------------------------------------------------------------ */

/* TCX, or clsact on kernels before 6.6; that goes with the interface. */
static bool attach_tc(struct wire *wire)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = wire->host, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = wire->w->program[HOOK_TC]);

	wire->tc = bpf_link_create(wire->w->program[HOOK_TC], wire->host, TCX_INGRESS, NULL);
	if (wire->tc >= 0)
		return true;
	wire->clsact = true;
	bpf_tc_hook_create(&hook);
	return !bpf_tc_attach(&hook, &opts);
}

/* veth delivers what XDP_TX sends only to an end that has an XDP program itself; for what is
 * redirected there, the NAPI that link.c has asked for is enough. */
static bool receive_from_xdp(struct wire *wire)
{
	static const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int err, program = bpf_prog_load(BPF_PROG_TYPE_XDP, "pass", "GPL", pass, 2, NULL);

	err = bpf_xdp_attach(wire->client, program, XDP_FLAGS_DRV_MODE, NULL);
	close(program);
	return !err;
}

void wire_attach(struct wire *wire, struct lane *l)
{
	if (!attach_tc(wire))
		world_complain(l->w, "TC did not attach");
	if (l->hook == HOOK_TC)
		return;
	if (l->hook == HOOK_XDP && !receive_from_xdp(wire))
		world_complain(l->w, "XDP did not attach to the client's end");
	wire->xdp = l->hook == HOOK_XDP_GENERIC ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	if (bpf_xdp_attach(wire->host, l->w->program[l->hook], wire->xdp, NULL))
		world_complain(l->w, "XDP did not attach");
}

static void detach(struct wire *wire)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = wire->host,
		    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);

	if (wire->tc >= 0)
		close(wire->tc);
	else if (wire->clsact)
		bpf_tc_hook_destroy(&hook);
	if (wire->xdp)
		bpf_xdp_detach(wire->host, wire->xdp, NULL);
	wire->tc = -1;
	wire->clsact = false;
	wire->xdp = 0;
}

/* ---- up and down --------------------------------------------------------------------------- */

static int packet_socket(int ifindex)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_ifindex = ifindex, .sll_protocol = htons(ETH_P_ALL)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one));
	setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one));
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	bind(fd, (struct sockaddr *)&at, sizeof(at));
	return fd;
}

static int transmit(int fd, const struct virtio_net_hdr *header, const void *bytes, size_t len)
{
	struct iovec parts[2] = {{(void *)header, sizeof(*header)}, {(void *)bytes, len}};

	return writev(fd, parts, 2) < 0 ? -errno : 0;
}

/* A new interface throws frames away for a while. */
static bool carries(const struct wire *wire)
{
	static const char probe[60] = {2, 0, 0, 0, 0, 0x5e, 2, 0, 0, 0, 0, 0x5e, 0x88, 0xb5};
	struct pollfd host = {.fd = packet_socket(wire->host), .events = POLLIN};
	struct pollfd client = {.fd = wire->fd, .events = POLLIN};
	struct virtio_net_hdr none = {};
	int tries = 2000;

	do {
		transmit(client.fd, &none, probe, sizeof(probe));
		transmit(host.fd, &none, probe, sizeof(probe));
	} while ((poll(&host, 1, 2) < 1 || poll(&client, 1, 2) < 1) && tries--);
	close(host.fd);
	return tries > 0;
}

bool wire_up(struct wire *wire, struct world *w)
{
	int err = link_make();

	*wire = (struct wire){.w = w, .tc = -1, .fd = -1};
	if (err) {
		printf("skip: no veth pair: %s\n", strerror(-err));
		return false;
	}
	w->noisy = true;
	wire->host = if_nametoindex(LINK_HOST);
	wire->client = if_nametoindex(LINK_CLIENT);
	link_configure(w->ipv6);
	wire->fd = packet_socket(wire->client);
	if (!carries(wire)) {
		printf("skip: the veth pair does not come up\n");
		wire_down(wire);
		return false;
	}
	return true;
}

void wire_down(struct wire *wire)
{
	detach(wire);
	close(wire->fd);
	link_remove();
	wire->w->noisy = false;
}

/* ---- frames -------------------------------------------------------------------------------- */

void wire_send(struct wire *wire, const struct frame *f, struct packet *p, unsigned gso_size)
{
	struct virtio_net_hdr header = {};
	int err;

	frame_build(f, p);
	if (gso_size) {
		header.gso_size = gso_size;
		header.gso_type =
			f->family == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
	}
	header.hdr_len = wire->linear;
	if (f->sum == SUM_PARTIAL) {
		header.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		header.csum_start = p->l4;
		header.csum_offset = 16;
	}
	err = transmit(wire->fd, &header, p->bytes, p->len);
	if (err)
		world_complain(wire->w, "send: %s", strerror(-err));
}

/* What a NIC does with a checksum that was left to it. */
static void complete(const struct virtio_net_hdr *header, struct result *r)
{
	size_t start = header->csum_start, at = start + header->csum_offset;
	uint16_t sum;

	if (!(header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || at + 2 > r->len)
		return;
	sum = ~inet_sum(r->bytes + start, r->len - start, 0);
	r->bytes[at] = sum >> 8;
	r->bytes[at + 1] = sum & 0xff;
}

/* A tag that the receiver was told beside the frame goes back to its place. */
static void put_tag_back(struct msghdr *msg, struct result *r)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	struct tpacket_auxdata *aux = c ? (void *)CMSG_DATA(c) : NULL;
	uint16_t tag[2];

	if (!aux || c->cmsg_type != PACKET_AUXDATA || !(aux->tp_status & TP_STATUS_VLAN_VALID))
		return;
	tag[0] = htons(aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : 0x8100);
	tag[1] = htons(aux->tp_vlan_tci);
	memmove(r->bytes + 16, r->bytes + 12, r->len - 12);
	memcpy(r->bytes + 12, tag, 4);
	r->len += 4;
}

/* Is it TCP to this port? Looked at loosely: what is wrong with the frame is for others to say. */
static bool is_to_port(const struct result *r, uint16_t port)
{
	const uint8_t *b = r->bytes;
	size_t at = 14;

	while (r->len >= at + 40 && (b[at - 2] == 0x81 || b[at - 2] == 0x88))
		at += 4;
	if (r->len < at + 40)
		return false;
	if (b[at - 2] == 0x08 && b[at + 9] == 6)
		at += (b[at] & 15) * 4;
	else if (b[at - 2] == 0x86 && b[at + 6] == 6)
		at += 40;
	else
		return false;
	return r->len >= at + 4 && (b[at + 2] << 8 | b[at + 3]) == port;
}

bool wire_receive(struct wire *wire, uint16_t port, struct result *r, int timeout_ms)
{
	uint64_t until = world_now() + timeout_ms * 1000000ULL;
	struct pollfd ready = {.fd = wire->fd, .events = POLLIN};
	struct virtio_net_hdr header;
	struct iovec parts[2] = {{&header, sizeof(header)}, {r->bytes, sizeof(r->bytes) - 4}};
	char control[256];

	do {
		struct msghdr msg = {.msg_iov = parts,
				     .msg_iovlen = 2,
				     .msg_control = control,
				     .msg_controllen = sizeof(control)};
		ssize_t n;

		if (poll(&ready, 1, timeout_ms) <= 0)
			return false;
		n = recvmsg(wire->fd, &msg, 0);
		if (n < (ssize_t)sizeof(header))
			continue;
		r->len = n - sizeof(header);
		complete(&header, r);
		put_tag_back(&msg, r);
		if (is_to_port(r, port))
			return true;
	} while (world_now() < until);
	return false;
}
