// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the daemon knows, as JSON; see status.h. Builds values only, sends nothing. Pools are in
 * status_pools.c. */
#include <inttypes.h>
#include <stdio.h>

#include "control/json.h"
#include "control/status.h"
#include "control/totals.h"

static json_t *attachment_json(const struct sw_attachment *a)
{
	const char *xdp = !a->xdp			       ? "none"
			  : a->xdp_hook != SW_HOOK_XDP_GENERIC ? "native"
							       : "generic";

	return json_pack("{s:o, s:s, s:s, s:s}", "name", sw_json_text(a->interface), "xdp", xdp,
			 "tc", a->tc_hook == SW_HOOK_TCX ? "tcx" : "clsact", "note", a->note);
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
	return json_pack("{s:o, s:b, s:o, s:b, s:s, s:o, s:o}", "netns", sw_json_text(p->netns),
			 "guarded", p->plane != NULL, "error", sw_json_text(p->error.text),
			 "hand_over", hand_over, "hand_over_why", hand_over || !why ? "" : why,
			 "established", flows_json(p->plane), "interfaces", interfaces);
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
			 "address", address, "pool", sw_json_text(live->conf->pools[l->pool].name),
			 "netns", sw_json_text(l->netns), "guarded", plane && plane->plane,
			 "intercept", plane && plane->plane && plane->gates[l->pool].may_close,
			 "ways", ways_of(live, index), "served",
			 live->servers[index] != SW_SERVER_NONE, "counts", "xdp",
			 counts_json(&t.packets.xdp), "tc", counts_json(&t.packets.tc), "keep",
			 counts_json(&t.packets.keep), "shed", (json_int_t)t.shed, "handed_over",
			 (json_int_t)t.handed_over, "would_shed", (json_int_t)t.would_shed,
			 "established", kept_json(&t));
}

/* Workers that are gone from the configuration and have connections yet. */
static json_t *leaving_json(const struct sw_live *live, uint64_t now_ms)
{
	json_t *out = json_array();

	for (size_t i = 0; live->steer && i < live->n_leaving; i++) {
		const struct sw_live_leaving *l = &live->leaving[i];
		struct sw_slot slot = {0};

		sw_steer_slot(live->steer, (unsigned)l->id, &slot);
		json_array_append_new(out, json_pack("{s:o, s:i, s:I, s:o}", "name",
						     sw_json_text(l->name), "id", l->id, "inuse",
						     (json_int_t)slot.inuse, "leaving_ms",
						     sw_json_age(now_ms - l->since_ms)));
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

/* How near the heartbeats ever came to the deadline past which nothing is shed. */
static json_t *heartbeat_json(const struct sw_live *live)
{
	return json_pack("{s:I, s:I}", "margin_ms", (json_int_t)(live->least_margin_ns / 1000000),
			 "deadline_ms", (json_int_t)live->conf->deadline_ms);
}

/* Where workers, or their load, are told for the whole fleet. */
static json_t *fleet_sources_json(const struct sw_live *live, uint64_t now_ms)
{
	json_t *out = json_array();
	struct sw_live_source s;

	for (size_t i = 0; live->source && live->source(live, i, &s); i++) {
		json_t *one =
			json_pack("{s:o, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o}", "name",
				  sw_json_text(s.name), "kind", s.kind, "state", s.state, "age_ms",
				  sw_json_age(s.at_ms ? now_ms - s.at_ms : UINT64_MAX), "messages",
				  (json_int_t)s.messages, "dropped", (json_int_t)s.dropped, "bad",
				  (json_int_t)s.bad, "errors", (json_int_t)s.errors, "error",
				  sw_json_text(s.error));

		sw_json_last_error(one, s.last_error, s.last_error_ms, now_ms);
		json_array_append_new(out, one);
	}
	return out;
}

/* Events about workers that no pool has. */
static json_t *unknown_json(const struct sw_live *live)
{
	char id[24];

	snprintf(id, sizeof(id), "%" PRIu64, live->stranger);
	return json_pack("{s:I, s:s?}", "events", (json_int_t)live->strangers, "worker_id",
			 live->strangers ? id : NULL);
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
	json_object_set_new(status, "sources", fleet_sources_json(live, now_ms));
	json_object_set_new(status, "unknown_workers", unknown_json(live));
	return status;
}
