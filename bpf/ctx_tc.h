/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The common view of a packet over TC ingress. Same names as ctx_xdp.h. */
#ifndef SPILLWAY_BPF_CTX_H
#define SPILLWAY_BPF_CTX_H

#include <linux/pkt_cls.h>
#include "maps.h"

typedef struct __sk_buff ctx_t;

#define CTX_IS_XDP 0
#define CTX_PASS   TC_ACT_UNSPEC /* also TCX_NEXT: whatever comes behind us still sees the packet */
#define CTX_DROP   TC_ACT_SHOT
#ifndef ctx_counts
#define ctx_counts counts_tc
#endif

/* A stage of its own for the verifier: it looks at a global function once, whatever called it. Each
 * hook has its own copy, as the context differs. */
#ifndef STAGE
#define STAGE(name) tc_##name
#endif

enum variant {
	VARIANT_NATIVE,
	VARIANT_GENERIC, /* never */
};

static __always_inline void *ctx_begin(ctx_t *ctx)
{
	return (void *)(long)*(volatile __u32 *)&ctx->data;
}

static __always_inline void *ctx_end(ctx_t *ctx)
{
	return (void *)(long)*(volatile __u32 *)&ctx->data_end;
}

static __always_inline __u32 ctx_length(ctx_t *ctx)
{
	return *(volatile __u32 *)&ctx->len;
}

/* Is it more than a segment, to be cut later or put together by GRO? */
static __always_inline int ctx_is_super(ctx_t *ctx)
{
	return ctx->gso_size != 0;
}

/* Makes the first `bytes` readable through pointers; the rest of an skb may lie in fragments. */
static __always_inline int ctx_pull(ctx_t *ctx, __u32 bytes)
{
	__u32 len = ctx_length(ctx);

	if (bytes > len)
		bytes = len;
	if (ctx_end(ctx) - ctx_begin(ctx) >= bytes)
		return 0;
	return bpf_skb_pull_data(ctx, bytes);
}

static __always_inline int ctx_load(ctx_t *ctx, __u32 off, void *to, __u32 len)
{
	return bpf_skb_load_bytes(ctx, off, to, len);
}

static __always_inline int ctx_store(ctx_t *ctx, __u32 off, void *from, __u32 len)
{
	return bpf_skb_store_bytes(ctx, off, from, len, 0);
}

/* The NIC or GRO has found the checksum right (CHECKSUM_UNNECESSARY). */
static __always_inline int ctx_checksum_proven(ctx_t *ctx)
{
	return bpf_csum_level(ctx, BPF_CSUM_LEVEL_QUERY) >= 0;
}

static __always_inline int ctx_resize(ctx_t *ctx, __u32 want)
{
	return bpf_skb_change_tail(ctx, want, 0);
}

/* The field holds `partial`, the pseudo-header's sum, which is what CHECKSUM_PARTIAL wants to find
 * there. Only when the skb is not partial does the helper apply the difference, and then the field
 * becomes the whole checksum ~sum: ~fold(diff + ~partial) with diff = sum + partial. So one call is
 * right in both cases, and nobody has to know which it was. */
static __always_inline int ctx_finish_checksum(ctx_t *ctx, __u32 off, __u16 partial, __u16 sum)
{
	return bpf_l4_csum_replace(ctx, off, 0, (__u32)sum + partial, 0);
}

static __always_inline int ctx_transmit(ctx_t *ctx, enum variant variant)
{
	(void)variant;
	return bpf_redirect(ctx->ifindex, 0);
}

#endif
