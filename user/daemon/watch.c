// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What steering has to look after all the time: reservations that nothing came of, counts,
 * suspects, listening workers, idle connections to busy ones. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/steering.h"

#define TICK_MS	      100
#define PROBE_TICKS   2 /* ticks between looks at suspects */
#define RECOUNT_MS    5000
#define RECOUNT_SHARE 100 /* a recount takes at most a hundredth of the time */
#define CLOSE_SHARE   4	  /* looking for idle connections takes at most a fifth of the time */
#define AGAIN_MS      1	  /* from the end of a response until it is looked for once more */

/* ---- reservations and counts -------------------------------------------------------------- */

static void sweep(struct sw_steering *s)
{
	struct sw_live *live = s->live;
	int failing = 0;

	for (size_t i = 0; i < live->n_planes; i++) {
		struct sw_live_plane *plane = &live->planes[i];
		int n = 0;

		if (plane->plane && sw_planes_look_up(live->conf, plane->netns))
			n = sw_plane_sweep(plane->plane);
		if (n < 0)
			failing = n;
	}
	if (failing && failing != s->sweep_failing)
		sw_log(SW_ERROR, "cannot sweep reservations: %s", strerror(-failing));
	s->sweep_failing = failing;
}

static void recount(struct sw_steering *s, uint64_t now_ms)
{
	struct sw_live *live = s->live;
	struct sw_recount r = {0};
	int e = sw_steer_recount(live->steer, &r);
	uint64_t pause = r.took_ns / 1000000 * RECOUNT_SHARE;

	/* the first two soon: it takes two to put right what a crash has left */
	if (live->recounts++ && pause < RECOUNT_MS)
		pause = RECOUNT_MS;
	s->recount_at_ms = e == -EOPNOTSUPP ? UINT64_MAX : now_ms + pause;
	if (e < 0 && e != -EOPNOTSUPP && e != s->recount_failing)
		sw_log(SW_ERROR, "cannot recount connections: %s", strerror(-e));
	s->recount_failing = e < 0 ? e : 0;
	if (e < 0 || !r.corrected)
		return;
	live->recount = r;
	sw_log(SW_WARN,
	       "recount: %u workers had a wrong number of connections, %" PRIu64
	       " were put right in %" PRIu64 " us",
	       r.rows, r.corrected, r.took_ns / 1000);
}

/* ---- suspects ----------------------------------------------------------------------------- */

static void note_suspect(struct sw_live_worker *w, uint64_t now_ms)
{
	bool suspect = sw_steer_suspect(w->pool->live->steer, (unsigned)w->id);

	if (suspect == w->suspect)
		return;
	w->suspect = suspect;
	sw_tell_worker(w, suspect ? "suspect" : "answers", NULL);
	if (suspect) {
		w->suspect_since_ms = now_ms;
		sw_log(SW_WARN,
		       "pool %s: worker %s is suspect: a connection to it could not be made; new "
		       "ones go elsewhere until it answers",
		       w->pool->conf->name, w->conf->name);
	} else {
		sw_log(SW_INFO, "pool %s: worker %s answers again after %.1f s",
		       w->pool->conf->name, w->conf->name,
		       (double)(now_ms - w->suspect_since_ms) / 1e3);
	}
}

/* Where connections to a pool's workers come from. */
static const char *netns_of(const struct sw_live_pool *p)
{
	const struct sw_config *c = p->live->conf;

	for (size_t i = 0; p->conf->steer.by == SW_STEER_LOCAL && i < c->n_listeners; i++)
		if (&p->live->pools[c->listeners[i].pool] == p)
			return c->listeners[i].netns;
	return p->conf->steer.netns;
}

/* Each time the turn begins with another one, as only a few can be asked at a time. */
static void look_at_suspects(struct sw_steering *s, uint64_t now_ms)
{
	struct sw_live *live = s->live;
	size_t turn = s->ticks / PROBE_TICKS;

	for (size_t i = 0; i < live->n_pools; i++) {
		struct sw_live_pool *p = &live->pools[(i + turn) % live->n_pools];

		for (size_t j = 0; j < p->n_workers; j++) {
			struct sw_live_worker *w = p->workers[(j + turn) % p->n_workers];

			if (w->id < 0)
				continue;
			note_suspect(w, now_ms);
			if (w->suspect)
				sw_probe_start(s->probes, w->id, w->conf->at.addr, w->conf->at.port,
					       netns_of(p));
		}
	}
}

static void on_answer(void *arg, int id)
{
	struct sw_steering *s = arg;

	sw_steer_clear_suspect(s->live->steer, (unsigned)id);
}

/* ---- idle connections --------------------------------------------------------------------- */

static bool is_avoided(const struct sw_live_worker *w, uint64_t now_ms)
{
	const struct sw_live_pool *p = w->pool;

	if (w->drain || p->steer.flags & SW_SF_CLOSED)
		return true;
	return w->load.busy && !(p->force == SW_FORCE_OPEN && sw_live_forced(p, now_ms));
}

/* Those of a pool that routers should leave, and still have connections to. */
static bool find_avoided(struct sw_steering *s, const struct sw_live_pool *p, uint64_t now_ms,
			 struct sw_bits *out)
{
	bool some = false;

	*out = (struct sw_bits){0};
	for (size_t j = 0; j < p->n_workers; j++) {
		const struct sw_live_worker *w = p->workers[j];
		struct sw_slot slot;

		if (w->id < 0 || !is_avoided(w, now_ms))
			continue;
		sw_steer_slot(s->live->steer, (unsigned)w->id, &slot);
		if (!slot.inuse)
			continue;
		out->word[w->id / 64] |= 1ULL << w->id % 64;
		some = true;
	}
	return some;
}

static void close_idle_of(struct sw_steering *s, const struct sw_live_pool *p, uint64_t now_ms)
{
	struct sw_bits workers;
	int n;

	if (!p->conf->steer.close_idle || !find_avoided(s, p, now_ms, &workers))
		return;
	n = sw_steer_close_idle(s->live->steer, &workers, p->conf->steer.idle_close_after_ms);
	if (n > 0)
		sw_log(SW_DEBUG, "pool %s: closed %d idle connections", p->conf->name, n);
	if (n != -EOPNOTSUPP)
		return;
	s->cannot_close = true;
	sw_log(SW_WARN,
	       "pool %s: close_idle does nothing: it needs Linux 6.5; requests over connections "
	       "that routers keep open are not steered",
	       p->conf->name);
}

/* Looking through all connections takes a while, so it takes its share of the time and no more. */
static void close_idle(struct sw_steering *s)
{
	uint64_t begin_ns = sw_now_ns(), now_ms = sw_now_ms();
	struct sw_live *live = s->live;

	if (s->cannot_close || begin_ns < s->close_from_ns)
		return;
	for (size_t i = 0; i < live->n_pools; i++)
		close_idle_of(s, &live->pools[i], now_ms);
	s->close_from_ns = sw_now_ns() + (sw_now_ns() - begin_ns) * CLOSE_SHARE;
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	struct sw_steering *s = arg;

	(void)fd;
	(void)what;
	if (s->live->steer && s->settled)
		close_idle(s);
}

/* A response has ended on a connection that should go. The router may have read it already, or will
 * in a moment; in another moment it may use the connection again. */
static void on_ended(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval moment = {.tv_usec = AGAIN_MS * 1000};
	struct sw_steering *s = arg;

	if (!s->live->steer)
		return;
	sw_steer_ended_clear(s->live->steer);
	on_again(fd, what, s);
	if (!evtimer_pending(s->again, NULL))
		evtimer_add(s->again, &moment);
}

static void stop_listening(struct sw_steering *s)
{
	if (s->ended) {
		close(event_get_fd(s->ended));
		event_free(s->ended);
	}
	s->ended = NULL;
}

/* Steering may be taken off and begin anew, with other maps; the descriptor is our own. */
static void listen_for_ends(struct sw_steering *s)
{
	struct sw_steer *steer = s->live->steer;
	int fd;

	if (steer == s->listens_to)
		return;
	stop_listening(s);
	s->listens_to = steer;
	fd = steer ? fcntl(sw_steer_ended_fd(steer), F_DUPFD_CLOEXEC, 0) : -1;
	if (fd < 0)
		return;
	s->ended = event_new(s->base, fd, EV_READ | EV_PERSIST, on_ended, s);
	if (!s->ended)
		close(fd);
	else
		event_add(s->ended, NULL);
}

/* ---- timers ------------------------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct sw_steering *s = arg;
	uint64_t now_ms = sw_now_ms();

	(void)fd;
	(void)what;
	listen_for_ends(s);
	if (!s->live->steer || !s->settled)
		return;
	s->ticks++;
	sweep(s);
	close_idle(s);
	if (s->ticks % PROBE_TICKS == 0)
		look_at_suspects(s, now_ms);
	if (now_ms >= s->recount_at_ms)
		recount(s, now_ms);
}

void sw_watch_second(struct sw_steering *s)
{
	struct sw_live *live = s->live;

	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane && sw_planes_look_up(live->conf, live->planes[i].netns))
			sw_plane_find_workers(live->planes[i].plane);
}

int sw_watch_start(struct sw_steering *s, struct sw_error *err)
{
	const struct timeval tv = {.tv_usec = TICK_MS * 1000};

	s->probes = sw_probes_new(s->base, on_answer, s);
	s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
	s->again = evtimer_new(s->base, on_again, s);
	if (!s->probes || !s->tick || !s->again || event_add(s->tick, &tv)) {
		sw_watch_stop(s);
		return sw_fail(err, -ENOMEM, "no memory");
	}
	return 0;
}

void sw_watch_stop(struct sw_steering *s)
{
	if (s->tick)
		event_free(s->tick);
	if (s->again)
		event_free(s->again);
	stop_listening(s);
	s->tick = s->again = NULL;
	sw_probes_free(s->probes);
	s->probes = NULL;
}
