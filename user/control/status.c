// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the daemon knows, as JSON; see status.h. Builds values only, sends nothing. */
#include <math.h>
#include <string.h>

#include "control/status.h"
#include "control/totals.h"
#include "control/use.h"

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

/* For how long something is the case; null: it is not. */
static json_t *lasting(bool is, uint64_t since_ms, uint64_t now_ms)
{
	return is ? age(now_ms - since_ms) : json_null();
}

static json_t *limit(uint64_t v)
{
	return v == SW_UNLIMITED ? json_null() : json_integer((json_int_t)v);
}

/* Names and error texts come from outside; what is no UTF-8 must not cost the whole status. */
static json_t *text(const char *t)
{
	json_t *out = t ? json_string(t) : json_null();

	return out ? out : json_string("(not UTF-8)");
}

static json_t *endpoint(const struct sw_endpoint *at)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct sw_listener_conf l = {.port = at->port};
	char out[64];

	if (!at->port)
		return json_null();
	memcpy(l.addr, at->addr, sizeof(l.addr));
	l.v4 = !memcmp(at->addr, mapped, sizeof(mapped));
	l.v6 = !l.v4;
	sw_format_listener(&l, out, sizeof(out));
	return json_string(out);
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

/* ---- slots ------------------------------------------------------------------------------- */

/* What a row counted since its id was given. */
static int add_slot(json_t *to, const struct sw_slot *slot)
{
	return json_object_update_new(
		to, json_pack("{s:I, s:I, s:I, s:I}", "most", (json_int_t)slot->most, "picks",
			      (json_int_t)slot->takes, "refusals", (json_int_t)slot->refusals,
			      "failures", (json_int_t)slot->failures));
}

static json_t *use_json(const struct sw_use *use)
{
	return json_pack("{s:I, s:I, s:I, s:o, s:o}", "inuse", (json_int_t)use->inuse, "engine",
			 (json_int_t)use->engine, "queue", (json_int_t)use->queue, "cap",
			 limit(use->cap), "free", limit(use->free));
}

static json_t *worker_slots_json(const struct sw_live_worker *w)
{
	const struct sw_worker_conf *conf = w->conf;
	struct sw_slot slot;
	struct sw_use use;
	json_t *out;

	if (!sw_use_worker(w, &use, &slot))
		return json_null();
	out = use_json(&use);
	json_object_set_new(out, "id", json_integer(w->id));
	json_object_set_new(out, "engine_limit",
			    limit(conf->engine_limit ? conf->engine_limit : SW_UNLIMITED));
	json_object_set_new(out, "queue_limit",
			    limit(conf->engine_limit ? conf->queue_limit : SW_UNLIMITED));
	add_slot(out, &slot);
	return out;
}

static json_t *steer_counts_json(const struct sw_live *live, unsigned pool)
{
	struct sw_steer_counts counts = {0};
	json_t *out = json_object();

	sw_steer_counts(live->steer, pool, &counts);
#define X(n, name, text)                                                                           \
	if (counts.name)                                                                           \
		json_object_set_new(out, #name, json_integer((json_int_t)counts.name));
	SW_STEERS(X)
#undef X
	return out;
}

static json_t *virtuals_json(const struct sw_steer_conf *steer)
{
	json_t *out = json_array();

	for (size_t i = 0; i < steer->n_virtuals; i++)
		json_array_append_new(out, endpoint(&steer->virtuals[i]));
	return out;
}

static json_t *row_json(const struct sw_live_pool *p)
{
	struct sw_slot slot;
	json_t *out;

	if (!sw_use_row(p, &slot))
		return json_null();
	out = json_pack("{s:i}", "id", p->row);
	add_slot(out, &slot);
	return out;
}

static json_t *pool_slots_json(const struct sw_live_pool *p)
{
	const struct sw_steer_conf *steer = &p->conf->steer;
	const unsigned pool = (unsigned)(p - p->live->pools);
	struct sw_pool_use half_open = {0};
	struct sw_use use;
	json_t *out;

	if (!sw_use_pool(p, &use))
		return json_null();
	sw_steer_use(p->live->steer, pool, &half_open);
	out = use_json(&use);
	json_object_update_new(
		out,
		json_pack("{s:o, s:s, s:b, s:b, s:I, s:o, s:o}", "virtuals", virtuals_json(steer),
			  "count", steer->count == SW_COUNT_REPORTS ? "reports" : "connections",
			  "full", p->full, "close_idle", steer->close_idle, "half_open",
			  (json_int_t)half_open.half_open, "row", row_json(p), "counts",
			  steer_counts_json(p->live, pool)));
	return out;
}

/* Workers that are gone from the configuration and have connections yet. */
static json_t *leaving_json(const struct sw_live *live, uint64_t now_ms)
{
	json_t *out = json_array();

	for (size_t i = 0; live->steer && i < live->n_leaving; i++) {
		const struct sw_live_leaving *l = &live->leaving[i];
		struct sw_slot slot = {0};

		sw_steer_slot(live->steer, (unsigned)l->id, &slot);
		json_array_append_new(out, json_pack("{s:o, s:i, s:I, s:o}", "name", text(l->name),
						     "id", l->id, "inuse", (json_int_t)slot.inuse,
						     "leaving_ms", age(now_ms - l->since_ms)));
	}
	return out;
}

static json_t *recount_json(const struct sw_live *live)
{
	if (!live->steer)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I}", "recounts", (json_int_t)live->recounts, "rows",
			 (json_int_t)live->recount.rows, "corrected",
			 (json_int_t)live->recount.corrected, "took_us",
			 (json_int_t)(live->recount.took_ns / 1000));
}

/* ---- pools ------------------------------------------------------------------------------- */

static json_t *sources_json(const struct sw_live_worker *w, uint64_t now_ms)
{
	json_t *out = json_array();

	for (size_t i = 0; i < w->n_feeds; i++) {
		const struct sw_feed *f = &w->feeds[i];
		uint64_t at = f->at_ms;

		json_array_append_new(
			out,
			json_pack("{s:s, s:o, s:o, s:I, s:I, s:o}", "kind",
				  sw_feed_kind_name(f->kind), "publisher",
				  f->kind == SW_FEED_EVENTS
					  ? json_sprintf("%llx", (unsigned long long)f->publisher)
					  : json_null(),
				  "age_ms", age(at ? now_ms - at : UINT64_MAX), "told",
				  (json_int_t)f->told, "failures", (json_int_t)f->failures, "error",
				  text(f->error.text)));
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
	return json_pack("{s:o, s:o, s:o, s:b, s:o, s:b, s:o, s:b, s:o, s:b, s:o, s:o, s:o, s:o, "
			 "s:o, s:o}",
			 "name", text(w->conf->name), "url", text(w->conf->source.url), "at",
			 endpoint(&w->conf->at), "busy", w->load.busy, "busy_ms",
			 lasting(w->load.busy, w->busy_since_ms, now_ms), "suspect", w->suspect,
			 "suspect_ms", lasting(w->suspect, w->suspect_since_ms, now_ms), "drain",
			 w->drain, "drain_ms", lasting(w->drain, w->drain_since_ms, now_ms),
			 "stale", w->load.stale, "age_ms", age(at ? now_ms - at : UINT64_MAX),
			 "error", text(sw_live_worker_error(w)), "slots", worker_slots_json(w),
			 "ranks", ranks_json(&w->load, checks, n), "checks",
			 checks_json(checks, n, -1), "sources", sources_json(w, now_ms));
}

/* The furthest that any namespace's programs go for this pool. */
static enum sw_mode pool_mode(const struct sw_live *live, size_t pool)
{
	static const int how_far[] = {
		[SW_MODE_OPEN] = 0,
		[SW_MODE_FINISH] = 1,
		[SW_MODE_METERED] = 2,
		[SW_MODE_SHED] = 3,
	};
	enum sw_mode mode = SW_MODE_OPEN;

	for (size_t i = 0; i < live->n_planes; i++) {
		const struct sw_live_plane *p = &live->planes[i];

		if (p->plane && p->gates[pool].used &&
		    how_far[p->gates[pool].gate.mode] > how_far[mode])
			mode = p->gates[pool].gate.mode;
	}
	return mode;
}

static const char *steer_name(enum sw_steer_by by)
{
	switch (by) {
	case SW_STEER_CONNECT: return "connect";
	case SW_STEER_LOCAL: return "local";
	default: return NULL;
	}
}

static json_t *pool_json(const struct sw_live_pool *p, uint64_t now_ms)
{
	bool forced = sw_live_forced(p, now_ms);
	json_t *workers = json_array();

	for (size_t i = 0; i < p->n_workers; i++)
		json_array_append_new(workers, worker_json(p->workers[i], now_ms));
	return json_pack(
		"{s:o, s:s, s:s, s:I, s:o, s:o, s:b, s:b, s:o, s:o, s:o}", "name",
		text(p->conf->name), "mode",
		sw_mode_name(pool_mode(p->live, (size_t)(p - p->live->pools))), "state",
		sw_pool_state_name(p->state), "state_ms", (json_int_t)(now_ms - p->since_ms),
		"forced", text(forced ? sw_force_name(p->force) : NULL), "forced_left_ms",
		forced ? json_integer((json_int_t)(p->force_until_ms - now_ms)) : json_null(),
		"drain", p->drain, "observe", p->conf->observe, "steer",
		text(steer_name(p->conf->steer.by)), "slots", pool_slots_json(p), "workers",
		workers);
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

/* Established connections that are followed or translated. Null: requests on those are not shed. */
static json_t *flows_json(const struct sw_plane *plane)
{
	unsigned room = 0, n = plane ? sw_plane_flows(plane, &room) : 0;
	const char *why = "";
	bool can = plane && sw_plane_can_keep(plane, &why);

	if (!can && !why[0])
		return json_null();
	return json_pack("{s:b, s:s, s:I, s:I}", "can", can, "why", why, "flows", (json_int_t)n,
			 "room", (json_int_t)room);
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
	return json_pack("{s:o, s:b, s:o, s:b, s:s, s:o, s:o}", "netns", text(p->netns), "guarded",
			 p->plane != NULL, "error", text(p->error.text), "hand_over", hand_over,
			 "hand_over_why", hand_over || !why ? "" : why, "established",
			 flows_json(p->plane), "interfaces", interfaces);
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

/* Which connections' requests are shed. */
static const char *ways_of(const struct sw_live *live, size_t index)
{
	const struct sw_listener_conf *l = &live->conf->listeners[index];
	const struct sw_live_plane *plane = sw_live_plane_of(live, l);
	bool guarded = plane && plane->plane;
	bool new = guarded && plane->gates[l->pool].may_close && !sw_live_passes_new(live, index);
	bool kept = guarded && plane->gates[l->pool].may_close &&
		    l->intercept != SW_INTERCEPT_NEW && sw_plane_can_keep(plane->plane, NULL);

	return new ? kept ? "both" : "new" : kept ? "established" : "none";
}

/* What became of requests on established connections. */
static json_t *kept_json(const struct sw_totals *t)
{
	const struct sw_counts *c = &t->packets.keep;

	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "shed", (json_int_t)t->shed_kept, "swallowed",
			 (json_int_t)c->drain_data, "followed", (json_int_t)c->keep_followed,
			 "alone", (json_int_t)c->keep_alone, "full", (json_int_t)c->keep_full);
}

static json_t *listener_json(const struct sw_live *live, size_t index)
{
	const struct sw_listener_conf *l = &live->conf->listeners[index];
	const struct sw_live_plane *plane = sw_live_plane_of(live, l);
	struct sw_totals t;
	char address[64];

	sw_format_listener(l, address, sizeof(address));
	sw_totals_read(live, index, &t);
	return json_pack("{s:s, s:o, s:o, s:b, s:b, s:s, s:b, s:{s:o, s:o, s:o}, s:I, s:I, s:I, "
			 "s:o}",
			 "address", address, "pool", text(live->conf->pools[l->pool].name), "netns",
			 text(l->netns), "guarded", plane && plane->plane, "intercept",
			 plane && plane->plane && plane->gates[l->pool].may_close, "ways",
			 ways_of(live, index), "served", live->servers[index] != SW_SERVER_NONE,
			 "counts", "xdp", counts_json(&t.packets.xdp), "tc",
			 counts_json(&t.packets.tc), "keep", counts_json(&t.packets.keep), "shed",
			 (json_int_t)t.shed, "handed_over", (json_int_t)t.handed_over, "would_shed",
			 (json_int_t)t.would_shed, "established", kept_json(&t));
}

/* How near the heartbeats ever came to the deadline past which nothing is shed. */
static json_t *heartbeat_json(const struct sw_live *live)
{
	return json_pack("{s:I, s:I}", "margin_ms", (json_int_t)(live->least_margin_ns / 1000000),
			 "deadline_ms", (json_int_t)live->conf->deadline_ms);
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
	json_object_set_new(status, "heartbeat", heartbeat_json(live));
	json_object_set_new(status, "planes", planes);
	json_object_set_new(status, "listeners", listeners);
	json_object_set_new(status, "leaving", leaving_json(live, now_ms));
	json_object_set_new(status, "recount", recount_json(live));
	return status;
}
