// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The reader of the engines' pages, see engine.h. What a page holds is tallied rank by rank first
 * and turned into reports at the end, since series come in any order. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sources/custom.h"
#include "sources/engine_fail.h"

#define KV_SCALE 10000 /* blocks that a KV ratio is spread over when the total is not known */
#define SEEN	 512   /* series of a page that are known again when they are repeated */
#define TRIES	 8

struct tally { /* what the page says of one rank */
	uint32_t rank;
	uint32_t have; /* bit (1 << enum sw_field) */
	double field[SW_FIELDS];
};

struct page {
	const struct sw_engine_kind *kind;
	const struct sw_engine_hints *hints;
	char worker[24]; /* the worker's id, as a label has it */
	uint64_t names;	 /* bits of those that the kind's series have */
	struct tally ranks[SW_MAX_RANKS];
	size_t n;
	struct tally unlabelled; /* series without a rank */
	struct tally model;	 /* series of the worker's model */
	struct tally other;	 /* and of another one, */
	char other_name[128];	 /* which counts where it is the only one */
	bool several;
	unsigned samples;
	struct {
		const char *text; /* name and labels, in the page */
		size_t length;
	} seen[SEEN]; /* a hash table */
};

const char *sw_engine_name(enum sw_engine e)
{
	return sw_engine_kinds[e].name;
}

int sw_engine_parse(const char *name, enum sw_engine *out)
{
	for (int e = 0; e < SW_ENGINES; e++) {
		if (!strcmp(name, sw_engine_kinds[e].name)) {
			*out = e;
			return 0;
		}
	}
	return -EINVAL;
}

/* ---- samples to tallies ---- */

/* The tally of the sample's rank. NULL: the page holds more ranks than a worker may have. */
static struct tally *find_rank(struct page *p, const struct sw_sample *s)
{
	const char *label = p->kind->rank;
	char text[16], *stop;
	unsigned long rank;

	if (!label || sw_sample_label(s, label, text, sizeof(text)) || *text < '0' || *text > '9')
		return &p->unlabelled;
	rank = strtoul(text, &stop, 10);
	if (*stop || rank > UINT32_MAX)
		return &p->unlabelled;
	for (size_t i = 0; i < p->n; i++)
		if (p->ranks[i].rank == rank)
			return &p->ranks[i];
	if (p->n == SW_MAX_RANKS)
		return NULL;
	p->ranks[p->n] = (struct tally){.rank = rank};
	return &p->ranks[p->n++];
}

/* Models are called by the same name in any case of letters. */
static struct tally *find_model(struct page *p, const struct sw_sample *s)
{
	char name[sizeof(p->other_name)];

	sw_sample_label(s, "model", name, sizeof(name));
	if (p->hints->model && !strcasecmp(name, p->hints->model))
		return &p->model;
	if (!p->other.have)
		memcpy(p->other_name, name, sizeof(name));
	p->several |= strcasecmp(p->other_name, name) != 0;
	return &p->other;
}

/* NULL: the sample is not about this worker. */
static struct tally *find_tally(struct page *p, const struct sw_series *series,
				const struct sw_sample *s)
{
	char id[sizeof(p->worker)];

	switch (series->of) {
	case SW_OF_MODEL: return find_model(p, s);
	case SW_OF_WORKER:
		if (sw_sample_label(s, "worker_id", id, sizeof(id)) || !*id ||
		    strcmp(id, p->worker))
			return NULL;
		/* fallthrough */
	default: return find_rank(p, s);
	}
}

static bool is_count(enum sw_field f)
{
	return f == SW_FIELD_RUNNING || f == SW_FIELD_WAITING || f == SW_FIELD_PREFILL ||
	       f == SW_FIELD_QUEUED;
}

/* Counts of several series add up, and NaN among them makes the sum NaN: a sum with an unknown part
 * is unknown. Of ratios and sizes the largest counts, and fmax() passes over NaN. */
static void add(struct tally *t, enum sw_field f, double number, bool sum)
{
	if (!(t->have & (1u << f)))
		t->field[f] = number;
	else if (sum)
		t->field[f] += number;
	else
		t->field[f] = fmax(t->field[f], number);
	t->have |= 1u << f;
}

static double number_of(const struct sw_series *series, const struct sw_sample *s)
{
	char text[64];
	double number;

	if (!series->number)
		return s->value;
	sw_sample_label(s, series->number, text, sizeof(text));
	/* vLLM writes "None" before it has measured */
	return sw_prom_number(text, strlen(text), &number) ? number : NAN;
}

/* Is the series on the page already, to the letter? */
static bool is_repeated(struct page *p, const struct sw_sample *s)
{
	size_t length = s->labels + s->labels_length - s->name;
	uint32_t at = 0;

	for (size_t i = 0; i < length; i++)
		at = (at ^ (uint8_t)s->name[i]) * 0x01000193;
	for (int i = 0; i < TRIES; i++, at++) {
		const char **text = &p->seen[at % SEEN].text;
		size_t *known = &p->seen[at % SEEN].length;

		if (!*text) {
			*text = s->name;
			*known = length;
			return false;
		}
		if (*known == length && !memcmp(*text, s->name, length))
			return true;
	}
	return false;
}

/* A bit that names share only by chance: of hundreds on a page few are wanted. */
static uint64_t bit_of(const char *name, size_t length)
{
	return 1ULL << (length * 5 + name[length - 1]) % 64;
}

/* False: it is said twice how much that is. */
static bool tally_sample(struct page *p, const struct sw_sample *s)
{
	const struct sw_engine_kind *kind = p->kind;
	bool new = false;
	char part[2];

	p->samples++;
	if (!(p->names & bit_of(s->name, s->name_length)))
		return true;
	for (size_t i = 0; i < kind->n; i++) {
		const struct sw_series *series = &kind->series[i];
		struct tally *t;

		if (!sw_selector_takes(&series->at, s))
			continue;
		if (kind->part && (sw_sample_label(s, kind->part, part, sizeof(part)) || *part))
			continue;
		t = find_tally(p, series, s);
		if (!t)
			continue;
		if (!new && !kind->replicated && is_repeated(p, s))
			return false;
		new = true;
		add(t, series->field, number_of(series, s),
		    is_count(series->field) && !kind->replicated);
	}
	return true;
}

/* What is said of the model holds for its worker. */
static void spread_model(struct page *p)
{
	const struct tally *t = p->model.have || p->several ? &p->model : &p->other;

	for (int f = 0; f < SW_FIELDS; f++)
		if (t->have & (1u << f))
			add(&p->unlabelled, f, t->field[f], false);
}

/* Where ranks have labels, what a series without one says holds for each of them, except counts,
 * which nobody can split. */
static void spread_unlabelled(struct page *p)
{
	if (!p->n) {
		p->ranks[p->n++] = p->unlabelled;
		return;
	}
	for (size_t i = 0; i < p->n; i++)
		for (int f = 0; f < SW_FIELDS; f++)
			if (!is_count(f) && p->unlabelled.have & ~p->ranks[i].have & (1u << f))
				add(&p->ranks[i], f, p->unlabelled.field[f], false);
}

/* ---- tallies to reports ---- */

static double get(const struct tally *t, enum sw_field f)
{
	return t->have & (1u << f) ? t->field[f] : NAN;
}

/* Takes a number over as a whole one. What cannot be one (NaN, infinite, negative, beyond 2^53)
 * stays absent. */
static void set(struct sw_report *r, enum sw_signal signal, double number)
{
	if (!(number >= 0 && number <= 0x1p53))
		return;
	r->have |= 1u << signal;
	r->value[signal] = llround(number);
}

static double known(double first, uint64_t hint)
{
	if (first >= 1)
		return round(first);
	return hint ? (double)hint : NAN;
}

/* False: nothing in it is load. */
static bool fill_report(struct sw_report *r, const struct tally *t,
			const struct sw_engine_hints *hints)
{
	double page_size = get(t, SW_FIELD_PAGE), ratio = get(t, SW_FIELD_RATIO);
	double total =
		known(get(t, SW_FIELD_TOTAL) / (page_size >= 1 ? page_size : 1), hints->kv_total);

	*r = (struct sw_report){.rank = t->rank};
	set(r, SW_SIG_RUNNING, get(t, SW_FIELD_RUNNING));
	set(r, SW_SIG_WAITING, get(t, SW_FIELD_WAITING));
	set(r, SW_SIG_PREFILL_TOKENS, get(t, SW_FIELD_PREFILL));
	set(r, SW_SIG_QUEUED_TOKENS, get(t, SW_FIELD_QUEUED));
	set(r, SW_SIG_DECODE_BLOCKS, get(t, SW_FIELD_DECODE));
	if (ratio >= 0 && isnan(total))
		total = KV_SCALE;
	set(r, SW_SIG_KV_USED, isnan(ratio) ? get(t, SW_FIELD_USED) : ratio * total);
	if (!r->have)
		return false;
	set(r, SW_SIG_KV_TOTAL, total);
	set(r, SW_SIG_MAX_BATCHED, known(get(t, SW_FIELD_BATCHED), hints->max_batched));
	return true;
}

/* ---- a page that is read ---- */

static struct page begin(enum sw_engine e, const struct sw_engine_hints *hints)
{
	struct page page = {.kind = &sw_engine_kinds[e], .hints = hints};

	if (e == SW_ENGINE_CUSTOM)
		page.kind = sw_custom_kind(hints->custom);
	if (hints->has_worker_id)
		snprintf(page.worker, sizeof(page.worker), "%" PRIu64, hints->worker_id);
	for (size_t i = 0; i < page.kind->n; i++) {
		const char *name = page.kind->series[i].at.name;

		page.names |= bit_of(name, strlen(name));
	}
	return page;
}

static size_t fill_reports(struct page *page, struct sw_report *out, size_t max)
{
	size_t n = 0;

	spread_model(page);
	spread_unlabelled(page);
	for (size_t i = 0; i < page->n && n < max; i++)
		n += fill_report(&out[n], &page->ranks[i], page->hints);
	return n;
}

int sw_engine_read(enum sw_engine e, const struct sw_engine_hints *hints, const char *text,
		   size_t length, struct sw_report *out, size_t max, struct sw_error *err)
{
	struct page page = begin(e, hints);
	struct sw_sample sample;
	struct sw_prom prom;
	size_t n;
	int more;

	sw_prom_init(&prom, text, length);
	while ((more = sw_prom_next(&prom, &sample)) > 0)
		if (!tally_sample(&page, &sample))
			return sw_fail(err, -EBADMSG,
				       "line %u: %.*s is on the page twice with the same labels, "
				       "so it is not known which one holds",
				       prom.line, (int)sample.name_length, sample.name);
	if (more < 0)
		return sw_engine_fail_format(e, &prom, text, length, err);
	n = fill_reports(&page, out, max);
	return n ? (int)n : sw_engine_fail_no_load(e, hints, text, length, page.samples, err);
}

/* ---- a page of many workers ---- */

struct entry {
	char worker[24]; /* whom the sample is about; "": a model */
	struct sw_sample sample;
};

struct sw_front {
	const char *text;
	size_t length;
	unsigned samples;
	struct entry *entries; /* by worker, those of each in the order of the page */
	size_t n, room;
	int ret; /* 0, or what is wrong with the page */
	struct sw_error why;
};

static int by_worker(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->worker, y->worker);

	return order ? order
		     : (x->sample.name > y->sample.name) - (x->sample.name < y->sample.name);
}

/* Adds a sample that tells something. False: no memory. */
static bool add_entry(struct sw_front *f, const struct sw_sample *s)
{
	const struct sw_engine_kind *kind = &sw_engine_kinds[SW_ENGINE_DYNAMO];
	const struct sw_series *series = kind->series, *end = series + kind->n;
	struct entry entry = {.sample = *s};

	while (series < end && !sw_selector_takes(&series->at, s))
		series++;
	if (series == end)
		return true;
	if (series->of == SW_OF_WORKER &&
	    (sw_sample_label(s, "worker_id", entry.worker, sizeof(entry.worker)) || !*entry.worker))
		return true; /* nobody's */
	if (f->n == f->room) {
		size_t room = f->room ? 2 * f->room : 256;
		struct entry *grown = reallocarray(f->entries, room, sizeof(*grown));

		if (!grown)
			return false;
		f->entries = grown;
		f->room = room;
	}
	f->entries[f->n++] = entry;
	return true;
}

struct sw_front *sw_front_new(const char *text, size_t length)
{
	struct sw_front *f = calloc(1, sizeof(*f));
	struct sw_sample sample;
	struct sw_prom prom;
	bool room = f;
	int more = 0;

	sw_prom_init(&prom, text, length);
	while (room && (more = sw_prom_next(&prom, &sample)) > 0) {
		f->samples++;
		room = add_entry(f, &sample);
	}
	if (!room) {
		sw_front_free(f);
		return NULL;
	}
	if (more < 0)
		f->ret = sw_engine_fail_format(SW_ENGINE_DYNAMO, &prom, text, length, &f->why);
	if (f->n)
		qsort(f->entries, f->n, sizeof(*f->entries), by_worker);
	f->text = text;
	f->length = length;
	return f;
}

void sw_front_free(struct sw_front *f)
{
	if (!f)
		return;
	free(f->entries);
	free(f);
}

static void tally_worker(struct page *page, const struct sw_front *f, const char *worker)
{
	size_t low = 0, high = f->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(f->entries[middle].worker, worker) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < f->n && !strcmp(f->entries[low].worker, worker); low++)
		tally_sample(page, &f->entries[low].sample);
}

int sw_front_read(const struct sw_front *f, const struct sw_engine_hints *hints,
		  struct sw_report *out, size_t max, struct sw_error *err)
{
	struct page page = begin(SW_ENGINE_DYNAMO, hints);
	size_t n;

	if (f->ret) {
		*err = f->why;
		return f->ret;
	}
	tally_worker(&page, f, "");
	if (*page.worker)
		tally_worker(&page, f, page.worker);
	n = fill_reports(&page, out, max);
	if (!n && f->n)
		return sw_engine_fail_worker(hints, err);
	return n ? (int)n
		 : sw_engine_fail_no_load(SW_ENGINE_DYNAMO, hints, f->text, f->length, f->samples,
					  err);
}
