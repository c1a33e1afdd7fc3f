/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cookie: our initial sequence number, from which every later segment of a conversation is
 * understood without a byte of state.
 *
 *      32 bits     cookie = H + (guess << 11),  H: SipHash-2-4 of addresses, ports and period
 *      guess       15 bits: check (12) << 3 | mss index (3)
 *      check       of the client's first sequence number. Until a client has our answer it cannot
 * be further than the SYN-ACK's window, 2,920 bytes, and numbers closer than 4,096 have different
 * checks: only the segment that carries the first byte passes for the first, whatever got lost or
 * overtook
 *
 * A segment's acknowledgement number, less one, less H, is (guess << 11) + d, where d is how much
 * the client has of what we sent: 0 nothing but the SYN-ACK, L the answer, L + 1 the answer and our
 * FIN. Answers are at most 1,024 bytes, so d fits below the guess. For d = 0 all of H, the check
 * and d have to fit: 29 bits, like the kernel's own cookies. For later phases 15 bits: all that
 * they can earn is an acknowledgement no longer than what came.
 */
#ifndef SPILLWAY_BPF_COOKIE_H
#define SPILLWAY_BPF_COOKIE_H

#include "parse.h"

#define GUESS_SHIFT 11
#define GUESS_BITS  15
#define CHECK_MASK  0xfff

enum phase {
	PHASE_NONE,	/* not a conversation of ours */
	PHASE_START,	/* nothing answered yet */
	PHASE_CLOSED,	/* the client has our FIN to a connection on which it asked nothing */
	PHASE_ANSWERED, /* the client has our answer */
};

struct cookie {
	__u64 hash; /* of the key and period that fitted */
	__u32 guess;
	enum phase phase;
};

static __always_inline __u64 rotl(__u64 x, int n)
{
	return x << n | x >> (64 - n);
}

struct sip {
	__u64 v0, v1, v2, v3;
};

static __always_inline void sip_round(struct sip *s)
{
	s->v0 += s->v1, s->v1 = rotl(s->v1, 13), s->v1 ^= s->v0, s->v0 = rotl(s->v0, 32);
	s->v2 += s->v3, s->v3 = rotl(s->v3, 16), s->v3 ^= s->v2;
	s->v0 += s->v3, s->v3 = rotl(s->v3, 21), s->v3 ^= s->v0;
	s->v2 += s->v1, s->v1 = rotl(s->v1, 17), s->v1 ^= s->v2, s->v2 = rotl(s->v2, 32);
}

static __always_inline void sip_word(struct sip *s, __u64 word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

/* SipHash-2-4 (Aumasson, Bernstein) over whole 64-bit words. */
static __noinline __u64 conversation_hash(const struct packet *p, const __u64 key[2], __u32 period)
{
	struct sip s = {key[0] ^ 0x736f6d6570736575ULL, key[1] ^ 0x646f72616e646f6dULL,
			key[0] ^ 0x6c7967656e657261ULL, key[1] ^ 0x7465646279746573ULL};
	int words = 2;

	if (p->v6) {
		sip_word(&s, (__u64)p->saddr[0] << 32 | p->saddr[1]);
		sip_word(&s, (__u64)p->saddr[2] << 32 | p->saddr[3]);
		sip_word(&s, (__u64)p->daddr[0] << 32 | p->daddr[1]);
		sip_word(&s, (__u64)p->daddr[2] << 32 | p->daddr[3]);
		words = 5;
	} else {
		sip_word(&s, (__u64)p->saddr[3] << 32 | p->daddr[3]);
	}
	sip_word(&s, (__u64)period << 32 | (__u32)p->sport << 16 | p->dport);
	sip_word(&s, (__u64)words << 59); /* the length in bytes, in the last word's top byte */
	s.v2 ^= 0xff;
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static __always_inline __u32 fold_hash(__u64 hash)
{
	return (__u32)hash ^ (__u32)(hash >> 32);
}

/* 12 bits of the client's first sequence number, shifted by a part of the hash that is never seen
 * on the wire. */
static __always_inline __u32 first_check(__u64 hash, __u32 first)
{
	return (first + (__u32)(hash >> 32)) & CHECK_MASK;
}

/* Known MSS values; the largest that is not above the client's is remembered. */
static __always_inline __u32 mss_value(__u32 index)
{
	switch (index & 7) {
	case 0: return 536;
	case 1: return 1220;
	case 2: return 1300;
	case 3: return 1360;
	case 4: return 1400;
	case 5: return 1440;
	case 6: return 1460;
	default: return 8940;
	}
}

static __always_inline __u32 mss_index(__u32 mss)
{
	__u32 i;

	for (i = 7; i > 0; i--) {
		if (mss >= mss_value(i))
			break;
	}
	return i;
}

static __always_inline __u32 make_cookie(__u64 hash, __u32 first, __u32 mss)
{
	return fold_hash(hash) + ((first_check(hash, first) << 3 | mss_index(mss)) << GUESS_SHIFT);
}

/* Is this the segment that carries the client's first byte? */
static __always_inline int is_first(const struct packet *p, const struct cookie *c)
{
	return c->guess >> 3 == first_check(c->hash, p->seq);
}

static __always_inline enum phase phase_of(__u32 d, const struct sw_listener *l, __u64 now)
{
	if (d == 0)
		return PHASE_START;
	if (d == 1)
		return PHASE_CLOSED;
	if (d == l->length || d == l->length + 1U)
		return PHASE_ANSWERED;
	if (l->old_length && now < l->old_until_ns &&
	    (d == l->old_length || d == l->old_length + 1U))
		return PHASE_ANSWERED;
	return PHASE_NONE;
}

/* Tries the keys and periods that are still good. */
static __always_inline void match_cookie(const struct packet *p, const struct sw_listener *l,
					 const struct sw_secrets *k, __u64 now, struct cookie *c)
{
	__u32 period = now >> SW_PERIOD_SHIFT, v;
	int i;

	c->phase = PHASE_NONE;
	for (i = 0; i < 4; i++) {
		if (i == 2 && now >= k->previous_until_ns)
			return;
		c->hash = conversation_hash(p, k->key[i >> 1 & 1], period - (i & 1));
		v = p->ack - 1 - fold_hash(c->hash);
		if (v >> (GUESS_SHIFT + GUESS_BITS))
			continue;
		c->guess = v >> GUESS_SHIFT;
		c->phase = phase_of(v & ((1U << GUESS_SHIFT) - 1), l, now);
		if (c->phase != PHASE_NONE)
			return;
	}
}

#endif
