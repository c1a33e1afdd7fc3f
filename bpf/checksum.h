/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One's-complement sums: is what came intact, and what goes into an answer. Words are summed in
 * host order as they lie in memory, as the kernel does. */
#ifndef SPILLWAY_BPF_CHECKSUM_H
#define SPILLWAY_BPF_CHECKSUM_H

#include "window.h"

#define CHECKSUM_LIMIT 16384 /* bytes: more only comes from GRO, which has proven it */

static __always_inline __u64 pseudo_header(const struct packet *p, __u32 tcp_length)
{
	__u64 sum = bpf_htons(IPPROTO_TCP) + (__u64)bpf_htonl(tcp_length); /* may be over 65,535 */
	int i;

	sum += (__u64)p->saddr[3] + p->daddr[3];
	if (p->v6) {
		for (i = 0; i < 3; i++)
			sum += (__u64)p->saddr[i] + p->daddr[i];
	}
	return sum;
}

struct summing {
	ctx_t *ctx;
	__u32 off, end;
	__u32 sum;
	__u32 failed;
};

#define ADD_BLOCK(s, size)                                                                         \
	do {                                                                                       \
		void *at = ctx_begin((s)->ctx) + ((s)->off & (CHECKSUM_LIMIT - 1));                \
		if (at + (size) > ctx_end((s)->ctx))                                               \
			goto unreadable;                                                           \
		(s)->sum = bpf_csum_diff(NULL, 0, at, (size), (s)->sum);                           \
		(s)->off += (size);                                                                \
	} while (0)

/* One step of the loop: the largest block that is left. 1: done. */
static long add_block(__u32 i, void *arg)
{
	struct summing *s = arg;
	__u32 left = s->end - s->off, rest = 0;

	(void)i;
	if (left >= 512) {
		ADD_BLOCK(s, 512);
	} else if (left >= 128) {
		ADD_BLOCK(s, 128);
	} else if (left >= 32) {
		ADD_BLOCK(s, 32);
	} else if (left >= 8) {
		ADD_BLOCK(s, 8);
	} else if (left >= 4) {
		ADD_BLOCK(s, 4);
	} else {
		if (left && load_some(s->ctx, s->off, &rest, left, 3))
			goto unreadable;
		s->sum = fold((__u64)s->sum + rest);
		return 1;
	}
	return 0;
unreadable:
	s->failed = 1;
	return 1;
}

#define ADD_STEPS (CHECKSUM_LIMIT / 512 + 3 + 3 + 3 + 1 + 1)

/* The sum over the TCP segment, on top of `sum`. Negative: it could not be read. */
static __always_inline int segment_sum(ctx_t *ctx, const struct packet *p, __u64 *sum)
{
	struct summing s = {.ctx = ctx, .off = p->l4, .end = p->end, .sum = fold(*sum)};

	if (s.end > CHECKSUM_LIMIT || s.end < s.off || ctx_pull(ctx, s.end) ||
	    bpf_loop(ADD_STEPS, add_block, &s, 0) < 0 || s.failed)
		return -1;
	*sum = s.sum;
	return 0;
}

/* The same for a segment that fits the window whole. */
static __always_inline __u64 window_sum(struct window *w, __u32 size, __u64 sum)
{
	__u32 words = (size + 3) & ~3U;

	asm volatile("" : "+r"(words));
	if (words > WINDOW_MAX)
		return 0;
	return (__u32)bpf_csum_diff(NULL, 0, (void *)w->bytes, words, fold(sum));
}

/* May this segment be believed? A local sender leaves only the pseudo-header's sum in the field
 * (CHECKSUM_PARTIAL): that is not corruption. Generic XDP runs on skbs that are to be completed on
 * transmission, so there such a packet is left to TC, which can tell. */
__noinline int STAGE(check_segment)(ctx_t *ctx, const struct packet *p, struct window *w,
				    int variant)
{
	__u32 size;
	__u64 sum;

	if (!p || !w || p->corrupt)
		return SW_R_pass_checksum;
	size = p->end - p->l4;
	sum = pseudo_header(p, size);

	if (p->check == fold(sum))
		return variant == VARIANT_GENERIC ? SW_R_pass_to_tc : GO_ON;
	if (ctx_checksum_proven(ctx))
		return GO_ON;
	if (size <= WINDOW_MAX)
		sum = window_sum(w, size, sum);
	else if (segment_sum(ctx, p, &sum))
		return SW_R_pass_checksum;
	return fold(sum) == 0xffff ? GO_ON : SW_R_pass_checksum;
}

#endif
