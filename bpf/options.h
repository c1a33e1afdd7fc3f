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

/* One option of a kind that means something to us; `left` bytes from `at` to the data offset. */
static __always_inline void take_option(const __u8 *at, __u8 length, struct options *o)
{
	switch (at[0]) {
	case OPT_MSS:
		if (length == 4)
			o->mss = at[2] << 8 | at[3];
		break;
	case OPT_WSCALE:
		if (length == 3)
			o->wscale = at[2] > 14 ? 14 : at[2];
		break;
	case OPT_SACK_OK: o->sack_ok = length == 2; break;
	case OPT_TIMESTAMP:
		if (length != 10)
			break;
		o->timestamp = 1;
		o->tsval = get32(at + 2);
		o->tsecr = get32(at + 6);
		break;
	}
}

/* Walks the options. An option that ends past the data offset, or one shorter than its own header,
 * ends the walk: what stood before it counts. */
__noinline int STAGE(read_options)(ctx_t *ctx, const struct packet *p, struct options *o)
{
	__u8 bytes[OPTIONS_MAX + 12] = {}; /* zero past the end: that is "end of options" */
	__u32 size, off = 0;
	int i;

	if (!p || !o)
		return 0;
	size = p->data - p->l4 - sizeof(struct tcphdr);
	__builtin_memset(o, 0, sizeof(*o));
	o->wscale = NO_WSCALE;
	if (!size || size > OPTIONS_MAX ||
	    ctx_load(ctx, p->l4 + sizeof(struct tcphdr), bytes, size))
		return 0;
	for (i = 0; i < OPTIONS_MAX; i++) {
		__u8 kind, length;

		if (off >= size || off >= OPTIONS_MAX)
			return 0;
		kind = bytes[off];
		if (kind == OPT_NOP) {
			off++;
			continue;
		}
		length = bytes[off + 1];
		if (!kind || length < 2 || off + length > size)
			return 0;
		take_option(bytes + off, length, o);
		off += length;
	}
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
