/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP options: read from a SYN, remembered in the SYN-ACK's timestamp, given back on hand-over.
 *
 *   timestamp value of a SYN-ACK:  clock (26 bits) | ecn (1) | sack (1) | window scale (4, 15:
 * none)
 *
 * as the kernel's own SYN cookies do. The clock ticks every 2^20 ns. The value is rounded down to
 * the last one with the right low bits, so nothing we send later goes backwards. A client without
 * timestamps keeps its MSS only, which is in the cookie.
 */
#ifndef SPILLWAY_BPF_OPTIONS_H
#define SPILLWAY_BPF_OPTIONS_H

#include "parse.h"

#define OPT_NOP	      1
#define OPT_MSS	      2
#define OPT_WSCALE    3
#define OPT_SACK_OK   4
#define OPT_TIMESTAMP 8

#define NO_WSCALE      15
#define OUR_WSCALE     7
#define TS_BITS	       6
#define TS_CLOCK_SHIFT 20
#define OPTIONS_MAX    40

struct options {
	__u32 tsval, tsecr;
	__u16 mss; /* 0: not given */
	__u8 wscale;
	__u8 sack_ok, timestamp;
};

static __always_inline __u32 get32(const __u8 *at)
{
	return (__u32)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

struct walk {
	__u8 bytes[OPTIONS_MAX + 12]; /* zero past the end: that is "end of options" */
	__u32 off, size;
	struct options o;
};

static __always_inline void take_option(const __u8 *at, __u8 length, struct options *o)
{
	if (at[0] == OPT_MSS && length == 4) {
		o->mss = at[2] << 8 | at[3];
	} else if (at[0] == OPT_WSCALE && length == 3) {
		o->wscale = at[2] > 14 ? 14 : at[2];
	} else if (at[0] == OPT_SACK_OK && length == 2) {
		o->sack_ok = 1;
	} else if (at[0] == OPT_TIMESTAMP && length == 10) {
		o->timestamp = 1;
		o->tsval = get32(at + 2);
		o->tsecr = get32(at + 6);
	}
}

/* One step of the walk. 1: it ends. */
static long next_option(__u32 i, void *arg)
{
	struct walk *w = arg;
	__u32 off = w->off;
	__u8 length;

	(void)i;
	if (off >= w->size || off >= OPTIONS_MAX || !w->bytes[off])
		return 1;
	if (w->bytes[off] == OPT_NOP) {
		w->off = off + 1;
		return 0;
	}
	length = w->bytes[off + 1];
	if (length < 2 || off + length > w->size)
		return 1;
	take_option(w->bytes + off, length, &w->o);
	w->off = off + length;
	return 0;
}

/* Walks the options. An option that ends past the data offset, or one shorter than its own header,
 * ends the walk: what stood before it counts. */
__noinline int STAGE(read_options)(ctx_t *ctx, const struct packet *p, struct options *o)
{
	struct walk w = {.o.wscale = NO_WSCALE};
	__u32 size;

	if (!p || !o)
		return 0;
	size = p->data - p->l4 - sizeof(struct tcphdr);
	asm volatile("" : "+r"(size)); /* bound the very register that the helper gets */
	if (size >= 1 && size <= OPTIONS_MAX &&
	    !ctx_load(ctx, p->l4 + sizeof(struct tcphdr), w.bytes, size)) {
		w.size = size;
		bpf_loop(OPTIONS_MAX, next_option, &w, 0);
	}
	*o = w.o;
	return 0;
}

static __always_inline __u32 clock_value(__u64 now)
{
	return now >> TS_CLOCK_SHIFT;
}

static __always_inline __u32 remember_options(__u64 now, const struct options *o, int ecn)
{
	__u32 clock = clock_value(now), value;

	value = (clock & ~((1U << TS_BITS) - 1)) | ecn << 5 | o->sack_ok << 4 | o->wscale;
	return value > clock ? value - (1U << TS_BITS) : value;
}

#endif
