// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TC ingress, behind spillway_tc: requests on connections that the kernel has already. While the
 * pool sheds, a request that begins here is answered in its place and the connection goes on; what
 * the socket then never saw is taken out of all later numbers (flow.h).
 *
 * A request is shed only without doubt: requests and responses have been followed from one boundary
 * to the next, and the socket itself says that nothing is under way. Whatever is in doubt passes.
 */
#define STAGE(name) keep_##name
#define ctx_counts  counts_keep
#include "ctx_tc.h"
#include "verdict.h"
#include "listener.h"
#include "reply.h"
#include "request.h"
#include "socket.h"
#include "kernel_sock.h"
#include <bpf/bpf_core_read.h>
#include "exchange.h"
#include "translate.h"

#define NO_ANSWER    (~0U)
#define LEAST_WINDOW 32 /* of the client, unscaled: it has room for an answer */

/* What the socket says of itself. */
struct facts {
	__u32 rcv_nxt, write_seq, snd_una;
	__u16 window; /* as it would stand in a header */
	__u8 quiet;   /* established, and nothing unread, unsent or under way */
	__u8 fresh;   /* nothing was ever received */
};

struct scratch { /* of a CPU: what every step knows */
	struct sw_tuple key;
	struct packet p; /* in the client's numbers */
	struct packet back;
	struct options o;
	struct reply r; /* without its answer: a pointer kept here would lose its type */
	__u32 answer;	/* index of it, or NO_ANSWER */
	struct facts facts;
	struct exchange x; /* what the flow's becomes if the request is shed */
	struct flow fresh;
	__u64 now;
	__u32 shedding, cause, family;
	__u32 client_window;
	__u32 up;	      /* an acknowledgement has to go up beside the reply */
	__u32 up_seq, up_ack; /* with these numbers */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} keep_scratch SEC(".maps") __weak;

static __always_inline struct scratch *this_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&keep_scratch, &zero);
}

/* ---- the socket ----------------------------------------------------------------------------- */

static __always_inline void read_facts(struct tcp_sock *tcp, struct facts *f)
{
	struct sock *sk = &tcp->inet_conn.icsk_inet.sk;

	f->rcv_nxt = tcp->rcv_nxt;
	f->write_seq = tcp->write_seq;
	f->snd_una = tcp->snd_una;
	f->window = tcp->rcv_wnd >> BPF_CORE_READ_BITFIELD(tcp, rx_opt.rcv_wscale);
	f->fresh = !tcp->bytes_received;
	f->quiet = tcp->copied_seq == f->rcv_nxt && tcp->snd_nxt == f->write_seq &&
		   !tcp->out_of_order_queue.rb_node && !sk->sk_backlog.tail && !sk->sk_shutdown;
}

/* 0: there is an established socket, and `facts` holds what it says. */
__noinline int STAGE(ask_socket)(ctx_t *ctx)
{
	struct scratch *s = this_scratch();
	struct bpf_sock_tuple t = {};
	struct tcp_sock *tcp;
	struct bpf_sock *sk;
	int err = -1;

	if (!s)
		return -1;
	sk = bpf_skc_lookup_tcp(ctx, &t, socket_tuple(&s->p, &t), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return -1;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp && sk->state == BPF_TCP_ESTABLISHED) {
		read_facts(tcp, &s->facts);
		err = 0;
	}
	bpf_sk_release(sk);
	return err;
}

/* ---- flows ---------------------------------------------------------------------------------- */

static __always_inline void make_key(const struct packet *p, struct sw_tuple *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	__builtin_memcpy(key->peer, p->saddr, 16);
	__builtin_memcpy(key->local, p->daddr, 16);
	key->peer_port = p->sport;
	key->local_port = p->dport;
}

static __always_inline void count_flows(__s32 change)
{
	__u32 zero = 0, *n = bpf_map_lookup_elem(&flow_use, &zero);

	if (n)
		__sync_fetch_and_add(n, change);
}

static __always_inline void forget_flow(struct scratch *s)
{
	if (!bpf_map_delete_elem(&flows, &s->key))
		count_flows(-1);
}

/* A connection seen for the first time while it matters. NULL: no room. */
static __always_inline struct flow *new_flow(struct scratch *s)
{
	__builtin_memset(&s->fresh, 0, sizeof(s->fresh));
	start_exchange(&s->fresh.x, s->p.seq, s->p.ack);
	s->fresh.flags = s->facts.fresh ? FLOW_SYNCED : 0;
	if (bpf_map_update_elem(&flows, &s->key, &s->fresh, BPF_NOEXIST))
		return NULL;
	count_flows(1);
	return bpf_map_lookup_elem(&flows, &s->key);
}

/* ---- replies -------------------------------------------------------------------------------- */

static __always_inline void prepare(struct scratch *s, const struct flow *f, __u8 flags, __u32 ack)
{
	__builtin_memset(&s->r, 0, sizeof(s->r));
	s->r.flags = flags | TCP_ACK;
	s->r.seq = f->at + f->dout_before;
	s->r.ack = ack;
	s->r.window = f->window;
	s->answer = NO_ANSWER;
	if (s->o.timestamp) {
		put_timestamp(s->r.option, 0, s->o.tsecr, s->o.tsval);
		s->r.words = 3;
	}
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

	a = bpf_map_lookup_elem(&answers, &index);
	if (!a)
		return SW_R_drop_failed;
	f->dout = f->dout_before + a->length;
	f->flags = (f->flags & ~FLOW_SWALLOW) | FLOW_ANSWERED;
	return give_answer(s, f, SW_R_shed_saturated + s->cause);
}

/* ---- shedding ------------------------------------------------------------------------------- */

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
	f->flags |= FLOW_TRANSLATED;
	s->up = s->facts.snd_una != s->facts.write_seq;
	s->up_seq = s->facts.rcv_nxt;
	s->up_ack = s->facts.write_seq;
	if (end == f->to)
		return complete(s, f);
	f->flags |= FLOW_SWALLOW;
	f->swallowed = f->acked = end;
	prepare(s, f, 0, end);
	return SW_R_drain_data;
}

/* A request begins here, while the pool sheds and all is at rest. GO_ON: it is to be shed. */
static __always_inline int may_shed(ctx_t *ctx, struct scratch *s, struct flow *f,
				    const struct sw_listener *l)
{
	struct window *w;

	if (s->p.flags & TCP_FIN || s->client_window < LEAST_WINDOW)
		return SW_R_keep_followed;
	w = open_window(ctx, &s->p);
	if (!w || STAGE(read_request)(&s->p, l, &s->family) != REQUEST_SHED)
		return SW_R_keep_followed;
	if (is_exempt(l, &s->p))
		return SW_R_pass_exempt;
	if (STAGE(ask_socket)(ctx) || !s->facts.quiet ||
	    s->facts.rcv_nxt != seq_to_socket(f, s->p.seq) ||
	    s->facts.write_seq != ack_to_socket(f, s->p.ack))
		return SW_R_keep_busy;
	read_options(&s->p, w, &s->o);
	return GO_ON;
}

static __always_inline int pass_on(struct flow *f, int reason)
{
	return f->flags & FLOW_TRANSLATED && reason == SW_R_keep_followed ? SW_R_keep_translated
									  : reason;
}

static __always_inline int follow_request(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	switch (follow(ctx, &s->p, &f->x, &f->x.in)) {
	case FOLLOWED: break;
	case FOLLOWED_GAP: f->flags |= FLOW_LOST; return SW_R_keep_lost;
	default: f->flags |= FLOW_ALONE; return SW_R_keep_alone;
	}
	if (before(f->x.received, s->p.seq + s->p.payload))
		f->x.received = s->p.seq + s->p.payload;
	return SW_R_keep_followed;
}

/* Bytes went by unseen: starts anew where the socket says that nothing is under way. */
static __always_inline int find_again(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	if (STAGE(ask_socket)(ctx) || !s->facts.quiet ||
	    s->facts.rcv_nxt != seq_to_socket(f, s->p.seq) ||
	    s->facts.write_seq != ack_to_socket(f, s->p.ack))
		return SW_R_keep_lost;
	start_exchange(&f->x, s->p.seq, s->facts.write_seq);
	f->flags &= ~(FLOW_LOST | FLOW_SYNCED);
	follow_request(ctx, s, f);
	return SW_R_keep_unsynced;
}

/* Payload that is new to the flow. */
static __always_inline int on_payload(ctx_t *ctx, struct scratch *s, struct flow *f,
				      const struct sw_listener *l)
{
	int reason;

	if (f->flags & FLOW_ALONE)
		return SW_R_keep_alone;
	if (f->flags & FLOW_LOST)
		return find_again(ctx, s, f);
	if (s->p.seq != f->x.in.at || !at_rest(&f->x) || !s->shedding)
		return follow_request(ctx, s, f);
	if (!(f->flags & FLOW_SYNCED)) {
		if (!f->x.answered) {
			follow_request(ctx, s, f);
			return SW_R_keep_unsynced;
		}
		f->flags |= FLOW_SYNCED;
	}
	reason = may_shed(ctx, s, f, l);
	if (reason != GO_ON) {
		int followed = follow_request(ctx, s, f);

		return followed == SW_R_keep_followed ? reason : followed;
	}
	s->x = f->x;
	if (follow(ctx, &s->p, &s->x, &s->x.in) != FOLLOWED || s->x.asked != f->x.asked + 1 ||
	    !between(&s->x.in) || s->x.in.status || before(s->x.in.at, s->p.seq + s->p.payload)) {
		int followed = follow_request(ctx, s, f);

		return followed == SW_R_keep_followed ? SW_R_keep_pipelined : followed;
	}
	return shed(s, f, l);
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
	if (!before(f->swallowed, s->p.seq) && before(f->swallowed, end))
		f->swallowed = end;
	if (f->swallowed == f->to) {
		s->cause = f->answer / (SW_FAMILIES * SW_VARIANTS) % SW_CAUSES;
		return complete(s, f);
	}
	f->acked = f->swallowed;
	prepare(s, f, 0, f->swallowed);
	return SW_R_drain_data;
}

/* The client gives up in the middle of a body that is being swallowed: the socket hears of it where
 * its stream stands. */
static __always_inline void end_swallow(struct flow *f)
{
	f->to = f->swallowed;
	f->din = f->din_before + f->to - f->from;
	f->flags = (f->flags & ~FLOW_SWALLOW) | FLOW_ALONE;
}

static __always_inline int on_segment(ctx_t *ctx, struct scratch *s, struct flow *f,
				      const struct sw_listener *l)
{
	if (f->flags & FLOW_ANSWERED && !before(s->p.ack, f->at + f->dout)) {
		f->flags &= ~FLOW_ANSWERED;
		f->acked = f->to;
	}
	if (f->flags & FLOW_SWALLOW && s->p.flags & (TCP_FIN | TCP_RST) &&
	    !before(f->swallowed, s->p.seq + s->p.payload)) {
		end_swallow(f);
		return SW_R_keep_translated;
	}
	if (!s->p.payload)
		return f->flags & FLOW_TRANSLATED ? SW_R_keep_translated : SW_R_keep_followed;
	if (f->flags & FLOW_SWALLOW)
		return swallow(ctx, s, f);
	if (f->flags & FLOW_ANSWERED) {
		struct window *w = open_window(ctx, &s->p);

		if (!before(s->p.seq, f->to) || !w)
			return SW_R_drop_order; /* behind an answer that may be lost */
		read_options(&s->p, w, &s->o);
		return give_answer(s, f, SW_R_shed_again);
	}
	if (f->flags & FLOW_TRANSLATED && before(s->p.seq, f->to)) {
		/* Before or within what was shed and answered: it has been acknowledged long ago.
		 */
		return before(s->p.seq + s->p.payload, f->from + 1) ? SW_R_keep_translated
								    : SW_R_drop_ack;
	}
	return pass_on(f, on_payload(ctx, s, f, l));
}

/* ---- the packet's way ----------------------------------------------------------------------- */

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
static __always_inline int send_reply(ctx_t *ctx, struct scratch *s, int reason)
{
	struct reply r = s->r;
	__u32 index = s->answer;

	r.answer = bpf_map_lookup_elem(&answers, &index);
	if ((index != NO_ANSWER && !r.answer) || write_reply(ctx, &s->p, &r) != GO_ON)
		return SW_R_drop_failed;
	ctx->mark = SW_KEEP_MARK;
	if (!s->up)
		return reason;
	bpf_clone_redirect(ctx, ctx->ifindex, 0);
	ctx->mark = 0;
	turn_round(s);
	r.answer = NULL;
	r.flags = TCP_ACK;
	r.seq = s->up_seq;
	r.ack = s->up_ack;
	r.window = s->client_window;
	if (s->o.timestamp)
		put_timestamp(r.option, 0, s->o.tsval, s->o.tsecr);
	return write_reply(ctx, &s->back, &r) == GO_ON ? reason : SW_R_drop_failed;
}

/* GO_ON: nothing to do with us. */
static __always_inline int keep(ctx_t *ctx, struct scratch *s, __u32 *id)
{
	const struct sw_listener *l;
	const struct sw_pool *pool;
	struct flow *f;
	__u32 zero = 0, index, *use;
	int reason;

	if (locate(ctx, &s->p) >= 0)
		return GO_ON;
	*id = find_listener(ctx, &s->p);
	if (!*id)
		return GO_ON;
	l = bpf_map_lookup_elem(&listeners, id);
	if (!l || !(l->flags & SW_LF_KEEP))
		return GO_ON;
	index = l->pool;
	pool = bpf_map_lookup_elem(&pools, &index);
	use = bpf_map_lookup_elem(&flow_use, &zero);
	if (!pool || !use || (pool->mode == SW_MODE_OPEN && !pool->armed && !*use))
		return GO_ON;
	if (read(ctx, &s->p) >= 0)
		return GO_ON;
	make_key(&s->p, &s->key);
	f = bpf_map_lookup_elem(&flows, &s->key);
	if (s->p.flags & TCP_SYN) {
		if (f)
			forget_flow(s);
		return GO_ON;
	}
	s->now = bpf_ktime_get_coarse_ns();
	s->shedding = pool->mode == SW_MODE_SHED && s->now <= pool->deadline_ns &&
		      !(l->flags & SW_LF_OBSERVE);
	s->cause = pool->cause < SW_CAUSES ? pool->cause : SW_CAUSE_SATURATED;
	s->up = 0;
	{
		struct tcphdr *tcp = header(ctx_begin(ctx), s->p.l4);

		if ((void *)(tcp + 1) > ctx_end(ctx))
			return GO_ON;
		s->client_window = bpf_ntohs(tcp->window);
	}
	if (!f) {
		if (!s->p.payload || (pool->mode == SW_MODE_OPEN && !pool->armed))
			return GO_ON;
		if (STAGE(ask_socket)(ctx) || !s->facts.quiet || s->facts.rcv_nxt != s->p.seq ||
		    s->facts.write_seq != s->p.ack)
			return GO_ON;
		f = new_flow(s);
		if (!f)
			return SW_R_keep_full;
	}
	if (lock_flow(f))
		return SW_R_drop_raced;
	reason = on_segment(ctx, s, f, l);
	if (!is_reply(reason) && f->flags & FLOW_TRANSLATED && reason != SW_R_drop_ack &&
	    reason != SW_R_drop_order && reason != SW_R_drop_failed && translate(ctx, &s->p, f, 0))
		reason = SW_R_drop_failed;
	unlock_flow(f);
	if (s->p.flags & TCP_RST)
		forget_flow(s);
	return reason;
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
		reason = send_reply(skb, s, reason);
		if (s->up && is_reply(reason)) {
			count(id, reason);
			return CTX_PASS;
		}
	}
	return verdict(skb, VARIANT_NATIVE, id, reason);
}
