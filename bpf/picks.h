/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A best-effort memory of picks that became no reservation, for SYN cookies: direct mapped, good
 * for the seconds that an ACK or the first data may take. Only a miss costs something: the
 * connection. */
#ifndef SPILLWAY_BPF_PICKS_H
#define SPILLWAY_BPF_PICKS_H

#include "slot_maps.h"

#define PICK_PERIODS 8

_Static_assert(SW_PICKS == 1 << 12, "the place takes 12 bits of the hash");

static __always_inline __u64 tuple_hash(const struct sw_tuple *t)
{
	const __u64 *word = (const __u64 *)t;
	__u64 hash = 0;
	int i;

	for (i = 0; i < (int)sizeof(*t) / 8; i++) {
		hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

static __always_inline __u16 pick_period(void)
{
	return bpf_ktime_get_coarse_ns() >> 30;
}

static __always_inline void write_pick(__u32 place, __u64 word)
{
	struct sw_pick *at = bpf_map_lookup_elem(&picks, &place);

	if (at)
		*(volatile __u64 *)at = word;
}

/* Returns the place, which is to be forgotten once there is a reservation or a connection. */
static __always_inline __u32 remember_pick(const struct sw_tuple *t, __u32 slot)
{
	__u64 hash = tuple_hash(t);
	__u32 place = hash >> 52;

	write_pick(place, (__u32)hash | (__u64)(__u16)slot << 32 | (__u64)pick_period() << 48);
	return place;
}

static __always_inline void forget_pick(__u32 place)
{
	write_pick(place, 0);
}

/* The slot (worker id + 1) that this connection was given a moment ago, 0: none. */
static __always_inline __u32 recall_pick(const struct sw_tuple *t)
{
	__u64 hash = tuple_hash(t), word;
	__u32 place = hash >> 52;
	struct sw_pick *at = bpf_map_lookup_elem(&picks, &place);

	if (!at)
		return 0;
	word = *(volatile __u64 *)at;
	if ((__u32)word != (__u32)hash || (__u16)(pick_period() - (word >> 48)) > PICK_PERIODS)
		return 0;
	return word >> 32 & 0xffff;
}

#endif
