// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* spillwayd: reads the load of inference engines, decides which pools are saturated and has the
 * kernel answer for them. This file owns the event loop: timers, signals, start and stop. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/clock.h"
#include "control/control.h"
#include "control/history.h"
#include "control/hub.h"
#include "control/thresholds.h"
#include "daemon/daemon.h"
#include "daemon/dynamo.h"
#include "daemon/lock.h"
#include "daemon/notify.h"
#include "kernel/remove.h"

#define KEY_LIFE_S     3600 /* seconds between new cookie keys */
#define SERVER_CHECK_S 10   /* seconds between looks for servers behind listeners */
#define LINGER_MS      1000 /* what conversations under way get on a clean stop */
#define EXIT_USAGE     2
#define MAX_EVENTS     8

struct daemon {
	struct sw_live live;
	struct event_base *base;
	struct sw_control *control;
	struct event *beat; /* also among `events`; its period may change on a reload */
	struct event *events[MAX_EVENTS];
	size_t n_events;
	struct sw_lock lock;
	unsigned seconds;
	bool look; /* for servers at the next second */
	int argc;
	char **argv;
};

static struct timeval period(unsigned ms)
{
	return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	(void)fd;
	(void)what;
	sw_gates_beat(&d->live);
	sw_steering_beat(&d->live);
	sw_shed_beat(&d->live);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	(void)fd;
	(void)what;
	d->seconds++;
	sw_dynamo_second(&d->live);
	sw_steering_second(&d->live);
	sw_planes_tick(&d->live);
	sw_pools_tick(&d->live);
	sw_shed_second(&d->live);
	sw_history_second(d->live.history, &d->live);
	if (d->look || d->seconds % SERVER_CHECK_S == 0)
		sw_planes_look_for_servers(&d->live);
	d->look = false;
	if (d->seconds % KEY_LIFE_S == 0)
		sw_planes_rotate_keys(&d->live);
}

static void on_watchdog(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	sw_notify("WATCHDOG=1");
}

static void on_stop(evutil_socket_t signal, short what, void *arg)
{
	struct daemon *d = arg;

	(void)what;
	sw_log(SW_INFO, "stopping on %s", signal == SIGTERM ? "SIGTERM" : "SIGINT");
	event_base_loopbreak(d->base);
}

/* ---- reload ------------------------------------------------------------------------------ */

/* What the daemon holds on to from its start on. */
static int check_fixed(const struct sw_config *now, const struct sw_config *next,
		       struct sw_error *err)
{
	const char *what = NULL;

	if (strcmp(now->control, next->control))
		what = "control";
	else if (memcmp(&now->control_tcp, &next->control_tcp, sizeof(now->control_tcp)))
		what = "control_tcp";
	else if (!sw_same_text(now->control_token_file, next->control_token_file))
		what = "control_token_file";
	else if (!sw_same_text(now->state_file, next->state_file))
		what = "state_file";
	else if (strcmp(now->pin_root, next->pin_root))
		what = "pin_root";
	return what ? sw_fail(err, -EINVAL, "%s cannot change while the daemon runs; restart it",
			      what)
		    : 0;
}

static int reload(struct daemon *d, struct sw_error *err)
{
	struct sw_config *next = NULL;
	struct timeval tv;
	bool anew;
	int e = 0;

	if (!d->live.conf->file)
		return sw_fail(err, -EINVAL, "there is no --config file to read again");
	if (sw_config_from_args(d->argc, d->argv, &next, err) != SW_ARGS_RUN)
		return -EINVAL;
	e = check_fixed(d->live.conf, next, err);
	if (!e)
		e = sw_dynamo_extend(&d->live, &next, err);
	anew = !sw_dynamo_same(&d->live.conf->dynamo, &next->dynamo);
	sw_gates_beat(&d->live); /* a large configuration takes a while to apply */
	if (!e)
		e = sw_switch(&d->live, next, err);
	if (e) {
		sw_config_free(next);
		return e;
	}
	if (anew && sw_dynamo_reopen(&d->live, d->base, err))
		sw_log(SW_ERROR, "reload: nothing of Dynamo is followed: %s", err->text);
	sw_thresholds_prune(d->live.thresholds, d->live.conf);
	sw_log_level(d->live.conf->log_level);
	tv = period(d->live.conf->heartbeat_ms);
	event_add(d->beat, &tv);
	d->look = true;
	return 0;
}

static void on_reload(evutil_socket_t signal, short what, void *arg)
{
	struct daemon *d = arg;
	struct sw_error err = {0};

	(void)signal;
	(void)what;
	sw_notify("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, sw_now_ns() / 1000);
	if (reload(d, &err)) {
		d->live.reload_failures++;
		sw_log(SW_ERROR, "reload: %s; the running configuration stays", err.text);
	} else {
		d->live.reloads++;
		sw_log(SW_INFO, "reload: %s is applied", d->live.conf->file);
	}
	sw_notify("READY=1");
}

/* ---- start and stop ---------------------------------------------------------------------- */

static struct event *add_event(struct daemon *d, int fd, short what, event_callback_fn fn,
			       unsigned ms)
{
	struct event *e = event_new(d->base, fd, what | EV_PERSIST, fn, d);
	struct timeval tv = period(ms);

	if (!e || event_add(e, ms ? &tv : NULL)) {
		if (e)
			event_free(e);
		return NULL;
	}
	d->events[d->n_events++] = e;
	return e;
}

static int add_events(struct daemon *d, struct sw_error *err)
{
	unsigned watchdog = sw_notify_watchdog_ms();

	d->beat = add_event(d, -1, 0, on_beat, d->live.conf->heartbeat_ms);
	if (!d->beat || !add_event(d, -1, 0, on_second, 1000) ||
	    !add_event(d, SIGTERM, EV_SIGNAL, on_stop, 0) ||
	    !add_event(d, SIGINT, EV_SIGNAL, on_stop, 0) ||
	    !add_event(d, SIGHUP, EV_SIGNAL, on_reload, 0) ||
	    (watchdog && !add_event(d, -1, 0, on_watchdog, watchdog)))
		return sw_fail(err, -ENOMEM, "cannot set up timers and signals");
	return 0;
}

static void on_load(struct sw_live_worker *w, int n, const struct sw_report *reports)
{
	const struct sw_error none = {""};

	sw_worker_told(w, SW_FEED_PUSH, 0, n, reports, &none);
}

static int open_control(struct daemon *d, struct sw_error *err)
{
	struct sw_live *live = &d->live;
	const struct sw_config *conf = live->conf;
	int e = sw_thresholds_new(&live->thresholds, conf->state_file, err);

	if (e)
		return e;
	sw_thresholds_prune(live->thresholds, conf);
	live->history = sw_history_new();
	e = sw_control_open(&d->control, d->base, conf->control, live, sw_pool_judge, err);
	if (!e)
		sw_control_take_loads(d->control, on_load);
	if (!e && conf->control_tcp.port)
		e = sw_control_listen(d->control, &conf->control_tcp, conf->control_token_file,
				      err);
	return e;
}

static int start(struct daemon *d, struct sw_error *err)
{
	struct sw_live *live = &d->live;
	struct sw_steering_change *steering;
	int e;

	signal(SIGPIPE, SIG_IGN);
	live->started_ms = sw_now_ms();
	live->least_margin_ns = live->conf->deadline_ms * 1000000LL;
	live->servers = calloc(live->conf->n_listeners + 1, sizeof(*live->servers));
	live->offsets = calloc(live->conf->n_listeners + 1, sizeof(*live->offsets));
	d->base = event_base_new();
	if (!d->base || !live->servers || !live->offsets)
		return sw_fail(err, -ENOMEM, "no memory");
	e = sw_lock_take(&d->lock, live->conf->pin_root, err);
	if (!e)
		e = sw_hub_new(&live->hub, d->base, err);
	if (!e)
		e = sw_shed_new(live, err);
	if (!e)
		e = open_control(d, err);
	if (!e)
		e = sw_scraper_new(&live->scraper, d->base, err);
	if (!e)
		e = sw_pools_build(live, live->conf, &live->pools, err);
	if (e)
		return e;
	live->n_pools = live->conf->n_pools;
	e = add_events(d, err); /* first, so that a signal cannot end the process half attached */
	if (!e)
		e = sw_steering_new(live, d->base, err);
	if (!e)
		e = sw_steering_prepare(live, live->conf, live->pools, &steering, err);
	if (e)
		return e;
	e = sw_planes_open(live, err);
	if (e)
		sw_steering_undo(live, steering);
	else
		sw_steering_commit(live, steering);
	return e ? e : sw_dynamo_open(live, d->base, err);
}

static void stop(struct daemon *d)
{
	struct sw_live *live = &d->live;

	sw_dynamo_close(live);
	/* before the planes: our own connections to the workers may be among those that were shed
	 * on */
	sw_pools_stop_reading(live);
	sw_shed_free(live);
	sw_planes_close(live, LINGER_MS);
	sw_steering_free(live);
	sw_hub_free(live->hub); /* while its followers' connections are there */
	live->hub = NULL;
	sw_control_close(d->control);
	if (live->pools)
		sw_pools_replace(live, NULL, 0);
	for (size_t i = 0; i < d->n_events; i++)
		event_free(d->events[i]);
	if (d->base)
		event_base_free(d->base);
	sw_thresholds_free(live->thresholds);
	sw_history_free(live->history);
	sw_lock_drop(&d->lock);
	free(live->offsets);
	free(live->servers);
	sw_config_free(live->conf);
}

/* Workers' pages, publishers of events, followers and responders have connections, thousands of
 * them where there are many. */
static void allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= files.rlim_max)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static int run(struct daemon *d)
{
	struct sw_error err = {0};
	int e;

	allow_files();
	e = start(d, &err);
	if (!e) {
		sw_log(SW_INFO, "spillwayd %s: %zu listeners, %zu pools, control on %s", SW_VERSION,
		       d->live.conf->n_listeners, d->live.conf->n_pools, d->live.conf->control);
		sw_pools_tick(&d->live);
		sw_planes_settle(&d->live);
		sw_shed_second(&d->live);
		sw_history_second(d->live.history, &d->live); /* counted from now on */
		sw_planes_remove_others(&d->live);
		sw_planes_look_for_servers(&d->live);
		sw_notify("READY=1");
		e = event_base_dispatch(d->base);
		sw_notify("STOPPING=1");
		if (e < 0)
			sw_fail(&err, -EIO, "the event loop failed");
	}
	if (e < 0)
		sw_log(SW_ERROR, "%s", err.text);
	stop(d);
	return e < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int remove_all(struct sw_config *c)
{
	struct sw_lock lock = {.fd = -1};
	struct sw_error err = {0};
	int e = sw_lock_take(&lock, c->pin_root, &err);

	if (!e)
		e = sw_host_remove(c->pin_root, &err);
	sw_lock_drop(&lock);
	if (e)
		fprintf(stderr, "spillwayd: %s\n", err.text);
	sw_config_free(c);
	return e ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct daemon d = {.lock.fd = -1, .argc = argc, .argv = argv};
	struct sw_error err = {0};

	switch (sw_config_from_args(argc, argv, &d.live.conf, &err)) {
	case SW_ARGS_EXIT: return EXIT_SUCCESS;
	case SW_ARGS_ERROR: fprintf(stderr, "spillwayd: %s\n", err.text); return EXIT_USAGE;
	case SW_ARGS_REMOVE: return remove_all(d.live.conf);
	case SW_ARGS_RUN: break;
	}
	sw_log_level(d.live.conf->log_level);
	return run(&d);
}
