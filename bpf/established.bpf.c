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
#include "asking.h"
#include "exchange.h"
#include "translate.h"

#define NO_ANSWER  (~0U)
#define FAR_BEHIND (1U << 30)

/* What the socket says of itself. */
struct facts {
	__u32 rcv_nxt, write_seq, snd_una;
	__u16 window; /* as it would stand in a header */
	__u8 scale;   /* of the client's window */
	__u8 quiet;   /* established, and nothing unread, unsent or under way */
	__u8 fresh;   /* nothing was ever received */
	__u8 spoke;   /* the last to send something was the server */
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
	__u32 shedding, metered, cause, family;
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
	f->scale = BPF_CORE_READ_BITFIELD(tcp, rx_opt.snd_wscale);
	f->fresh = !tcp->bytes_received;
	f->spoke = (__s32)(tcp->lsndtime - tcp->inet_conn.icsk_ack.lrcvtime) >= 0;
	f->quiet = tcp->copied_seq == f->rcv_nxt && tcp->snd_nxt == f->write_seq &&
		   !tcp->out_of_order_queue.rb_node && !sk->sk_backlog.tail && !sk->sk_shutdown;
}

enum { SOCKET_ESTABLISHED = 0, SOCKET_LIVE = 1, SOCKET_NONE = 2 };

/* SOCKET_ESTABLISHED: `facts` holds what it says. */
__noinline int STAGE(ask_socket)(ctx_t *ctx)
{
	struct scratch *s = this_scratch();
	struct bpf_sock_tuple t = {};
	struct tcp_sock *tcp;
	struct bpf_sock *sk;
	__u32 before;
	int found = SOCKET_NONE;

	if (!s)
		return SOCKET_NONE;
	before = ask(SW_ASKING_ANY);
	sk = bpf_skc_lookup_tcp(ctx, &t, socket_tuple(&s->p, &t), BPF_F_CURRENT_NETNS, 0);
	ask(before);
	if (!sk)
		return SOCKET_NONE;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp && sk->state == BPF_TCP_ESTABLISHED) {
		read_facts(tcp, &s->facts);
		found = SOCKET_ESTABLISHED;
	} else if (tcp && sk->state != BPF_TCP_LISTEN) {
		found = SOCKET_LIVE;
	}
	bpf_sk_release(sk);
	return found;
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

	if (s->p.flags & TCP_FIN)
		return SW_R_keep_followed;
	w = open_window(ctx, &s->p);
	if (!w || !is_plain(&s->p, w) ||
	    STAGE(read_request)(&s->p, l, &s->family) != REQUEST_SHED || !STAGE(is_version_1_1)())
		return SW_R_keep_followed;
	if (is_exempt(l, &s->p))
		return SW_R_pass_exempt;
	if (STAGE(ask_socket)(ctx) || !s->facts.quiet ||
	    s->facts.rcv_nxt != seq_to_socket(f, s->p.seq) ||
	    s->facts.write_seq != ack_to_socket(f, s->p.ack) || s->facts.write_seq != f->x.out.at ||
	    s->client_window << s->facts.scale < l->length)
		return SW_R_keep_busy;
	read_options(&s->p, w, &s->o);
	return GO_ON;
}

/* A segment ahead of one that frames. The client sends it again, in order, so that nothing goes by
 * unread; unless the socket has what we lack: then it came another way. */
static __always_inline int on_gap(ctx_t *ctx, struct scratch *s, struct flow *f)
{
	if (!STAGE(ask_socket)(ctx) && before(s->facts.rcv_nxt, seq_to_socket(f, s->p.seq)))
		return SW_R_drop_order;
	f->flags |= FLOW_ALONE;
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

	if (before(f->x.in.at, end) && !STAGE(is_intact)(ctx))
		return SW_R_pass_checksum;
	switch (follow(ctx, &s->p, &f->x, &f->x.in)) {
	case FOLLOWED: break;
	case FOLLOWED_GAP: return on_gap(ctx, s, f);
	default: f->flags |= FLOW_ALONE; return SW_R_keep_alone;
	}
	if (before(f->x.received, end))
		f->x.received = end;
	return SW_R_keep_followed;
}

/* Payload that is new to the flow. */
static __always_inline int on_payload(ctx_t *ctx, struct scratch *s, struct flow *f,
				      const struct sw_listener *l)
{
	int reason;

	if (f->flags & FLOW_ALONE)
		return SW_R_keep_alone;
	if (s->p.seq != f->x.in.at || !at_rest(&f->x) || !(s->shedding || s->metered))
		return follow_request(ctx, s, f);
	if (!(f->flags & FLOW_SYNCED)) {
		if (!f->x.answered) {
			follow_request(ctx, s, f);
			return SW_R_keep_unsynced;
		}
		f->flags |= FLOW_SYNCED;
	}
	reason = may_shed(ctx, s, f, l);
	if (reason == GO_ON && !STAGE(is_intact)(ctx))
		return SW_R_pass_checksum;
	if (reason == GO_ON && l->flags & SW_LF_OBSERVE)
		reason = SW_R_would_shed;
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
	/* a new connection took its credit with the SYN */
	if (s->metered && (s->facts.fresh || slot_pick(l->pool, 0) >= 0)) {
		f->x = s->x;
		f->x.received = s->p.seq + s->p.payload;
		return SW_R_keep_credit;
	}
	return shed(s, f, l);
}

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
	f->flags = (f->flags & ~FLOW_SWALLOW) | FLOW_ALONE;
}

/* A FIN without data. None goes up before the client has the answer: the socket's acknowledgement
 * of it would be one of the request too. */
static __always_inline int on_fin(struct scratch *s, struct flow *f)
{
	if (f->flags & FLOW_ANSWERED && !before(s->p.seq, f->to))
		return SW_R_drop_order;
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
 * probe of one byte has to be answered; the socket does that. */
static __always_inline int on_old(struct scratch *s, struct flow *f)
{
	__u32 end = s->p.seq + s->p.payload;

	if (!before(f->from, end) || (s->p.payload == 1 && end == f->to))
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
		return on_fin(s, f);
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
	r.flags = TCP_ACK;
	r.seq = s->up_seq;
	r.ack = s->up_ack;
	r.window = s->client_window;
	if (s->o.timestamp)
		put_timestamp(r.option, 0, s->o.tsval, s->o.tsecr);
	return write_reply(ctx, &s->back, &r) == GO_ON ? reason : SW_R_drop_failed;
}

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

/* A flow that is not known yet. NULL: none is begun, for the reason in *reason. */
static __always_inline struct flow *meet_flow(ctx_t *ctx, struct scratch *s, int *reason)
{
	struct flow *f;

	*reason = GO_ON;
	if (!s->p.payload || STAGE(ask_socket)(ctx) || !s->facts.quiet ||
	    s->facts.rcv_nxt != s->p.seq || s->facts.write_seq != s->p.ack ||
	    !(s->facts.fresh || s->facts.spoke))
		return NULL;
	f = new_flow(s);
	if (!f)
		*reason = SW_R_keep_full;
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

/* The packet of a flow: what becomes of it. */
static __always_inline int on_flow(ctx_t *ctx, struct scratch *s, struct flow *f,
				   const struct sw_listener *l)
{
	int reason;

	if (lock_flow(f))
		return SW_R_drop_raced;
	reason = on_segment(ctx, s, f, l);
	if (!is_reply(reason) && !is_drop(reason) && f->flags & FLOW_TRANSLATED &&
	    STAGE(translate)(ctx, &s->p, f, 0))
		reason = SW_R_drop_failed;
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
		if (s->up && is_reply(reason)) {
			count(id, reason);
			return CTX_PASS;
		}
	}
	return verdict(skb, VARIANT_NATIVE, id, reason);
}
