// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The life of connections: one that holds a slot is followed until it is closed, and the slot given
 * back; one that was let in by a lookup gets the slot that is reserved for it; a worker's listening
 * socket is noted as soon as it listens. Which worker is to have which connection was decided
 * elsewhere. May run twice for one event, where two cgroups of a nest have it.
 *
 * Not loaded unless asked for.
 */
#include <bpf/bpf_endian.h>

#include "bound.h"
#include "reservation.h"

#define AF_INET 2

/* All that may be needed is read at once: where that depends on the family, compilers make pointers
 * into the context of it, which the verifier refuses. */
#define ADDRESS(ctx, v4, v6, to)                                                                   \
	choose(LATEST((ctx)->family), LATEST((ctx)->v4), LATEST((ctx)->v6[0]),                     \
	       LATEST((ctx)->v6[1]), LATEST((ctx)->v6[2]), LATEST((ctx)->v6[3]), (__u32 *)(to))

static __always_inline void choose(__u32 family, __u32 v4, __u32 a, __u32 b, __u32 c, __u32 d,
				   __u32 *to)
{
	int is_v4 = family == AF_INET;

	to[0] = is_v4 ? 0 : a;
	to[1] = is_v4 ? 0 : b;
	to[2] = is_v4 ? bpf_htonl(0xffff) : c;
	to[3] = is_v4 ? v4 : d;
}

static __always_inline void fill_tuple(struct bpf_sock_ops *ctx, struct sw_tuple *t)
{
	t->netns = bpf_get_netns_cookie(ctx);
	ADDRESS(ctx, remote_ip4, remote_ip6, t->peer);
	ADDRESS(ctx, local_ip4, local_ip6, t->local);
	t->peer_port = bpf_ntohl(ctx->remote_port);
	t->local_port = ctx->local_port;
}

static __always_inline struct sw_socket *row_of(struct bpf_sock_ops *ctx, __u64 flags)
{
	struct bpf_sock *sk = ctx->sk;

	return sk ? bpf_sk_storage_get(&sockets, sk, NULL, flags) : NULL;
}

static __always_inline void follow(struct bpf_sock_ops *ctx, struct sw_socket *s)
{
	if (!bpf_sock_ops_cb_flags_set(ctx,
				       ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG))
		s->followed = 1;
}

/* connect() is about to send its SYN. */
static __always_inline void connecting(struct bpf_sock_ops *ctx)
{
	struct sw_socket *s = row_of(ctx, 0);

	if (s && s->slot)
		follow(ctx, s);
}

/* A SYN was let in, and its SYN-ACK is to be sent: only a request yet, no full socket. */
static __always_inline void requested(struct bpf_sock_ops *ctx)
{
	struct sw_tuple t = {};

	if (ctx->is_fullsock)
		return;
	fill_tuple(ctx, &t);
	reservation_confirm(&t);
}

static __always_inline void accepted(struct bpf_sock_ops *ctx)
{
	struct sw_tuple t = {};
	struct sw_socket *s;
	__u32 pool = 0, slot;

	fill_tuple(ctx, &t);
	slot = reservation_settle(&t, &pool);
	if (!slot)
		return;
	s = row_of(ctx, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s) {
		count_steered(pool, STEERED_no_storage);
		slot_give(slot - 1);
		return;
	}
	s->pool = pool;
	LATEST(s->slot) = slot;
	follow(ctx, s);
}

/* Of a worker whose pool is steered to listening sockets, and in the worker's own namespace? */
static __always_inline int may_listen(struct bpf_sock_ops *ctx, __u32 id)
{
	const struct sw_worker_row *worker = bpf_map_lookup_elem(&workers, &id);
	const struct sw_steer_pool *steer;
	__u32 pool;

	if (!worker)
		return 0;
	pool = worker->pool;
	steer = bpf_map_lookup_elem(&steers, &pool);
	return steer && steer->flags & SW_SF_ASSIGN &&
	       (!worker->tag || worker->tag == bpf_get_netns_cookie(ctx));
}

/* A server on [::] mostly serves IPv4 too. */
static __always_inline void listens_now(struct bpf_sock_ops *ctx)
{
	struct sw_address at = {.port = ctx->local_port};
	__u32 *id, *word = (__u32 *)at.addr;

	ADDRESS(ctx, local_ip4, local_ip6, at.addr);
	id = bpf_map_lookup_elem(&listens, &at);
	if (!id && !(word[0] | word[1] | word[2] | word[3])) {
		word[2] = bpf_htonl(0xffff);
		id = bpf_map_lookup_elem(&listens, &at);
	}
	if (id && may_listen(ctx, *id)) {
		__u32 key = *id;

		bpf_sock_map_update(ctx, &listening, &key, BPF_ANY);
	}
}

static __always_inline void moved(struct bpf_sock_ops *ctx)
{
	struct sw_socket *s;

	if (ctx->args[1] != BPF_TCP_CLOSE)
		return;
	s = row_of(ctx, 0);
	if (s)
		unbind(s, ctx->args[0] == BPF_TCP_SYN_SENT);
}

SEC("?sockops")
int spillway_sockops(struct bpf_sock_ops *ctx)
{
	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB: connecting(ctx); break;
	case BPF_SOCK_OPS_TIMEOUT_INIT: requested(ctx); break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB: accepted(ctx); break;
	case BPF_SOCK_OPS_TCP_LISTEN_CB: listens_now(ctx); break;
	case BPF_SOCK_OPS_STATE_CB: moved(ctx); break;
	}
	return 1;
}
