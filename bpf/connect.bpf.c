// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Routers: connect() to a pool's virtual address goes to a worker with a free slot, which the
 * socket then holds, and getpeername() shows what was asked for. That the slot comes back at the
 * end of the connection is the job of sockops.bpf.c; here it does where no connection came of it.
 *
 * TCP sockets only. MPTCP ones are left alone, which for a virtual address means: no route, unless
 * it exists.
 * Not loaded unless asked for.
 */
#include <linux/in.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include "bound.h"

#define SOCK_STREAM 1
#define CONNREFUSED 111 /* ECONNREFUSED */
#define MAX_ERRNO   4095

enum verdict { LEAVE, GO, REFUSE };

struct mptcp_sock { /* the kernel's, if it has it */
	char opaque;
} __attribute__((preserve_access_index));

/* The kernel connects a TCP socket of its own for an MPTCP one. It would take a slot for it, and
 * tell nobody where connect() then fails. */
static __always_inline int is_plain_tcp(const struct bpf_sock_addr *ctx)
{
	return ctx->type == SOCK_STREAM && ctx->protocol == IPPROTO_TCP &&
	       !(bpf_core_type_exists(struct mptcp_sock) && bpf_skc_to_mptcp_sock(ctx->sk));
}

static __always_inline int same(const struct sw_address *a, const __u8 addr[16], __u16 port)
{
	const __u32 *x = (const __u32 *)a->addr, *y = (const __u32 *)addr;

	return a->port == port && !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]));
}

static __always_inline void set(struct sw_address *to, const __u8 addr[16], __u16 port)
{
	__builtin_memcpy(to->addr, addr, 16);
	to->port = port;
}

/* ::ffff:127.0.0.1 or ::1. No constants, of which bpftool's linker makes a mess. */
static __always_inline void loopback(__u32 word[4], int mapped)
{
	word[0] = word[1] = 0;
	word[2] = mapped ? bpf_htonl(0xffff) : 0;
	word[3] = mapped ? bpf_htonl(0x7f000001) : bpf_htonl(1);
}

static __always_inline int is_mapped(const struct sw_address *a)
{
	const __u32 *word = (const __u32 *)a->addr;

	return !word[0] && !word[1] && word[2] == bpf_htonl(0xffff);
}

static __always_inline int is_responder(const struct sw_address *at, __u16 port)
{
	__u32 word[4];

	loopback(word, is_mapped(at));
	return same(at, (const __u8 *)word, port);
}

/* Is this where the socket was sent? Then it is no new connect(): the same program runs once more,
 * for an outer cgroup, and sees what the first run has made of the address. */
static __always_inline int was_sent_to(const struct sw_socket *s, const struct sw_address *at)
{
	__u32 slot = s->slot, pool = s->pool, id = slot - 1;
	const struct sw_worker_row *w = bpf_map_lookup_elem(&workers, &id);
	const struct sw_steer_pool *steer = bpf_map_lookup_elem(&steers, &pool);

	if (slot)
		return w && same(at, w->addr, w->port);
	return steer && is_responder(at, steer->responder);
}

/* The socket goes elsewhere now. */
static __always_inline int leave(struct bpf_sock *sk, const struct sw_address *at)
{
	struct sw_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (s && s->port && !was_sent_to(s, at)) {
		unbind(s, 0);
		s->port = 0;
	}
	return LEAVE;
}

/* `error` is the daemon's to choose; newer kernels want to see that it is one. */
static __always_inline int refuse(const struct sw_steer_pool *steer, __u32 pool)
{
	__u64 error = steer->error & MAX_ERRNO;
	__s64 ret = 0;

	if (!error)
		error = CONNREFUSED;
	asm volatile("%0 -= %1" : "+r"(ret) : "r"(error));
	count_steered(pool, STEERED_refused);
	bpf_set_retval(ret);
	return REFUSE;
}

/* Nothing is free: the daemon's responder says so to the router, or the error of connect() does. */
static __always_inline int overflow(const struct sw_steer_pool *steer, __u32 pool, int overdue,
				    struct sw_address *at)
{
	if (steer->flags & SW_SF_REFUSE || !steer->responder || overdue)
		return refuse(steer, pool);
	count_steered(pool, STEERED_answered);
	loopback((__u32 *)at->addr, is_mapped(at));
	at->port = steer->responder;
	return GO;
}

/* Takes a slot and binds it: the worker's id, or negative enum pick. */
static __always_inline int take(struct sw_socket *s, __u32 pool, __u32 how)
{
	int id;

	begin_move(s);
	s->followed = 0;
	id = slot_pick(pool, how);
	if (id >= 0)
		LATEST(s->slot) = id + 1;
	end_move(s);
	return id;
}

/* The whole of connect4 and connect6: `at` is what was asked for and becomes what it is to be. */
static __always_inline int steer(struct bpf_sock_addr *ctx, struct sw_address *at, __u32 how)
{
	const struct sw_worker_row *worker;
	const struct sw_steer_pool *steer;
	struct sw_socket *s;
	__u32 pool, *found;
	int id, overdue;

	/* an error that stands already, from another program or an inner cgroup's run of this one
	 */
	if (!is_plain_tcp(ctx) || bpf_get_retval())
		return LEAVE;
	found = bpf_map_lookup_elem(&virtuals, at);
	if (!found)
		return leave(ctx->sk, at);
	pool = *found;
	steer = bpf_map_lookup_elem(&steers, &pool);
	if (!steer)
		return LEAVE;
	overdue = steer->deadline_ns < bpf_ktime_get_ns();
	if (overdue)
		count_steered(pool, STEERED_overdue);
	/* before the slot, so that none is ever taken that nothing can hold */
	s = bpf_sk_storage_get(&sockets, ctx->sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s) {
		count_steered(pool, STEERED_no_storage);
		return refuse(steer, pool);
	}
	unbind(s, 0); /* a former connect() of this socket failed */
	__builtin_memcpy(s->addr, at->addr, 16);
	s->port = at->port;
	s->pool = pool;
	id = take(s, pool, overdue ? how | HOW_IGNORE_BUSY : how);
	worker = id < 0 ? NULL : bpf_map_lookup_elem(&workers, &id);
	if (!worker) {
		count_unpicked(pool, id);
		return overflow(steer, pool, overdue, at);
	}
	count_steered(pool, STEERED_steered);
	set(at, worker->addr, worker->port);
	return GO;
}

SEC("?cgroup/connect4")
int spillway_connect4(struct bpf_sock_addr *ctx)
{
	struct sw_address at = {.addr = {[10] = 0xff, 0xff}, .port = bpf_ntohs(ctx->user_port)};
	__u32 *word = (__u32 *)at.addr;
	int verdict;

	word[3] = ctx->user_ip4;
	verdict = steer(ctx, &at, HOW_ONLY4);
	if (verdict == GO) {
		ctx->user_ip4 = word[3];
		ctx->user_port = bpf_htons(at.port);
	}
	return verdict != REFUSE;
}

SEC("?cgroup/connect6")
int spillway_connect6(struct bpf_sock_addr *ctx)
{
	struct sw_address at = {.port = bpf_ntohs(ctx->user_port)};
	__u32 *word = (__u32 *)at.addr;
	int verdict;

	word[0] = ctx->user_ip6[0];
	word[1] = ctx->user_ip6[1];
	word[2] = ctx->user_ip6[2];
	word[3] = ctx->user_ip6[3];
	verdict = steer(ctx, &at, 0);
	if (verdict == GO) {
		ctx->user_ip6[0] = word[0];
		ctx->user_ip6[1] = word[1];
		ctx->user_ip6[2] = word[2];
		ctx->user_ip6[3] = word[3];
		ctx->user_port = bpf_htons(at.port);
	}
	return verdict != REFUSE;
}

/* ---- what the socket says of itself ------------------------------------------------------------
 */

static __always_inline const struct sw_socket *steered(struct bpf_sock *sk)
{
	const struct sw_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	return s && s->port ? s : NULL;
}

SEC("?cgroup/getpeername4")
int spillway_getpeername4(struct bpf_sock_addr *ctx)
{
	const struct sw_socket *s = steered(ctx->sk);

	if (s) {
		ctx->user_ip4 = ((const __u32 *)s->addr)[3];
		ctx->user_port = bpf_htons(s->port);
	}
	return 1;
}

SEC("?cgroup/getpeername6")
int spillway_getpeername6(struct bpf_sock_addr *ctx)
{
	const struct sw_socket *s = steered(ctx->sk);

	if (s) {
		const __u32 *word = (const __u32 *)s->addr;

		ctx->user_ip6[0] = word[0];
		ctx->user_ip6[1] = word[1];
		ctx->user_ip6[2] = word[2];
		ctx->user_ip6[3] = word[3];
		ctx->user_port = bpf_htons(s->port);
	}
	return 1;
}

/* ---- the last close -----------------------------------------------------------------------------
 */

/* A connection that was under way is still closing, and its end will be heard of. Where connect()
 * came to nothing before (no route, no port left, Fast Open without data) this is the end. */
SEC("?cgroup/sock_release")
int spillway_sock_release(struct bpf_sock *sk)
{
	struct sw_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (s && !s->followed)
		unbind(s, 0);
	return 1;
}
