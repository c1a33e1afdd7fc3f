/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set bits of a word: how many, and where the n-th is. In plain arithmetic on bytes side by
 * side, since BPF has no instruction for either; which word, and what it means, is the caller's.
 */
#ifndef SPILLWAY_BPF_BITS_H
#define SPILLWAY_BPF_BITS_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define EACH_BYTE(x) ((x) * 0x0101010101010101ULL)

/* Byte i: the sum of bytes 0 to i. */
static __always_inline __u64 running_sums(__u64 bytes)
{
	return EACH_BYTE(bytes);
}

/* How many of the bytes are at most n; bytes and n are below 128. */
static __always_inline __u32 bytes_up_to(__u64 bytes, __u64 n)
{
	__u64 at_most = ((EACH_BYTE(n) | EACH_BYTE(0x80ULL)) - bytes) & EACH_BYTE(0x80ULL);

	return running_sums(at_most >> 7) >> 56;
}

/* Byte i: how many bits are set in it. */
static __always_inline __u64 bits_of_bytes(__u64 v)
{
	v -= v >> 1 & EACH_BYTE(0x55ULL);
	v = (v & EACH_BYTE(0x33ULL)) + (v >> 2 & EACH_BYTE(0x33ULL));
	return (v + (v >> 4)) & EACH_BYTE(0x0fULL);
}

static __always_inline __u32 count_bits(__u64 v)
{
	return running_sums(bits_of_bytes(v)) >> 56;
}

/* The place of the set bit that has n set ones below it; n < count_bits(v). */
static __always_inline __u32 nth_bit(__u64 v, __u32 n)
{
	__u64 sums = running_sums(bits_of_bytes(v)), spread;
	__u32 place = bytes_up_to(sums, n) * 8;

	place &= 56;
	n -= sums << 8 >> place & 0xff;
	/* the byte's bits, each in a byte of its own, as 0 or 1 */
	spread = EACH_BYTE(v >> place & 0xff) & 0x8040201008040201ULL;
	spread = (spread + EACH_BYTE(0x7fULL)) >> 7 & EACH_BYTE(1ULL);
	return (place + bytes_up_to(running_sums(spread), n)) & 63;
}

#endif
