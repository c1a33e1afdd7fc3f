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

#include "window.h"

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
	const struct window *w;
	__u32 off, end; /* in the window */
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
	struct walk *k = arg;
	__u32 off = k->off;
	const __u8 *at;

	(void)i;
	if (off >= k->end || off > sizeof(struct tcphdr) + OPTIONS_MAX)
		return 1;
	at = k->w->bytes + off;
	if (!at[0])
		return 1;
	if (at[0] == OPT_NOP) {
		k->off = off + 1;
		return 0;
	}
	if (at[1] < 2 || off + at[1] > k->end)
		return 1;
	take_option(at, at[1], &k->o);
	k->off = off + at[1];
	return 0;
}

#define WORD(w, i) bpf_ntohl(((const __u32 *)((w)->bytes + sizeof(struct tcphdr)))[i])
#define NOP_NOP_TS (OPT_NOP << 24 | OPT_NOP << 16 | OPT_TIMESTAMP << 8 | 10)
#define SACK_TS	   (OPT_SACK_OK << 24 | 2 << 16 | OPT_TIMESTAMP << 8 | 10)

/* The two layouts that Linux sends, a word at a time: a SYN's and every later segment's. */
static __always_inline int usual_options(const struct window *w, __u32 size, struct options *o)
{
	if (size == 12 && WORD(w, 0) == NOP_NOP_TS) {
		o->tsval = WORD(w, 1);
		o->tsecr = WORD(w, 2);
	} else if (size == 20 && WORD(w, 0) >> 16 == (OPT_MSS << 8 | 4) && WORD(w, 1) == SACK_TS &&
		   WORD(w, 4) >> 8 == (OPT_NOP << 16 | OPT_WSCALE << 8 | 3)) {
		o->mss = WORD(w, 0);
		o->tsval = WORD(w, 2);
		o->tsecr = WORD(w, 3);
		o->wscale = WORD(w, 4) & 0xff;
		if (o->wscale > 14)
			o->wscale = 14;
		o->sack_ok = 1;
	} else {
		return 0;
	}
	return o->timestamp = 1;
}

/* Walks the options. An option that ends past the data offset, or one shorter than its own header,
 * ends the walk: what stood before it counts. */
static __always_inline void read_options(const struct packet *p, const struct window *w,
					 struct options *o)
{
	struct walk k = {.w = w, .off = sizeof(struct tcphdr), .end = p->data - p->l4};

	k.o.wscale = NO_WSCALE;
	if (!usual_options(w, k.end - k.off, &k.o))
		bpf_loop(OPTIONS_MAX, next_option, &k, 0);
	*o = k.o;
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
