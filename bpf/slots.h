/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots: picks a worker of a pool and takes a slot of it, and gives slots back. What a slot is
 * bound to, and what becomes of a connection that gets none, is left to the hooks.
 *
 * The truth is `inuse`, which moves by compare-and-swap against `cap`. Bitmaps only say where to
 * look, and `notfull` among them is a hint that the functions here keep: it may say "not full" of a
 * full worker, which costs a try, but not for long "full" of one that is not.
 *
 * Global functions with scalar arguments: the verifier reads each once, and not once a call.
 */
#ifndef SPILLWAY_BPF_SLOTS_H
#define SPILLWAY_BPF_SLOTS_H

#include "bits.h"
#include "slot_maps.h"

enum how {			/* flags */
	   HOW_ONLY4 = 1,	/* only workers with an IPv4 address */
	   HOW_IGNORE_BUSY = 2, /* the heartbeat is overdue */
	   HOW_HALF_OPEN = 4,	/* for a connection that is not established yet */
	   /* of use in this file only */
	   HOW_SUSPECT = 8, /* suspects in place of the others */
	   HOW_FULL = 16,   /* full ones too */
};

enum pick { /* why slot_pick found nothing; it gives them negated */
	    PICK_NO_SLOT = 1,
	    PICK_ALL_BUSY,  /* there are free slots, but of busy workers */
	    PICK_NONE,	    /* the pool has no worker */
	    PICK_CLOSED,    /* drained, or saturated by force */
	    PICK_HALF_OPEN, /* too many connections are not established yet */
};

#define LATEST(x)  (*(volatile typeof(x) *)&(x))
#define SLOT_TRIES 4	/* of a pick, before it looks at all rows */
#define SWAP_TRIES 1000 /* of a take that others get ahead of */

/* As sequence numbers are compared, so that a credit row may wrap around. */
static __always_inline __s32 free_slots(const struct sw_slot *slot, const struct sw_worker_row *row)
{
	return LATEST(row->cap) - LATEST(slot->inuse);
}

static __always_inline struct sw_bits *bits(void *map)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}

/* ---- one row -------------------------------------------------------------------------------- */

/* Brings the hint of a row in line with what it holds. Who gives a slot back while the hint is
 * being cleared may still see it set, and leave it alone: so the row is looked at again after that.
 */
static __always_inline void hint(const struct sw_slot *slot, const struct sw_worker_row *row,
				 __u32 id)
{
	struct sw_bits *b = bits(&notfull);
	__u64 bit = 1ULL << (id & 63), *word;

	if (!b)
		return;
	word = &b->word[id / 64 % SW_WORDS];
	if (LATEST(*word) & bit) {
		if (free_slots(slot, row) > 0)
			return;
		/* a barrier only if the result is used */
		if (!(__sync_fetch_and_and(word, ~bit) & bit))
			return;
	}
	if (free_slots(slot, row) > 0)
		__sync_fetch_and_or(word, bit);
}

/* 0: taken. -1: it is full. */
__weak __noinline int slot_take(__u32 id)
{
	struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);
	struct sw_slot *slot = bpf_map_lookup_elem(&slots, &id);
	__u32 now, seen, most, i;
	__s32 left = 0;

	if (!row || !slot)
		return -1;
	now = LATEST(slot->inuse);
	for (i = 0; i < SWAP_TRIES; i++) {
		left = LATEST(row->cap) - now;
		if (left <= 0)
			break;
		seen = __sync_val_compare_and_swap(&slot->inuse, now, now + 1);
		if (seen == now)
			break;
		now = seen;
		left = 0;
	}
	if (left <= 0) {
		__sync_fetch_and_add(&slot->refusals, 1);
		hint(slot, row, id);
		return -1;
	}
	__sync_fetch_and_add(&slot->takes, 1);
	most = LATEST(slot->most);
	for (i = 0; i < SWAP_TRIES && (__s32)(now + 1 - most) > 0; i++)
		most = __sync_val_compare_and_swap(&slot->most, most, now + 1);
	if (left == 1)
		hint(slot, row, id);
	return 0;
}

/* Gives back whatever kind of row it is: for a take that nothing came of. */
__weak __noinline int slot_untake(__u32 id)
{
	struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);
	struct sw_slot *slot = bpf_map_lookup_elem(&slots, &id);

	if (!row || !slot)
		return -1;
	/* nothing was in use: a recount has been here before us */
	if (!__sync_fetch_and_sub(&slot->inuse, 1) && !(row->flags & SW_WF_CREDIT)) {
		__sync_fetch_and_add(&slot->inuse, 1);
		return -1;
	}
	__sync_fetch_and_add(&slot->gives, 1);
	hint(slot, row, id);
	return 0;
}

/* The end of a connection. */
__weak __noinline int slot_give(__u32 id)
{
	struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);

	if (!row || row->flags & SW_WF_CREDIT)
		return 0;
	return slot_untake(id);
}

/* ---- which row ------------------------------------------------------------------------------ */

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

/* ---- picking -------------------------------------------------------------------------------- */

static __always_inline __s32 free_of(__u32 id)
{
	const struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);
	const struct sw_slot *slot = bpf_map_lookup_elem(&slots, &id);

	return row && slot ? free_slots(slot, row) : 0;
}

/* Takes a slot where the hints say that there is one: the worker's id, or -1. */
__weak __noinline int slot_try(__u32 pool, __u32 how)
{
	__u32 a, b, i;
	int pair;

	for (i = 0; i < SLOT_TRIES; i++) {
		pair = slot_choose(pool, how);
		if (pair < 0)
			return -1;
		a = pair & 0xffff;
		b = pair >> 16;
		if (a != b && free_of(b) > free_of(a))
			a = b;
		if (!slot_take(a))
			return a;
	}
	return -1;
}

__weak __noinline int slot_reread_word(__u32 pool, __u32 w)
{
	const struct sw_bits *b = bpf_map_lookup_elem(&members, &pool);
	__u32 id = w % SW_WORDS * 64, i;
	__u64 set;

	if (!b)
		return 0;
	set = LATEST(b->word[w % SW_WORDS]);
	for (i = 0; i < 64 && set; i++, id++, set >>= 1) {
		struct sw_worker_row *row;
		struct sw_slot *slot;

		if (!(set & 1))
			continue;
		row = bpf_map_lookup_elem(&workers, &id);
		slot = bpf_map_lookup_elem(&slots, &id);
		if (row && slot)
			hint(slot, row, id);
	}
	return 0;
}

/* The daemon moves caps and leaves the hints alone: brings those of all members in line. */
__weak __noinline int slot_reread(__u32 pool)
{
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);
	__u32 i;

	if (!steer)
		return 0;
	for (i = 0; i < SW_WORDS && i < steer->words; i++)
		slot_reread_word(pool, steer->first + i);
	return 0;
}

/* Why nothing of the pool may be given, whatever its workers: negative enum pick, or 0. */
static __always_inline int shut(__u32 pool, __u32 how)
{
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);
	const struct sw_pool_use *use = bpf_map_lookup_elem(&pool_use, &pool);
	__u32 total_key = SW_MAX_POOLS;
	const struct sw_pool_use *total = bpf_map_lookup_elem(&pool_use, &total_key);

	if (!steer || !use || !total)
		return -PICK_NONE;
	if (steer->flags & SW_SF_CLOSED)
		return -PICK_CLOSED;
	if (how & HOW_HALF_OPEN && (LATEST(use->half_open) >= steer->half_open ||
				    LATEST(total->half_open) >= SW_MAX_RESERVATIONS - 1))
		return -PICK_HALF_OPEN;
	return 0;
}

/* Rows that the hints take for full are looked at once a tick, so that a cap raised while others
 * have free slots is not overlooked. */
static __always_inline void reread_each_tick(__u32 pool)
{
	struct sw_pool_use *use = bpf_map_lookup_elem(&pool_use, &pool);
	__u32 now = bpf_jiffies64();

	if (!use || LATEST(use->reread) == now)
		return;
	LATEST(use->reread) = now;
	slot_reread(pool);
}

/* Suspects are taken where all are, and where no daemon is there to clear them. HOW_SUSPECT: all
 * are. Negative: there is nobody. */
static __always_inline int whom(__u32 pool, __u32 how)
{
	how = (how & HOW_ONLY4) | HOW_IGNORE_BUSY | HOW_FULL;
	if (slot_first(pool, how) >= 0)
		return 0;
	return slot_first(pool, how | HOW_SUSPECT) >= 0 ? HOW_SUSPECT : -PICK_NONE;
}

/* The hints left nothing: looks at the rows themselves. As slot_pick. */
__weak __noinline int slot_search(__u32 pool, __u32 how)
{
	int suspects = whom(pool, how), id;

	if (suspects < 0)
		return suspects;
	slot_reread(pool);
	id = slot_try(pool, how | suspects);
	if (id < 0 && how & HOW_IGNORE_BUSY)
		id = slot_try(pool, how | HOW_SUSPECT);
	if (id >= 0)
		return id;
	how |= suspects | HOW_IGNORE_BUSY;
	return slot_first(pool, how) < 0 ? -PICK_NO_SLOT : -PICK_ALL_BUSY;
}

/* ---- for the hooks -------------------------------------------------------------------------- */

/* Picks a worker and takes a slot of it: its id, or negative enum pick. */
__weak __noinline int slot_pick(__u32 pool, __u32 how)
{
	int id = shut(pool, how);

	if (id < 0)
		return id;
	reread_each_tick(pool);
	id = slot_try(pool, how);
	return id < 0 ? slot_search(pool, how) : id;
}

/* Some worker of the pool, not a suspect where there is another; takes nothing. -1: none. */
__weak __noinline int slot_any(__u32 pool)
{
	int pair = slot_choose(pool, HOW_IGNORE_BUSY | HOW_FULL);

	if (pair < 0)
		pair = slot_choose(pool, HOW_IGNORE_BUSY | HOW_FULL | HOW_SUSPECT);
	return pair < 0 ? -1 : pair & 0xffff;
}

/* 1: one of those that the hints let hope is not full indeed. */
__weak __noinline int slot_free(__u32 pool, __u32 how)
{
	struct sw_worker_row *row;
	struct sw_slot *slot;
	__u32 id, i;
	int first;

	for (i = 0; i < SLOT_TRIES; i++) {
		first = slot_first(pool, how);
		if (first < 0)
			return 0;
		id = first;
		row = bpf_map_lookup_elem(&workers, &id);
		slot = bpf_map_lookup_elem(&slots, &id);
		if (!row || !slot || free_slots(slot, row) > 0)
			return 1;
		hint(slot, row, id);
	}
	return 1;
}

/* 1: slot_pick would find something. 0: it would not; that a cap was raised is seen within a tick
 * in pools of more than a word, whose rows are too many to be read for every SYN. */
__weak __noinline int slot_room(__u32 pool, __u32 how)
{
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);
	int suspects;

	if (!steer || shut(pool, how) < 0)
		return 0;
	if (slot_free(pool, how))
		return 1;
	if (steer->words > 1)
		reread_each_tick(pool);
	else
		slot_reread(pool);
	suspects = how & HOW_IGNORE_BUSY ? HOW_SUSPECT : whom(pool, how);
	return slot_free(pool, how) || (suspects == HOW_SUSPECT && slot_free(pool, how | suspects));
}

#endif
