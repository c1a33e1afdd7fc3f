// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XDP: answers new connections to a saturated listener before an skb is made. An accelerator: what
 * it cannot do (hand-over, a packet that cannot grow) it leaves to TC on the same interface. */
#include "ctx_xdp.h"
#include "verdict.h"
#include "conversation.h"

SEC("xdp")
int spillway_xdp(struct xdp_md *ctx)
{
	__u32 listener;
	int reason = guard(ctx, 0, &listener);

	return verdict(ctx, listener, reason);
}

/* The same on skbs, whose checksum may still be partial. */
SEC("xdp")
int spillway_xdp_generic(struct xdp_md *ctx)
{
	__u32 listener;
	int reason = guard(ctx, 1, &listener);

	return verdict(ctx, listener, reason);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
