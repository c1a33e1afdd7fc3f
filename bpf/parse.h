/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From bytes to struct packet, in two steps: locate() finds the TCP header with the fewest reads,
 * since every packet of the host pays for it; read() takes the rest for packets to a listener that
 * is shedding. Lengths come from the IP header, never from the end of the frame (padding).
 */
#ifndef SPILLWAY_BPF_PARSE_H
#define SPILLWAY_BPF_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>

#define GO_ON  (-1) /* not a reason: the next stage decides */
#define L2_MAX 22   /* Ethernet and two VLAN tags */
#define JUMBO  8    /* bytes of is_jumbo()'s header */

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20
#define TCP_ECE 0x40
#define TCP_CWR 0x80

struct vlan_header {
	__be16 tag;
	__be16 proto;
};

struct packet {
	/* set by locate() */
	__u16 l3, l4; /* offsets of the IP and TCP headers */
	__u32 end;    /* offset behind the IP packet; over 65,535 for the largest of GRO */
	__u16 dport;
	__u8 v6;
	/* set by read() */
	__u8 flags;
	__u16 sport;
	__u16 data;    /* offset of the payload */
	__u32 payload; /* bytes of payload */
	__u16 check;   /* the checksum field as it came */
	__u8 corrupt;  /* the IPv4 header's own checksum is wrong */
	__u32 seq, ack;
	__u32 saddr[4], daddr[4]; /* network order, IPv4-mapped */
	__u8 l2[24];
};

/* `begin + off` for the header at an offset we computed. The barriers keep the compiler from
 * folding the sum into later ones or dropping the bound: the verifier needs to see one pointer,
 * checked, and then used. */
static __always_inline void *header(void *begin, __u32 off)
{
	asm volatile("" : "+r"(off));
	begin += off & 0x7f;
	asm volatile("" : "+r"(begin));
	return begin;
}

_Static_assert(L2_MAX + 60 < 0x80, "headers start below the mask");

/* `super`: cut into segments later. One over 65,535 bytes has a length of 0 in its header, and goes
 * on to the end of the frame: two segments of lo are enough for that. */
static __always_inline int locate_v4(void *begin, void *end, __u32 length, int super,
				     struct packet *p)
{
	struct iphdr *ip = header(begin, p->l3);
	__u32 total;

	if ((void *)(ip + 1) > end)
		return SW_R_pass_malformed;
	if (ip->protocol != IPPROTO_TCP)
		return SW_R_pass_other;
	if (ip->version != 4 || ip->ihl < 5)
		return SW_R_pass_malformed;
	if (ip->frag_off & bpf_htons(0x3fff))
		return SW_R_pass_fragment;
	p->l4 = p->l3 + ip->ihl * 4;
	total = bpf_ntohs(ip->tot_len);
	if (!total && super)
		total = length - p->l3;
	if (p->l3 + total > length || p->l3 + total < p->l4 + sizeof(struct tcphdr))
		return SW_R_pass_malformed;
	p->end = p->l3 + total;
	return GO_ON;
}

static __always_inline int is_extension(__u8 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_FRAGMENT ||
	       next == IPPROTO_AH || next == IPPROTO_DSTOPTS || next == IPPROTO_MH ||
	       next == 139 /* HIP */ || next == 140 /* Shim6 */;
}

/* The kernel's own header between IPv6 and TCP, in which it notes the length of a super-segment of
 * more than 65,535 bytes. */
static __always_inline int is_jumbo(const struct ipv6hdr *ip, void *end)
{
	const __u8 *hop = (const __u8 *)(ip + 1);

	return ip->nexthdr == IPPROTO_HOPOPTS && (void *)(hop + JUMBO) <= end &&
	       hop[0] == IPPROTO_TCP && !hop[1];
}

static __always_inline int locate_v6(void *begin, void *end, __u32 length, int super,
				     struct packet *p)
{
	struct ipv6hdr *ip = header(begin, p->l3);
	__u32 total;
	int jumbo;

	if ((void *)(ip + 1) > end)
		return SW_R_pass_malformed;
	total = bpf_ntohs(ip->payload_len);
	p->l4 = p->l3 + sizeof(*ip);
	if (!total && super)
		total = length - p->l4;
	jumbo = !ip->payload_len && super && is_jumbo(ip, end);
	if (ip->nexthdr == IPPROTO_FRAGMENT)
		return SW_R_pass_fragment;
	if (!jumbo && is_extension(ip->nexthdr))
		return SW_R_pass_exthdr;
	if (!jumbo && ip->nexthdr != IPPROTO_TCP)
		return SW_R_pass_other;
	if (ip->version != 6)
		return SW_R_pass_malformed;
	if (p->l4 + total > length || total < (jumbo ? JUMBO : 0) + sizeof(struct tcphdr))
		return SW_R_pass_malformed;
	p->end = p->l4 + total;
	if (jumbo)
		p->l4 += JUMBO;
	return GO_ON;
}

/* Takes no more than it needs: what a local socket sends has its payload, and only that, in
 * fragments, and to pull some of it up means to copy the packet's head. */
static __always_inline int locate(ctx_t *ctx, struct packet *p)
{
	void *begin, *end;
	struct ethhdr *eth;
	struct tcphdr *tcp;
	__u32 length = ctx_length(ctx);
	__be16 proto;
	int i, reason;

	if (ctx_pull(ctx, L2_MAX))
		return SW_R_pass_malformed;
	begin = ctx_begin(ctx);
	end = ctx_end(ctx);
	eth = begin;
	if ((void *)(eth + 1) > end)
		return SW_R_pass_malformed;
	proto = eth->h_proto;
	p->l3 = sizeof(*eth);
	for (i = 0; i < 2; i++) {
		struct vlan_header *vlan = header(begin, p->l3);

		if (proto != bpf_htons(ETH_P_8021Q) && proto != bpf_htons(ETH_P_8021AD))
			break;
		if ((void *)(vlan + 1) > end)
			return SW_R_pass_malformed;
		proto = vlan->proto;
		p->l3 += sizeof(*vlan);
	}
	if (proto != bpf_htons(ETH_P_IP) && proto != bpf_htons(ETH_P_IPV6))
		return SW_R_pass_other;
	p->v6 = proto == bpf_htons(ETH_P_IPV6);
	if (ctx_pull(ctx, p->l3 + (p->v6 ? sizeof(struct ipv6hdr) + JUMBO : sizeof(struct iphdr))))
		return SW_R_pass_malformed;
	begin = ctx_begin(ctx);
	end = ctx_end(ctx);
	reason = p->v6 ? locate_v6(begin, end, length, ctx_is_super(ctx), p)
		       : locate_v4(begin, end, length, ctx_is_super(ctx), p);
	if (reason >= 0)
		return reason;
	if (ctx_pull(ctx, p->l4 + sizeof(*tcp)))
		return SW_R_pass_malformed;
	tcp = header(ctx_begin(ctx), p->l4);
	if ((void *)(tcp + 1) > ctx_end(ctx))
		return SW_R_pass_malformed;
	p->dport = bpf_ntohs(tcp->dest);
	return GO_ON;
}

/* One's-complement sum of 32-bit words or less, folded. */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Is the IPv4 header, which ends at p->l4, what was sent? */
static __always_inline int header_intact(void *begin, void *end, const struct packet *p)
{
	__u32 at;
	__u64 sum = 0;

	for (at = p->l3; at < p->l4 && at < L2_MAX + 60; at += 4) {
		const __u32 *word = header(begin, at);

		if ((void *)(word + 1) > end)
			return 0;
		sum += *word;
	}
	return fold(sum) == 0xffff;
}

static __always_inline void map_v4(__u32 to[4], __u32 addr)
{
	to[0] = to[1] = 0;
	to[2] = bpf_htonl(0xffff);
	to[3] = addr;
}

/* Copies what is needed of the headers; after it the packet itself is only asked for its payload.
 */
static __always_inline int read(ctx_t *ctx, struct packet *p)
{
	void *begin = ctx_begin(ctx), *end = ctx_end(ctx);
	struct tcphdr *tcp = header(begin, p->l4);

	if ((void *)(tcp + 1) > end || begin + L2_MAX > end)
		return SW_R_pass_malformed;
	p->data = p->l4 + tcp->doff * 4;
	if (tcp->doff < 5 || p->data > p->end)
		return SW_R_pass_malformed;
	p->payload = p->end - p->data;
	p->sport = bpf_ntohs(tcp->source);
	p->seq = bpf_ntohl(tcp->seq);
	p->ack = bpf_ntohl(tcp->ack_seq);
	p->check = tcp->check;
	p->flags = ((__u8 *)tcp)[13];
	__builtin_memcpy(p->l2, begin, L2_MAX);
	if (p->v6) {
		struct ipv6hdr *ip = header(begin, p->l3);

		if ((void *)(ip + 1) > end)
			return SW_R_pass_malformed;
		__builtin_memcpy(p->saddr, &ip->saddr, 16);
		__builtin_memcpy(p->daddr, &ip->daddr, 16);
	} else {
		struct iphdr *ip = header(begin, p->l3);

		if ((void *)(ip + 1) > end)
			return SW_R_pass_malformed;
		p->corrupt = !header_intact(begin, end, p);
		map_v4(p->saddr, ip->saddr);
		map_v4(p->daddr, ip->daddr);
	}
	return GO_ON;
}

/* Loads 1 to `max` bytes. Verifiers before 6.8 learn nothing from "not 0", so the bound is put on
 * one less than the length, in the very register that the helper's argument is made from. */
static __always_inline int load_some(ctx_t *ctx, __u32 off, void *to, __u32 length, __u32 max)
{
	__u32 more = length - 1;

	asm volatile("" : "+r"(more));
	return more < max ? ctx_load(ctx, off, to, more + 1) : -1;
}

static __always_inline int store_some(ctx_t *ctx, __u32 off, void *from, __u32 length, __u32 max)
{
	__u32 more = length - 1;

	asm volatile("" : "+r"(more));
	return more < max ? ctx_store(ctx, off, from, more + 1) : -1;
}

#endif
