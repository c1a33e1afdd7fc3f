// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two other ways to refuse a request on a connection that the kernel has, only as far as measuring
 * them takes: requests for /v1/ on one port, IPv4, in one segment. What was measured with them is
 * in docs/established.md. Loaded and attached by tests/bench/ways.
 */
#include "ctx_tc.h"
#include "parse.h"
#include "reply.h"

#define PORT 8001

#define ANSWER(connection)                                                                         \
	"HTTP/1.1 529 Overloaded\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"     \
	"Connection: " connection "\r\n\r\n"                                                       \
	"{\"error\":{\"message\":\"Service temporarily overloaded\",\"type\":\"overloaded_error\"" \
	",\"code\":529}}         "
#define KEPT   ANSWER("keep-alive")
#define CLOSED ANSWER("close")

static __always_inline int is_refused(struct __sk_buff *skb, __u32 off)
{
	__u64 start = 0;

	return !bpf_skb_load_bytes(skb, off, &start, sizeof(start)) &&
	       start == *(const __u64 *)"GET /v1/";
}

/* ---- the server's sockets in a map, their bytes judged before it reads them ---------------------
 */

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, __u32); /* the client's port */
	__type(value, __u32);
} sockets SEC(".maps");

const volatile char kept[] = KEPT;

SEC("sockops")
int ways_join(struct bpf_sock_ops *ops)
{
	__u32 key = ops->remote_port;

	if (ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB && ops->local_port == PORT)
		bpf_sock_hash_update(ops, &sockets, &key, BPF_ANY);
	return 1;
}

SEC("sk_skb/stream_verdict")
int ways_verdict(struct __sk_buff *skb)
{
	__u32 key = skb->remote_port;

	if (!is_refused(skb, 0))
		return SK_PASS;
	if (skb->len != sizeof(KEPT) - 1 && bpf_skb_change_tail(skb, sizeof(KEPT) - 1, 0))
		return SK_DROP;
	if (bpf_skb_store_bytes(skb, 0, (const void *)kept, sizeof(KEPT) - 1, 0))
		return SK_DROP;
	return bpf_sk_redirect_hash(skb, &sockets, &key, 0);
}

/* ---- answer and FIN to the client, a reset to the server
 * ----------------------------------------- */

struct sw_answer closed = {.length = sizeof(CLOSED) - 1, .bytes = CLOSED};

static __always_inline __u32 state_of(struct __sk_buff *skb, const struct packet *p)
{
	struct bpf_sock_tuple t = {.ipv4 = {.saddr = p->saddr[3],
					    .daddr = p->daddr[3],
					    .sport = bpf_htons(p->sport),
					    .dport = bpf_htons(p->dport)}};
	struct bpf_sock *sk = bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv4), BPF_F_CURRENT_NETNS, 0);
	__u32 state = sk ? sk->state : BPF_TCP_CLOSE;

	if (sk)
		bpf_sk_release(sk);
	return state;
}

static __always_inline int send(struct __sk_buff *skb, const struct packet *p, struct reply *r)
{
	r->seq = p->ack;
	r->ack = p->seq + p->payload + !!(p->flags & TCP_FIN);
	r->flags |= TCP_ACK;
	r->window = WINDOW_DRAIN;
	return write_reply(skb, p, r) != GO_ON || bpf_clone_redirect(skb, skb->ifindex, 0);
}

/* The server's socket is told that the client is gone. */
static __always_inline int reset(struct __sk_buff *skb, const struct packet *p,
				 const __u32 stamp[3])
{
	struct reply r = {.flags = TCP_RST, .seq = p->seq, .words = 3};
	struct packet back = *p;

	__builtin_memcpy(r.option, stamp, sizeof(r.option[0]) * 3);
	__builtin_memcpy(back.l2, p->l2 + ETH_ALEN, ETH_ALEN);
	__builtin_memcpy(back.l2 + ETH_ALEN, p->l2, ETH_ALEN);
	__builtin_memcpy(back.saddr, p->daddr, 16);
	__builtin_memcpy(back.daddr, p->saddr, 16);
	back.sport = p->dport;
	back.dport = p->sport;
	/* growing makes the stack forget a sum over bytes that are all about to change */
	if (bpf_skb_change_tail(skb, skb->len + 1, 0) || write_reply(skb, &back, &r) != GO_ON)
		return TC_ACT_SHOT;
	return TC_ACT_OK;
}

SEC("tc")
int ways_takeover(struct __sk_buff *skb)
{
	struct reply r = {.words = 3};
	struct packet p;
	__u32 state, stamp[3];

	if (locate(skb, &p) >= 0 || p.v6 || p.dport != PORT || read(skb, &p) >= 0 ||
	    p.flags & (TCP_SYN | TCP_RST) || p.data - p.l4 != 32 ||
	    bpf_skb_load_bytes(skb, p.l4 + 20, stamp, sizeof(stamp)))
		return TC_ACT_OK;
	r.option[0] = stamp[0];
	r.option[1] = stamp[2];
	r.option[2] = stamp[1];
	state = state_of(skb, &p);
	if (state == BPF_TCP_LISTEN || state == BPF_TCP_CLOSE) { /* taken over before */
		if (p.flags & TCP_FIN)
			send(skb, &p, &r);
		return TC_ACT_SHOT;
	}
	if (state != BPF_TCP_ESTABLISHED || !is_refused(skb, p.data))
		return TC_ACT_OK;
	if (!closed.sum)
		closed.sum = fold(bpf_csum_diff(NULL, 0, (void *)closed.bytes,
						(sizeof(CLOSED) + 2) & ~3U, 0));
	r.answer = &closed;
	r.flags = TCP_PSH | TCP_FIN;
	return send(skb, &p, &r) ? TC_ACT_SHOT : reset(skb, &p, stamp);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
