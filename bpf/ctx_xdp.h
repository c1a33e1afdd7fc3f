/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The common view of a packet over XDP. Same names as ctx_tc.h; a hook includes one of the two
 * before anything else. */
#ifndef SPILLWAY_BPF_CTX_H
#define SPILLWAY_BPF_CTX_H

#include "maps.h"

typedef struct xdp_md ctx_t;

#define CTX_IS_XDP 1
#define CTX_PASS   XDP_PASS
#define CTX_DROP   XDP_DROP
#define ctx_counts counts_xdp

/* A stage of its own for the verifier: it looks at a global function once, whatever called it. Each
 * hook has its own copy, as the context differs. */
#define STAGE(name) xdp_##name

enum variant {
	VARIANT_NATIVE,
	VARIANT_REDIRECT, /* native, on a driver whose XDP_TX is not to be trusted */
	VARIANT_GENERIC,  /* on skbs, whose checksum may still be partial */
};

/* Volatile reads keep the compiler from holding `ctx + constant` over helper calls, which the
 * verifier refuses. */
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
	return ctx_end(ctx) - ctx_begin(ctx);
}

static __always_inline int ctx_is_super(ctx_t *ctx)
{
	(void)ctx;
	return 0; /* it may well be one in generic mode, and is then left to TC */
}

static __always_inline int ctx_pull(ctx_t *ctx, __u32 bytes)
{
	(void)ctx, (void)bytes;
	return 0;
}

static __always_inline int ctx_load(ctx_t *ctx, __u32 off, void *to, __u32 len)
{
	return bpf_xdp_load_bytes(ctx, off, to, len);
}

static __always_inline int ctx_store(ctx_t *ctx, __u32 off, void *from, __u32 len)
{
	return bpf_xdp_store_bytes(ctx, off, from, len);
}

/* Has someone already found the checksum right? XDP cannot know. */
static __always_inline int ctx_checksum_proven(ctx_t *ctx)
{
	(void)ctx;
	return 0;
}

/* Makes the frame `want` bytes long. Where the driver left no room behind the packet (veth: most of
 * the time) it grows into the headroom: the caller writes all headers anew in either case. */
static __always_inline int ctx_resize(ctx_t *ctx, __u32 want)
{
	int more = (int)want - (int)ctx_length(ctx);

	if (!more || !bpf_xdp_adjust_tail(ctx, more))
		return 0;
	return more > 0 ? bpf_xdp_adjust_head(ctx, -more) : -1;
}

/* Nothing left to do: the header was written with its whole checksum. */
static __always_inline int ctx_finish_checksum(ctx_t *ctx, __u32 off, __u16 partial, __u16 sum)
{
	(void)ctx, (void)off, (void)partial, (void)sum;
	return 0;
}

/* veth takes what XDP_TX gives it, but wakes its peer only when the peer runs an XDP program; what
 * is redirected to it arrives wherever the peer polls (GRO is enough). */
static __always_inline int ctx_transmit(ctx_t *ctx, enum variant variant)
{
	return variant == VARIANT_REDIRECT ? bpf_redirect(ctx->ingress_ifindex, 0) : XDP_TX;
}

#endif
