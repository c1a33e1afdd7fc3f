// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The last ten minutes of pools, second by second; see history.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "control/history.h"
#include "control/json.h"
#include "control/totals.h"
#include "control/use.h"

enum series { SHED, ADMITTED, BUSY, WORKERS, INUSE, STATE, SERIES };

static const char *const names[SERIES] = {"shed", "admitted", "busy", "workers", "inuse", "state"};

struct past {
	char *name;
	bool seen;		     /* among the pools of this second */
	struct sw_pool_totals total; /* at the last entry */
	unsigned n, next;	     /* entries, and where the next one goes */
	uint32_t of[SERIES][SW_HISTORY_SECONDS];
};

struct sw_history {
	struct past **pools;
	size_t n;
	uint64_t unix_ms; /* of the last entry */
};

struct sw_history *sw_history_new(void)
{
	return calloc(1, sizeof(struct sw_history));
}

static void free_past(struct past *p)
{
	free(p->name);
	free(p);
}

void sw_history_free(struct sw_history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		free_past(h->pools[i]);
	free(h->pools);
	free(h);
}

/* What was counted since; a counter that went back began anew. */
static uint32_t gained(uint64_t now, uint64_t before)
{
	uint64_t n = now >= before ? now - before : now;

	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static void add_entry(struct past *p, const struct sw_live_pool *pool)
{
	struct sw_pool_totals total;
	uint32_t entry[SERIES] = {[WORKERS] = (uint32_t)pool->n_workers, [STATE] = pool->state};
	struct sw_use use;

	sw_pool_totals_read(pool, &total);
	entry[SHED] = gained(total.shed, p->total.shed);
	entry[ADMITTED] = gained(total.admitted, p->total.admitted);
	p->total = total;
	for (size_t i = 0; i < pool->n_workers; i++)
		entry[BUSY] += pool->workers[i]->load.busy;
	if (sw_use_pool(pool, &use))
		entry[INUSE] = gained(use.inuse, 0);
	for (int s = 0; s < SERIES; s++)
		p->of[s][p->next] = entry[s];
	p->next = (p->next + 1) % SW_HISTORY_SECONDS;
	p->n += p->n < SW_HISTORY_SECONDS;
}

static struct past *find(const struct sw_history *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (!strcmp(h->pools[i]->name, name))
			return h->pools[i];
	return NULL;
}

/* A new pool has no past: it is counted from now on. NULL: no memory, or next second. */
static struct past *begin(struct sw_history *h, const struct sw_live_pool *pool)
{
	struct past **more = reallocarray(h->pools, h->n + 1, sizeof(*more));
	struct past *p = more ? calloc(1, sizeof(*p)) : NULL;

	if (more)
		h->pools = more;
	if (!p)
		return NULL;
	p->name = strdup(pool->conf->name);
	if (!p->name) {
		free(p);
		return NULL;
	}
	sw_pool_totals_read(pool, &p->total);
	h->pools[h->n++] = p;
	return p;
}

static void forget_unseen(struct sw_history *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->n; i++) {
		if (h->pools[i]->seen)
			h->pools[kept++] = h->pools[i];
		else
			free_past(h->pools[i]);
	}
	h->n = kept;
}

void sw_history_second(struct sw_history *h, const struct sw_live *live)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		h->pools[i]->seen = false;
	for (size_t i = 0; i < live->n_pools; i++) {
		struct past *p = find(h, live->pools[i].conf->name);

		if (!p)
			p = begin(h, &live->pools[i]);
		if (!p)
			continue;
		p->seen = true;
		add_entry(p, &live->pools[i]);
	}
	forget_unseen(h);
	h->unix_ms = sw_unix_ms();
}

static void write_series(const struct past *p, int s, struct evbuffer *out)
{
	unsigned first = (p->next + SW_HISTORY_SECONDS - p->n) % SW_HISTORY_SECONDS;

	evbuffer_add_printf(out, ",\"%s\":[", names[s]);
	for (unsigned i = 0; i < p->n; i++)
		evbuffer_add_printf(out, "%s%" PRIu32, i ? "," : "",
				    p->of[s][(first + i) % SW_HISTORY_SECONDS]);
	evbuffer_add(out, "]", 1);
}

void sw_history_write(const struct sw_history *h, struct evbuffer *out)
{
	evbuffer_add_printf(out, "{\"period_ms\":1000,\"now_ms\":%" PRIu64 ",\"pools\":[",
			    h ? h->unix_ms : sw_unix_ms());
	for (size_t i = 0; h && i < h->n; i++) {
		json_t *text = sw_json_text(h->pools[i]->name);
		char *name = json_dumps(text, JSON_ENCODE_ANY);

		evbuffer_add_printf(out, "%s{\"name\":%s", i ? "," : "", name ? name : "null");
		for (int s = 0; s < SERIES; s++)
			write_series(h->pools[i], s, out);
		evbuffer_add(out, "}", 1);
		free(name);
		json_decref(text);
	}
	evbuffer_add(out, "]}", 2);
}
