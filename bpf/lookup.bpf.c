// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sk_lookup: who is to have a connection that no socket has yet. Takes a slot for it before the SYN
 * is answered, and leaves it pending for the stack; see reservation.h. The packets of a connection
 * under way do not come by here.
 *
 * Not loaded unless asked for.
 */
#include <linux/in.h>
#include <bpf/bpf_endian.h>

#include "asking.h"
#include "bound.h"
#include "maps.h"

#define AF_INET6     10
#define PICK_TRIES   16 /* workers whose listening socket is gone */
#define EAFNOSUPPORT 97

struct wish { /* what every step knows */
	struct sw_tuple tuple;
	struct sw_pending *p;
	const struct sw_listener *l;
	const struct sw_steer_pool *steer;
	__u32 pool, how, asking;
	__u32 v6, overdue;
};

/* ---- whose is it ---------------------------------------------------------------------------- */

static __always_inline void read_tuple(const struct bpf_sk_lookup *ctx, struct wish *w)
{
	struct sw_tuple *t = &w->tuple;
	__u32 *peer = (__u32 *)t->peer, *local = (__u32 *)t->local;
	int i;

	t->netns = netns_cookie;
	t->peer_port = bpf_ntohs(LATEST(ctx->remote_port));
	t->local_port = LATEST(ctx->local_port);
	w->v6 = LATEST(ctx->family) == AF_INET6;
	if (!w->v6) {
		map_address(t->peer, LATEST(ctx->remote_ip4));
		map_address(t->local, LATEST(ctx->local_ip4));
		return;
	}
	for (i = 0; i < 4; i++) {
		peer[i] = LATEST(ctx->remote_ip6[i]);
		local[i] = LATEST(ctx->local_ip6[i]);
	}
}

/* The listener's id, 0: none of ours. */
static __always_inline __u32 find_listener(const struct bpf_sk_lookup *ctx, struct wish *w)
{
	__u32 port = LATEST(ctx->local_port), *id;
	const struct sw_port *at = bpf_map_lookup_elem(&ports, &port);
	struct sw_address key = {.port = port};

	if (!at || !(at->any4 | at->any6 | at->single))
		return 0;
	read_tuple(ctx, w);
	if (at->single) {
		__builtin_memcpy(key.addr, w->tuple.local, 16);
		id = bpf_map_lookup_elem(&addresses, &key);
		if (id && *id)
			return *id;
	}
	return w->v6 ? at->any6 : at->any4;
}

/* 0: this look-up is not to be touched. */
static __always_inline int read_wish(const struct bpf_sk_lookup *ctx, struct wish *w)
{
	__u32 id = find_listener(ctx, w);
	const struct sw_tuple *alone;

	if (!id)
		return 0;
	w->l = bpf_map_lookup_elem(&listeners, &id);
	if (!w->l)
		return 0;
	w->pool = w->l->pool;
	w->steer = bpf_map_lookup_elem(&steers, &w->pool);
	w->p = this_pending();
	if (!w->steer || !w->p || !(w->steer->flags & SW_SF_COUNT))
		return 0;
	w->asking = LATEST(w->p->asking);
	if (w->asking == SW_ASKING_NOTHING) {
		alone = this_left_alone();
		if (!alone || same_tuple(alone, &w->tuple))
			return 0;
		w->asking = SW_ASKING_STACK;
	}
	w->overdue = bpf_ktime_get_coarse_ns() > w->steer->deadline_ns;
	w->how = (w->overdue ? HOW_IGNORE_BUSY : 0) |
		 (w->asking == SW_ASKING_STACK ? HOW_HALF_OPEN : 0);
	return 1;
}

/* ---- listening sockets ---------------------------------------------------------------------- */

/* Gives the connection to a socket, and that back. */
static __always_inline int assign(struct bpf_sk_lookup *ctx, struct bpf_sock *sk)
{
	int err;

	if (!sk)
		return -1;
	err = bpf_sk_assign(ctx, sk, 0);
	bpf_sk_release(sk);
	return err;
}

/* A worker that was picked does not listen. */
__weak __noinline int note_deaf(__u32 id, __u32 pool, int is_gone)
{
	struct sw_slot *slot = bpf_map_lookup_elem(&slots, &id);

	count_steered(pool, STEERED_no_listener);
	if (slot)
		__sync_fetch_and_add(&slot->refusals, 1);
	if (is_gone)
		mark_suspect(id, pool);
	return 0;
}

/* Gives it to a worker's listening socket; nonzero: it has none, or one for the other kind of
 * addresses only, for which it is not to be blamed. */
static __always_inline int assign_worker(struct bpf_sk_lookup *ctx, const struct wish *w, __u32 id)
{
	int err;

	if (!(w->steer->flags & SW_SF_ASSIGN))
		return 0;
	err = assign(ctx, bpf_map_lookup_elem(&listening, &id));
	if (err)
		note_deaf(id, w->pool, err != -EAFNOSUPPORT);
	return err;
}

/* Gives it to any worker, and takes nothing. */
static __always_inline int assign_any(struct bpf_sk_lookup *ctx, const struct wish *w)
{
	int i, id;

	if (!(w->steer->flags & SW_SF_ASSIGN))
		return 0;
	for (i = 0; i < PICK_TRIES; i++) {
		id = slot_any(w->pool);
		if (id < 0 || !assign_worker(ctx, w, id))
			return id;
	}
	return -1;
}

/* ---- slots ------------------------------------------------------------------------------------
 */

/* A slot of the pool that is counted in `half_open`: worker id + 1, or negative enum pick. That of
 * `again` (worker id + 1, 0: nobody) if it can be had. */
__weak __noinline int take(__u32 pool, __u32 how, __u32 again)
{
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);
	__u32 id = again - 1, limit = ~0U;
	const struct sw_worker_row *row = again ? bpf_map_lookup_elem(&workers, &id) : NULL;
	int picked;

	if (!row || row->pool != pool || slot_take(id)) {
		picked = slot_pick(pool, how);
		if (picked < 0)
			return picked;
		id = picked;
	}
	if (how & HOW_HALF_OPEN)
		limit = steer ? steer->half_open : 0;
	if (!half_open_up(pool, limit))
		return id + 1;
	slot_untake(id);
	return -PICK_HALF_OPEN;
}

struct attempt {
	struct bpf_sk_lookup *ctx;
	struct wish *w;
	__u32 again; /* the slot that this connection was given a moment ago */
	int slot;    /* worker id + 1, 0: none yet; or negative enum pick */
};

/* 0: this worker has no listening socket for it, try another one. */
static long attempt(__u32 i, struct attempt *a)
{
	(void)i;
	if (!a->slot)
		a->slot = take(a->w->pool, a->w->how, a->again);
	if (a->slot < 0 || !assign_worker(a->ctx, a->w, a->slot - 1))
		return 1;
	slot_release(a->slot, a->w->pool);
	a->slot = a->again = 0;
	return 0;
}

/* 0: the connection has a slot. Or negative enum pick. */
static __always_inline int take_and_assign(struct bpf_sk_lookup *ctx, struct wish *w)
{
	struct attempt a = {.ctx = ctx, .w = w, .again = recall_pick(&w->tuple)};
	__u32 pool;

	a.slot = pending_take(w->p, &w->tuple, &pool); /* the same packet came again */
	if (!a.slot)
		pending_drop(w->p);
	bpf_loop(PICK_TRIES, attempt, &a, 0);
	if (a.slot <= 0)
		return a.slot ? a.slot : -PICK_NONE;
	pending_hold(w->p, &w->tuple, a.slot, w->pool);
	return 0;
}

/* ---- nothing is free ------------------------------------------------------------------------- */

static __always_inline int is_exempt(const struct wish *w)
{
	struct sw_cidr_key key = {.prefixlen = 32 + 128, .set = bpf_htonl(w->l->exempt)};

	if (!(w->l->flags & SW_LF_EXEMPT))
		return 0;
	__builtin_memcpy(key.addr, w->tuple.peer, 16);
	return bpf_map_lookup_elem(&exempt, &key) != NULL;
}

/* Who is let in without a slot rather than refused. A guard without its daemon fails open. */
static __always_inline int is_let_in(const struct wish *w)
{
	if (w->l->flags & SW_LF_OBSERVE)
		return 1;
	if (w->overdue && !(w->steer->flags & SW_SF_ASSIGN))
		return 1;
	return is_exempt(w);
}

static __always_inline int answer(struct bpf_sk_lookup *ctx, const struct wish *w)
{
	__u32 key = w->pool * 2 + w->v6;

	return w->overdue ? -1 : assign(ctx, bpf_map_lookup_elem(&responding, &key));
}

static __always_inline int refuse(struct bpf_sk_lookup *ctx, const struct wish *w, int why)
{
	if (is_let_in(w) && !assign_any(ctx, w)) {
		count_steered(w->pool, STEERED_passed);
		return SK_PASS;
	}
	count_unpicked(w->pool, why);
	if (w->asking == SW_ASKING_HAND_OVER)
		return SK_DROP;
	/* The ACK of a SYN cookie is better lost, as the client's data will come again, than sent
	 * to a socket that takes it for a stranger's and resets the connection. */
	if (!recall_pick(&w->tuple) && !answer(ctx, w)) {
		count_steered(w->pool, STEERED_answered);
		return SK_PASS;
	}
	count_steered(w->pool, STEERED_refused);
	return SK_DROP;
}

/* ---- the program ---------------------------------------------------------------------------- */

SEC("?sk_lookup")
int spillway_lookup(struct bpf_sk_lookup *ctx)
{
	struct wish w = {};
	int why;

	if (ctx->protocol != IPPROTO_TCP || !read_wish(ctx, &w))
		return SK_PASS;
	if (w.asking == SW_ASKING_ANY || w.asking == SW_ASKING_PASS) {
		if (assign_any(ctx, &w) < 0)
			return SK_DROP;
		if (w.asking == SW_ASKING_PASS)
			count_steered(w.pool, STEERED_passed);
		return SK_PASS;
	}
	why = take_and_assign(ctx, &w);
	if (why)
		return refuse(ctx, &w, why);
	count_steered(w.pool, STEERED_steered);
	if (w.overdue)
		count_steered(w.pool, STEERED_overdue);
	return SK_PASS;
}
