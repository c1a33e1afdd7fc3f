/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a slot that a lookup has taken to a connection that holds it. Until the stack says what
 * becomes of the SYN the slot is `pending` on this CPU; a request socket makes a reservation of it;
 * an established connection takes it over, and from there on it is bound to the socket.
 *
 * Several CPUs may be after the same one (a sweep, mostly). Whoever moves `since_ns` to 0 by
 * compare-and-swap has it: each is held since another moment, so nothing newer is taken for it.
 */
#ifndef SPILLWAY_BPF_RESERVATION_H
#define SPILLWAY_BPF_RESERVATION_H

#include "picks.h"
#include "slots.h"

static __always_inline int claim(__u64 *since_ns, __u64 seen)
{
	return seen && __sync_val_compare_and_swap(since_ns, seen, 0) == seen;
}

/* Makes visible what was written before; with a full barrier. */
static __always_inline void publish(__u64 *since_ns, __u64 now)
{
	(void)__sync_lock_test_and_set(since_ns, now);
}

/* ---- how many there are ------------------------------------------------------------------- */

/* Counts one more of a pool's connections that are not established. -1: that would be more than
 * `limit`, and it is not counted. */
static __always_inline int half_open_up(__u32 pool, __u32 limit)
{
	struct sw_pool_use *use = bpf_map_lookup_elem(&pool_use, &pool);
	__u32 all = SW_MAX_POOLS;
	struct sw_pool_use *total = bpf_map_lookup_elem(&pool_use, &all);

	if (!use || !total)
		return -1;
	if (__sync_fetch_and_add(&use->half_open, 1) >= limit) {
		__sync_fetch_and_add(&use->half_open, -1);
		return -1;
	}
	__sync_fetch_and_add(&total->half_open, 1);
	return 0;
}

static __always_inline void half_open_down(__u32 pool)
{
	struct sw_pool_use *use = bpf_map_lookup_elem(&pool_use, &pool);
	__u32 all = SW_MAX_POOLS;
	struct sw_pool_use *total = bpf_map_lookup_elem(&pool_use, &all);

	if (!use || !total)
		return;
	__sync_fetch_and_add(&use->half_open, -1);
	__sync_fetch_and_add(&total->half_open, -1);
}

/* Nothing came of it. `slot` is the worker's id + 1. */
static __always_inline int slot_release(__u32 slot, __u32 pool)
{
	if (!slot)
		return 0;
	half_open_down(pool);
	return slot_untake(slot - 1);
}

/* ---- pending ------------------------------------------------------------------------------ */

static __always_inline struct sw_pending *this_pending(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&pending, &zero);
}

static __always_inline int same_tuple(const struct sw_tuple *a, const struct sw_tuple *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;
	__u64 differ = 0;
	int i;

	for (i = 0; i < (int)sizeof(*a) / 8; i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* Remembers that a slot, which is counted in `half_open`, was taken for this connection. Nothing
 * may be pending. */
static __always_inline void pending_hold(struct sw_pending *p, const struct sw_tuple *t, __u32 slot,
					 __u32 pool)
{
	p->tuple = *t;
	p->place = remember_pick(t, slot);
	p->slot = slot;
	p->pool = pool;
	publish(&p->since_ns, bpf_ktime_get_ns());
}

/* Takes it out, if it is for this connection: what was held, or 0. */
static __always_inline __u32 pending_take(struct sw_pending *p, const struct sw_tuple *t,
					  __u32 *pool)
{
	__u64 since = LATEST(p->since_ns);
	__u32 slot = p->slot;

	*pool = p->pool;
	if (!same_tuple(&p->tuple, t) || !claim(&p->since_ns, since))
		return 0;
	p->slot = 0;
	forget_pick(p->place);
	return slot;
}

/* Gives back what is left from a lookup of which the stack made nothing. */
static __always_inline void pending_drop(struct sw_pending *p)
{
	__u64 since = LATEST(p->since_ns);
	__u32 slot = p->slot, pool = p->pool;

	if (claim(&p->since_ns, since))
		slot_release(slot, pool);
}

/* ---- reservations --------------------------------------------------------------------------- */

/* Takes a reservation out of the map. 1: it was there, and is the caller's. */
static __always_inline int reservation_take(const struct sw_tuple *t, __u32 *slot, __u32 *pool)
{
	struct sw_reservation *r = bpf_map_lookup_elem(&reservations, t);
	__u64 since;

	if (!r)
		return 0;
	since = LATEST(r->since_ns);
	*slot = r->slot;
	*pool = r->pool;
	if (!claim(&r->since_ns, since))
		return 0;
	bpf_map_delete_elem(&reservations, t);
	return 1;
}

/* Gives the reservation back, if there is one. */
static __always_inline void reservation_drop(const struct sw_tuple *t)
{
	__u32 slot, pool;

	if (reservation_take(t, &slot, &pool))
		slot_release(slot, pool);
}

/* Puts a new reservation in the place of a former one of the same ports, which is given back. 1: it
 * is there. 0: it is not, as a sweep was about to take the former one out of the map. */
static __always_inline int reservation_renew(const struct sw_tuple *t, struct sw_reservation *r,
					     const struct sw_reservation *new)
{
	__u64 since = LATEST(r->since_ns);
	__u32 slot = r->slot, pool = r->pool;

	if (claim(&r->since_ns, since))
		slot_release(slot, pool);
	r->slot = new->slot;
	r->pool = new->pool;
	r->missing = 0;
	publish(&r->since_ns, new->since_ns);
	/* out of the map by now: a sweep that sees what it has done puts it back, or we do */
	return bpf_map_lookup_elem(&reservations, t) == r || !claim(&r->since_ns, new->since_ns);
}

/* Reserves a slot, which is counted in `half_open`, for a connection; 0: it may come in without
 * one. -1: there is no room for that; the slot is still the caller's. */
static __always_inline int reservation_hold(const struct sw_tuple *t, __u32 slot, __u32 pool)
{
	struct sw_reservation new = {.since_ns = bpf_ktime_get_ns(), .slot = slot, .pool = pool};
	struct sw_reservation *former = bpf_map_lookup_elem(&reservations, t);

	if (former && reservation_renew(t, former, &new))
		return 0;
	return bpf_map_update_elem(&reservations, t, &new, BPF_ANY) ? -1 : 0;
}

/* The stack answers the SYN of a lookup on this CPU: 0, or -1: there is no room for it, and the
 * slot was given back. */
static __always_inline int reservation_confirm(const struct sw_tuple *t)
{
	struct sw_pending *p = this_pending();
	__u32 slot, pool;

	if (!p)
		return -1;
	slot = pending_take(p, t, &pool);
	if (!slot || !reservation_hold(t, slot, pool))
		return 0;
	slot_release(slot, pool);
	return -1;
}

/* The connection is established: the slot that it now holds (worker id + 1), or 0. Where the stack
 * used a SYN cookie there was never a reservation, and what this CPU has pending is for it. */
static __always_inline __u32 reservation_settle(const struct sw_tuple *t, __u32 *pool)
{
	struct sw_pending *p = this_pending();
	struct sw_slot *row;
	__u32 slot = 0, id;

	if (!reservation_take(t, &slot, pool) && p)
		slot = pending_take(p, t, pool);
	if (!slot)
		return 0;
	id = slot - 1;
	row = bpf_map_lookup_elem(&slots, &id);
	if (row)
		__sync_fetch_and_add(&row->moves, 1);
	half_open_down(*pool);
	return slot;
}

#endif
