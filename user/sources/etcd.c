// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Following etcd, see etcd.h: log in, read all keys page by page, watch from there on, and ask now
 * and then whether the cluster is alive. Whatever fails, it all begins anew a while later, at the
 * next endpoint. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "sources/etcd.h"
#include "sources/etcd_call.h"
#include "sources/etcd_talk.h"

#define RETRY_LEAST_MS 250 /* doubled with each failure */
#define RETRY_MOST_MS  10000
#define ALIVE_MS       5000
#define PASSWORD_MAX   1024

enum step { LOGIN, READ };

struct sw_etcd {
	struct sw_members *members;
	char **endpoints;
	size_t n, at; /* `at`: the one in use */
	char *user, *password_file, *ca_file;
	struct sw_curl_loop *loop;
	struct sw_etcd_call *ask; /* login, pages and signs of life, one after the other */
	struct sw_etcd_call *watch;
	struct event *retry, *alive;
	enum step step;
	bool watching;	  /* `ask` asks for signs of life */
	char *token;	  /* NULL: not logged in */
	int64_t revision; /* of what was read */
	unsigned retry_ms;
	int failing; /* negative errno that was said; 0: all goes well */
	struct sw_store_status status;
};

static void begin(struct sw_etcd *e);

static void set_timer(struct event *timer, unsigned ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	evtimer_add(timer, &tv);
}

/* The endpoint without a password, for messages. */
static void show_endpoint(struct sw_etcd *e)
{
	CURLU *u = curl_url();
	char *shown = NULL;

	curl_url_set(u, CURLUPART_URL, e->endpoints[e->at], 0);
	curl_url_set(u, CURLUPART_USER, NULL, 0);
	curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
	curl_url_get(u, CURLUPART_URL, &shown, 0);
	snprintf(e->status.name, sizeof(e->status.name), "%s", shown ? shown : "(not a URL)");
	curl_free(shown);
	curl_url_cleanup(u);
}

/* ---- ends and beginnings ------------------------------------------------------------------- */

/* Half of the time, and up to as much again: many daemons lose one etcd at the same moment. */
static unsigned with_jitter(unsigned ms)
{
	uint16_t random;

	evutil_secure_rng_get_bytes(&random, sizeof(random));
	return ms / 2 + (unsigned)((uint64_t)ms / 2 * random / UINT16_MAX);
}

static void end(struct sw_etcd *e)
{
	sw_etcd_call_stop(e->ask);
	sw_etcd_call_stop(e->watch);
	evtimer_del(e->alive);
	e->watching = false;
	free(e->token);
	e->token = NULL;
}

static void fail(struct sw_etcd *e, int ret, const struct sw_error *why)
{
	end(e);
	e->status.errors++;
	e->status.state = SW_STORE_FAILING;
	e->status.error_ms = sw_now_ms();
	sw_fail(&e->status.error, ret, "etcd at %s: %.250s", e->status.name, why->text);
	if (e->failing != ret)
		sw_log(SW_WARN, "%s; members stay as they were last told", e->status.error.text);
	e->failing = ret;
	e->at = (e->at + 1) % e->n;
	set_timer(e->retry, with_jitter(e->retry_ms));
	e->retry_ms = e->retry_ms < RETRY_MOST_MS / 2 ? 2 * e->retry_ms : RETRY_MOST_MS;
}

static void answered(struct sw_etcd *e)
{
	e->status.at_ms = sw_now_ms();
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	begin(arg);
}

static void ask(struct sw_etcd *e, const char *path, char *body)
{
	struct sw_error err = {""};
	int ret = sw_etcd_call_start(e->ask, e->endpoints[e->at], path, body, e->token, &err);

	if (ret)
		fail(e, ret, &err);
}

/* ---- the watch ------------------------------------------------------------------------------ */

static void start_watch(struct sw_etcd *e)
{
	struct sw_error err = {""};
	int ret = sw_etcd_call_start(e->watch, e->endpoints[e->at], "/v3/watch",
				     sw_etcd_ask_watch(e->revision + 1), e->token, &err);

	if (ret) {
		fail(e, ret, &err);
		return;
	}
	e->watching = true;
	set_timer(e->alive, ALIVE_MS);
}

static int on_line(void *arg, const char *text, size_t length, struct sw_error *err)
{
	struct sw_etcd *e = arg;
	int ret = sw_etcd_take_watch(text, length, e->members, err);

	if (ret)
		return ret;
	if (e->status.state != SW_STORE_OK)
		sw_log(SW_INFO, "etcd at %s: members are read and watched", e->status.name);
	e->status.state = SW_STORE_OK;
	e->failing = 0;
	e->retry_ms = RETRY_LEAST_MS;
	answered(e);
	return 0;
}

static void on_watch_end(void *arg, int ret, const char *text, size_t length,
			 const struct sw_error *err)
{
	struct sw_error why = *err;
	struct sw_etcd *e = arg;

	(void)text;
	(void)length;
	if (ret == -ESTALE) { /* no failure: what was missed is in what is read now */
		end(e);
		set_timer(e->retry, RETRY_LEAST_MS);
		return;
	}
	if (!ret)
		ret = sw_fail(&why, -EPIPE, "the watch has ended");
	fail(e, ret, &why);
}

static void on_alive_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	ask(arg, "/v3/kv/range", sw_etcd_ask_alive());
}

/* ---- login and reading ---------------------------------------------------------------------- */

static int read_password(const struct sw_etcd *e, char out[PASSWORD_MAX], struct sw_error *err)
{
	FILE *f = fopen(e->password_file, "re");
	size_t n = f ? fread(out, 1, PASSWORD_MAX - 1, f) : 0;

	if (!f || ferror(f)) {
		sw_fail(err, -errno, "%s cannot be read: %m", e->password_file);
		if (f)
			fclose(f);
		return -EACCES;
	}
	fclose(f);
	out[n] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	return 0;
}

static void log_in(struct sw_etcd *e)
{
	char password[PASSWORD_MAX] = "";
	struct sw_error err = {""};
	int ret = e->password_file ? read_password(e, password, &err) : 0;

	if (ret)
		fail(e, ret, &err);
	else
		ask(e, "/v3/auth/authenticate", sw_etcd_ask_token(e->user, password));
}

static void read_all(struct sw_etcd *e)
{
	e->step = READ;
	e->revision = 0;
	sw_members_begin(e->members);
	ask(e, "/v3/kv/range", sw_etcd_ask_range(NULL, 0));
}

static int take_page(struct sw_etcd *e, const char *text, size_t length, struct sw_error *err)
{
	struct sw_etcd_page page;
	int ret = sw_etcd_take_range(text, length, e->members, &page, err);

	if (ret)
		return ret;
	if (!e->revision)
		e->revision = page.revision;
	if (page.next) {
		ask(e, "/v3/kv/range", sw_etcd_ask_range(page.next, e->revision));
		free(page.next);
	} else {
		sw_members_end(e->members);
		start_watch(e);
	}
	return 0;
}

static void on_answer(void *arg, int ret, const char *text, size_t length,
		      const struct sw_error *err)
{
	struct sw_error why = *err;
	struct sw_etcd *e = arg;

	if (!ret)
		answered(e);
	if (!ret && e->watching) {
		set_timer(e->alive, ALIVE_MS);
	} else if (!ret && e->step == LOGIN) {
		ret = sw_etcd_take_token(text, length, &e->token, &why);
		if (!ret)
			read_all(e);
	} else if (!ret) {
		ret = take_page(e, text, length, &why);
	}
	if (ret)
		fail(e, ret, &why);
}

static void begin(struct sw_etcd *e)
{
	show_endpoint(e);
	e->step = LOGIN;
	if (e->user)
		log_in(e);
	else
		read_all(e);
}

/* ---- set up --------------------------------------------------------------------------------- */

static bool copy(struct sw_etcd *e, const struct sw_etcd_conf *conf)
{
	bool ok = true;

	e->endpoints = calloc(conf->n, sizeof(*e->endpoints));
	for (; e->endpoints && e->n < conf->n; e->n++) {
		e->endpoints[e->n] = strdup(conf->endpoints[e->n]);
		ok &= e->endpoints[e->n] != NULL;
	}
	e->user = conf->user ? strdup(conf->user) : NULL;
	e->password_file = conf->password_file ? strdup(conf->password_file) : NULL;
	e->ca_file = conf->ca_file ? strdup(conf->ca_file) : NULL;
	return ok && e->endpoints && !e->user == !conf->user &&
	       !e->password_file == !conf->password_file && !e->ca_file == !conf->ca_file;
}

int sw_etcd_new(struct sw_etcd **out, struct event_base *base, const struct sw_etcd_conf *conf,
		struct sw_members *members, struct sw_error *err)
{
	struct sw_etcd *e = calloc(1, sizeof(*e));

	if (!e || !copy(e, conf) || sw_curl_loop_new(&e->loop, base, sw_etcd_call_done))
		goto no_memory;
	e->members = members;
	e->retry_ms = RETRY_LEAST_MS;
	e->ask = sw_etcd_call_new(e->loop, e->ca_file, on_answer, NULL, e);
	e->watch = sw_etcd_call_new(e->loop, e->ca_file, on_watch_end, on_line, e);
	e->retry = evtimer_new(base, on_retry, e);
	e->alive = evtimer_new(base, on_alive_timer, e);
	if (!e->ask || !e->watch || !e->retry || !e->alive)
		goto no_memory;
	show_endpoint(e);
	set_timer(e->retry, 0);
	*out = e;
	return 0;
no_memory:
	sw_etcd_free(e);
	return sw_fail(err, -ENOMEM, "cannot follow etcd: no memory");
}

void sw_etcd_free(struct sw_etcd *e)
{
	if (!e)
		return;
	sw_etcd_call_free(e->ask);
	sw_etcd_call_free(e->watch);
	sw_curl_loop_free(e->loop);
	if (e->retry)
		event_free(e->retry);
	if (e->alive)
		event_free(e->alive);
	for (size_t i = 0; i < e->n; i++)
		free(e->endpoints[i]);
	free(e->endpoints);
	free(e->user);
	free(e->password_file);
	free(e->ca_file);
	free(e->token);
	free(e);
}

const struct sw_store_status *sw_etcd_status(const struct sw_etcd *e)
{
	return &e->status;
}
