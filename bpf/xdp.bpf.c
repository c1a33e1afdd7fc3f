// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XDP: answers new connections to a saturated listener before an skb is made. An accelerator: what
 * it cannot do (hand-over, a packet that cannot grow) it leaves to TC on the same interface. */
#include "ctx_xdp.h"
#include "verdict.h"
#include "conversation.h"

static __always_inline int run(struct xdp_md *ctx, enum variant variant)
{
	__u32 listener;
	int reason = guard(ctx, variant, &listener);

	return verdict(ctx, variant, listener, reason);
}

SEC("xdp")
int spillway_xdp(struct xdp_md *ctx)
{
	return run(ctx, VARIANT_NATIVE);
}

SEC("xdp")
int spillway_xdp_redirect(struct xdp_md *ctx)
{
	return run(ctx, VARIANT_REDIRECT);
}

SEC("xdp")
int spillway_xdp_generic(struct xdp_md *ctx)
{
	return run(ctx, VARIANT_GENERIC);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
