// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A bad wire: loses the TCP segments that a test names, or some by chance. It sits where they come
 * in: what is lost where it is sent the sender's stack knows of.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "lib/loss_rule.h"

struct loss_rule rules[LOSS_WAYS];

/* Offset of the TCP header and, in `end`, of what follows its segment. 0: it is not TCP. */
static __always_inline __u32 find_tcp(struct __sk_buff *skb, __u32 *end)
{
	struct ipv6hdr v6;
	struct iphdr v4;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN, &v4, sizeof(v4)) ||
		    v4.protocol != IPPROTO_TCP)
			return 0;
		*end = ETH_HLEN + bpf_ntohs(v4.tot_len);
		return ETH_HLEN + v4.ihl * 4;
	}
	if (skb->protocol != bpf_htons(ETH_P_IPV6) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN, &v6, sizeof(v6)) || v6.nexthdr != IPPROTO_TCP)
		return 0;
	*end = ETH_HLEN + sizeof(v6) + bpf_ntohs(v6.payload_len);
	return ETH_HLEN + sizeof(v6);
}

static __always_inline int is_lost(struct __sk_buff *skb, volatile struct loss_rule *r)
{
	__u32 end = 0, off = find_tcp(skb, &end);
	struct tcphdr tcp;

	if (!off || bpf_skb_load_bytes(skb, off, &tcp, sizeof(tcp)))
		return 0;
	if (bpf_get_prandom_u32() % 1000 < r->permille)
		return 1;
	if (!r->count || end - off - tcp.doff * 4 < r->payload)
		return 0;
	if (r->skip) {
		r->skip--;
		return 0;
	}
	r->count--;
	return 1;
}

static __always_inline int carry(struct __sk_buff *skb, volatile struct loss_rule *r)
{
	if (!is_lost(skb, r))
		return TC_ACT_UNSPEC;
	__sync_fetch_and_add(&r->lost, 1);
	return TC_ACT_SHOT;
}

SEC("tc") int loss_out(struct __sk_buff *skb)
{
	return carry(skb, &rules[LOSS_OUT]);
}

SEC("tc") int loss_in(struct __sk_buff *skb)
{
	return carry(skb, &rules[LOSS_IN]);
}

char _license[] SEC("license") = "Dual BSD/GPL";
