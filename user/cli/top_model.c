// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the daemon's answers to what `spillway top` shows. An answer may lack any field, or have
 * another type in it: that is then not known. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top.h"

#define WINDOW_S 120 /* of sparklines, at least */

static double number_of(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* ---- thresholds -------------------------------------------------------------------------- */

static size_t limit_index(struct top_model *m, const char *name)
{
	size_t i = 0;

	while (i < m->n_limits && strcmp(m->limits[i], name))
		i++;
	if (i == m->n_limits && i < TOP_LIMITS)
		m->limits[m->n_limits++] = name;
	return i;
}

static enum top_verdict verdict_of(const char *state)
{
	if (!strcmp(state, "over"))
		return TOP_OVER;
	if (!strcmp(state, "inert"))
		return TOP_INERT;
	return strcmp(state, "stale") ? TOP_CLEAR : TOP_STALE;
}

static double load_of(const struct top_check *c)
{
	double load = c->threshold > 0 ? c->measured / c->threshold : 0;

	if (c->verdict == TOP_OVER)
		return load > 1 ? load : 1;
	return c->verdict == TOP_CLEAR && !isnan(load) ? load : -1;
}

static void add_checks(struct top_model *m, struct top_worker *w, int rank, const json_t *checks)
{
	size_t i;
	json_t *j;

	json_array_foreach (checks, i, j) {
		struct top_check *c = &w->checks[w->n_checks];

		*c = (struct top_check){.limit = limit_index(m, cli_text(j, "limit")),
					.rank = rank,
					.measured = number_of(j, "measured"),
					.threshold = number_of(j, "threshold"),
					.verdict = verdict_of(cli_text(j, "state"))};
		c->load = load_of(c);
		w->inert |= c->verdict == TOP_INERT;
		if (c->limit < TOP_LIMITS)
			w->n_checks++;
	}
}

static size_t count_checks(const json_t *worker)
{
	size_t i, n = json_array_size(cli_list(worker, "checks"));
	json_t *r;

	json_array_foreach (cli_list(worker, "ranks"), i, r)
		n += json_array_size(cli_list(r, "checks"));
	return n;
}

static int read_checks(struct top_model *m, struct top_worker *w)
{
	size_t i;
	json_t *r;

	w->checks = calloc(count_checks(w->json) + 1, sizeof(*w->checks));
	if (!w->checks)
		return -ENOMEM;
	json_array_foreach (cli_list(w->json, "ranks"), i, r) {
		w->ranks++;
		w->ranks_busy += cli_true(r, "busy");
		add_checks(m, w, (int)cli_int(r, "rank"), cli_list(r, "checks"));
	}
	add_checks(m, w, -1, cli_list(w->json, "checks"));
	w->load = -1;
	for (i = 0; i < w->n_checks; i++) {
		const struct top_check *c = &w->checks[i], **shown = &w->shown[c->limit];

		if (!*shown || c->load < (*shown)->load)
			*shown = c;
	}
	for (i = 0; i < TOP_LIMITS; i++)
		if (w->shown[i] && w->shown[i]->load > w->load)
			w->load = w->shown[i]->load;
	return 0;
}

/* ---- workers and pools ------------------------------------------------------------------- */

static struct top_slots read_slots(const json_t *slots)
{
	return (struct top_slots){.counted = json_is_object(slots),
				  .inuse = number_of(slots, "inuse"),
				  .cap = number_of(slots, "cap"),
				  .engine = (double)cli_int(slots, "engine_limit"),
				  .queued = (double)cli_int(slots, "queue_limit")};
}

static double slots_load(const struct top_slots *s)
{
	if (!s->counted || isnan(s->cap))
		return -1;
	return s->cap > 0 ? s->inuse / s->cap : 1;
}

static int read_worker(struct top_model *m, struct top_pool *p, const json_t *j)
{
	struct top_worker *w = &p->workers[p->n_workers++];
	int err;

	*w = (struct top_worker){.json = j,
				 .pool = p,
				 .name = cli_text(j, "name"),
				 .error = cli_text(j, "error"),
				 .busy = cli_true(j, "busy"),
				 .suspect = cli_true(j, "suspect"),
				 .drain = cli_true(j, "drain"),
				 .stale = cli_true(j, "stale"),
				 .unknown = json_is_null(json_object_get(j, "age_ms")),
				 .slots = read_slots(json_object_get(j, "slots"))};
	err = read_checks(m, w);
	w->slots_load = slots_load(&w->slots);
	if (w->slots_load > w->load)
		w->load = w->slots_load;
	p->n_busy += w->busy;
	p->n_stale += w->stale;
	p->n_drained += w->drain;
	for (size_t i = 0; i < TOP_LIMITS; i++)
		p->limits |= w->shown[i] ? 1U << i : 0;
	if (w->load > p->load)
		p->load = w->load;
	return err;
}

static int read_pool(struct top_model *m, const json_t *j)
{
	const json_t *workers = cli_list(j, "workers");
	struct top_pool *p = &m->pools[m->n_pools++];
	json_t *w;
	size_t i;
	int err = 0;

	*p = (struct top_pool){.json = j,
			       .name = cli_text(j, "name"),
			       .state = cli_text(j, "state"),
			       .load = -1,
			       .slots = read_slots(json_object_get(j, "slots"))};
	p->workers = calloc(json_array_size(workers) + 1, sizeof(*p->workers));
	if (!p->workers)
		return -ENOMEM;
	json_array_foreach (workers, i, w) {
		err = read_worker(m, p, w);
		if (err)
			return err;
	}
	m->n_workers += p->n_workers;
	m->n_busy += p->n_busy;
	m->n_stale += p->n_stale;
	return 0;
}

/* ---- history ----------------------------------------------------------------------------- */

/* The last values of a list, and of each a sum over all pools. */
static void read_series(const json_t *list, double seconds, struct top_series *s,
			struct top_series *sum)
{
	const size_t have = json_array_size(list);

	s->n = have < TOP_SECONDS ? have : TOP_SECONDS;
	if (s->n > sum->n) { /* they end at the same time */
		memmove(sum->value + s->n - sum->n, sum->value, sum->n * sizeof(*sum->value));
		memset(sum->value, 0, (s->n - sum->n) * sizeof(*sum->value));
		sum->n = s->n;
	}
	for (size_t i = 0; i < s->n; i++) {
		const json_t *v = json_array_get(list, have - s->n + i);

		s->value[i] = json_number_value(v) / seconds;
		sum->value[sum->n - s->n + i] += s->value[i];
	}
}

static void read_history(struct top_model *m)
{
	const double period_ms = number_of(m->history, "period_ms");
	const double seconds = period_ms > 0 ? period_ms / 1e3 : 1;
	size_t i, j;
	json_t *h;

	json_array_foreach (cli_list(m->history, "pools"), i, h)
		for (j = 0; j < m->n_pools; j++) {
			struct top_pool *p = &m->pools[j];

			if (strcmp(p->name, cli_text(h, "name")))
				continue;
			read_series(cli_list(h, "shed"), seconds, &p->shed, &m->shed);
			read_series(cli_list(h, "admitted"), seconds, &p->admitted, &m->admitted);
			break;
		}
}

size_t top_per_column(int columns)
{
	return columns > 0 ? (size_t)((WINDOW_S + columns - 1) / columns) : WINDOW_S;
}

double top_rate(const struct top_series *s)
{
	return s->n ? s->value[s->n - 1] : NAN;
}

/* ---- all of it --------------------------------------------------------------------------- */

static void forget(struct top_model *m)
{
	for (size_t i = 0; i < m->n_pools; i++) {
		for (size_t j = 0; j < m->pools[i].n_workers; j++)
			free(m->pools[i].workers[j].checks);
		free(m->pools[i].workers);
	}
	free(m->pools);
	json_decref(m->status);
	json_decref(m->history);
	m->pools = NULL;
	m->n_pools = m->n_workers = m->n_busy = m->n_stale = m->n_limits = 0;
	m->shed.n = m->admitted.n = 0;
}

int top_model_read(struct top_model *m, json_t *status, json_t *history)
{
	const json_t *pools = cli_list(status, "pools");
	size_t i;
	json_t *p;

	forget(m);
	m->status = status;
	m->history = history;
	m->pools = calloc(json_array_size(pools) + 1, sizeof(*m->pools));
	if (!m->pools)
		return -ENOMEM;
	json_array_foreach (pools, i, p)
		if (read_pool(m, p))
			return -ENOMEM;
	read_history(m);
	return 0;
}

void top_model_free(struct top_model *m)
{
	forget(m);
	*m = (struct top_model){0};
}
