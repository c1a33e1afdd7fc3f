// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The HTTP server on the unix socket: routes, limits; see control.h. What a route shows is in
 * status.c, metrics.c and hub.c, what it changes in operate.c. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "control/control.h"
#include "control/hub.h"
#include "control/metrics.h"
#include "control/operate.h"
#include "control/reply.h"
#include "control/status.h"
#include "control/web.h"

#define BODY_LIMIT    (64 * 1024)
#define HEADERS_LIMIT (16 * 1024)
#define IDLE_SECONDS  10

struct sw_control {
	struct evhttp *http;
	struct sw_live *live;
	sw_control_cb changed;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static void get_status(struct sw_control *c, struct evhttp_request *req)
{
	sw_reply_json(req, 200, sw_status_json(c->live, sw_now_ms()));
}

static void get_explain(struct sw_control *c, struct evhttp_request *req)
{
	struct evkeyvalq query = {0};
	const struct sw_live_pool *pool = NULL;
	const char *q = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	const char *name;

	evhttp_parse_query_str(q ? q : "", &query);
	name = evhttp_find_header(&query, "pool");
	if (name)
		pool = sw_live_find_pool(c->live, name);
	if (name && !pool)
		sw_reply_error(req, 404, "no pool has that name");
	else
		sw_reply_json(req, 200, sw_explain_json(c->live, pool, sw_now_ms()));
	evhttp_clear_headers(&query);
}

static void get_health(struct sw_control *c, struct evhttp_request *req)
{
	(void)c;
	sw_reply_json(req, 200, json_pack("{s:s}", "status", "ok"));
}

static void get_metrics(struct sw_control *c, struct evhttp_request *req)
{
	struct evbuffer *out = evbuffer_new();

	if (!out)
		return evhttp_send_error(req, 500, NULL);
	sw_metrics_write(c->live, sw_now_ms(), out);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
			  "text/plain; version=0.0.4");
	evhttp_send_reply(req, 200, NULL, out);
	evbuffer_free(out);
}

static void get_events(struct sw_control *c, struct evhttp_request *req)
{
	sw_hub_join(c->live->hub, req);
}

static json_t *read_body(struct evhttp_request *req)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t n = evbuffer_get_length(in);

	return json_loadb((const char *)evbuffer_pullup(in, -1), n, JSON_REJECT_DUPLICATES, NULL);
}

/* Carries a change of pools out and answers with what they are now. */
static void operate(struct sw_control *c, struct evhttp_request *req, bool force)
{
	json_t *body = read_body(req);
	struct sw_live_pool *first = NULL;
	struct sw_error err = {0};
	size_t n = 0;
	int status;

	if (!body)
		return sw_reply_error(req, 400, "the request's body is not JSON");
	status = force ? sw_operate_force(c->live, body, sw_now_ms(), &first, &n, &err)
		       : sw_operate_drain(c->live, body, sw_now_ms(), &first, &n, &err);
	json_decref(body);
	if (status)
		return sw_reply_error(req, status, err.text);
	for (size_t i = 0; i < n; i++)
		c->changed(&first[i]);
	sw_reply_json(req, 200, sw_explain_json(c->live, n == 1 ? first : NULL, sw_now_ms()));
}

static void get_page(struct sw_control *c, struct evhttp_request *req)
{
	(void)c;
	sw_web_page(req);
}

static void post_force(struct sw_control *c, struct evhttp_request *req)
{
	operate(c, req, true);
}

static void post_drain(struct sw_control *c, struct evhttp_request *req)
{
	operate(c, req, false);
}

static const struct route {
	enum evhttp_cmd_type method;
	const char *path;
	void (*serve)(struct sw_control *c, struct evhttp_request *req);
} routes[] = {
	{EVHTTP_REQ_GET, "/", get_page},
	{EVHTTP_REQ_GET, "/v1/status", get_status},
	{EVHTTP_REQ_GET, "/v1/explain", get_explain},
	{EVHTTP_REQ_GET, "/health", get_health},
	{EVHTTP_REQ_GET, "/metrics", get_metrics},
	{EVHTTP_REQ_GET, "/v1/events", get_events},
	{EVHTTP_REQ_POST, "/v1/force", post_force},
	{EVHTTP_REQ_POST, "/v1/drain", post_drain},
};

static void serve(struct evhttp_request *req, void *arg)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	bool known = false;

	for (size_t i = 0; path && i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strcmp(path, routes[i].path))
			continue;
		known = true;
		if (routes[i].method == evhttp_request_get_command(req))
			return routes[i].serve(arg, req);
	}
	sw_reply_error(req, known ? 405 : 404,
		       known ? "wrong method for this path" : "no such path; see docs/control.md");
}

/* Does somebody accept connections there? A socket file that outlived its daemon does not. */
static bool is_served(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool served;

	if (fd < 0)
		return false;
	served = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN;
	close(fd);
	return served;
}

/* Makes the directories above the socket. */
static int make_parents(const char *path, struct sw_error *err)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];

	strcpy(dir, path);
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(dir, 0755) && errno != EEXIST)
			return sw_fail(err, -errno, "control socket: cannot make %s: %s", dir,
				       strerror(errno));
		*slash = '/';
	}
	return 0;
}

static int bind_socket(const char *path, struct sw_error *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	mode_t mask;
	int fd, e;

	strcpy(addr.sun_path, path);
	if (is_served(&addr))
		return sw_fail(err, -EADDRINUSE,
			       "another spillwayd answers on %s; stop it, or choose another socket "
			       "with --control",
			       path);
	if (!lstat(path, &st) && !S_ISSOCK(st.st_mode))
		return sw_fail(err, -EEXIST, "control socket: %s exists and is no socket", path);
	unlink(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return sw_fail(err, -errno, "control socket: %s", strerror(errno));
	mask = umask(0117); /* 0660 from the first moment on */
	e = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 64) ? errno : 0;
	umask(mask);
	if (e) {
		close(fd);
		return sw_fail(err, -e, "control socket %s: %s", path, strerror(e));
	}
	return fd;
}

/* Takes `fd` over, whatever comes of it. */
static int start_http(struct sw_control *c, struct event_base *base, int fd)
{
	const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC;
	struct evconnlistener *l = evconnlistener_new(base, NULL, NULL, flags, 0, fd);

	if (!l) {
		close(fd);
		return -ENOMEM;
	}
	c->http = evhttp_new(base);
	if (!c->http || !evhttp_bind_listener(c->http, l)) {
		evconnlistener_free(l);
		return -ENOMEM;
	}
	evhttp_set_max_body_size(c->http, BODY_LIMIT);
	evhttp_set_max_headers_size(c->http, HEADERS_LIMIT);
	evhttp_set_timeout(c->http, IDLE_SECONDS);
	evhttp_set_gencb(c->http, serve, c);
	return 0;
}

int sw_control_open(struct sw_control **out, struct event_base *base, const char *path,
		    struct sw_live *live, sw_control_cb changed, struct sw_error *err)
{
	struct sw_control *c;
	int fd;

	if (strlen(path) >= sizeof(c->path))
		return sw_fail(err, -ENAMETOOLONG,
			       "control socket: the path is longer than %zu bytes: %s",
			       sizeof(c->path) - 1, path);
	fd = make_parents(path, err);
	if (fd == 0)
		fd = bind_socket(path, err);
	if (fd < 0)
		return fd;
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return sw_fail(err, -ENOMEM, "no memory");
	}
	strcpy(c->path, path);
	c->live = live;
	c->changed = changed;
	if (start_http(c, base, fd)) {
		sw_control_close(c);
		return sw_fail(err, -ENOMEM, "control socket: no memory");
	}
	*out = c;
	return 0;
}

void sw_control_close(struct sw_control *c)
{
	if (!c)
		return;
	if (c->http)
		evhttp_free(c->http);
	unlink(c->path);
	free(c);
}
