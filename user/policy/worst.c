// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The worst of what several sources tell of one rank; see worst.h. */
#include "policy/check.h"
#include "policy/worst.h"

#define BLOCKS (SW_BIT(SW_SIG_DECODE_BLOCKS) | SW_BIT(SW_SIG_KV_USED))

void sw_told_note(struct sw_told *t, const struct sw_report *r, uint64_t now_ms)
{
	for (int s = 0; s < SW_SIGNALS; s++) {
		if (!(r->have & SW_BIT(s)))
			continue;
		t->value[s] = r->value[s];
		t->at_ms[s] = now_ms;
	}
	t->have |= r->have;
}

struct sources {
	const struct sw_told *const *told;
	size_t n;
	uint32_t stale_after_ms;
	uint64_t now_ms;
};

static bool is_live(const struct sources *all, size_t i, enum sw_signal signal)
{
	const struct sw_told *t = all->told[i];

	return t && (t->have & SW_BIT(signal)) &&
	       sw_age(t->at_ms[signal], all->now_ms) <= all->stale_after_ms;
}

static uint64_t largest_total(const struct sources *all)
{
	uint64_t total = 0;

	for (size_t i = 0; i < all->n; i++)
		if (is_live(all, i, SW_SIG_KV_TOTAL) &&
		    all->told[i]->value[SW_SIG_KV_TOTAL] > total)
			total = all->told[i]->value[SW_SIG_KV_TOTAL];
	return total;
}

/* Rounded up: no less full than it was told. */
static uint64_t scale(uint64_t used, uint64_t own_total, uint64_t total)
{
	unsigned __int128 scaled = ((unsigned __int128)used * total + own_total - 1) / own_total;

	return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

static uint64_t value_of(const struct sources *all, size_t i, enum sw_signal signal, uint64_t total)
{
	const struct sw_told *t = all->told[i];
	uint64_t own = is_live(all, i, SW_SIG_KV_TOTAL) ? t->value[SW_SIG_KV_TOTAL] : 0;

	if (!(SW_BIT(signal) & BLOCKS) || !own || own == total)
		return t->value[signal];
	return scale(t->value[signal], own, total);
}

static uint64_t worst_of(const struct sources *all, enum sw_signal signal, uint64_t total)
{
	uint64_t worst = 0;
	bool any = false;

	for (size_t i = 0; i < all->n; i++) {
		uint64_t value;

		if (!is_live(all, i, signal))
			continue;
		value = value_of(all, i, signal, total);
		if (!any || (signal == SW_SIG_MAX_BATCHED ? value < worst : value > worst))
			worst = value;
		any = true;
	}
	return worst;
}

struct sw_report sw_worst(const struct sw_told *const *told, size_t n, const struct sw_report *r,
			  uint32_t stale_after_ms, uint64_t now_ms)
{
	const struct sources all = {told, n, stale_after_ms, now_ms};
	struct sw_report out = *r;
	uint64_t total;
	size_t some = 0;

	for (size_t i = 0; i < n; i++)
		some += told[i] != NULL;
	if (some < 2)
		return out;
	total = largest_total(&all);
	if (total && (out.have & BLOCKS))
		out.have |= SW_BIT(SW_SIG_KV_TOTAL);
	for (int s = 0; s < SW_SIGNALS; s++)
		if (out.have & SW_BIT(s))
			out.value[s] = worst_of(&all, s, total);
	return out;
}
