/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes other numbers into a segment that goes on: sequence, acknowledgement, SACK blocks, and the
 * checksum, which stays partial where it is. */
#ifndef SPILLWAY_BPF_TRANSLATE_H
#define SPILLWAY_BPF_TRANSLATE_H

#include "flow.h"
#include "options.h"

#define OPT_SACK 5

static __always_inline int put_number(ctx_t *ctx, __u32 check, __u32 off, __u32 from, __u32 to)
{
	__be32 old = bpf_htonl(from), new = bpf_htonl(to);

	if (from == to)
		return 0;
	return bpf_l4_csum_replace(ctx, check, old, new, sizeof(new)) ||
	       bpf_skb_store_bytes(ctx, off, &new, sizeof(new), 0);
}

struct sack_walk {
	ctx_t *ctx;
	const struct flow *f;
	__u32 l4, off, end; /* offsets from the start of the frame */
	__u32 left;	    /* edges to come of the block list at `off` */
	__u32 to_client;
	__u32 failed;
};

static __always_inline int put_edge(struct sack_walk *k)
{
	__be32 edge;
	__u32 from, to;

	/* a sum over 16-bit words cannot be mended at an odd place */
	if ((k->off - k->l4) & 1 || bpf_skb_load_bytes(k->ctx, k->off, &edge, sizeof(edge)))
		return -1;
	from = bpf_ntohl(edge);
	to = k->to_client ? ack_to_client(k->f, from) : ack_to_socket(k->f, from);
	k->left--;
	k->off += sizeof(edge);
	return put_number(k->ctx, k->l4 + 16, k->off - sizeof(edge), from, to);
}

/* One option, or one edge of a SACK block. 1: the walk ends. */
static long sack_step(__u32 i, struct sack_walk *k)
{
	__u8 kind[2] = {};

	(void)i;
	if (k->off >= k->end)
		return 1;
	if (k->left)
		return k->failed = put_edge(k) ? 1 : 0;
	if (bpf_skb_load_bytes(k->ctx, k->off, kind, k->off + 1 < k->end ? 2 : 1) || !kind[0])
		return 1;
	if (kind[0] == OPT_NOP) {
		k->off++;
		return 0;
	}
	if (kind[1] < 2 || k->off + kind[1] > k->end)
		return 1;
	if (kind[0] == OPT_SACK && kind[1] % 8 == 2) {
		k->left = kind[1] / 4; /* 2 + 8n: two edges each, 2n */
		k->off += 2;
		return 0;
	}
	k->off += kind[1];
	return 0;
}

static __always_inline int put_sacks(ctx_t *ctx, const struct packet *p, const struct flow *f,
				     int to_client)
{
	struct sack_walk k = {.ctx = ctx,
			      .f = f,
			      .l4 = p->l4,
			      .off = p->l4 + sizeof(struct tcphdr),
			      .end = p->data,
			      .to_client = to_client};

	__u32 size = k.end - k.off;
	__be32 word;

	if (size < 10) /* no room for a block */
		return 0;
	if (size == 12 && !bpf_skb_load_bytes(ctx, k.off, &word, sizeof(word)) &&
	    word == bpf_htonl(NOP_NOP_TS))
		return 0;
	bpf_loop(OPTIONS_MAX + 8, sack_step, &k, 0);
	return k.failed;
}

/* 0, or the segment could not be written and must not go on. */
__noinline int STAGE(translate)(ctx_t *ctx, const struct packet *p, const struct flow *f,
				int to_client)
{
	__u32 seq, ack;

	if (!p || !f)
		return -1;
	seq = to_client ? seq_to_client(f, p->seq) : seq_to_socket(f, p->seq);
	ack = to_client ? ack_to_client(f, p->ack) : ack_to_socket(f, p->ack);

	if (put_number(ctx, p->l4 + 16, p->l4 + 4, p->seq, seq))
		return -1;
	if (p->flags & TCP_ACK && put_number(ctx, p->l4 + 16, p->l4 + 8, p->ack, ack))
		return -1;
	return p->flags & TCP_ACK ? put_sacks(ctx, p, f, to_client) : 0;
}

#endif
