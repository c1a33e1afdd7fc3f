// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the daemon knows, as JSON; see status.h. Builds values only, sends nothing. */
#include <math.h>

#include "control/status.h"
#include "control/totals.h"

/* A measured value: null when it never arrived, an integer where it is one. */
static json_t *number(double v)
{
	if (!isfinite(v))
		return json_null();
	return v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v) : json_real(v);
}

static json_t *age(uint64_t age_ms)
{
	return age_ms == UINT64_MAX ? json_null() : json_integer((json_int_t)age_ms);
}

/* Names and error texts come from outside; what is no UTF-8 must not cost the whole status. */
static json_t *text(const char *t)
{
	json_t *out = t ? json_string(t) : json_null();

	return out ? out : json_string("(not UTF-8)");
}

static json_t *check_json(const struct sw_check *c)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s}", "limit", sw_limit_name(c->limit),
			 "signal", sw_signal_name(c->signal), "measured", number(c->measured),
			 "threshold", number(c->threshold), "age_ms", age(c->age_ms), "state",
			 sw_state_name(c->state));
}

/* Those of `checks` that belong to `rank`; -1: the worker's own. */
static json_t *checks_json(const struct sw_check *checks, size_t n, int rank)
{
	json_t *out = json_array();

	for (size_t i = 0; i < n; i++)
		if (checks[i].rank == rank)
			json_array_append_new(out, check_json(&checks[i]));
	return out;
}

/* Ranks that were seen or are declared. */
static json_t *ranks_json(const struct sw_worker *w, const struct sw_check *checks, size_t n)
{
	json_t *out = json_array();

	for (int i = 0; i < SW_MAX_RANKS; i++) {
		int rank = (int)w->start_rank + i;

		if (!w->rank[i].seen && i >= w->dp_size)
			continue;
		json_array_append_new(out, json_pack("{s:i, s:b, s:o}", "rank", rank, "busy",
						     w->rank[i].busy, "checks",
						     checks_json(checks, n, rank)));
	}
	return out;
}

static json_t *worker_json(const struct sw_live_worker *w, uint64_t now_ms)
{
	const struct sw_pool_conf *pool = w->pool->conf;
	struct sw_check checks[SW_MAX_CHECKS];
	size_t n = sw_worker_explain(&w->load, &pool->limits, &pool->ageing, now_ms, checks,
				     SW_MAX_CHECKS);
	uint64_t at = w->load.reported_ms;

	if (n > SW_MAX_CHECKS)
		n = SW_MAX_CHECKS;
	return json_pack("{s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "name", text(w->conf->name),
			 "url", text(w->conf->source.url), "busy", w->load.busy, "stale",
			 w->load.stale, "age_ms", age(at ? now_ms - at : UINT64_MAX), "error",
			 text(w->error.text), "ranks", ranks_json(&w->load, checks, n), "checks",
			 checks_json(checks, n, -1));
}

/* The furthest that any namespace's programs go for this pool. */
static enum sw_mode pool_mode(const struct sw_live *live, size_t pool)
{
	enum sw_mode mode = SW_MODE_OPEN;

	for (size_t i = 0; i < live->n_planes; i++) {
		const struct sw_live_plane *p = &live->planes[i];

		if (p->plane && p->gates[pool].used && p->gates[pool].gate.mode > mode)
			mode = p->gates[pool].gate.mode;
	}
	return mode;
}

static json_t *pool_json(const struct sw_live_pool *p, uint64_t now_ms)
{
	bool forced = sw_live_forced(p, now_ms);
	json_t *workers = json_array();

	for (size_t i = 0; i < p->n_workers; i++)
		json_array_append_new(workers, worker_json(p->workers[i], now_ms));
	return json_pack(
		"{s:o, s:s, s:s, s:I, s:o, s:o, s:b, s:b, s:o}", "name", text(p->conf->name),
		"mode", sw_mode_name(pool_mode(p->live, (size_t)(p - p->live->pools))), "state",
		sw_pool_state_name(p->state), "state_ms", (json_int_t)(now_ms - p->since_ms),
		"forced", text(forced ? sw_force_name(p->force) : NULL), "forced_left_ms",
		forced ? json_integer((json_int_t)(p->force_until_ms - now_ms)) : json_null(),
		"drain", p->drain, "observe", p->conf->observe, "workers", workers);
}

json_t *sw_explain_json(const struct sw_live *live, const struct sw_live_pool *pool,
			uint64_t now_ms)
{
	json_t *pools = json_array();

	for (size_t i = 0; i < live->n_pools; i++)
		if (!pool || pool == &live->pools[i])
			json_array_append_new(pools, pool_json(&live->pools[i], now_ms));
	return json_pack("{s:o}", "pools", pools);
}

static json_t *attachment_json(const struct sw_attachment *a)
{
	const char *xdp = !a->xdp			       ? "none"
			  : a->xdp_hook != SW_HOOK_XDP_GENERIC ? "native"
							       : "generic";

	return json_pack("{s:o, s:s, s:s, s:s}", "name", text(a->interface), "xdp", xdp, "tc",
			 a->tc_hook == SW_HOOK_TCX ? "tcx" : "clsact", "note", a->note);
}

static json_t *plane_json(const struct sw_live_plane *p)
{
	const struct sw_attachment *at = NULL;
	size_t n = p->plane ? sw_plane_attachments(p->plane, &at) : 0;
	const char *why = "";
	bool hand_over = p->plane && sw_plane_can_hand_over(p->plane, &why);
	json_t *interfaces = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(interfaces, attachment_json(&at[i]));
	return json_pack("{s:o, s:b, s:o, s:b, s:s, s:o}", "netns", text(p->netns), "guarded",
			 p->plane != NULL, "error", text(p->error.text), "hand_over", hand_over,
			 "hand_over_why", hand_over || !why ? "" : why, "interfaces", interfaces);
}

static json_t *counts_json(const struct sw_counts *c)
{
	json_t *out = json_object();

	for (unsigned r = 0; r < SW_R_COUNT; r++)
		if (sw_count(c, r))
			json_object_set_new(out, sw_reason_names[r],
					    json_integer((json_int_t)sw_count(c, r)));
	return out;
}

static json_t *listener_json(const struct sw_live *live, size_t index)
{
	const struct sw_listener_conf *l = &live->conf->listeners[index];
	const struct sw_live_plane *plane = sw_live_plane_of(live, l);
	struct sw_totals t;
	char address[64];

	sw_format_listener(l, address, sizeof(address));
	sw_totals_read(live, index, &t);
	return json_pack("{s:s, s:o, s:o, s:b, s:b, s:b, s:{s:o, s:o}, s:I, s:I, s:I}", "address",
			 address, "pool", text(live->conf->pools[l->pool].name), "netns",
			 text(l->netns), "guarded", plane && plane->plane, "intercept",
			 plane && plane->plane && plane->gates[l->pool].may_close, "served",
			 live->servers[index] != SW_SERVER_NONE, "counts", "xdp",
			 counts_json(&t.packets.xdp), "tc", counts_json(&t.packets.tc), "shed",
			 (json_int_t)t.shed, "handed_over", (json_int_t)t.handed_over, "would_shed",
			 (json_int_t)t.would_shed);
}

json_t *sw_status_json(const struct sw_live *live, uint64_t now_ms)
{
	json_t *planes = json_array(), *listeners = json_array();
	json_t *status = sw_explain_json(live, NULL, now_ms);

	for (size_t i = 0; i < live->n_planes; i++)
		json_array_append_new(planes, plane_json(&live->planes[i]));
	for (size_t i = 0; i < live->conf->n_listeners; i++)
		json_array_append_new(listeners, listener_json(live, i));
	json_object_set_new(status, "version", json_string(SW_VERSION));
	json_object_set_new(status, "uptime_ms",
			    json_integer((json_int_t)(now_ms - live->started_ms)));
	json_object_set_new(status, "planes", planes);
	json_object_set_new(status, "listeners", listeners);
	return status;
}
