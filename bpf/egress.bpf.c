// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TC egress: what servers send on connections that requests are shed on. Follows responses, so that
 * established.bpf.c knows when none is under way, and gives every segment the numbers that the
 * client counts by.
 */
#define STAGE(name) egress_##name
#define ctx_counts  counts_keep
#include "ctx_tc.h"
#include "parse.h"
#include "exchange.h"
#include "kernel_sock.h"
#include "translate.h"
#include "verdict.h"

static __always_inline void make_key(const struct packet *p, struct sw_tuple *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	__builtin_memcpy(key->peer, p->daddr, 16);
	__builtin_memcpy(key->local, p->saddr, 16);
	key->peer_port = p->dport;
	key->local_port = p->sport;
}

/* The first response that is seen, on a connection that was there before: has the server read
 * anything of the request that it seems to answer? */
static __always_inline int answers_unread(ctx_t *ctx, const struct packet *p, const struct flow *f)
{
	struct bpf_sock *sk = ctx->sk;
	struct tcp_sock *tcp;

	if (f->flags & FLOW_SYNCED || !before(f->x.out.at, p->seq + p->payload) || !sk)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	return tcp && !before(f->from, tcp->copied_seq);
}

static __always_inline void follow_response(ctx_t *ctx, const struct packet *p, struct flow *f)
{
	int why = SW_R_alone_response;

	if (f->flags & FLOW_ALONE)
		return;
	if (answers_unread(ctx, p, f))
		answer_older(&f->x);
	else
		why = STAGE(follow)(ctx, p, &f->x, 1);
	if (why != FOLLOWED)
		leave_alone(f, why);
}

static __always_inline int forget(const struct sw_tuple *key)
{
	if (!bpf_map_delete_elem(&flows, key))
		count_flows(-1);
	return CTX_PASS;
}

/* The listener whose segment this is, 0: none any more. */
static __always_inline __u32 find_sender(const struct packet *p)
{
	struct sw_address key = {.port = p->sport};
	__u32 port = p->sport, *id = NULL;
	const struct sw_port *at = bpf_map_lookup_elem(&ports, &port);

	if (!at)
		return 0;
	__builtin_memcpy(key.addr, p->saddr, sizeof(key.addr));
	if (at->single)
		id = bpf_map_lookup_elem(&addresses, &key);
	if (id && *id)
		return *id;
	return p->v6 ? at->any6 : at->any4;
}

/* What goes out is counted only if it is dropped. */
static __always_inline int drop(const struct packet *p, int reason)
{
	count(find_sender(p), reason);
	return CTX_DROP;
}

static __always_inline int pass_out(ctx_t *ctx)
{
	__u32 zero = 0, *use = bpf_map_lookup_elem(&flow_use, &zero);
	struct packet p;
	struct sw_tuple key;
	struct flow *f;
	int failed;

	if (ctx->mark == SW_KEEP_MARK) {
		ctx->mark = 0;
		return CTX_PASS;
	}
	if (!use || !*use || locate(ctx, &p) >= 0)
		return CTX_PASS;
	if (read(ctx, &p) >= 0)
		return CTX_PASS;
	make_key(&p, &key);
	f = bpf_map_lookup_elem(&flows, &key);
	if (!f)
		return CTX_PASS;
	if (p.flags & TCP_SYN) /* the next connection's, unless it comes again */
		return p.seq + 1 == f->x.out.at ? CTX_PASS : forget(&key);
	if (lock_flow(f))
		return drop(&p, SW_R_drop_raced);
	if (p.payload)
		follow_response(ctx, &p, f);
	if (p.flags & TCP_FIN && f->flags & FLOW_SWALLOW)
		leave_alone(f, SW_R_alone_close);
	failed = f->flags & FLOW_TRANSLATED && STAGE(translate)(ctx, &p, f, 1);
	unlock_flow(f);
	if (failed)
		return drop(&p, SW_R_drop_failed);
	return CTX_PASS; /* a flow whose socket is gone is swept */
}

SEC("?tc")
int spillway_egress(struct __sk_buff *skb)
{
	return pass_out(skb);
}
