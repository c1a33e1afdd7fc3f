/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one exit: counts the reason and turns its class into what the hook returns, so that counter
 * and verdict cannot disagree. */
#ifndef SPILLWAY_BPF_VERDICT_H
#define SPILLWAY_BPF_VERDICT_H

#include "maps.h"

#define IN_PASS(n)  0
#define IN_GIVE(n)  0
#define IN_DROP(n)  (1ULL << (n))
#define IN_REPLY(n) 0
static const __u64 drops = 0
#define X(n, name, class, text) | IN_##class(n)
	SW_REASONS(X)
#undef X
	;
#undef IN_DROP
#undef IN_REPLY
#define IN_DROP(n)  0
#define IN_REPLY(n) (1ULL << (n))
static const __u64 replies = 0
#define X(n, name, class, text) | IN_##class(n)
	SW_REASONS(X)
#undef X
	;

_Static_assert(SW_R_COUNT <= 64, "reasons fit a bit mask");

static __always_inline int is_reply(int reason)
{
	return reason >= 0 && 1ULL << reason & replies;
}

static __always_inline void count(__u32 listener, int reason)
{
	__u64 *count = bpf_map_lookup_elem(&ctx_counts, &listener);
	__u64 place = reason; /* negative: far over the bound */

	/* one register for bound and index: older verifiers lose a bound on a copy */
	asm volatile("" : "+r"(place));
	if (count && place < SW_R_COUNT)
		count[place]++;
}

static __always_inline int verdict(ctx_t *ctx, enum variant variant, __u32 listener, int reason)
{
	count(listener, reason);
	if (is_reply(reason))
		return ctx_transmit(ctx, variant);
	return 1ULL << reason & drops ? CTX_DROP : CTX_PASS;
}

#endif
