// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the kernel keeps of workers and pools: read, and made new where an id goes to another
 * worker; see steer.h. */
#include <bpf/bpf.h>
#include <errno.h>

#include "kernel/counters.h"
#include "kernel/steer_impl.h"

static uint64_t bit(unsigned id)
{
	return 1ULL << id % 64;
}

bool sw_steer_suspect(const struct sw_steer *s, unsigned id)
{
	return id < SW_MAX_WORKERS &&
	       __atomic_load_n(&s->suspect->word[id / 64], __ATOMIC_RELAXED) & bit(id);
}

void sw_steer_clear_suspect(struct sw_steer *s, unsigned id)
{
	if (id < SW_MAX_WORKERS)
		__atomic_fetch_and(&s->suspect->word[id / 64], ~bit(id), __ATOMIC_SEQ_CST);
}

void sw_steer_slot(const struct sw_steer *s, unsigned id, struct sw_slot *out)
{
	static const struct sw_slot none;

	/* Each field is whole; together they may be of different moments. */
	*out = id < SW_MAX_WORKERS ? s->slots[id] : none;
}

int sw_steer_renew(struct sw_steer *s, unsigned id)
{
	struct sw_slot *slot;

	if (id >= SW_MAX_WORKERS)
		return -EINVAL;
	slot = &s->slots[id];
	if (__atomic_load_n(&slot->inuse, __ATOMIC_SEQ_CST))
		return -EBUSY;
	/* `inuse` is the kernel's, and 0 already. */
	slot->most = 0;
	slot->takes = slot->gives = slot->moves = 0;
	slot->refusals = slot->failures = slot->corrected = 0;
	sw_steer_clear_suspect(s, id);
	__atomic_fetch_or(&s->notfull->word[id / 64], bit(id), __ATOMIC_SEQ_CST);
	return 0;
}

int sw_steer_counts(const struct sw_steer *s, unsigned pool, struct sw_steer_counts *out)
{
	if (pool >= SW_MAX_POOLS)
		return -EINVAL;
	return sw_counters_sum(s->maps.counts_steer, pool, (__u64 *)out,
			       sizeof(*out) / sizeof(__u64));
}

int sw_steer_use(const struct sw_steer *s, unsigned pool, struct sw_pool_use *out)
{
	return bpf_map_lookup_elem(s->maps.pool_use, &pool, out) ? -errno : 0;
}
