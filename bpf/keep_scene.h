/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every step about a packet of an established connection knows, and what the socket says. */
#ifndef SPILLWAY_BPF_KEEP_SCENE_H
#define SPILLWAY_BPF_KEEP_SCENE_H

#include "listener.h"
#include "reply.h"
#include "request.h"
#include "shed.h"
#include "socket.h"
#include "kernel_sock.h"
#include <bpf/bpf_core_read.h>
#include "asking.h"
#include "exchange.h"
#include "translate.h"

#define NO_ANSWER (~0U)

/* What the socket says of itself. */
struct facts {
	__u32 rcv_nxt, write_seq, snd_una;
	__u16 window; /* as it would stand in a header */
	__u8 scale;   /* of the client's window */
	__u8 quiet;   /* established, and nothing unread, unsent or under way */
	__u8 fresh;   /* nothing was ever received */
	__u8 spoke;   /* the last to send something was the server */
	__u8 unborn;  /* it is yet to become a socket, when the handshake ends, or with data */
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
	__u32 shedding, metered, cause, family, asked;
	__u32 client_window;
	__u32 up;	      /* an acknowledgement has to go up beside the reply */
	__u8 up_flags;	      /* or what ends the socket */
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
	f->unborn = 0;
	f->spoke =
		tcp->bytes_sent && (__s32)(tcp->lsndtime - tcp->inet_conn.icsk_ack.lrcvtime) >= 0;
	f->quiet = tcp->copied_seq == f->rcv_nxt && tcp->snd_nxt == f->write_seq &&
		   !tcp->out_of_order_queue.rb_node && !sk->sk_backlog.tail && !sk->sk_shutdown;
}

enum socket_kind {
	SOCKET_ESTABLISHED,
	SOCKET_BEGINS, /* the handshake is not over yet: the first data may overtake its end */
	SOCKET_LIVE,
	SOCKET_NONE,
};

static __always_inline int read_begin(const struct tcp_request_sock *req, struct facts *f)
{
	const struct inet_request_sock *r = &req->req;

	f->rcv_nxt = req->rcv_nxt;
	f->write_seq = f->snd_una = req->snt_isn + 1;
	f->window = r->req.__req_common.skc_rcv_wnd >> BPF_CORE_READ_BITFIELD(r, rcv_wscale);
	f->scale = BPF_CORE_READ_BITFIELD(r, snd_wscale);
	f->fresh = f->quiet = f->unborn = 1;
	return SOCKET_BEGINS;
}

/* SOCKET_ESTABLISHED, SOCKET_BEGINS: `facts` holds what it says. */
__noinline int STAGE(ask_socket)(ctx_t *ctx)
{
	struct scratch *s = this_scratch();
	struct bpf_sock_tuple t = {};
	struct tcp_request_sock *req;
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
	if (tcp && (sk->state == BPF_TCP_ESTABLISHED || sk->state == BPF_TCP_SYN_RECV)) {
		read_facts(tcp, &s->facts);
		found = sk->state == BPF_TCP_ESTABLISHED ? SOCKET_ESTABLISHED : SOCKET_BEGINS;
	} else if (tcp && sk->state != BPF_TCP_LISTEN) {
		found = SOCKET_LIVE;
	} else if (sk->state == BPF_TCP_NEW_SYN_RECV) {
		req = bpf_skc_to_tcp_request_sock(sk);
		if (req)
			found = read_begin(req, &s->facts);
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
	s->fresh.flags = s->facts.fresh ? FLOW_SYNCED : FLOW_LATE;
	s->fresh.from = s->p.seq;
	if (bpf_map_update_elem(&flows, &s->key, &s->fresh, BPF_NOEXIST))
		return NULL;
	count_flows(1);
	return bpf_map_lookup_elem(&flows, &s->key);
}

#endif
