// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who may be given new connections: from busy, drain and force to sets of workers and to what each
 * pool is told in the kernel. What a worker may hold is slots.c's matter. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/steering.h"

static void set(struct sw_bits *bits, int id)
{
	bits->word[id / 64] |= 1ULL << (id % 64);
}

static void clear(struct sw_bits *bits, int id)
{
	bits->word[id / 64] &= ~(1ULL << (id % 64));
}

static bool holds(const struct sw_bits *bits, int id)
{
	return bits->word[id / 64] >> (id % 64) & 1;
}

static bool is_ipv4(const uint8_t addr[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(addr, mapped, sizeof(mapped));
}

/* ---- sets of workers ---------------------------------------------------------------------- */

static struct sw_bits members_of(const struct sw_live_pool *p)
{
	struct sw_bits out = {0};

	for (size_t i = 0; i < p->n_workers; i++)
		if (p->workers[i]->id >= 0 && !p->workers[i]->drain)
			set(&out, p->workers[i]->id);
	if (p->row >= 0)
		set(&out, p->row);
	return out;
}

/* A worker in two pools is busy when one of them says so. */
static void write_sets(struct sw_live *live, uint64_t now_ms)
{
	struct sw_bits nonbusy, reach4 = {0};

	memset(&nonbusy, 0xff, sizeof(nonbusy));
	for (size_t i = 0; i < live->n_pools; i++) {
		const struct sw_live_pool *p = &live->pools[i];
		bool forced = p->force == SW_FORCE_OPEN && sw_live_forced(p, now_ms);

		for (size_t j = 0; j < p->n_workers; j++) {
			const struct sw_live_worker *w = p->workers[j];

			if (w->id < 0)
				continue;
			if (w->load.busy && !forced)
				clear(&nonbusy, w->id);
			if (is_ipv4(w->conf->at.addr))
				set(&reach4, w->id);
		}
	}
	sw_steer_set_nonbusy(live->steer, &nonbusy);
	sw_steer_set_reach4(live->steer, &reach4);
}

static bool is_listened_for(struct sw_steer *steer, unsigned pool)
{
	struct sw_steer_pool now;

	return !bpf_map_lookup_elem(sw_steer_maps(steer)->steers, &pool, &now) &&
	       now.flags & SW_SF_COUNT;
}

void sw_steer_narrow(struct sw_steering *s, const struct sw_live_pool *pools, size_t n_pools,
		     const struct sw_slots_plan *plan, bool listeners_only)
{
	struct sw_steer *steer = s->live->steer;
	const int *id = plan->ids;

	for (unsigned i = 0; i < SW_MAX_POOLS; i++) {
		size_t n = i < n_pools ? pools[i].conf->n_workers + 1 : 0;
		struct sw_bits was, is = {0}, both;

		for (size_t j = 0; j < n; j++, id++)
			if (*id >= 0)
				set(&is, *id);
		if ((listeners_only && !is_listened_for(steer, i)) ||
		    bpf_map_lookup_elem(sw_steer_maps(steer)->members, &i, &was))
			continue;
		for (unsigned w = 0; w < SW_WORDS; w++)
			both.word[w] = was.word[w] & is.word[w];
		sw_steer_set_members(steer, i, &both);
	}
}

/* ---- pools -------------------------------------------------------------------------------- */

static uint32_t flags_of(const struct sw_live_pool *p, uint64_t now_ms)
{
	const struct sw_steer_conf *conf = &p->conf->steer;
	uint32_t flags = 0;

	if (p->row >= 0) /* its gates close it, and let pass what must */
		return conf->count != SW_COUNT_REPORTS ? SW_SF_COUNT
		       : p->passing		       ? SW_SF_CREDIT
						       : SW_SF_COUNT | SW_SF_CREDIT;
	if (conf->by == SW_STEER_NONE)
		return 0;
	if (conf->by == SW_STEER_LOCAL)
		flags |= SW_SF_COUNT | SW_SF_ASSIGN;
	if (conf->by == SW_STEER_CONNECT && conf->refuse)
		flags |= SW_SF_REFUSE;
	if (p->drain || (p->force == SW_FORCE_SATURATED && sw_live_forced(p, now_ms)))
		flags |= SW_SF_CLOSED;
	return flags;
}

static uint16_t responder_of(const struct sw_steering *s, const struct sw_live_pool *p)
{
	const struct sw_overflow *o;

	if (p->conf->steer.by != SW_STEER_CONNECT)
		return 0; /* its planes have the socket itself */
	o = sw_overflow_find(&s->overflows, p->conf->name, p->conf->steer.netns);
	return o && o->responder ? sw_responder_port(o->responder) : 0;
}

static struct sw_steer_pool told(const struct sw_steering *s, const struct sw_live_pool *p,
				 const struct sw_bits *members, uint64_t now_ns)
{
	unsigned first = 0, end = SW_WORDS;
	struct sw_steer_pool out = {
		.flags = flags_of(p, now_ns / 1000000),
		.error = (uint32_t)p->conf->steer.error,
		.half_open = sw_slots_half_open(p->cap),
		.responder = responder_of(s, p),
		.deadline_ns = now_ns + s->live->conf->deadline_ms * 1000000ULL,
	};

	while (first < end && !members->word[first])
		first++;
	while (end > first && !members->word[end - 1])
		end--;
	out.first = (uint16_t)first;
	out.words = (uint16_t)(end - first);
	return out;
}

/* Is there no member with a free slot? */
static bool is_full(const struct sw_steering *s, const struct sw_bits *members)
{
	bool any = false;

	for (int id = 0; id < SW_MAX_WORKERS; id++) {
		struct sw_slot slot;

		if (!holds(members, id))
			continue;
		sw_steer_slot(s->live->steer, (unsigned)id, &slot);
		if ((int32_t)(s->rows[id].cap - slot.inuse) > 0)
			return false;
		any = true;
	}
	return any;
}

static void write_pool(struct sw_steering *s, struct sw_live_pool *p, uint64_t now_ns)
{
	unsigned index = (unsigned)(p - p->live->pools);
	struct sw_bits members = members_of(p);

	p->full = is_full(s, &members);
	p->steer = told(s, p, &members, now_ns);
	sw_steer_set_members(p->live->steer, index, &members);
	sw_steer_set_pool(p->live->steer, index, &p->steer);
}

void sw_steer_write(struct sw_steering *s)
{
	struct sw_live *live = s->live;
	uint64_t now_ns = sw_now_ns();

	write_sets(live, now_ns / 1000000);
	for (size_t i = 0; i < live->n_pools; i++)
		write_pool(s, &live->pools[i], now_ns);
}

void sw_steer_clear(struct sw_steering *s)
{
	const struct sw_bits nobody = {0};
	const struct sw_steer_pool nothing = {0};
	struct sw_live *live = s->live;

	for (size_t i = live->n_pools; i < SW_MAX_POOLS; i++) {
		sw_steer_set_members(live->steer, (unsigned)i, &nobody);
		sw_steer_set_pool(live->steer, (unsigned)i, &nothing);
	}
}

void sw_steering_apply(struct sw_live_pool *p)
{
	struct sw_steering *s = p->live->steering;
	uint64_t now_ns = sw_now_ns();

	/* while a configuration changes, all is written at its end */
	if (!p->live->steer || !s->settled || sw_pool_is_plain(p))
		return;
	sw_slots_credit(s, p, now_ns / 1000000);
	write_sets(p->live, now_ns / 1000000);
	write_pool(s, p, now_ns);
}

void sw_steering_report(struct sw_live_worker *w)
{
	const struct sw_live *live = w->pool->live;

	if (live->steer && live->steering->settled)
		sw_slots_credit_worker(live->steering, w, sw_now_ms());
}

void sw_steer_farewell(struct sw_steering *s)
{
	struct sw_live *live = s->live;

	for (size_t i = 0; i < live->n_pools; i++) {
		struct sw_steer_pool last = live->pools[i].steer;

		last.flags &= ~SW_SF_CLOSED;
		last.deadline_ns = 1;
		last.responder = 0;
		sw_steer_set_pool(live->steer, (unsigned)i, &last);
	}
}
