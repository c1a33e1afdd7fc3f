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
#include "translate.h"

static __always_inline void make_key(const struct packet *p, struct sw_tuple *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	__builtin_memcpy(key->peer, p->daddr, 16);
	__builtin_memcpy(key->local, p->saddr, 16);
	key->peer_port = p->dport;
	key->local_port = p->sport;
}

static __always_inline void follow_response(ctx_t *ctx, const struct packet *p, struct flow *f)
{
	if (f->flags & (FLOW_LOST | FLOW_ALONE))
		return;
	switch (follow(ctx, p, &f->x, &f->x.out)) {
	case FOLLOWED: break;
	case FOLLOWED_GAP: f->flags |= FLOW_LOST; break;
	default: f->flags |= FLOW_ALONE;
	}
}

static __always_inline int forget(const struct sw_tuple *key)
{
	__u32 zero = 0, *n = bpf_map_lookup_elem(&flow_use, &zero);

	if (!bpf_map_delete_elem(&flows, key) && n)
		__sync_fetch_and_add(n, -1);
	return CTX_PASS;
}

static __always_inline int pass_out(ctx_t *ctx)
{
	__u32 zero = 0, port, *use = bpf_map_lookup_elem(&flow_use, &zero);
	struct packet p;
	struct sw_tuple key;
	struct sw_port *at;
	struct tcphdr *tcp;
	struct flow *f;
	int failed;

	if (ctx->mark == SW_KEEP_MARK) {
		ctx->mark = 0;
		return CTX_PASS;
	}
	if (!use || !*use || locate(ctx, &p) >= 0)
		return CTX_PASS;
	tcp = header(ctx_begin(ctx), p.l4);
	if ((void *)(tcp + 1) > ctx_end(ctx))
		return CTX_PASS;
	port = bpf_ntohs(tcp->source);
	at = bpf_map_lookup_elem(&ports, &port);
	if (!at || !(at->any4 | at->any6 | at->single) || read(ctx, &p) >= 0)
		return CTX_PASS;
	make_key(&p, &key);
	f = bpf_map_lookup_elem(&flows, &key);
	if (!f)
		return CTX_PASS;
	if (p.flags & TCP_SYN)
		return forget(&key);
	if (lock_flow(f))
		return CTX_DROP;
	if (p.payload)
		follow_response(ctx, &p, f);
	failed = f->flags & FLOW_TRANSLATED && translate(ctx, &p, f, 1);
	unlock_flow(f);
	if (failed)
		return CTX_DROP;
	return p.flags & TCP_RST ? forget(&key) : CTX_PASS;
}

SEC("?tc")
int spillway_egress(struct __sk_buff *skb)
{
	return pass_out(skb);
}
