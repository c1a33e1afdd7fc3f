// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* TC ingress (TCX, or clsact): the whole shed conversation on interfaces without native XDP, and
 * the hand-over to the stack on all. */
#include "ctx_tc.h"
#include "verdict.h"
#include "conversation.h"

SEC("tc")
int spillway_tc(struct __sk_buff *skb)
{
	__u32 listener;
	int reason = guard(skb, VARIANT_NATIVE, &listener);

	return verdict(skb, VARIANT_NATIVE, listener, reason);
}
