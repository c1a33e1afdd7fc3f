// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Recount: how many hold a slot of each worker, held against `inuse`. Only user space can tell what
 * is drift and what has moved meanwhile. For a row without SW_WF_CREDIT it
 *
 *  1. zeroes `seen`;
 *  2. notes takes, gives and moves, and after them inuse;
 *  3. runs spillway_reserved and then reads all of spillway_recount: in this order, so that a
 *     reservation that becomes a connection meanwhile is seen twice, and never not at all;
 *  4. reads takes, gives and moves once more; the differences are `taken`, `given`, `moved`.
 *
 * At the start of the scan the true count was between seen - taken - moved and seen + given. Drift
 * is what `inuse` of step 2 is above the upper or below the lower end, and 0 between them. A scan
 * with seen[SW_SEEN_MOVING] is thrown away: its drift is 0. Only what two recounts in a row, at
 * least 100 ms apart, both found, with the same sign, is corrected: the smaller of the two,
 * negated, by spillway_correct; then the former finding is forgotten, so that nothing is put right
 * twice.
 *
 * The iterator is a tracing program, which some hardened kernels refuse, and some kernels crash in
 * it: sw_probe_storage_walk() tells. Then there is no recount. Not loaded unless asked for.
 */
#include "slots.h"

/* As the kernel has it; declared here so that building needs no particular kernel's BTF. */
struct bpf_iter__bpf_sk_storage_map {
	void *meta, *map, *sk, *value;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_MAX_WORKERS + 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

static __always_inline void see(__u32 element)
{
	__u64 *n = bpf_map_lookup_elem(&seen, &element);

	if (n)
		(*n)++;
}

SEC("?iter/bpf_sk_storage_map")
int spillway_recount(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	const struct sw_socket *s = ctx->value;
	__u32 slot;

	if (!s)
		return 0;
	slot = LATEST(s->slot);
	if (LATEST(s->moving))
		see(SW_SEEN_MOVING);
	else if (slot)
		see(slot - 1);
	return 0;
}

static long see_pending(__u32 cpu, void *unused)
{
	__u32 zero = 0;
	const struct sw_pending *p = bpf_map_lookup_percpu_elem(&pending, &zero, cpu);

	(void)unused;
	if (!p)
		return 1;
	if (LATEST(p->since_ns) && p->slot)
		see(p->slot - 1);
	return 0;
}

static long see_reservation(void *map, const void *key, struct sw_reservation *r, void *unused)
{
	(void)map, (void)key, (void)unused;
	if (LATEST(r->since_ns) && r->slot)
		see(r->slot - 1);
	return 0;
}

#define MAX_CPUS 8192

SEC("?syscall")
int spillway_reserved(void *ctx)
{
	(void)ctx;
	bpf_loop(MAX_CPUS, see_pending, NULL, 0);
	bpf_for_each_map_elem(&reservations, see_reservation, NULL, 0);
	return 0;
}

SEC("?syscall")
int spillway_correct(struct sw_correction *ctx)
{
	__u32 id = ctx->slot;
	__s32 delta = ctx->delta;
	struct sw_worker_row *row = bpf_map_lookup_elem(&workers, &id);
	struct sw_slot *slot = bpf_map_lookup_elem(&slots, &id);

	if (!row || !slot || row->flags & SW_WF_CREDIT)
		return 1;
	__sync_fetch_and_add(&slot->inuse, delta);
	__sync_fetch_and_add(&slot->corrected, delta < 0 ? -delta : delta);
	hint(slot, row, id);
	return 0;
}
