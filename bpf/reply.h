/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns the packet at hand into our reply: resize, then write every header anew. After the first
 * write there is no way back to "pass". Ethernet and VLAN tags come back as they came; the IP
 * header keeps its length (a partial checksum counts from where TCP began), its options are zeroed.
 */
#ifndef SPILLWAY_BPF_REPLY_H
#define SPILLWAY_BPF_REPLY_H

#include "checksum.h"
#include "options.h"

#define OUR_TTL	      64
#define REPLY_OPTIONS 6 /* 32-bit words at most */
#define WINDOW_DRAIN  0xffff
/* Two segments: a sender halves a window of one, and what is in flight behind the request before
 * our answer arrives is thrown away, so there should not be much of it. Until the answer is there a
 * client cannot be further than this, and all that we ever acknowledge was received in order. */
#define WINDOW_SYN_ACK 2920 /* under 4,096: cookie.h relies on it */

struct reply {
	__u32 seq, ack;
	__u32 option[REPLY_OPTIONS]; /* network order */
	__u16 window;
	__u8 words; /* of option */
	__u8 flags;
	struct sw_answer *answer; /* NULL: no payload */
};

static __always_inline void put_timestamp(__u32 option[3], int sack_ok, __u32 value, __u32 echo)
{
	option[0] = sack_ok ? bpf_htonl(OPT_SACK_OK << 24 | 2 << 16 | OPT_TIMESTAMP << 8 | 10)
			    : bpf_htonl(OPT_NOP << 24 | OPT_NOP << 16 | OPT_TIMESTAMP << 8 | 10);
	option[1] = bpf_htonl(value);
	option[2] = bpf_htonl(echo);
}

/* Answers options with options: none that was not offered, so that the SYN-ACK is never longer than
 * the SYN, and nobody gets more bytes than he sent before he has proven where he is. SACK and
 * window scale only with timestamps, in which they are remembered. */
static __always_inline void syn_ack_options(struct reply *r, const struct options *o, __u16 mss,
					    __u32 value)
{
	__u32 mss_option = bpf_htonl(OPT_MSS << 24 | 4 << 16 | mss);

	if (!o->timestamp) {
		r->option[0] = mss_option;
		r->words = 1;
	} else {
		put_timestamp(r->option, o->sack_ok, value, o->tsval);
		r->option[3] = mss_option;
		r->words = 4;
		if (o->wscale != NO_WSCALE) {
			r->option[3] =
				bpf_htonl(OPT_NOP << 24 | OPT_WSCALE << 16 | 3 << 8 | OUR_WSCALE);
			r->option[4] = mss_option;
			r->words = 5;
		}
	}
	if (!o->mss)
		r->words--;
}

/* Ethernet addresses swapped, tags as they came. */
static __always_inline int write_l2(void *begin, void *end, const struct packet *p)
{
	if (begin + L2_MAX > end)
		return -1;
	__builtin_memcpy(begin, p->l2 + ETH_ALEN, ETH_ALEN);
	__builtin_memcpy(begin + ETH_ALEN, p->l2, ETH_ALEN);
	__builtin_memcpy(begin + 2 * ETH_ALEN, p->l2 + 2 * ETH_ALEN, 2);
	if (p->l3 > ETH_HLEN)
		__builtin_memcpy(begin + ETH_HLEN, p->l2 + ETH_HLEN, 4);
	if (p->l3 > ETH_HLEN + 4)
		__builtin_memcpy(begin + ETH_HLEN + 4, p->l2 + ETH_HLEN + 4, 4);
	return 0;
}

static __always_inline int write_v4(void *begin, void *end, const struct packet *p, __u32 total)
{
	struct iphdr *ip = header(begin, p->l3);
	__u32 *option = (__u32 *)(ip + 1);
	__u64 sum = 0;
	__u32 i, words = (__u32)(p->l4 - p->l3) / 4;

	if ((void *)(ip + 1) > end)
		return -1;
	ip->version = 4;
	ip->ihl = words;
	ip->tos = 0;
	ip->tot_len = bpf_htons(total - p->l3);
	ip->id = 0;
	ip->frag_off = bpf_htons(0x4000);
	ip->ttl = OUR_TTL;
	ip->protocol = IPPROTO_TCP;
	ip->check = 0;
	ip->saddr = p->daddr[3];
	ip->daddr = p->saddr[3];
	for (i = 0; i < 5; i++)
		sum += ((__u32 *)ip)[i];
	ip->check = ~fold(sum);
	for (i = 0; i < 10 && i + 5 < words; i++) {
		if ((void *)(option + i + 1) > end)
			return -1;
		option[i] = 0;
	}
	return 0;
}

static __always_inline int write_v6(void *begin, void *end, const struct packet *p, __u32 total)
{
	struct ipv6hdr *ip = header(begin, p->l3);

	if ((void *)(ip + 1) > end)
		return -1;
	*(__u32 *)ip = bpf_htonl(0x60000000);
	ip->payload_len = bpf_htons(total - p->l3 - sizeof(*ip));
	ip->nexthdr = IPPROTO_TCP;
	if (p->l4 - p->l3 > (int)sizeof(*ip)) { /* JUMBO bytes, of which padding is made */
		__u32 *hop = (__u32 *)(ip + 1);

		if ((void *)(hop + 2) > end)
			return -1;
		ip->nexthdr = IPPROTO_HOPOPTS;
		hop[0] = bpf_htonl(IPPROTO_TCP << 24 | 1 << 8 | 4);
		hop[1] = 0;
	}
	ip->hop_limit = OUR_TTL;
	__builtin_memcpy(&ip->saddr, p->daddr, 16);
	__builtin_memcpy(&ip->daddr, p->saddr, 16);
	return 0;
}

/* The fixed TCP header, checksum zero; returns its sum with the options'. */
static __always_inline __u64 tcp_header(const struct packet *p, const struct reply *r,
					__u32 word[5])
{
	__u64 sum = 0;
	int i;

	word[0] = bpf_htonl((__u32)p->dport << 16 | p->sport);
	word[1] = bpf_htonl(r->seq);
	word[2] = bpf_htonl(r->ack);
	word[3] = bpf_htonl((__u32)(5 + r->words) << 28 | (__u32)r->flags << 16 | r->window);
	word[4] = 0;
	for (i = 0; i < 4; i++)
		sum += word[i];
	for (i = 0; i < REPLY_OPTIONS && i < r->words; i++)
		sum += r->option[i];
	return sum;
}

static __always_inline int write_tcp(void *begin, void *end, const struct packet *p,
				     const struct reply *r, const __u32 word[5])
{
	__u32 *to = header(begin, p->l4);
	int i;

	if ((void *)(to + 5) > end)
		return -1;
	for (i = 0; i < 5; i++)
		to[i] = word[i];
	for (i = 0; i < REPLY_OPTIONS && i < r->words; i++) {
		if ((void *)(to + 5 + i + 1) > end)
			return -1;
		to[5 + i] = r->option[i];
	}
	return 0;
}

/* Builds the reply in the packet's place. GO_ON: it is ready to be sent. */
static __noinline int write_reply(ctx_t *ctx, const struct packet *p, struct reply *r)
{
	__u32 payload = r->answer ? r->answer->length : 0;
	__u32 data = p->l4 + sizeof(struct tcphdr) + 4 * r->words, total = data + payload;
	__u64 pseudo = pseudo_header(p, total - p->l4), sum;
	void *begin, *end;
	__u32 word[5];

	sum = pseudo + tcp_header(p, r, word) + (r->answer ? r->answer->sum : 0);
	word[4] = CTX_IS_XDP ? (__u16)~fold(sum) : fold(pseudo);
	/* there may be more options in it than came */
	if (payload > SW_ANSWER_MAX || ctx_resize(ctx, total) || ctx_pull(ctx, data))
		return CTX_IS_XDP ? SW_R_pass_to_tc : SW_R_drop_failed;
	begin = ctx_begin(ctx);
	end = ctx_end(ctx);
	if (write_l2(begin, end, p) ||
	    (p->v6 ? write_v6(begin, end, p, total) : write_v4(begin, end, p, total)) ||
	    write_tcp(begin, end, p, r, word))
		return SW_R_drop_failed;
	if (r->answer && store_some(ctx, data, (void *)r->answer->bytes, payload, SW_ANSWER_MAX))
		return SW_R_drop_failed;
	return ctx_finish_checksum(ctx, p->l4 + 16, fold(pseudo), fold(sum)) ? SW_R_drop_failed
									     : GO_ON;
}

#endif
