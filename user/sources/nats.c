// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The event plane over NATS, see events_impl.h: the loop's side, which reads what has come into the
 * ring. How that comes there is nats_ring.c's matter. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sources/nats_ring.h"

struct sw_nats {
	struct sw_link link; /* first: they are the same */
	struct event *readable;
	struct sw_nats_ring *ring;
};

static void take_news(struct sw_link *l, const struct sw_nats_ring *s)
{
	if (s->up)
		sw_link_up(l);
	else
		sw_link_down(l, "%s", s->why.text);
}

static bool read_message(struct sw_link *l)
{
	struct sw_nats_ring *s = ((struct sw_nats *)l)->ring;
	natsMsg *msg = NULL;
	uint64_t large;

	pthread_mutex_lock(&s->lock);
	if (s->news)
		take_news(l, s);
	s->news = false;
	l->dropped += s->lost;
	l->messages += s->lost;
	large = s->large;
	s->lost = s->large = 0;
	if (s->n) {
		msg = s->messages[s->first];
		s->first = (s->first + 1) % SW_NATS_RING;
		s->n--;
	}
	pthread_mutex_unlock(&s->lock);
	for (; large; large--)
		sw_link_bad(l, "a message that is too long");
	if (!msg)
		return false;
	sw_link_took(l, natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg));
	natsMsg_Destroy(msg);
	return true;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct sw_nats *n = arg;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) == sizeof(count))
		sw_link_ready(&n->link);
}

/* "nats://A:4222, nats://B:4222", without passwords. */
static char *make_name(char *const *servers, size_t n)
{
	char *name = NULL;
	size_t size;
	FILE *f = open_memstream(&name, &size);

	if (!f)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const char *scheme = strstr(servers[i], "://"), *at = strrchr(servers[i], '@');

		if (scheme && at)
			fprintf(f, "%s%.*s%s", i ? ", " : "", (int)(scheme + 3 - servers[i]),
				servers[i], at + 1);
		else
			fprintf(f, "%s%s", i ? ", " : "", servers[i]);
	}
	if (fclose(f)) {
		free(name);
		return NULL;
	}
	return name;
}

int sw_nats_new(struct sw_nats **out, struct sw_events *e, struct event_base *base,
		char *const *servers, size_t count, const char *credentials_file,
		struct sw_error *err)
{
	struct sw_nats *n = calloc(1, sizeof(*n));

	if (!n)
		return sw_fail(err, -ENOMEM, "no memory");
	n->link = (struct sw_link){.events = e, .read = read_message, .kind = "nats"};
	n->link.name = make_name(servers, count);
	n->ring = sw_nats_ring_new(servers, count, credentials_file);
	if (n->ring)
		n->readable = event_new(base, n->ring->fd, EV_READ | EV_PERSIST, on_readable, n);
	if (!n->link.name || !n->readable || event_add(n->readable, NULL) ||
	    !sw_nats_ring_start(n->ring)) {
		sw_nats_free(n);
		return sw_fail(err, -ENOMEM, "cannot listen to NATS: no memory");
	}
	*out = n;
	return 0;
}

void sw_nats_free(struct sw_nats *n)
{
	if (!n)
		return;
	sw_link_end(&n->link);
	if (n->readable)
		event_free(n->readable);
	if (n->ring) {
		pthread_mutex_lock(&n->ring->lock);
		n->ring->stop = true;
		pthread_cond_signal(&n->ring->wake);
		pthread_mutex_unlock(&n->ring->lock);
		sw_nats_ring_leave(n->ring);
	}
	free(n->link.name);
	free(n);
}

const struct sw_link *sw_nats_link(const struct sw_nats *n)
{
	return &n->link;
}
