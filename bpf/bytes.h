/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text, eight bytes at a time, the first byte lowest. What is found is marked in the top bits of
 * its bytes; only the lowest mark is exact, and so is the lowest of several sets.
 */
#ifndef SPILLWAY_BPF_BYTES_H
#define SPILLWAY_BPF_BYTES_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define ONES  0x0101010101010101ULL
#define TOPS  0x8080808080808080ULL
#define BYTES sizeof(__u64)

/* Marks the bytes below c, which is 0x80 at most. */
static __always_inline __u64 find_below(__u64 x, __u8 c)
{
	return (x - ONES * c) & ~x & TOPS;
}

static __always_inline __u64 find_byte(__u64 x, __u8 c)
{
	return find_below(x ^ ONES * c, 1);
}

/* How many bytes come before the first mark? */
static __always_inline __u32 before_mark(__u64 marks)
{
	return marks ? ((((marks & -marks) >> 7) - 1) & ONES) * ONES >> 56 : BYTES;
}

/* ASCII's letters; all other bytes stay. */
static __always_inline __u64 lower_case(__u64 x)
{
	__u64 low = x & ~TOPS;
	__u64 from_a = low + ONES * (0x80 - 'A'), behind_z = low + ONES * (0x7f - 'Z');

	return x | (~x & (from_a ^ behind_z) & TOPS) >> 2;
}

#endif
