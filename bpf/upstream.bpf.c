// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Idle upstream connections of routers: knows by HTTP framing when a steered connection has no
 * request and no response under way, and closes such ones on the daemon's order. Which workers are
 * to lose theirs is the daemon's choice.
 *
 * Silence proves nothing, a model may think for seconds between two tokens. So a connection is
 * closed only when every request and every response in it was followed from the first byte to the
 * last, and TCP, whose lock is held from the check to the end, says that nothing came or went
 * since.
 */
#include "slot_maps.h"
#include "http1.h"

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#define PASS	 1
#define GRACE_NS 1000000000ULL /* from the router's question to its request */

/* As on every architecture that Linux has BPF on. */
#define LEVEL_SOCKET  1
#define OPTION_ERROR  4
#define NO_CONNECTION 104 /* ECONNRESET */
#define OPTION_MAX    4096

/* ---- what is known of a connection ---------------------------------------------------------- */

struct exchange {
	struct stream out,
		in;	   /* requests, written under the socket's lock; responses, under `held` */
	__u64 promised_ns; /* when the router was told that it can use the connection, */
	__u32 promised;	   /* after so many requests */
	__u64 last_ns;	   /* when data last came or went, to a tick */
	__u64 heads;	   /* bit n % 64: request number n was a HEAD */
	__u32 asked, answered; /* heads of requests and of final responses so far */
	__u32 held;	       /* somebody reads responses, or decides */
	__u32 unknown;	       /* not followed, never again: something may be under way */
};

/* Made when a steered socket sends its SYN. A connection that is older than these programs is not
 * in it. Any change of the value is a change of SW_LAYOUT. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct exchange);
} upstreams SEC(".maps");

static __always_inline int end_of_request(struct exchange *u, struct stream *s)
{
	__u64 bit = 1ULL << (u->asked & 63);

	if (u->asked - u->answered >= 64)
		return -1;
	u->heads = s->status == STATUS_HEAD ? u->heads | bit : u->heads & ~bit;
	u->asked++;
	return 1;
}

static __always_inline int end_of_response(struct exchange *u, struct stream *s)
{
	__u32 head = u->heads >> (u->answered & 63) & 1;

	if (u->asked == u->answered || s->status < 100 || s->status == 101)
		return -1; /* nobody asked; or another protocol from here on */
	if (s->status < 200)
		return 0;
	u->answered++;
	if (head || s->status == 204 || s->status == 304)
		return 0;
	return s->frame ? 1 : -1; /* without a frame it ends with the connection */
}

static int end_of_head(struct reader *r)
{
	return r->response ? end_of_response(r->exchange, r->stream)
			   : end_of_request(r->exchange, r->stream);
}

/* ---- packets -------------------------------------------------------------------------------- */

struct segment {
	__u32 seq, len; /* of the payload */
	__u32 off;	/* of the payload in the packet */
	__u32 syn;
};

static __always_inline int find_segment(struct __sk_buff *skb, struct segment *g)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *v4 = data;
	struct ipv6hdr *v6 = data;
	struct tcphdr *tcp;
	__u32 head = sizeof(*v6);

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if ((void *)(v4 + 1) > end || v4->protocol != IPPROTO_TCP || v4->ihl < 5)
			return -1;
		head = v4->ihl * 4;
	} else if ((void *)(v6 + 1) > end || v6->nexthdr != IPPROTO_TCP) {
		return -1;
	}
	tcp = data + head;
	if ((void *)(tcp + 1) > end)
		return -1;
	g->off = head + tcp->doff * 4;
	g->syn = tcp->syn;
	g->seq = bpf_ntohl(tcp->seq) + tcp->syn;
	g->len = skb->len - g->off;
	return skb->len < g->off ? -1 : 0;
}

/* Is there something to read? Bytes that lie before are counted, or come for the second time. */
static __always_inline int of_use(const struct stream *s, const struct segment *g)
{
	return (__s32)(g->seq + g->len - s->at) > 0;
}

static __always_inline int follow(struct __sk_buff *skb, struct exchange *u, struct stream *s,
				  const struct segment *g)
{
	struct reader r = {.skb = skb, .exchange = u, .stream = s, .response = s == &u->in};
	__u32 skip = s->at - g->seq;

	if ((__s32)skip < 0)
		return -1; /* what comes before has not been seen */
	r.off = g->off + skip;
	r.end = g->off + g->len;
	return read_stream(&r);
}

static __always_inline void start(struct exchange *u, const struct segment *g)
{
	__builtin_memset(u, 0, sizeof(*u));
	u->out.at = u->in.at = g->seq;
}

static __always_inline struct exchange *start_upstream(struct bpf_sock *sk)
{
	struct sw_socket *row = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (!row || !row->port)
		return NULL;
	return bpf_sk_storage_get(&upstreams, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
}

SEC("?cgroup_skb/egress")
int spillway_upstream_out(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct exchange *u;
	struct segment g;

	if (!sk)
		return PASS;
	u = sk->state == BPF_TCP_SYN_SENT ? start_upstream(sk)
					  : bpf_sk_storage_get(&upstreams, sk, NULL, 0);
	if (!u || u->unknown)
		return PASS;
	if (find_segment(skb, &g)) {
		u->unknown = 1;
		return PASS;
	}
	if (g.syn)
		start(u, &g);
	if (!g.len)
		return PASS;
	u->last_ns = bpf_ktime_get_coarse_ns();
	if (of_use(&u->out, &g) && follow(skb, u, &u->out, &g))
		u->unknown = 1;
	return PASS;
}

/* Packets come in before the socket is locked, seldom two at a time. */
static __always_inline void follow_response(struct __sk_buff *skb, struct exchange *u,
					    const struct segment *g)
{
	if (__sync_lock_test_and_set(&u->held, 1)) {
		u->unknown = 1;
		return;
	}
	if (of_use(&u->in, g) && follow(skb, u, &u->in, g))
		u->unknown = 1;
	__sync_lock_test_and_set(&u->held, 0);
}

/* Worker ids, for the daemon to look at once: a response has ended on a connection to a worker that
 * is to be avoided. A busy router asks again within a millisecond, and no timer hits that. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ended SEC(".maps");

static __always_inline int is_avoided(const struct sw_socket *row, __u32 id)
{
	__u32 zero = 0, pool = row->pool, word = id / 64 % SW_WORDS;
	struct sw_bits *free = bpf_map_lookup_elem(&nonbusy, &zero);
	struct sw_bits *member = bpf_map_lookup_elem(&members, &pool);
	struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);

	if (!free || !member || !steer)
		return 0;
	return steer->flags & SW_SF_CLOSED ||
	       !(free->word[word] & member->word[word] & 1ULL << (id & 63));
}

static __always_inline void tell_end(struct bpf_sock *sk)
{
	struct sw_socket *row = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	__u32 id;

	if (!row || !row->slot)
		return;
	id = row->slot - 1;
	if (is_avoided(row, id))
		bpf_ringbuf_output(&ended, &id, sizeof(id), 0);
}

SEC("?cgroup_skb/ingress")
int spillway_upstream_in(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct exchange *u = sk ? bpf_sk_storage_get(&upstreams, sk, NULL, 0) : NULL;
	struct segment g;

	if (!u || u->unknown)
		return PASS;
	if (find_segment(skb, &g)) {
		u->unknown = 1;
		return PASS;
	}
	if (g.syn && sk->state == BPF_TCP_SYN_SENT)
		u->in.at = g.seq;
	if (!g.len)
		return PASS;
	u->last_ns = bpf_ktime_get_coarse_ns();
	if (of_use(&u->in, &g))
		follow_response(skb, u, &g);
	if (u->in.at == g.seq + g.len && between(&u->in) && u->asked == u->answered)
		tell_end(sk);
	return PASS;
}

/* ---- a router that asks --------------------------------------------------------------------- */

/* No request and no response is under way, as far as their bytes were seen. */
static __always_inline int is_quiet(const struct exchange *u)
{
	return !u->unknown && u->asked && u->asked == u->answered && between(&u->out) &&
	       between(&u->in);
}

/* Is the connection one to leave? If not, it is not closed before the router has used it. */
static __always_inline int leave(struct bpf_sock *sk, const struct sw_socket *row,
				 struct exchange *u)
{
	int gone;

	if (__sync_lock_test_and_set(&u->held, 1))
		return 1; /* it is being closed */
	gone = sk->state != BPF_TCP_ESTABLISHED || is_avoided(row, row->slot - 1);
	if (!gone) {
		u->promised = u->asked;
		u->promised_ns = bpf_ktime_get_ns();
	}
	__sync_lock_test_and_set(&u->held, 0);
	return gone;
}

/* nginx asks for SO_ERROR before it sends a request over a connection that it has kept, and opens
 * another one where there is an error. So it never sends to a busy worker, and never into a
 * connection that is closed between question and request. */
SEC("?cgroup/getsockopt")
int spillway_upstream_asked(struct bpf_sockopt *ctx)
{
	int *error = ctx->optval;
	struct bpf_sock *sk = ctx->sk;
	struct sw_socket *row;
	struct exchange *u;

	if (ctx->optlen > OPTION_MAX)
		ctx->optlen = 0; /* not looked at, and left as it is */
	if (ctx->level != LEVEL_SOCKET || ctx->optname != OPTION_ERROR || !sk)
		return PASS;
	if ((void *)(error + 1) > ctx->optval_end || *error)
		return PASS;
	row = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	u = bpf_sk_storage_get(&upstreams, sk, NULL, 0);
	if (row && row->slot && u && is_quiet(u) && leave(sk, row, u))
		*error = NO_CONNECTION;
	return PASS;
}

/* ---- closing -------------------------------------------------------------------------------- */

struct close_order {
	struct sw_bits workers;
	__u64 idle_ms;
	__u64 closed; /* counted here */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct close_order);
} close_orders SEC(".maps");

/* The kernel's own, as far as we read them. */
struct sock_common {
	volatile unsigned char skc_state;
} __attribute__((preserve_access_index));

struct tcp_sock {
	__u32 rcv_nxt, copied_seq, snd_una, write_seq;
} __attribute__((preserve_access_index));

struct bpf_iter_meta;

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
} __attribute__((preserve_access_index));

extern int bpf_sock_destroy(struct sock_common *sock) __ksym __weak;

/* Fact of load time, like have_hand_over: while it is false the call below is dead code. */
const volatile bool have_sock_destroy = false;

/* All that was written has been acknowledged and is a whole number of requests; all that was
 * received has been read by the router and answers each of them. */
static __always_inline int is_idle(struct exchange *u, struct tcp_sock *tcp, __u64 idle_ns)
{
	__u64 now = bpf_ktime_get_ns();

	return is_quiet(u) && u->out.at == tcp->write_seq && u->out.at == tcp->snd_una &&
	       u->in.at == tcp->rcv_nxt && u->in.at == tcp->copied_seq &&
	       (__s64)(now - u->last_ns - idle_ns) >= 0 &&
	       (u->promised != u->asked || (__s64)(now - u->promised_ns - GRACE_NS) >= 0);
}

static __always_inline int is_ordered(const struct close_order *order, __u32 slot)
{
	__u32 id = slot - 1;

	return slot && order->workers.word[id / 64 % SW_WORDS] >> (id & 63) & 1;
}

/* The TCP sockets of one network namespace, each locked. */
SEC("?iter/tcp")
int spillway_close_idle(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	struct close_order *order;
	struct sw_socket *row;
	struct tcp_sock *tcp;
	struct exchange *u;
	__u32 zero = 0;
	__u64 idle_ns;

	if (!have_sock_destroy || !sk || sk->skc_state != BPF_TCP_ESTABLISHED)
		return 0;
	order = bpf_map_lookup_elem(&close_orders, &zero);
	row = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	if (!order || !row || !row->port || !is_ordered(order, row->slot))
		return 0;
	u = bpf_sk_storage_get(&upstreams, sk, NULL, 0);
	tcp = bpf_skc_to_tcp_sock(sk);
	idle_ns = order->idle_ms * 1000000ULL;
	if (!u || !tcp || !is_idle(u, tcp, idle_ns))
		return 0;
	/* Once more, with nobody reading a packet that has just come in. */
	if (__sync_lock_test_and_set(&u->held, 1))
		return 0;
	if (is_idle(u, tcp, idle_ns) && !bpf_sock_destroy(sk))
		__sync_fetch_and_add(&order->closed, 1);
	__sync_lock_test_and_set(&u->held, 0);
	return 0;
}
