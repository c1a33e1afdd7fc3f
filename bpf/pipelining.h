/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clients that send a request before they have the whole answer to the one before. On a connection
 * that was there before following began, the answer to such an older request looks like that to the
 * first one seen, and from then on each answer like the next one's. What gives it away may show on
 * another connection of the same client, so it counts for all of them.
 */
#ifndef SPILLWAY_BPF_PIPELINING_H
#define SPILLWAY_BPF_PIPELINING_H

#include "keep_scene.h"

#define PIPELINING_CLIENTS 4096
#define PIPELINING_NS	   (3600 * 1000000000ULL)

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PIPELINING_CLIENTS);
	__type(key, __u8[16]);
	__type(value, __u64); /* when it last did */
} pipelining SEC(".maps") __weak;

static __always_inline void note_pipelining(struct scratch *s)
{
	bpf_map_update_elem(&pipelining, s->key.peer, &s->now, BPF_ANY);
}

static __always_inline int has_pipelined(const struct scratch *s)
{
	const __u64 *at = bpf_map_lookup_elem(&pipelining, s->key.peer);

	return at && s->now - *at < PIPELINING_NS;
}

/* Does a request begin with this segment while a response is under way? Whoever has all of it says
 * so in the next segment that he sends. */
static __always_inline int is_early(const struct scratch *s, const struct flow *f)
{
	const struct exchange *x = &f->x;

	return s->p.seq == x->in.at && between(&x->in) &&
	       (!between(&x->out) || before(ack_to_socket(f, s->p.ack), x->out.at));
}

#endif
