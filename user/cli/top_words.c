// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What `spillway top` says of pools and workers, in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/top.h"

const char *top_limit_name(const char *limit)
{
	static const char *const names[][2] = {
		{"active_decode_blocks_threshold", "decode blocks"},
		{"active_prefill_tokens_threshold", "prefill tokens"},
		{"active_prefill_tokens_threshold_frac", "prefill share"},
		{"max_num_queued_reqs", "queued reqs"},
		{"max_num_queued_tokens", "queued tokens"},
		{"max_queued_requests", "queued reqs"},
		{"max_concurrent_requests", "concurrent"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(limit, names[i][0]))
			return names[i][1];
	return limit;
}

const char *top_number(double v, char out[32])
{
	static const char units[] = "kMGTPE";
	int unit = -1;

	if (isnan(v)) {
		snprintf(out, 32, "-");
		return out;
	}
	/* 999.5 of a unit would be printed as 1e+03 of it */
	for (v += 0; fabs(v) >= (unit < 0 ? 99999.5 : 999.5) && units[unit + 1]; unit++)
		v /= 1000;
	if (unit >= 0)
		snprintf(out, 32, "%.*f%c", fabs(v) < 99.95 ? 1 : 0, v, units[unit]);
	else if (fabs(v) >= 99.5 || v == floor(v))
		snprintf(out, 32, "%.0f", v);
	else
		snprintf(out, 32, "%.2g", v);
	return out;
}

/* ---- workers ----------------------------------------------------------------------------- */

enum cv_style top_flags(const struct top_worker *w, size_t room, char out[64])
{
	const bool full = w->slots.counted && w->slots.inuse >= w->slots.cap;
	const bool silent = w->unknown && w->n_checks; /* without thresholds none is missed */
	const struct {
		bool is;
		const char *name;
		enum cv_style style;
	} flags[] = {
		{w->suspect, "suspect", CV_BAD},
		{w->drain, "drain", CV_NOTE},
		{w->stale, "stale", CV_WARN},
		{w->busy, "BUSY", CV_BAD},
		{silent, "no load", CV_WARN},
		{full, "FULL", CV_BAD},
		{w->inert && !w->unknown, "inert", CV_WARN},
	};
	enum cv_style style = CV_GOOD;
	const char *first = NULL;
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!flags[i].is)
			continue;
		if (!n++) {
			first = flags[i].name;
			style = flags[i].style;
		}
		snprintf(out + strlen(out), 64 - strlen(out), "%s%s", n > 1 ? " " : "",
			 flags[i].name);
	}
	if (!n)
		snprintf(out, 64, "free");
	if (w->ranks > 1)
		snprintf(out + strlen(out), 64 - strlen(out), " %d/%d", w->ranks_busy, w->ranks);
	if (n > 1 && strlen(out) > room)
		snprintf(out, 64, "%s +%zu", first, n - 1);
	return style;
}

/* ---- pools ------------------------------------------------------------------------------- */

/* "decode blocks 9850 of 8500 on w1" */
static void name_check(const struct top_model *m, const struct top_worker *w,
		       const struct top_check *c, char *out, size_t size)
{
	char measured[32], limit[32];

	snprintf(out, size, "%s %s %s %s on %s", top_limit_name(m->limits[c->limit]),
		 top_number(c->measured, measured), c->verdict == TOP_OVER ? "over" : "of",
		 top_number(c->threshold, limit), w->name);
}

/* The check that is furthest, of busy workers if there are any. */
static bool furthest(const struct top_model *m, const struct top_pool *p, char *out, size_t size)
{
	const struct top_worker *worker = NULL;
	const struct top_check *check = NULL;

	for (size_t i = 0; i < p->n_workers; i++)
		for (size_t j = 0; j < m->n_limits; j++) {
			const struct top_check *c = p->workers[i].shown[j];

			if (c && c->load >= 0 && (!check || c->load > check->load)) {
				check = c;
				worker = &p->workers[i];
			}
		}
	if (check)
		name_check(m, worker, check, out, size);
	return check;
}

static enum cv_style measured_reason(const struct top_model *m, const struct top_pool *p,
				     char out[512])
{
	char check[320] = "", drained[48] = "";
	bool known = furthest(m, p, check, sizeof(check));

	if (p->n_drained)
		snprintf(drained, sizeof(drained), ", %zu draining", p->n_drained);
	if (p->n_busy || p->n_drained) {
		snprintf(out, 512, "%zu of %zu busy%s%s%s", p->n_busy, p->n_workers, drained,
			 known ? ": " : "", check);
		return strcmp(p->state, "open") ? CV_BAD : CV_WARN;
	}
	if (known)
		snprintf(out, 512, "highest: %s", check);
	else
		snprintf(out, 512, p->n_workers ? "no load is known" : "it has no worker");
	return known ? CV_DIM : CV_WARN;
}

static enum cv_style reason(const struct top_model *m, const struct top_pool *p, char out[512])
{
	const bool full = cli_true(json_object_get(p->json, "slots"), "full");
	const char *forced = cli_text(p->json, "forced");
	char a[32], b[32];

	if (cli_true(p->json, "drain")) {
		snprintf(out, 512, "drained by hand: new requests get 503");
		return CV_NOTE;
	}
	if (forced[0]) {
		snprintf(out, 512, "forced %s by hand, %s left", forced,
			 cli_time(json_object_get(p->json, "forced_left_ms"), a));
		return CV_NOTE;
	}
	if (!strcmp(p->state, "open") && p->slots.cap > 0 && (full || top_rate(&p->shed) > 0)) {
		snprintf(out, 512, "no free slot%s: %s of %s in use", full ? "" : " at times",
			 top_number(p->slots.inuse, a), top_number(p->slots.cap, b));
		return CV_BAD;
	}
	return measured_reason(m, p, out);
}

enum cv_style top_reason(const struct top_model *m, const struct top_pool *p, char out[512])
{
	char why[512];
	enum cv_style style = reason(m, p, why);

	snprintf(out, 512, "%s%.480s", cli_true(p->json, "observe") ? "observed only; " : "", why);
	return style;
}

/* ---- the whole daemon -------------------------------------------------------------------- */

size_t top_alarms(const struct top_model *m, char (*out)[512], size_t max)
{
	size_t i, n = 0;
	json_t *j;

	json_array_foreach (cli_list(m->status, "planes"), i, j) {
		const char *error = cli_text(j, "error"), *netns = cli_text(j, "netns");

		if ((cli_true(j, "guarded") && !error[0]) || n++ >= max)
			continue;
		snprintf(out[n - 1], 512, "%s%s %s: %s", netns[0] ? "namespace " : "host", netns,
			 cli_true(j, "guarded") ? "is guarded, but" : "IS NOT GUARDED", error);
	}
	json_array_foreach (cli_list(m->status, "sources"), i, j)
		if (!strcmp(cli_text(j, "state"), "failing") && n++ < max)
			snprintf(out[n - 1], 512, "source %s fails: %s", cli_text(j, "name"),
				 cli_text(j, "error"));
	return n;
}
