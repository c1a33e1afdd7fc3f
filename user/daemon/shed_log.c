// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Spells of shedding: a line in the log when one begins, each minute while it lasts, and when it
 * has ended, with how many requests by reason and where most of them came from. Tells those who
 * follow events what was left out of them. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "control/hub.h"
#include "control/json.h"
#include "control/totals.h"
#include "daemon/shed.h"
#include "daemon/steering.h"

#define QUIET_MS 5000 /* without a request that is shed: the spell is over */
#define AGAIN_MS 60000

/* ---- where they come from ----------------------------------------------------------------- */

/* Misra and Gries: whoever has more than one in SW_SOURCES + 1 of all is in the list at the end. */
void sw_sources_add(struct sw_sources *s, const uint8_t prefix[16])
{
	size_t unused = SW_SOURCES;

	for (size_t i = 0; i < SW_SOURCES; i++) {
		if (s->list[i].n && !memcmp(s->list[i].prefix, prefix, 16)) {
			s->list[i].n++;
			return;
		}
		if (!s->list[i].n)
			unused = i;
	}
	if (unused < SW_SOURCES) {
		memcpy(s->list[unused].prefix, prefix, 16);
		s->list[unused].n = 1;
		return;
	}
	for (size_t i = 0; i < SW_SOURCES; i++)
		s->list[i].n--;
}

void sw_source_text(const uint8_t prefix[16], char *out, size_t size)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)prefix);
	char text[INET6_ADDRSTRLEN];

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? prefix + 12 : prefix, text, sizeof(text));
	snprintf(out, size, "%s/%d", text, v4 ? 24 : 64);
}

/* ", most from 192.0.2.0/24", or nothing when no source stands out. */
static void say_source(struct sw_sources *s, char *out, size_t size)
{
	size_t best = 0;
	char text[64];

	for (size_t i = 1; i < SW_SOURCES; i++)
		if (s->list[i].n > s->list[best].n)
			best = i;
	*out = '\0';
	if (s->list[best].n) {
		sw_source_text(s->list[best].prefix, text, sizeof(text));
		snprintf(out, size, ", most from %s", text);
	}
	memset(s, 0, sizeof(*s));
}

/* ---- the list of spells ------------------------------------------------------------------- */

struct sw_spell *sw_spell_of(struct sw_shed *s, const char *pool)
{
	struct sw_spell *list;
	char *name;

	for (size_t i = 0; i < s->n_spells; i++)
		if (!strcmp(s->spells[i].pool, pool))
			return &s->spells[i];
	list = realloc(s->spells, (s->n_spells + 1) * sizeof(*list));
	if (!list)
		return NULL;
	s->spells = list;
	name = strdup(pool);
	if (!name)
		return NULL;
	list[s->n_spells] = (struct sw_spell){.pool = name};
	return &list[s->n_spells++];
}

/* ---- lines -------------------------------------------------------------------------------- */

static uint64_t sum(const uint64_t ways[SW_SHED_WAYS])
{
	uint64_t n = 0;

	for (int i = 0; i < SW_SHED_WAYS; i++)
		n += ways[i];
	return n;
}

/* "12 requests (saturated 10, no-slots 2)" */
static void say_counts(const uint64_t ways[SW_SHED_WAYS], char *out, size_t size)
{
	static const char *const names[SW_SHED_WAYS] = {
		"saturated", "no-slots", "draining", "unavailable", "no-handover", "not steered"};
	uint64_t all = sum(ways);
	size_t n = (size_t)snprintf(out, size, "%" PRIu64 " request%s (", all, all == 1 ? "" : "s");
	const char *comma = "";

	for (int i = 0; i < SW_SHED_WAYS; i++) {
		if (!ways[i] || n >= size)
			continue;
		n += (size_t)snprintf(out + n, size - n, "%s%s %" PRIu64, comma, names[i], ways[i]);
		comma = ", ";
	}
	if (n < size)
		snprintf(out + n, size - n, ")");
}

static void say_begin(struct sw_spell *p, uint64_t now_ms)
{
	char counts[192], source[96];

	say_counts(p->all, counts, sizeof(counts));
	say_source(&p->sources, source, sizeof(source));
	sw_log(SW_INFO, "pool %s: shedding has begun: %s%s", p->pool, counts, source);
	memset(p->lately, 0, sizeof(p->lately));
	p->said_ms = now_ms;
}

static void say_on(struct sw_spell *p, uint64_t now_ms)
{
	char counts[192], source[96];

	say_counts(p->lately, counts, sizeof(counts));
	say_source(&p->sources, source, sizeof(source));
	sw_log(SW_INFO,
	       "pool %s: shedding goes on: %s in the last %.0f s%s; %" PRIu64 " in %.0f s in all",
	       p->pool, counts, (double)(now_ms - p->said_ms) / 1e3, source, sum(p->all),
	       (double)(now_ms - p->since_ms) / 1e3);
	memset(p->lately, 0, sizeof(p->lately));
	p->said_ms = now_ms;
}

static void say_end(struct sw_spell *p)
{
	char counts[192];

	say_counts(p->all, counts, sizeof(counts));
	sw_log(SW_INFO, "pool %s: shedding has ended: %s in %.0f s", p->pool, counts,
	       (double)(p->last_ms - p->since_ms) / 1e3);
	memset(p->all, 0, sizeof(p->all));
	p->since_ms = 0;
}

/* ---- what was shed ------------------------------------------------------------------------ */

/* Nothing has to be counted of a pool that is open. */
static bool may_shed(const struct sw_live *live, size_t pool)
{
	if (live->steer && !sw_pool_is_plain(&live->pools[pool]))
		return true;
	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane && live->planes[i].gates[pool].gate.mode != SW_MODE_OPEN)
			return true;
	return false;
}

/* In all, over the pool's listeners and what was not steered. */
static void count(const struct sw_live *live, size_t pool, uint64_t ways[SW_SHED_WAYS],
		  uint64_t *untold)
{
	struct sw_steer_counts steered = {0};

	for (size_t i = 0; i < live->conf->n_listeners; i++) {
		struct sw_totals t;

		if (live->conf->listeners[i].pool != pool)
			continue;
		sw_totals_read(live, i, &t);
		for (unsigned w = 0; w <= SW_SHED_NO_HANDOVER; w++)
			ways[w] += sw_count(&t.packets.xdp, SW_R_shed_saturated + w) +
				   sw_count(&t.packets.tc, SW_R_shed_saturated + w) +
				   sw_count(&t.packets.keep, SW_R_shed_saturated + w);
		*untold += t.packets.shed.untold;
	}
	if (live->steer && !sw_steer_counts(live->steer, (unsigned)pool, &steered))
		ways[SW_SHED_STEERED] = steered.answered + steered.refused;
}

static void tell_dropped(const struct sw_live *live, const struct sw_spell *p, uint64_t n)
{
	if (n && sw_hub_followed(live->hub))
		sw_hub_send(live->hub, "dropped",
			    json_pack("{s:I, s:o, s:I}", "time_ms", (json_int_t)sw_unix_ms(),
				      "pool", sw_json_text(p->pool), "count", (json_int_t)n));
}

static void advance(struct sw_spell *p, const uint64_t now[SW_SHED_WAYS], uint64_t now_ms)
{
	uint64_t more = 0;

	for (int i = 0; i < SW_SHED_WAYS; i++) {
		uint64_t n = now[i] > p->seen[i] ? now[i] - p->seen[i] : 0;

		p->seen[i] = now[i];
		p->all[i] += n;
		p->lately[i] += n;
		more += n;
	}
	if (more)
		p->last_ms = now_ms;
	if (more && !p->since_ms) {
		p->since_ms = now_ms;
		say_begin(p, now_ms);
	} else if (p->since_ms && now_ms - p->last_ms >= QUIET_MS) {
		say_end(p);
	} else if (p->since_ms && now_ms - p->said_ms >= AGAIN_MS) {
		say_on(p, now_ms);
	}
}

static void look(struct sw_shed *s, size_t pool, uint64_t now_ms)
{
	struct sw_spell *p = sw_spell_of(s, s->live->pools[pool].conf->name);
	uint64_t now[SW_SHED_WAYS] = {0}, untold = 0;

	if (!p || (p->known && !p->since_ms && !may_shed(s->live, pool)))
		return;
	count(s->live, pool, now, &untold);
	if (!p->known) {
		memcpy(p->seen, now, sizeof(now));
		p->untold = untold;
		p->known = true;
	}
	tell_dropped(s->live, p, untold - p->untold + p->own_untold);
	p->untold = untold;
	p->own_untold = 0;
	advance(p, now, now_ms);
}

/* Of pools that are not configured any more. */
static void forget_others(struct sw_shed *s)
{
	for (size_t i = s->n_spells; i-- > 0;) {
		if (sw_live_find_pool(s->live, s->spells[i].pool))
			continue;
		if (s->spells[i].since_ms)
			say_end(&s->spells[i]);
		free(s->spells[i].pool);
		s->spells[i] = s->spells[--s->n_spells];
	}
}

void sw_spells_look(struct sw_shed *s, uint64_t now_ms)
{
	for (size_t i = 0; i < s->live->n_pools; i++)
		look(s, i, now_ms);
	forget_others(s);
}

void sw_spells_free(struct sw_shed *s)
{
	for (size_t i = 0; i < s->n_spells; i++) {
		if (s->spells[i].since_ms)
			say_end(&s->spells[i]);
		free(s->spells[i].pool);
	}
	free(s->spells);
}
