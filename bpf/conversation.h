/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shed conversation. Each stage returns a reason, or GO_ON for the next one.
 *
 *   client sends                   we                                     reason
 *   SYN                            SYN-ACK, sequence = cookie             syn_ack
 *   ACK                            nothing                                drop_handshake
 *   first data: the request        decide: answer with PSH+FIN, or        shed_*
 *                                  give the connection to the kernel      handover_*
 *   data ahead of it               nothing, it comes again in order       drop_order
 *   data after the answer          ACK of all                             drain_data
 *   FIN after the answer           ACK                                    drain_fin
 *   RST                            pass                                   pass_reset
 *
 * Nothing is stored. One rule makes loss heal itself: no byte of a request is ever acknowledged
 * except by a segment that carries the whole answer, or after the client has acknowledged the
 * answer. So a client that lacks the answer still has its request to retransmit.
 */
#ifndef SPILLWAY_BPF_CONVERSATION_H
#define SPILLWAY_BPF_CONVERSATION_H

#include "cookie.h"
#include "handover.h"
#include "listener.h"
#include "recent.h"
#include "reply.h"
#include "request.h"
#include "shed.h"
#include "socket.h"

struct scene { /* what every stage knows */
	struct packet p;
	struct options o;
	struct cookie c;
	struct reply r;
	const struct sw_listener *l;
	const struct sw_pool *pool;
	struct window *w; /* set by who reads or answers */
	__u64 now;
	__u32 pool_id;
	__u32 cause, family; /* of r.answer */
	int shedding;	     /* closed, and the daemon lives */
	int metered;	     /* closed while no slot is free, and the daemon lives */
	enum variant variant;
};

/* From now on segments to this pool may be part of a conversation, also once it is metered again.
 */
static __always_inline void note_refused(const struct scene *s)
{
	struct sw_pool_use *use = bpf_map_lookup_elem(&pool_use, &s->pool_id);

	if (use && use->refused_ns != s->now)
		use->refused_ns = s->now;
}

static __always_inline int make_syn_ack(struct scene *s, __u32 mss)
{
	__u32 zero = 0, ecn_setup = TCP_ECE | TCP_CWR;
	const struct sw_levers *lever = bpf_map_lookup_elem(&levers, &zero);
	const struct sw_secrets *k = bpf_map_lookup_elem(&secrets, &zero);
	struct options *o = &s->o;
	__u64 hash;
	int ecn;

	if (!lever || !k)
		return SW_R_pass_open;
	o->timestamp &= !!(lever->tcp & SW_TCP_TIMESTAMPS);
	o->sack_ok &= !!(lever->tcp & SW_TCP_SACK);
	if (!(lever->tcp & SW_TCP_WSCALE))
		o->wscale = NO_WSCALE;
	ecn = o->timestamp && lever->tcp & SW_TCP_ECN && (s->p.flags & ecn_setup) == ecn_setup;
	hash = conversation_hash(&s->p, k->key[0], s->now >> SW_PERIOD_SHIFT);
	s->r.seq = make_cookie(hash, s->p.seq + 1, mss);
	s->r.ack = s->p.seq + 1;
	s->r.flags = TCP_SYN | TCP_ACK | (ecn ? TCP_ECE : 0);
	s->r.window = WINDOW_SYN_ACK;
	syn_ack_options(&s->r, o, s->p.v6 ? lever->mss6 : lever->mss4,
			remember_options(s->now, o, ecn));
	note_refused(s);
	return SW_R_syn_ack;
}

/* A SYN. Only what nothing else owns, and what could be given to the kernel whole, is answered. */
static __always_inline int on_syn(ctx_t *ctx, struct scene *s)
{
	__u32 least = s->p.v6 ? 1220 : 536, mss;
	int reason;

	if (s->metered && slot_room(s->pool_id, HOW_HALF_OPEN))
		return SW_R_pass_metered;
	if (!s->shedding && !s->metered)
		return s->pool->mode == SW_MODE_FINISH ? SW_R_pass_open : SW_R_pass_expired;
	if (!is_local(&s->p))
		return SW_R_pass_not_local;
	if (s->l->flags & SW_LF_OBSERVE)
		return SW_R_pass_observe;
	if (is_exempt(s->l, &s->p))
		return SW_R_pass_exempt;
	/* The kernel takes no connection over whose IP header lies behind a tag in the frame. TC
	 * sees one tag less than XDP. */
	if (!(s->l->flags & SW_LF_ALL_PATHS) && s->p.l3 > ETH_HLEN + (CTX_IS_XDP ? 4 : 0))
		return SW_R_pass_options;
	s->w = open_window(ctx, &s->p);
	if (!s->w)
		return SW_R_pass_malformed;
	read_options(&s->p, s->w, &s->o);
	mss = s->o.mss ? s->o.mss : least;
	if (mss < least)
		return SW_R_pass_options;
	reason = STAGE(check_socket)(ctx, &s->p);
	if (reason >= 0)
		return reason;
	if (is_flood(s->l, &s->p, s->now))
		return SW_R_drop_flood;
	return make_syn_ack(s, mss);
}

static __always_inline void prepare(struct scene *s, __u8 flags, __u32 ack)
{
	s->r.flags = flags | TCP_ACK;
	s->r.seq = s->p.ack;
	s->r.ack = ack;
	s->r.window = WINDOW_DRAIN;
	if (s->o.timestamp) {
		put_timestamp(s->r.option, 0, clock_value(s->now), s->o.tsval);
		s->r.words = 3;
	}
}

/* The whole answer. `next` is what it acknowledges. */
static __always_inline int shed(struct scene *s, __u32 next, int reason)
{
	__u32 variant = s->c.hash >> 40 & s->l->variants_mask;
	__u32 index = SW_ANSWER_INDEX(s->l->answers, s->cause, s->family, variant);

	s->r.answer = bpf_map_lookup_elem(&answers, &index);
	if (!s->r.answer)
		return SW_R_drop_failed;
	prepare(s, TCP_PSH | TCP_FIN, next);
	return reason;
}

static __always_inline __u32 cause_of(const struct sw_pool *pool)
{
	if (pool->mode == SW_MODE_METERED)
		return SW_CAUSE_NO_SLOTS;
	return pool->cause < SW_CAUSES ? pool->cause : SW_CAUSE_SATURATED;
}

/* Why the kernel is to have the connection after all, or GO_ON. */
static __always_inline int why_give(struct scene *s)
{
	int kind = STAGE(read_request)(&s->p, s->l, &s->family);

	if (kind == REQUEST_UNREAD)
		return SW_R_handover_unread;
	if (kind == REQUEST_PASS)
		return SW_R_handover_path;
	if (!s->shedding && !s->metered)
		return SW_R_handover_open;
	if (is_exempt(s->l, &s->p))
		return SW_R_handover_exempt;
	return s->metered && slot_room(s->pool_id, 0) ? SW_R_handover_open : GO_ON;
}

/* Does a connection to the pool take a slot? */
static __always_inline int is_counted(__u32 pool)
{
	const struct sw_steer_pool *steer =
		netns_cookie ? bpf_map_lookup_elem(&steers, &pool) : NULL;

	return steer && steer->flags & SW_SF_COUNT;
}

/* Data, or a FIN, of a client that has no answer yet. */
static __always_inline int on_request(ctx_t *ctx, struct scene *s)
{
	__u32 next = s->p.seq + s->p.payload + (s->p.flags & TCP_FIN ? 1 : 0);
	struct sw_recent known;
	__u32 why;
	int give, err;

	if (find_answer(&s->p, &known)) { /* whatever was decided a moment ago stays decided */
		if ((__s32)(next - known.next) < 0)
			next = known.next;
		s->cause = known.mark >> 2 & 3;
		s->family = known.mark & 3;
		return shed(s, next, SW_R_shed_again);
	}
	if (!is_first(&s->p, &s->c))
		return SW_R_drop_order;
	if (!s->p.payload) { /* a FIN without a request: end it in good order */
		prepare(s, TCP_FIN, next);
		return SW_R_close_silent;
	}
	s->cause = cause_of(s->pool);
	give = why_give(s);
	if (give == GO_ON)
		return shed(s, next, SW_R_shed_saturated + s->cause);
	if (CTX_IS_XDP)
		return SW_R_pass_to_tc;
	why = give == SW_R_handover_open ? SW_ASKING_HAND_OVER : SW_ASKING_PASS;
	err = hand_over(ctx, &s->p, &s->o, s->c.guess, why);
	if (!err)
		return give;
	if (err != HAND_OVER_NOBODY || why == SW_ASKING_PASS || !is_counted(s->pool_id))
		return shed(s, next, SW_R_shed_no_handover);
	s->cause = SW_CAUSE_NO_SLOTS; /* the last one went to another */
	return shed(s, next, SW_R_shed_no_slots);
}

/* A client that has our answer: whatever it still sends is acknowledged, so that it does not stall.
 */
static __always_inline int on_rest(struct scene *s)
{
	__u32 fin = s->p.flags & TCP_FIN ? 1 : 0;

	prepare(s, 0, s->p.seq + s->p.payload + fin);
	return fin ? SW_R_drain_fin : SW_R_drain_data;
}

/* observe: nothing is touched, requests that would have been shed are counted; by TC, which sees
 * all that XDP lets pass. */
static __always_inline int observe(ctx_t *ctx, struct scene *s)
{
	if (CTX_IS_XDP)
		return SW_R_pass_to_tc;
	if (!(s->shedding || s->metered) || !s->p.payload || is_exempt(s->l, &s->p))
		return SW_R_pass_observe;
	s->w = open_window(ctx, &s->p);
	if (!s->w || STAGE(read_request)(&s->p, s->l, &s->family) != REQUEST_SHED)
		return SW_R_pass_observe;
	if (s->metered && slot_room(s->pool_id, 0))
		return SW_R_pass_observe;
	return SW_R_would_shed;
}

/* Any segment but a SYN: is it part of a conversation of ours, and of which phase? */
static __always_inline int on_segment(ctx_t *ctx, struct scene *s)
{
	const struct sw_secrets *k;
	__u32 zero = 0;
	int reason;

	if (s->l->flags & SW_LF_OBSERVE)
		return observe(ctx, s);
	k = bpf_map_lookup_elem(&secrets, &zero);
	if (!k)
		return SW_R_pass_unknown;
	match_cookie(&s->p, s->l, k, s->now, &s->c);
	if (s->c.phase == PHASE_NONE)
		return SW_R_pass_unknown;
	reason = STAGE(check_socket)(ctx, &s->p);
	if (reason >= 0)
		return reason;
	if (s->c.phase == PHASE_CLOSED)
		return SW_R_drop_ack;
	if (!s->p.payload && !(s->p.flags & TCP_FIN))
		return s->c.phase == PHASE_START ? SW_R_drop_handshake : SW_R_drop_ack;
	s->w = open_window(ctx, &s->p);
	if (!s->w)
		return SW_R_pass_malformed;
	read_options(&s->p, s->w, &s->o);
	return s->c.phase == PHASE_START ? on_request(ctx, s) : on_rest(s);
}

/*
 * The verdict on flags, all 64 sets of FIN SYN RST PSH ACK URG:
 *   any with RST             pass_reset      any with SYN, but for SYN alone    pass_flags
 *   SYN alone                on_syn          any with URG, or without ACK       pass_flags
 *   ACK, with or without FIN and PSH         on_segment
 */
static __always_inline int decide(ctx_t *ctx, struct scene *s)
{
	__u8 flags = s->p.flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_PSH | TCP_ACK | TCP_URG);
	__u64 deadline = s->pool->deadline_ns;
	int in_time;

	s->now = bpf_ktime_get_coarse_ns(); /* of the last tick: nothing here needs more */
	if (s->now > deadline + SW_LIFETIME_NS)
		return SW_R_pass_expired;
	in_time = s->now <= deadline;
	s->shedding = s->pool->mode == SW_MODE_SHED && in_time;
	s->metered = s->pool->mode == SW_MODE_METERED && in_time;
	if (flags & TCP_RST)
		return SW_R_pass_reset;
	if (flags == TCP_SYN)
		return on_syn(ctx, s);
	if (flags & (TCP_SYN | TCP_URG) || !(flags & TCP_ACK))
		return SW_R_pass_flags;
	return on_segment(ctx, s);
}

/* Carries a decision out. Only what is intact is answered; a corrupt packet is the kernel's to
 * drop. */
static __always_inline int carry_out(ctx_t *ctx, struct scene *s, __u32 id, int reason)
{
	int failed;

	if (!is_reply(reason))
		return reason;
	failed = STAGE(check_segment)(ctx, &s->p, s->w, s->variant);
	if (failed >= 0)
		return failed;
	failed = write_reply(ctx, &s->p, &s->r);
	if (failed >= 0)
		return failed;
	if (s->r.answer)
		remember_answer(&s->p, s->cause, s->family, s->r.ack);
	if (is_shed(reason))
		note_shed(&s->p, id, SHED_NOTE(reason, s->cause, asked(s->w), 0), s->now);
	return reason;
}

/* A metered pool that had a free slot for every SYN lately: no segment but a SYN is any concern of
 * ours. This spares an idle one what a closed one costs. */
static __always_inline int is_quiet(ctx_t *ctx, const struct scene *s)
{
	const struct sw_pool_use *use = bpf_map_lookup_elem(&pool_use, &s->pool_id);
	const __u8 *tcp = header(ctx_begin(ctx), s->p.l4);

	if (s->l->flags & SW_LF_OBSERVE || !use || (void *)(tcp + 14) > ctx_end(ctx))
		return 0;
	if ((tcp[13] & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		return 0;
	return !use->refused_ns ||
	       bpf_ktime_get_coarse_ns() > LATEST(use->refused_ns) + SW_LIFETIME_NS;
}

/* The way of every packet: not TCP, another port and an open pool are sorted out first. */
static __always_inline int guard(ctx_t *ctx, enum variant variant, __u32 *id)
{
	struct scene s = {.variant = variant};
	int reason;

	*id = 0;
	reason = locate(ctx, &s.p);
	if (reason >= 0)
		return reason;
	*id = find_listener(ctx, &s.p);
	if (!*id)
		return SW_R_pass_other;
	s.l = bpf_map_lookup_elem(&listeners, id);
	if (!s.l)
		return SW_R_pass_other;
	s.pool_id = s.l->pool;
	s.pool = bpf_map_lookup_elem(&pools, &s.pool_id);
	if (!s.pool || s.pool->mode == SW_MODE_OPEN)
		return SW_R_pass_open;
	if (s.pool->mode == SW_MODE_METERED && is_quiet(ctx, &s))
		return SW_R_pass_open;
	if (s.l->flags & SW_LF_PASS_NEW)
		return SW_R_pass_new;
	reason = read(ctx, &s.p);
	if (reason >= 0)
		return reason;
	return carry_out(ctx, &s, *id, decide(ctx, &s));
}

#endif
