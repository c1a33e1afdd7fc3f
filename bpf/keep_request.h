/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Data that is new on an established connection: follows requests, and decides about one that
 * begins. A request is shed only without doubt: requests and responses have been followed from one
 * boundary to the next, and the socket itself says that nothing is under way. Whatever is in doubt
 * passes.
 */
#ifndef SPILLWAY_BPF_KEEP_REQUEST_H
#define SPILLWAY_BPF_KEEP_REQUEST_H

#include "keep_reply.h"
#include "pipelining.h"

static __always_inline __u32 choose_answer(const struct scratch *s, const struct sw_listener *l)
{
	__u32 variant = bpf_get_prandom_u32() & l->variants_mask;

	return SW_ANSWER_INDEX(l->answers, s->cause, s->family, variant) + SW_ANSWERS_KEEP;
}

/* From here on the request is ours. */
static __always_inline int shed(struct scratch *s, struct flow *f, const struct sw_listener *l)
{
	__u32 end = s->p.seq + s->p.payload;

	f->x.in = s->x.in;
	f->x.received = s->x.in.at; /* nothing of it goes up; what comes next starts behind it */
	f->din_before = f->din;
	f->dout_before = f->dout;
	f->from = f->acked = s->p.seq;
	f->to = s->x.in.at;
	f->at = s->facts.write_seq;
	f->din += f->to - f->from;
	f->window = s->facts.window;
	f->answer = choose_answer(s, l);
	f->flags &= ~(0xffU << FLOW_ASKED);
	f->flags |= FLOW_TRANSLATED | asked(this_window()) << FLOW_ASKED;
	s->up = s->facts.snd_una != s->facts.write_seq;
	s->up_flags = TCP_ACK;
	s->up_seq = s->facts.rcv_nxt;
	s->up_ack = s->facts.write_seq;
	if (end == f->to)
		return complete(s, f);
	f->flags |= FLOW_SWALLOW;
	f->ahead_from = f->ahead_to = 0;
	f->swallowed = f->acked = end;
	prepare(s, f, 0, end);
	return SW_R_drain_data;
}

#define LINE_MAX 256 /* bytes of a request line that we look for its end in */

/* HTTP/1.1 keeps connections unless it says otherwise; 1.0 does not. */
__noinline int STAGE(is_version_1_1)(void)
{
	struct window *w = this_window();
	__u32 i, at;
	__u64 marks;

	if (!w)
		return 0;
	for (i = 0; i < LINE_MAX; i += 8) {
		at = w->request.target + i;
		asm volatile("" : "+r"(at));
		if (at >= WINDOW_MAX)
			return 0;
		marks = find_byte(*(const __u64 *)(w->bytes + at), '\r');
		if (!marks)
			continue;
		/* the first mark is exact: how many bytes lie below it */
		at += ((((marks & -marks) >> 7) - 1) & ONES) * ONES >> 56;
		at -= sizeof(marks);
		asm volatile("" : "+r"(at));
		return at < WINDOW_MAX &&
		       *(const __u64 *)(w->bytes + at) == *(const __u64 *)"HTTP/1.1";
	}
	return 0;
}

/* Nothing but timestamps: MPTCP, signatures and what is yet to be invented count the stream's bytes
 * too, or sign them. */
static __always_inline int is_plain(const struct packet *p, const struct window *w)
{
	__u32 size = p->data - p->l4 - sizeof(struct tcphdr);

	return !size || (size == 12 && WORD(w, 0) == NOP_NOP_TS);
}

/* A request begins here, while the pool sheds and all is at rest. GO_ON: it is to be shed. */
static __always_inline int may_shed(ctx_t *ctx, struct scratch *s, struct flow *f,
				    const struct sw_listener *l)
{
	struct window *w;
	int found;

	if (s->p.flags & TCP_FIN)
		return SW_R_keep_followed;
	w = open_window(ctx, &s->p);
	if (!w)
		return SW_R_keep_followed;
	if (!is_plain(&s->p, w))
		return SW_R_keep_options;
	if (STAGE(read_request)(&s->p, l, &s->family) != REQUEST_SHED)
		return SW_R_keep_path;
	if (!STAGE(is_version_1_1)())
		return SW_R_keep_version;
	if (is_exempt(l, &s->p))
		return SW_R_pass_exempt;
	found = STAGE(ask_socket)(ctx);
	/* One that waits for data before it is one (TCP_DEFER_ACCEPT) waits on. */
	if (found > SOCKET_BEGINS || (found == SOCKET_BEGINS && !s->facts.unborn) ||
	    !s->facts.quiet || s->facts.rcv_nxt != seq_to_socket(f, s->p.seq) ||
	    s->facts.write_seq != ack_to_socket(f, s->p.ack) || s->facts.write_seq != f->x.out.at)
		return SW_R_keep_busy;
	if (s->client_window << s->facts.scale < l->length)
		return SW_R_keep_window;
	read_options(&s->p, w, &s->o);
	return GO_ON;
}

/* A segment ahead of one that frames. The client sends it again, in order, so that nothing goes by
 * unread; unless the socket has what we lack: then it came another way. */
static __always_inline int on_gap(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	if (STAGE(ask_socket)(ctx) <= SOCKET_BEGINS &&
	    before(s->facts.rcv_nxt, seq_to_socket(f, s->p.seq)))
		return SW_R_drop_order;
	leave_alone(f, SW_R_alone_gap);
	return SW_R_keep_alone;
}

/* Only what is intact is read: the socket will throw the rest away. */
__noinline int STAGE(is_intact)(ctx_t *ctx)
{
	struct scratch *s = this_scratch();
	struct window *w = s ? open_window(ctx, &s->p) : NULL;

	return w && STAGE(check_segment)(ctx, &s->p, w, VARIANT_NATIVE) == GO_ON;
}

static __always_inline int follow_request(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	__u32 end = s->p.seq + s->p.payload;
	int early, why;

	if (before(f->x.in.at, end) && !STAGE(is_intact)(ctx))
		return SW_R_pass_checksum;
	early = is_early(s, f);
	why = STAGE(follow)(ctx, &s->p, &f->x, 0);
	if (why == FOLLOWED_GAP)
		return on_gap(ctx, s, f);
	if (why != FOLLOWED) {
		leave_alone(f, why);
		return SW_R_keep_alone;
	}
	if (early || f->x.asked - f->x.answered > 1)
		note_pipelining(s);
	if (before(f->x.received, end))
		f->x.received = end;
	return SW_R_keep_followed;
}

/* Did a new connection take its credit with the SYN? */
static __always_inline int counts_new(__u32 pool)
{
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);

	return steer && steer->flags & SW_SF_COUNT;
}

/* Payload that is new to the flow. */
static __always_inline int on_payload(ctx_t *ctx, struct scratch *s, struct flow *f,
				      const struct sw_listener *l)
{
	int reason;

	if (f->flags & FLOW_ALONE) {
		if (f->flags & FLOW_LATE && answered_older(&f->x))
			note_pipelining(s);
		return SW_R_keep_alone;
	}
	if (s->p.seq != f->x.in.at || !at_rest(&f->x) || !(s->shedding || s->metered))
		return follow_request(ctx, s, f);
	if (!(f->flags & FLOW_SYNCED)) {
		if (!f->x.answered) {
			follow_request(ctx, s, f);
			return SW_R_keep_unsynced;
		}
		f->flags |= FLOW_SYNCED;
	}
	if (f->flags & FLOW_LATE && has_pipelined(s)) {
		follow_request(ctx, s, f);
		return SW_R_keep_unsynced;
	}
	reason = may_shed(ctx, s, f, l);
	if (reason == GO_ON && !STAGE(is_intact)(ctx))
		return SW_R_pass_checksum;
	if (reason == GO_ON && l->flags & SW_LF_OBSERVE)
		reason = SW_R_would_shed;
	if (reason != GO_ON) {
		__u32 asked = f->x.asked;
		int followed = follow_request(ctx, s, f);

		if (followed != SW_R_keep_followed)
			return followed;
		return f->x.asked == asked ? SW_R_keep_pipelined : reason; /* the head goes on */
	}
	s->x = f->x;
	if (STAGE(follow)(ctx, &s->p, &s->x, 0) != FOLLOWED || s->x.asked != f->x.asked + 1 ||
	    !between(&s->x.in) || s->x.in.status || before(s->x.in.at, s->p.seq + s->p.payload)) {
		int followed = follow_request(ctx, s, f);

		reason = s->x.in.status ? SW_R_keep_expect : SW_R_keep_pipelined;
		return followed == SW_R_keep_followed ? reason : followed;
	}
	if (s->metered && ((s->facts.fresh && counts_new(l->pool)) || slot_pick(l->pool, 0) >= 0)) {
		f->x = s->x;
		f->x.received = s->p.seq + s->p.payload;
		return SW_R_keep_credit;
	}
	return shed(s, f, l);
}

#endif
