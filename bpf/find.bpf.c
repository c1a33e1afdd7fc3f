// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Looks for the workers' listening sockets in a plane's namespace. Two ways, of which each kernel
 * has one at least, where it has any: spillway_find asks for each worker's socket, run by
 * BPF_PROG_TEST_RUN on an empty packet, and returns how many there are; 7.x lets no such program
 * put a socket into a map. spillway_find_walk reads all sockets of the namespace it is read in and
 * gives a byte for each that is a worker's; before 6.5 a walk holds the very lock that the map
 * takes, and the kernel stands still.
 *
 * Not loaded unless asked for.
 */
#include "find_socket.h"

#define AF_INET	 2
#define AF_INET6 10

/* Is this a worker whose connections go to its listening socket in this namespace? */
static __always_inline int is_ours(const struct sw_worker_row *row)
{
	const struct sw_steer_pool *steer;
	__u32 pool = row->pool;

	if (!row->port || row->flags & SW_WF_ROW || (row->tag && row->tag != netns_cookie))
		return 0;
	steer = bpf_map_lookup_elem(&steers, &pool);
	return steer && steer->flags & SW_SF_ASSIGN;
}

/* ---- one by one ----------------------------------------------------------------------------- */

/* 1: it is where it is looked for, now. */
static __always_inline int note_listener(__u32 id, struct bpf_sock *sk)
{
	struct bpf_sock *known = bpf_map_lookup_elem(&listening, &id);
	int same = known && known == sk;

	if (known)
		bpf_sk_release(known);
	return same || !bpf_map_update_elem(&listening, &id, sk, BPF_ANY);
}

struct search {
	struct __sk_buff *skb;
	__u32 found;
};

static long find_one(__u32 id, struct search *s)
{
	const struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);
	struct sw_tuple t = {.netns = netns_cookie};
	struct bpf_sock *sk;

	if (!row || !is_ours(row))
		return 0;
	__builtin_memcpy(t.local, row->addr, 16);
	t.local_port = row->port;
	if (is_mapped(t.local))
		map_address(t.peer, 0);
	sk = find_socket(s->skb, &t);
	if (!sk)
		return 0;
	if (sk->state == BPF_TCP_LISTEN)
		s->found += note_listener(id, sk);
	bpf_sk_release(sk);
	return 0;
}

SEC("?tc")
int spillway_find(struct __sk_buff *skb)
{
	struct search s = {.skb = skb};

	bpf_loop(SW_MAX_WORKERS, find_one, &s, 0);
	return s.found;
}

/* ---- all at once ------------------------------------------------------------------------------
 */

/* The few fields of the kernel's that are read, found by name when the program is loaded. */
#define FIELDS __attribute__((preserve_access_index))

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} FIELDS;

struct sock_common {
	__u32 skc_rcv_saddr;
	__u16 skc_num, skc_family;
	volatile unsigned char skc_state;
	struct {
		__u8 bytes[16];
	} skc_v6_rcv_saddr;
} FIELDS;

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

/* A server on [::] mostly serves IPv4 too. */
static __always_inline __u32 *worker_at(const struct sock_common *sk)
{
	struct sw_address at = {.port = sk->skc_num};
	__u32 *word = (__u32 *)at.addr, *id;

	if (sk->skc_family == AF_INET)
		map_address(at.addr, sk->skc_rcv_saddr);
	else
		__builtin_memcpy(at.addr, &sk->skc_v6_rcv_saddr, 16);
	id = bpf_map_lookup_elem(&listens, &at);
	if (id || word[0] | word[1] | word[2] | word[3])
		return id;
	map_address(at.addr, 0);
	return bpf_map_lookup_elem(&listens, &at);
}

SEC("?iter/tcp")
int spillway_find_walk(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	const struct sw_worker_row *row;
	__u32 *at, id;
	char one = 1;

	if (!sk || sk->skc_state != BPF_TCP_LISTEN)
		return 0;
	at = worker_at(sk);
	if (!at)
		return 0;
	id = *at;
	row = bpf_map_lookup_elem(&workers, &id);
	if (!row || !is_ours(row) || row->port != sk->skc_num)
		return 0;
	if (!bpf_map_update_elem(&listening, &id, sk, BPF_ANY))
		bpf_seq_write(ctx->meta->seq, &one, sizeof(one));
	return 0;
}
