/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What goes back to the client of a shed request, and what goes up to the socket beside it. */
#ifndef SPILLWAY_BPF_KEEP_REPLY_H
#define SPILLWAY_BPF_KEEP_REPLY_H

#include "keep_scene.h"

/* Did the server speak while a body was swallowed? Then there is no place for an answer any more.
 */
static __always_inline int has_spoken(const struct flow *f)
{
	return f->flags & FLOW_SWALLOW && f->flags & FLOW_ALONE;
}

static __always_inline void prepare(struct scratch *s, const struct flow *f, __u8 flags, __u32 ack)
{
	__builtin_memset(&s->r, 0, sizeof(s->r));
	s->r.flags = flags | TCP_ACK;
	s->r.seq = has_spoken(f) ? s->p.ack : f->at + f->dout_before;
	s->r.ack = ack;
	s->r.window = f->window;
	s->answer = NO_ANSWER;
	if (s->o.timestamp) {
		put_timestamp(s->r.option, 0, s->o.tsecr, s->o.tsval);
		s->r.words = 3;
	}
}

/* Behind timestamps. A peer that has not agreed to SACK ignores it. */
static __always_inline void put_sack(struct reply *r, __u32 from, __u32 to)
{
	r->option[3] = bpf_htonl(OPT_NOP << 24 | OPT_NOP << 16 | OPT_SACK << 8 | 10);
	r->option[4] = bpf_htonl(from);
	r->option[5] = bpf_htonl(to);
	r->words = 6;
}

/* The answer, for the first time or again. */
static __always_inline int give_answer(struct scratch *s, const struct flow *f, int reason)
{
	prepare(s, f, TCP_PSH, f->to);
	s->answer = f->answer;
	return reason;
}

static __always_inline int complete(struct scratch *s, struct flow *f)
{
	const struct sw_answer *a;
	__u32 index = f->answer;

	if (has_spoken(f)) {
		prepare(s, f, 0, f->to);
		f->flags &= ~FLOW_SWALLOW;
		f->acked = f->to;
		return SW_R_drain_data;
	}
	a = bpf_map_lookup_elem(&answers, &index);
	if (!a)
		return SW_R_drop_failed;
	s->asked = f->flags >> FLOW_ASKED & 0xff;
	f->dout = f->dout_before + a->length;
	f->flags = (f->flags & ~FLOW_SWALLOW) | FLOW_ANSWERED;
	return give_answer(s, f, SW_R_shed_saturated + s->cause);
}

/* The other direction, for a segment that goes up in the packet's place. */
static __always_inline void turn_round(struct scratch *s)
{
	struct packet *b = &s->back;

	*b = s->p;
	__builtin_memcpy(b->l2, s->p.l2 + ETH_ALEN, ETH_ALEN);
	__builtin_memcpy(b->l2 + ETH_ALEN, s->p.l2, ETH_ALEN);
	__builtin_memcpy(b->saddr, s->p.daddr, 16);
	__builtin_memcpy(b->daddr, s->p.saddr, 16);
	b->sport = s->p.dport;
	b->dport = s->p.sport;
}

/* Sends the reply. What the request acknowledged goes up by itself, or the socket would send again
 * what the client has. */
__noinline int STAGE(send_reply)(ctx_t *ctx, int reason)
{
	struct scratch *s = this_scratch();
	struct reply r;
	__u32 index;

	if (!s)
		return SW_R_drop_failed;
	r = s->r;
	index = s->answer;
	r.answer = bpf_map_lookup_elem(&answers, &index);
	if ((index != NO_ANSWER && !r.answer) || write_reply(ctx, &s->p, &r) != GO_ON)
		return SW_R_drop_failed;
	ctx->mark = SW_KEEP_MARK;
	if (!s->up)
		return reason;
	bpf_clone_redirect(ctx, ctx->ifindex, 0);
	ctx->mark = 0;
	/* growing makes the stack forget a sum over bytes that are all about to change */
	if (ctx_resize(ctx, ctx_length(ctx) + 1))
		return SW_R_drop_failed;
	turn_round(s);
	r.answer = NULL;
	r.flags = s->up_flags;
	r.seq = s->up_seq;
	r.ack = s->up_ack;
	r.window = s->client_window;
	if (s->o.timestamp)
		put_timestamp(r.option, 0, s->o.tsval, s->o.tsecr);
	return write_reply(ctx, &s->back, &r) == GO_ON ? reason : SW_R_drop_failed;
}

#endif
