/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which workers of a pool may be picked, and two of them by chance. Bitmaps say so; rows are not
 * read. Global functions as in slots.h.
 */
#ifndef SPILLWAY_BPF_SLOT_CHOOSE_H
#define SPILLWAY_BPF_SLOT_CHOOSE_H

#include "bits.h"
#include "slot_row.h"

enum how {			/* flags */
	   HOW_ONLY4 = 1,	/* only workers with an IPv4 address */
	   HOW_IGNORE_BUSY = 2, /* the heartbeat is overdue */
	   HOW_HALF_OPEN = 4,	/* for a connection that is not established yet */
	   /* of use in slots.h only */
	   HOW_SUSPECT = 8, /* suspects in place of the others */
	   HOW_FULL = 16,   /* full ones too */
};

/* Where to look for a pool's workers. Masks are all ones where a set does not matter. */
struct view {
	const __u64 *members, *notfull, *nonbusy, *reach4, *suspect;
	__u64 any_load, any_reach, any_fill, trusted;
	__u32 first, words;
};

static __always_inline int look(struct view *v, __u32 pool, __u32 how)
{
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);
	const struct sw_bits *m = bpf_map_lookup_elem(&members, &pool);
	const struct sw_bits *f = bits(&notfull), *b = bits(&nonbusy);
	const struct sw_bits *r = bits(&reach4), *s = bits(&suspect);

	if (!steer || !m || !f || !b || !r || !s)
		return -1;
	*v = (struct view){m->word,
			   f->word,
			   b->word,
			   r->word,
			   s->word,
			   how & HOW_IGNORE_BUSY ? ~0ULL : 0,
			   how & HOW_ONLY4 ? 0 : ~0ULL,
			   how & HOW_FULL ? ~0ULL : 0,
			   how & HOW_SUSPECT ? 0 : ~0ULL,
			   steer->first,
			   steer->words};
	return 0;
}

static __always_inline __u64 eligible(const struct view *v, __u32 w)
{
	w %= SW_WORDS;
	return LATEST(v->members[w]) & (LATEST(v->notfull[w]) | v->any_fill) &
	       (LATEST(v->nonbusy[w]) | v->any_load) & (LATEST(v->reach4[w]) | v->any_reach) &
	       (LATEST(v->suspect[w]) ^ v->trusted);
}

/* The lowest id that is eligible, -1: none. */
__weak __noinline int slot_first(__u32 pool, __u32 how)
{
	struct view v;
	__u64 set;
	__u32 i;

	if (look(&v, pool, how))
		return -1;
	for (i = 0; i < SW_WORDS && i < v.words; i++) {
		set = eligible(&v, v.first + i);
		if (set)
			return (v.first + i) % SW_WORDS * 64 + nth_bit(set, 0);
	}
	return -1;
}

#define PAIR(a, b) ((a) | (b) << 16)
#define NOBODY	   (~0U)

/* Two random places of the pool's span: whom they hit, or NOBODY. */
static __always_inline void probe(const struct view *v, __u32 *a, __u32 *b)
{
	__u32 random = bpf_get_prandom_u32(), id, i;

	for (i = 0; i < 2; i++, random >>= 16) {
		id = v->first * 64 + ((random & 0xffff) * (v->words * 64) >> 16);
		if (!(eligible(v, id / 64) >> (id & 63) & 1))
			continue;
		if (*a == NOBODY)
			*a = id;
		else if (id != *a)
			*b = id;
	}
}

struct draw { /* the bit that has `nth` set ones below it in word w, whose value was `set` */
	__u64 set;
	__u32 w, nth, count;
};

static __always_inline __u32 drawn(const struct draw *d)
{
	return d->w % SW_WORDS * 64 + nth_bit(d->set, d->nth);
}

/* `n` bits set in word `w` join `total - n` seen before: one of the new ones takes the place of the
 * one drawn so far with a chance of n / total, which leaves each bit with the same chance. */
static __always_inline void draw(struct draw *d, __u64 *random, __u64 set, __u32 w, __u32 n,
				 __u32 total)
{
	__u32 nth;

	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	nth = (*random >> 32) * total >> 32;
	if (nth < n)
		*d = (struct draw){set, w, nth, n};
}

/* Two of all that are eligible, each drawn with the same chance: PAIR, or -1: nobody is. */
static __always_inline int scan(const struct view *v)
{
	struct draw a = {}, b = {};
	__u64 random = bpf_get_prandom_u32();
	__u32 total = 0, i;

	for (i = 0; i < SW_WORDS && i < v->words; i++) {
		__u64 set = eligible(v, v->first + i);
		__u32 n;

		if (!set)
			continue;
		n = count_bits(set);
		total += n;
		draw(&a, &random, set, v->first + i, n, total);
		draw(&b, &random, set, v->first + i, n, total);
	}
	if (!total)
		return -1;
	if (a.w == b.w && a.nth == b.nth) /* the same: take its neighbour instead */
		b.nth = b.nth + 1 < b.count ? b.nth + 1 : 0;
	return PAIR(drawn(&a), drawn(&b));
}

/* Two workers of the pool, or one twice: PAIR, or -1: nobody is eligible. */
__weak __noinline int slot_choose(__u32 pool, __u32 how)
{
	__u32 a = NOBODY, b = NOBODY;
	struct view v;

	if (look(&v, pool, how))
		return -1;
	/* a single word is scanned as quickly as probed */
	if (v.words > 1) {
		probe(&v, &a, &b);
		if (b == NOBODY)
			probe(&v, &a, &b);
	}
	if (a == NOBODY)
		return scan(&v);
	a %= SW_MAX_WORKERS;
	return b == NOBODY ? PAIR(a, a) : PAIR(a, b % SW_MAX_WORKERS);
}

#endif
