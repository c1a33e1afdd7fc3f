// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests that were shed, one by one: from the kernel's rings and our own responders to whoever
 * follows events. How many there were is counted elsewhere; what the log says of it is shed_log.c's
 * matter. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "control/hub.h"
#include "control/json.h"
#include "daemon/shed.h"
#include "policy/paths.h"

#define STEP_NS (1000000000ULL / SW_SHED_EVENTS)

/* ---- one event ---------------------------------------------------------------------------- */

static unsigned status_of(const struct sw_answer_spec *spec, enum sw_cause cause)
{
	switch (cause) {
	case SW_CAUSE_DRAINING: return spec->drain_status;
	case SW_CAUSE_UNAVAILABLE: return 503;
	default: return spec->status;
	}
}

/* CLOCK_MONOTONIC to ms since 1970. */
static json_int_t unix_ms(uint64_t at_ns)
{
	uint64_t now_ns = sw_now_ns();

	return (json_int_t)(sw_unix_ms() - (now_ns > at_ns ? (now_ns - at_ns) / 1000000 : 0));
}

static void tell(const struct sw_live_pool *pool, const char *listener,
		 const struct sw_shed_event *e)
{
	const char *reason = e->reason == SW_R_shed_no_handover
				     ? "no-handover"
				     : sw_cause_name((enum sw_cause)e->cause);
	char source[64];

	sw_source_text(e->source, source, sizeof(source));
	sw_hub_send(pool->live->hub, "shed",
		    json_pack("{s:I, s:s, s:o, s:s, s:i, s:s, s:s, s:s, s:b}", "time_ms",
			      unix_ms(e->at_ns), "listener", listener, "pool",
			      sw_json_text(pool->conf->name), "reason", reason, "status",
			      (int)status_of(&pool->conf->answer, (enum sw_cause)e->cause),
			      "source", source, "method", sw_method_name((enum sw_method)e->method),
			      "endpoint", sw_endpoint_name((enum sw_api_endpoint)e->endpoint),
			      "kept", e->kept));
}

/* ---- the kernel's ------------------------------------------------------------------------- */

static bool is_sound(const struct sw_shed_event *e)
{
	return e->reason < SW_R_COUNT && e->cause < SW_CAUSES && e->method <= SW_METHOD_TRACE &&
	       e->endpoint < SW_API_ENDPOINTS;
}

static void on_event(void *arg, const struct sw_shed_event *e)
{
	const struct sw_shed_reader *r = arg;
	struct sw_live *live = r->shed->live;
	const struct sw_listener_conf *l;
	struct sw_live_pool *pool;
	struct sw_spell *spell;
	char listener[64];

	if (!e->listener || e->listener > live->conf->n_listeners || !is_sound(e))
		return;
	l = &live->conf->listeners[e->listener - 1];
	if (!sw_same_text(l->netns, r->netns))
		return; /* of a configuration before this one */
	pool = &live->pools[l->pool];
	spell = sw_spell_of(r->shed, pool->conf->name);
	if (spell)
		sw_sources_add(&spell->sources, e->source);
	if (!sw_hub_followed(live->hub))
		return;
	sw_format_listener(l, listener, sizeof(listener));
	tell(pool, listener, e);
}

static void free_reader(struct sw_shed_reader *r)
{
	sw_shed_ring_close(r->ring);
	free(r->netns);
	free(r);
}

static bool is_read(const struct sw_shed *s, const struct sw_live_plane *plane)
{
	for (size_t i = 0; i < s->n_readers; i++)
		if (sw_shed_ring_reads(s->readers[i]->ring, sw_plane_shed_events(plane->plane)))
			return true;
	return false;
}

static void read_plane(struct sw_shed *s, const struct sw_live_plane *plane)
{
	struct sw_shed_reader **list, *r;
	struct sw_error err;

	list = realloc(s->readers, (s->n_readers + 1) * sizeof(struct sw_shed_reader *));
	if (!list)
		return; /* in a second, then */
	s->readers = list;
	r = calloc(1, sizeof(*r));
	if (!r)
		return;
	r->shed = s;
	r->netns = plane->netns ? strdup(plane->netns) : NULL;
	if ((plane->netns && !r->netns) ||
	    sw_shed_ring_open(&r->ring, sw_plane_shed_events(plane->plane), on_event, r, &err))
		free_reader(r);
	else
		s->readers[s->n_readers++] = r;
}

static bool is_wanted(const struct sw_shed *s, const struct sw_shed_reader *r)
{
	const struct sw_live *live = s->live;

	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane &&
		    sw_shed_ring_reads(r->ring, sw_plane_shed_events(live->planes[i].plane)))
			return true;
	return false;
}

/* One reader for the ring of each plane that is open. */
static void read_planes(struct sw_shed *s)
{
	const struct sw_live *live = s->live;
	size_t n = 0;

	for (size_t i = 0; i < s->n_readers; i++) {
		if (is_wanted(s, s->readers[i]))
			s->readers[n++] = s->readers[i];
		else
			free_reader(s->readers[i]);
	}
	s->n_readers = n;
	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane && !is_read(s, &live->planes[i]))
			read_plane(s, &live->planes[i]);
}

/* ---- our responders' ---------------------------------------------------------------------- */

/* The same rate as the kernel's. */
static bool may_tell(struct sw_shed *s, uint64_t now_ns)
{
	uint64_t from = s->until_ns > now_ns ? s->until_ns : now_ns;

	if (from > now_ns + (SW_SHED_BURST - 1) * STEP_NS)
		return false;
	s->until_ns = from + STEP_NS;
	return true;
}

/* Address and port of one end of a connection, as a listener has them. False: there is none. */
static bool read_end(int fd, bool peer, struct sw_listener_conf *out)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at;
	socklen_t size = sizeof(at);

	if (peer ? getpeername(fd, &at.any, &size) : getsockname(fd, &at.any, &size))
		return false;
	out->v4 = at.any.sa_family == AF_INET;
	out->v6 = !out->v4;
	if (out->v4) {
		memset(out->addr + 10, 0xff, 2);
		memcpy(out->addr + 12, &at.v4.sin_addr, 4);
	} else {
		memcpy(out->addr, &at.v6.sin6_addr, 16);
	}
	out->port = ntohs(out->v4 ? at.v4.sin_port : at.v6.sin6_port);
	return true;
}

/* Where a connection wanted to go: a router's connect() led to the responder's own address. */
static void asked_for(const struct sw_live_pool *pool, int connection, char *out, size_t size)
{
	const struct sw_steer_conf *steer = &pool->conf->steer;
	struct sw_listener_conf at = {0};

	if (steer->by == SW_STEER_CONNECT && steer->n_virtuals) {
		memcpy(at.addr, steer->virtuals[0].addr, sizeof(at.addr));
		at.port = steer->virtuals[0].port;
		at.v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)at.addr);
		at.v6 = !at.v4;
	} else if (!read_end(connection, false, &at)) {
		*out = '\0';
		return;
	}
	sw_format_listener(&at, out, size);
}

void sw_shed_answered(struct sw_live_pool *pool, int connection, enum sw_method method,
		      enum sw_api_endpoint endpoint, enum sw_cause cause)
{
	struct sw_shed *s = pool->live->shed;
	struct sw_listener_conf peer = {0};
	struct sw_spell *spell;
	struct sw_shed_event e = {.at_ns = sw_now_ns(),
				  .reason = (uint8_t)(SW_R_shed_saturated + cause),
				  .cause = cause,
				  .method = method,
				  .endpoint = endpoint};
	char listener[64];

	pool->answered[endpoint]++;
	if (!s)
		return;
	spell = sw_spell_of(s, pool->conf->name);
	if (!may_tell(s, e.at_ns)) {
		if (spell)
			spell->own_untold++;
		return;
	}
	if (!read_end(connection, true, &peer))
		return; /* the client is gone */
	memcpy(e.source, peer.addr, peer.v4 ? 15 : 8);
	if (spell)
		sw_sources_add(&spell->sources, e.source);
	if (!sw_hub_followed(pool->live->hub))
		return;
	asked_for(pool, connection, listener, sizeof(listener));
	tell(pool, listener, &e);
}

/* ------------------------------------------------------------------------------------------- */

int sw_shed_new(struct sw_live *live, struct sw_error *err)
{
	live->shed = calloc(1, sizeof(*live->shed));
	if (!live->shed)
		return sw_fail(err, -ENOMEM, "no memory");
	*live->shed = (struct sw_shed){.live = live};
	return 0;
}

void sw_shed_beat(struct sw_live *live)
{
	for (size_t i = 0; i < live->shed->n_readers; i++)
		sw_shed_ring_read(live->shed->readers[i]->ring);
}

void sw_shed_second(struct sw_live *live)
{
	read_planes(live->shed);
	sw_spells_look(live->shed, sw_now_ms());
}

void sw_shed_renew(struct sw_live *live)
{
	for (size_t i = 0; i < live->shed->n_spells; i++)
		live->shed->spells[i].known = false;
}

void sw_shed_free(struct sw_live *live)
{
	struct sw_shed *s = live->shed;

	if (!s)
		return;
	live->shed = NULL;
	sw_spells_free(s);
	for (size_t i = 0; i < s->n_readers; i++)
		free_reader(s->readers[i]);
	free(s->readers);
	free(s);
}
