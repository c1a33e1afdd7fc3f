// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The thread's side of NATS, see nats_ring.h: connects, subscribes, and does so again when the
 * connection is lost. Messages come on threads of the library. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "sources/nats_ring.h"

#define RETRY_MS     100 /* and twice as long each time, up to: */
#define RETRY_MAX_MS 5000
#define LOOK_MS	     200 /* how often a connection is looked at */
#define CONNECT_MS   2000

static const char *const subjects[] = {"namespace.*.component.*.endpoint.*.kv_metrics",
				       "namespace.*.kv_metrics"};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

/* ---- what both sides have ------------------------------------------------------------------- */

static void free_ring(struct sw_nats_ring *s)
{
	for (; s->n; s->n--)
		natsMsg_Destroy(s->messages[s->first++ % SW_NATS_RING]);
	for (int i = 0; s->servers && i < s->n_servers; i++)
		free(s->servers[i]);
	free(s->servers);
	free(s->credentials_file);
	if (s->fd >= 0)
		close(s->fd);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void sw_nats_ring_leave(struct sw_nats_ring *s)
{
	bool last;

	pthread_mutex_lock(&s->lock);
	last = !--s->users;
	pthread_mutex_unlock(&s->lock);
	if (last)
		free_ring(s);
}

static void join(struct sw_nats_ring *s)
{
	pthread_mutex_lock(&s->lock);
	s->users++;
	pthread_mutex_unlock(&s->lock);
}

static bool copy_conf(struct sw_nats_ring *s, char *const *servers, size_t n,
		      const char *credentials)
{
	s->servers = calloc(n, sizeof(*s->servers));
	for (size_t i = 0; s->servers && i < n; i++) {
		s->servers[i] = strdup(servers[i]);
		if (!s->servers[i])
			return false;
		s->n_servers++;
	}
	s->credentials_file = credentials ? strdup(credentials) : NULL;
	return s->servers && (!credentials || s->credentials_file);
}

struct sw_nats_ring *sw_nats_ring_new(char *const *servers, size_t n, const char *credentials)
{
	struct sw_nats_ring *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&s->lock, NULL);
	s->users = 1;
	s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (s->fd < 0 || !copy_conf(s, servers, n, credentials)) {
		free_ring(s);
		return NULL;
	}
	return s;
}

/* ---- the thread's side ---------------------------------------------------------------------- */

static void wake_loop(const struct sw_nats_ring *s)
{
	const uint64_t one = 1;

	if (write(s->fd, &one, sizeof(one)) < 0)
		return; /* it is awake already */
}

static void on_message(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *arg)
{
	struct sw_nats_ring *s = arg;
	natsMsg *pushed_out = NULL;

	(void)nc;
	(void)sub;
	pthread_mutex_lock(&s->lock);
	if (natsMsg_GetDataLength(msg) > SW_EVENT_BYTES) {
		s->large++;
		pushed_out = msg;
		wake_loop(s);
		goto done;
	}
	if (s->n == SW_NATS_RING) {
		pushed_out = s->messages[s->first];
		s->first = (s->first + 1) % SW_NATS_RING;
		s->n--;
		s->lost++;
	}
	s->messages[(s->first + s->n) % SW_NATS_RING] = msg;
	if (!s->n++)
		wake_loop(s);
done:
	pthread_mutex_unlock(&s->lock);
	natsMsg_Destroy(pushed_out);
}

static void on_complete(void *arg)
{
	sw_nats_ring_leave(arg);
}

/* Without one the library writes to stderr. What matters is told by the connection's last error. */
static void on_error(natsConnection *nc, natsSubscription *sub, natsStatus status, void *arg)
{
	(void)nc;
	(void)sub;
	(void)status;
	(void)arg;
}

static void tell(struct sw_nats_ring *s, bool up, const char *fmt, const char *why)
{
	pthread_mutex_lock(&s->lock);
	s->news = true;
	s->up = up;
	if (!up)
		sw_fail(&s->why, 0, fmt, why);
	wake_loop(s);
	pthread_mutex_unlock(&s->lock);
}

static natsStatus make_options(const struct sw_nats_ring *s, natsOptions **out)
{
	natsStatus st = natsOptions_Create(out);

	if (st == NATS_OK)
		st = natsOptions_SetServers(*out, (const char **)s->servers, s->n_servers);
	if (st == NATS_OK)
		st = natsOptions_SetName(*out, "spillway");
	if (st == NATS_OK)
		st = natsOptions_SetTimeout(*out, CONNECT_MS);
	if (st == NATS_OK)
		st = natsOptions_SetPingInterval(*out, 5000);
	if (st == NATS_OK) /* run() does, whatever the reason */
		st = natsOptions_SetAllowReconnect(*out, false);
	if (st == NATS_OK)
		st = natsOptions_SetErrorHandler(*out, on_error, NULL);
	if (st == NATS_OK && s->credentials_file)
		st = natsOptions_SetUserCredentialsFromFiles(*out, s->credentials_file, NULL);
	return st;
}

static natsStatus subscribe(struct sw_nats_ring *s, natsConnection *nc, const char *subject,
			    natsSubscription **out)
{
	natsStatus st = natsConnection_Subscribe(out, nc, subject, on_message, s);

	if (st != NATS_OK)
		return st;
	join(s); /* until its last message was handed on */
	st = natsSubscription_SetOnCompleteCB(*out, on_complete, s);
	if (st != NATS_OK) {
		sw_nats_ring_leave(s);
		return st;
	}
	return natsSubscription_SetPendingLimits(*out, SW_NATS_RING, SW_NATS_RING * 1024);
}

static bool stopped(struct sw_nats_ring *s)
{
	bool stop;

	pthread_mutex_lock(&s->lock);
	stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

/* Not longer than until the loop wants it to stop. */
static void sleep_ms(struct sw_nats_ring *s, unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&s->lock);
	while (!s->stop && pthread_cond_timedwait(&s->wake, &s->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&s->lock);
}

/* Returns when the connection is there no more, or of no use. */
static void follow(struct sw_nats_ring *s, natsConnection *nc)
{
	const char *why = NULL;

	while (!stopped(s)) {
		natsStatus st = natsConnection_GetLastError(nc, &why);

		if (natsConnection_IsClosed(nc)) {
			tell(s, false, "the connection was lost%s", "");
			return;
		}
		if (st == NATS_NOT_PERMITTED) {
			tell(s, false, "not allowed to listen there: %s", why);
			return;
		}
		sleep_ms(s, LOOK_MS);
	}
}

/* The library's own words are about this thread's last failure: "(FILE:LINE): what happened". */
static const char *reason(natsStatus st)
{
	natsStatus last;
	const char *text = nats_GetLastError(&last), *words;

	if (!text || !text[0] || last != st)
		return natsStatus_GetText(st);
	words = text[0] == '(' ? strstr(text, "): ") : NULL;
	return words ? words + 3 : text;
}

/* Connects and follows. Was there a connection? */
static bool try(struct sw_nats_ring *s)
{
	natsSubscription *subs[SUBJECTS] = {};
	natsOptions *options = NULL;
	natsConnection *nc = NULL;
	natsStatus st = make_options(s, &options);
	bool connected = false;

	if (st == NATS_OK)
		st = natsConnection_Connect(&nc, options);
	for (size_t i = 0; i < SUBJECTS && st == NATS_OK; i++)
		st = subscribe(s, nc, subjects[i], &subs[i]);
	if (st == NATS_OK)
		st = natsConnection_FlushTimeout(nc, CONNECT_MS);
	connected = st == NATS_OK;
	if (connected) {
		tell(s, true, NULL, NULL);
		follow(s, nc);
	} else {
		tell(s, false, "cannot connect: %s", reason(st));
	}
	for (size_t i = 0; i < SUBJECTS; i++)
		natsSubscription_Destroy(subs[i]);
	natsConnection_Destroy(nc);
	natsOptions_Destroy(options);
	return connected;
}

static void *run(void *arg)
{
	struct sw_nats_ring *s = arg;
	unsigned pause = RETRY_MS;

	while (!stopped(s)) {
		if (try(s))
			pause = RETRY_MS;
		sleep_ms(s, pause);
		pause = pause * 2 < RETRY_MAX_MS ? pause * 2 : RETRY_MAX_MS;
	}
	sw_nats_ring_leave(s);
	nats_ReleaseThreadMemory();
	return NULL;
}

bool sw_nats_ring_start(struct sw_nats_ring *s)
{
	pthread_t thread;

	join(s);
	if (pthread_create(&thread, NULL, run, s)) {
		sw_nats_ring_leave(s);
		return false;
	}
	pthread_detach(thread);
	return true;
}
