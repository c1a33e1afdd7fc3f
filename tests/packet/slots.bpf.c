// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The functions of bpf/slots.h in a form that BPF_PROG_TEST_RUN can call, once or many times: for
 * their test and their benchmark. Arguments lie in `ask`, which both can map.
 */
#include "slots.h"
#include "lib/slots_ask.h"

struct ask ask;

/* What the callers hold, counted apart from the rows: more than a cap there is one too many. */
__u32 holding[SW_MAX_WORKERS];
__u64 picked[SW_MAX_WORKERS];
__u32 filled, drained; /* rows that fill and drain are done with */
struct hammering hammering[ASK_CPUS];

SEC("tc") int empty(struct __sk_buff *skb)
{
	(void)skb;
	return 0;
}

SEC("tc") int call(struct __sk_buff *skb)
{
	(void)skb;
	switch (ask.function) {
	case ASK_PICK: return slot_pick(ask.pool, ask.how);
	case ASK_ROOM: return slot_room(ask.pool, ask.how);
	case ASK_ANY: return slot_any(ask.pool);
	case ASK_TAKE: return slot_take(ask.id);
	case ASK_GIVE: return slot_give(ask.id);
	case ASK_UNTAKE: return slot_untake(ask.id);
	}
	return -1000;
}

SEC("tc") int pick_and_give(struct __sk_buff *skb)
{
	int id = slot_pick(ask.pool, ask.how);

	(void)skb;
	if (id < 0)
		return id;
	return slot_give(id);
}

/* Counts who is picked, and keeps what was taken if that is asked for. */
SEC("tc") int pick_and_count(struct __sk_buff *skb)
{
	int id = slot_pick(ask.pool, ask.how);

	(void)skb;
	if (id < 0)
		return id;
	picked[id % SW_MAX_WORKERS]++;
	if (!ask.keep)
		slot_give(id);
	return id;
}

static __always_inline void take_one(struct hammering *h)
{
	int id = slot_pick(ask.pool, ask.how);
	__u32 at = h->held;

	if (id < 0) {
		h->refused++;
		return;
	}
	h->takes++;
	id %= SW_MAX_WORKERS;
	if (__sync_fetch_and_add(&holding[id], 1) >= ask.cap)
		h->too_many++;
	h->id[at % ASK_HELD] = id;
	h->held = at + 1;
}

static __always_inline void give_one(struct hammering *h, __u32 random)
{
	__u32 last = h->held - 1, at = (random & 0xffff) * h->held >> 16, id;

	id = h->id[at % ASK_HELD] % SW_MAX_WORKERS;
	h->id[at % ASK_HELD] = h->id[last % ASK_HELD];
	h->held = last;
	__sync_fetch_and_sub(&holding[id], 1);
	slot_give(id);
}

/* Takes, and one time in four gives, as chance will have it, with at most `ask.hold` held by a CPU;
 * with `ask.function` ASK_GIVE it only gives. */
SEC("tc") int hammer(struct __sk_buff *skb)
{
	struct hammering *h = &hammering[bpf_get_smp_processor_id() % ASK_CPUS];
	__u32 random = bpf_get_prandom_u32();

	(void)skb;
	if (ask.function == ASK_GIVE) {
		if (h->held)
			give_one(h, random);
	} else if (h->held < ask.hold && (!h->held || random >> 30)) {
		take_one(h);
	} else if (h->held) {
		give_one(h, random);
	}
	return 0;
}

/* One CPU takes the last slot of row after row ... */
SEC("tc") int fill(struct __sk_buff *skb)
{
	(void)skb;
	if (filled < SW_MAX_WORKERS)
		slot_take(filled++);
	return 0;
}

/* ... and another gives one back as soon as it sees that. */
SEC("tc") int drain(struct __sk_buff *skb)
{
	struct sw_slot *slot;
	__u32 id = drained, i;

	(void)skb;
	slot = bpf_map_lookup_elem(&slots, &id);
	for (i = 0; slot && i < 1000; i++) {
		if (LATEST(slot->inuse) < ask.cap)
			continue;
		drained++;
		slot_give(id);
		break;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
