// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TC ingress, behind spillway_tc: requests on connections that the kernel has already. While the
 * pool sheds, a request that begins here is answered in its place and the connection goes on; what
 * the socket then never saw is taken out of all later numbers (flow.h).
 */
#define STAGE(name) keep_##name
#define ctx_counts  counts_keep
#include "ctx_tc.h"
#include "verdict.h"
#include "keep_request.h"

#define FAR_BEHIND (1U << 30)

/* ---- while a shed request is not over -------------------------------------------------------- */

/* Takes bytes [seq, end) of the body in. What comes ahead of its time is remembered as one range,
 * so that one lost segment costs one retransmission. */
static __always_inline void take_body(struct flow *f, __u32 seq, __u32 end)
{
	if (before(f->swallowed, seq)) {
		if (f->ahead_from == f->ahead_to) {
			f->ahead_from = seq;
			f->ahead_to = end;
		} else if (!before(f->ahead_to, seq) && !before(seq, f->ahead_from) &&
			   before(f->ahead_to, end)) {
			f->ahead_to = end;
		}
		return;
	}
	if (before(f->swallowed, end))
		f->swallowed = end;
	if (f->ahead_from != f->ahead_to && !before(f->swallowed, f->ahead_from)) {
		if (before(f->swallowed, f->ahead_to))
			f->swallowed = f->ahead_to;
		f->ahead_from = f->ahead_to = 0;
	}
}

/* The body of a request that is being shed. */
static __always_inline int swallow(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	__u32 end = s->p.seq + s->p.payload;
	struct window *w = open_window(ctx, &s->p);

	if (!w)
		return SW_R_drop_failed;
	read_options(&s->p, w, &s->o);
	if (before(f->to, end))
		end = f->to;
	if (before(s->p.seq, end)) /* else it is of the next request */
		take_body(f, s->p.seq, end);
	if (f->swallowed == f->to) {
		s->cause = f->answer / (SW_FAMILIES * SW_VARIANTS) % SW_CAUSES;
		return complete(s, f);
	}
	f->acked = f->swallowed;
	prepare(s, f, 0, f->swallowed);
	if (f->ahead_from != f->ahead_to && s->o.timestamp)
		put_sack(&s->r, f->ahead_from, f->ahead_to);
	return SW_R_drain_data;
}

/* The client gives up in the middle of a body that is being swallowed: the socket hears of it where
 * its stream stands. */
static __always_inline void end_swallow(struct flow *f)
{
	f->to = f->swallowed;
	f->din = f->din_before + f->to - f->from;
	f->flags &= ~FLOW_SWALLOW;
	leave_alone(f, SW_R_alone_close);
}

/* The client ends a connection on which nothing was asked but what was shed, so that it never
 * became a socket: nobody has to hear of it. */
static __always_inline int end_unborn(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	struct window *w = open_window(ctx, &s->p);

	if (!w)
		return SW_R_drop_failed;
	read_options(&s->p, w, &s->o);
	prepare(s, f, TCP_FIN, s->p.seq + 1);
	s->r.seq = f->at + f->dout;
	s->up = !(f->flags & FLOW_ENDED);
	s->up_flags = TCP_RST;
	s->up_seq = s->facts.rcv_nxt;
	f->flags |= FLOW_ENDED;
	return SW_R_drain_fin;
}

/* Right behind the last request that was shed: a FIN that overtakes another one is not the end. */
static __always_inline int is_unborn(ctx_t *ctx, struct scratch *s, const struct flow *f)
{
	return f->flags & FLOW_TRANSLATED && !(f->flags & FLOW_SWALLOW) && s->p.seq == f->to &&
	       STAGE(ask_socket)(ctx) == SOCKET_BEGINS && s->facts.unborn;
}

/* A FIN without data. None goes up before the client has the answer: the socket's acknowledgement
 * of it would be one of the request too. */
static __always_inline int on_fin(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	if (f->flags & FLOW_ANSWERED && !before(s->p.seq, f->to))
		return SW_R_drop_order;
	if (f->flags & FLOW_ENDED || is_unborn(ctx, s, f))
		return end_unborn(ctx, s, f);
	if (f->flags & FLOW_SWALLOW) {
		if (s->p.seq != f->swallowed)
			return SW_R_drop_order;
		end_swallow(f);
	}
	return SW_R_keep_translated;
}

/* While the client lacks the answer. */
static __always_inline int on_unanswered(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	struct window *w = open_window(ctx, &s->p);
	const struct sw_answer *a;
	__u32 index = f->answer;

	if (!before(s->p.seq, f->to) || !w || !STAGE(is_intact)(ctx))
		return SW_R_drop_order; /* behind an answer that may be lost */
	a = bpf_map_lookup_elem(&answers, &index);
	read_options(&s->p, w, &s->o);
	/* Another text meanwhile, with another length: the connection cannot be saved. */
	if (!a || a->length != f->dout - f->dout_before) {
		prepare(s, f, TCP_RST, f->to);
		return SW_R_shed_no_answer;
	}
	return give_answer(s, f, SW_R_shed_again);
}

/* Numbers wrap: what lies long behind must not seem to lie ahead. */
static __always_inline void move_marks(struct scratch *s, struct flow *f)
{
	if (f->flags & (FLOW_SWALLOW | FLOW_ANSWERED))
		return;
	if (s->p.seq - f->to - FAR_BEHIND < FAR_BEHIND) {
		f->din_before = f->din;
		f->from = f->to = f->acked = s->p.seq;
	}
	if (s->p.ack - f->dout - f->at - FAR_BEHIND < FAR_BEHIND) {
		f->dout_before = f->dout;
		f->at = s->p.ack - f->dout;
	}
}

/* Bytes of a request that was shed, and answered, and whose answer the client has: an old copy. A
 * probe of one byte has to be answered, and where there was no answer any copy; the socket does it.
 */
static __always_inline int on_old(struct scratch *s, struct flow *f)
{
	__u32 end = s->p.seq + s->p.payload;

	if (!before(f->from, end) || (s->p.payload == 1 && end == f->to) || f->flags & FLOW_ALONE)
		return SW_R_keep_translated;
	return SW_R_drop_ack;
}

static __always_inline int on_segment(ctx_t *ctx, struct scratch *s, struct flow *f,
				      const struct sw_listener *l)
{
	int reason;

	if (f->flags & FLOW_ANSWERED && !before(s->p.ack, f->at + f->dout)) {
		f->flags &= ~FLOW_ANSWERED;
		f->acked = f->to;
	}
	if (s->p.flags & TCP_RST)
		return SW_R_keep_translated;
	if (f->flags & FLOW_TRANSLATED)
		move_marks(s, f);
	if (!s->p.payload && s->p.flags & TCP_FIN)
		return on_fin(ctx, s, f);
	if (f->flags & FLOW_ENDED)
		return SW_R_drop_ack;
	if (!s->p.payload)
		return f->flags & FLOW_TRANSLATED ? SW_R_keep_translated : SW_R_keep_followed;
	if (f->flags & FLOW_SWALLOW)
		return STAGE(is_intact)(ctx) ? swallow(ctx, s, f) : SW_R_drop_order;
	if (f->flags & FLOW_ANSWERED)
		return on_unanswered(ctx, s, f);
	if (f->flags & FLOW_TRANSLATED && before(s->p.seq, f->to))
		return on_old(s, f);
	reason = on_payload(ctx, s, f, l);
	return f->flags & FLOW_TRANSLATED && reason == SW_R_keep_followed ? SW_R_keep_translated
									  : reason;
}

/* ---- the packet's way ----------------------------------------------------------------------- */

/* Could a request to this pool be shed, now or soon? A metered one that counts connections has
 * counted this one when it came. */
static __always_inline int matters(const struct sw_pool *pool, __u32 index)
{
	const struct sw_steer_pool *steer;

	if (pool->armed)
		return 1;
	if (pool->mode != SW_MODE_METERED)
		return pool->mode != SW_MODE_OPEN;
	steer = bpf_map_lookup_elem(&steers, &index);
	return steer && steer->flags & SW_SF_CREDIT;
}

static __always_inline int is_drop(int reason)
{
	return 1ULL << reason & drops;
}

/* The tuple's next connection begins, unless this is an old SYN of the one that is there. */
static __always_inline int on_new(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	if (f && STAGE(ask_socket)(ctx) == SOCKET_NONE)
		forget_flow(s);
	return GO_ON;
}

/* Has this packet just been given a socket to be, by the hand-over? Then it is the first. */
static __always_inline int is_handed_over(ctx_t *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk && sk->state == BPF_TCP_NEW_SYN_RECV;
}

/* May this packet be the first that is seen of its flow? */
static __always_inline int may_begin(ctx_t *ctx, struct scratch *s)
{
	if (!s->p.payload)
		return 0;
	if (is_handed_over(ctx)) {
		s->facts.fresh = 1;
		return 1;
	}
	return STAGE(ask_socket)(ctx) <= SOCKET_BEGINS && s->facts.quiet &&
	       s->facts.rcv_nxt == s->p.seq && s->facts.write_seq == s->p.ack &&
	       (s->facts.fresh || s->facts.spoke);
}

/* A flow that is not known yet. NULL: none is begun, for the reason in *reason. */
static __always_inline struct flow *meet_flow(ctx_t *ctx, struct scratch *s, int *reason)
{
	struct flow *f = NULL;

	*reason = GO_ON;
	if (may_begin(ctx, s)) {
		f = new_flow(s);
		if (!f)
			*reason = SW_R_keep_full;
	}
	return f;
}

static __always_inline void look_at_pool(struct scratch *s, const struct sw_pool *pool, int active)
{
	int in_time = s->now <= pool->deadline_ns;

	s->shedding = pool->mode == SW_MODE_SHED && in_time;
	s->metered = active && pool->mode == SW_MODE_METERED && in_time;
	s->cause = s->metered		     ? SW_CAUSE_NO_SLOTS
		   : pool->cause < SW_CAUSES ? pool->cause
					     : SW_CAUSE_SATURATED;
}

static __always_inline int read_window(ctx_t *ctx, struct scratch *s)
{
	struct tcphdr *tcp = header(ctx_begin(ctx), s->p.l4);

	if ((void *)(tcp + 1) > ctx_end(ctx))
		return -1;
	s->client_window = bpf_ntohs(tcp->window);
	return 0;
}

/* A connection is left alone for one reason, counted once: with the next packet that goes up. */
static __always_inline int tell_why(struct flow *f, int reason)
{
	__u32 why = f->flags >> FLOW_WHY & 0xff;

	f->flags &= ~(0xffU << FLOW_WHY);
	return why ? why : reason;
}

/* The packet of a flow: what becomes of it. */
static __always_inline int on_flow(ctx_t *ctx, struct scratch *s, struct flow *f,
				   const struct sw_listener *l)
{
	int reason;

	if (lock_flow(f))
		return SW_R_drop_raced;
	reason = on_segment(ctx, s, f, l);
	if (!is_reply(reason) && !is_drop(reason)) {
		if (f->flags & FLOW_TRANSLATED && STAGE(translate)(ctx, &s->p, f, 0))
			reason = SW_R_drop_failed;
		else
			reason = tell_why(f, reason);
	}
	unlock_flow(f);
	return reason;
}

/* GO_ON: nothing to do with us. */
static __always_inline int keep(ctx_t *ctx, struct scratch *s, __u32 *id)
{
	const struct sw_listener *l;
	const struct sw_pool *pool;
	struct flow *f = NULL;
	__u32 zero = 0, index, *use = bpf_map_lookup_elem(&flow_use, &zero);
	int reason, active = 0;

	if (!use || locate(ctx, &s->p) >= 0)
		return GO_ON;
	/* id 0 if the listener is gone: its connections go on */
	*id = find_listener(ctx, &s->p);
	if (!*id && !*use)
		return GO_ON;
	l = bpf_map_lookup_elem(&listeners, id);
	if (!l)
		return GO_ON;
	index = l->pool;
	pool = bpf_map_lookup_elem(&pools, &index);
	if (!pool)
		return GO_ON;
	if (*id && l->flags & SW_LF_KEEP)
		active = matters(pool, index);
	if ((!active && !*use) || read(ctx, &s->p) >= 0 || read_window(ctx, s))
		return GO_ON;
	make_key(&s->p, &s->key);
	f = bpf_map_lookup_elem(&flows, &s->key);
	if (s->p.flags & TCP_SYN)
		return on_new(ctx, s, f);
	s->now = bpf_ktime_get_coarse_ns();
	s->up = 0;
	look_at_pool(s, pool, active);
	if (!active)
		s->shedding = 0;
	if (!f) {
		if (!active)
			return GO_ON;
		f = meet_flow(ctx, s, &reason);
		if (!f)
			return reason;
	}
	return on_flow(ctx, s, f, l);
}

SEC("?tc")
int spillway_keep(struct __sk_buff *skb)
{
	struct scratch *s = this_scratch();
	__u32 id = 0;
	int reason;

	if (!s)
		return CTX_PASS;
	reason = keep(skb, s, &id);
	if (reason == GO_ON)
		return CTX_PASS;
	if (is_reply(reason)) {
		reason = STAGE(send_reply)(skb, reason);
		if (is_shed(reason))
			note_shed(&s->p, id, SHED_NOTE(reason, s->cause, s->asked, 1), s->now);
		if (s->up && is_reply(reason)) {
			count(id, reason);
			return CTX_PASS;
		}
	}
	return verdict(skb, VARIANT_NATIVE, id, reason);
}
