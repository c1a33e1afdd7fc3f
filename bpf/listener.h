/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which listener a packet is for, and the questions asked about its source and destination. */
#ifndef SPILLWAY_BPF_LISTENER_H
#define SPILLWAY_BPF_LISTENER_H

#include "parse.h"

/* The listener on this very address, 0: none. */
__noinline int STAGE(find_address)(ctx_t *ctx, const struct packet *p)
{
	void *begin, *end = ctx_end(ctx);
	struct sw_address key = {};
	__u32 *id;

	if (!p)
		return 0;
	begin = header(ctx_begin(ctx), p->l3);
	if (begin + sizeof(struct ipv6hdr) > end)
		return 0;
	if (p->v6)
		__builtin_memcpy(key.addr, &((struct ipv6hdr *)begin)->daddr, 16);
	else
		map_v4((__u32 *)key.addr, ((struct iphdr *)begin)->daddr);
	key.port = p->dport;
	id = bpf_map_lookup_elem(&addresses, &key);
	return id ? *id : 0;
}

/* Listener id, 0: none. Other ports end after the first access. */
static __always_inline __u32 find_listener(ctx_t *ctx, const struct packet *p)
{
	__u32 port = p->dport, id = 0;
	struct sw_port *at = bpf_map_lookup_elem(&ports, &port);

	if (!at)
		return 0;
	if (at->single)
		id = STAGE(find_address)(ctx, p);
	if (id)
		return id;
	return p->v6 ? at->any6 : at->any4;
}

__noinline int STAGE(in_cidrs)(const struct packet *p, __u32 set)
{
	struct sw_cidr_key key = {.prefixlen = 32 + 128, .set = bpf_htonl(set)};

	if (!p)
		return 0;
	__builtin_memcpy(key.addr, p->saddr, 16);
	return bpf_map_lookup_elem(&exempt, &key) != NULL;
}

static __always_inline int is_exempt(const struct sw_listener *l, const struct packet *p)
{
	return l->flags & SW_LF_EXEMPT && STAGE(in_cidrs)(p, l->exempt);
}

static __always_inline int is_local(const struct packet *p)
{
	if (!p->v6 && (p->daddr[3] & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000))
		return 1;
	return bpf_map_lookup_elem(&local, p->daddr) != NULL;
}

/* Counts a SYN against its source's /24 or /64 in this second (2^30 ns). A place taken over by
 * another prefix starts anew: under a flood from many prefixes the limit gets softer, never harder.
 */
static __always_inline int is_flood(const struct sw_listener *l, const struct packet *p, __u64 now)
{
	__u32 prefix = p->v6 ? p->saddr[0] ^ p->saddr[1] * 0x9e3779b1U
			     : p->saddr[3] & bpf_htonl(0xffffff00);
	__u32 second = now >> 30, place = prefix * 0x85ebca6bU >> 20;
	struct sw_flood *f;

	if (!l->syn_rate)
		return 0;
	f = bpf_map_lookup_elem(&flood, &place);
	if (!f)
		return 0;
	if (f->prefix != prefix || f->second != second) {
		f->prefix = prefix;
		f->second = second;
		f->count = 0;
	}
	return ++f->count > l->syn_rate;
}

_Static_assert(SW_FLOOD == 1 << 12, "the place takes the top 12 bits of the hash");

#endif
