// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sockets of the control interface; see control.h. What is asked there is routes.c's matter. */
#include <errno.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/json.h"
#include "control/serve.h"

#define HEADERS_LIMIT (16 * 1024)
#define IDLE_SECONDS  10

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

/* Takes `fd` over, whatever comes of it. NULL: no memory. */
static struct evhttp *start_http(struct sw_control *c, int fd,
				 void (*serve)(struct evhttp_request *, void *))
{
	const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC;
	struct evconnlistener *l = evconnlistener_new(c->base, NULL, NULL, flags, 0, fd);
	struct evhttp *http = l ? evhttp_new(c->base) : NULL;

	if (!l)
		close(fd);
	if (!http || !evhttp_bind_listener(http, l)) {
		if (http)
			evhttp_free(http);
		if (l)
			evconnlistener_free(l);
		return NULL;
	}
	evhttp_set_max_body_size(http, SW_READ_LIMIT);
	evhttp_set_max_headers_size(http, HEADERS_LIMIT);
	evhttp_set_timeout(http, IDLE_SECONDS);
	/* those that no path has are refused by routes.c, in JSON */
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
						 EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
						 EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
						 EVHTTP_REQ_PATCH);
	/* who sends too much is told so, instead of losing the connection */
	evhttp_set_flags(http, EVHTTP_SERVER_LINGERING_CLOSE);
	evhttp_set_gencb(http, serve, c);
	return http;
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
	c->base = base;
	c->live = live;
	c->changed = changed;
	c->http = start_http(c, fd, sw_serve);
	if (!c->http) {
		sw_control_close(c);
		return sw_fail(err, -ENOMEM, "control socket: no memory");
	}
	*out = c;
	return 0;
}

void sw_control_take_loads(struct sw_control *c, sw_control_told_cb told)
{
	c->told = told;
}

/* ---- TCP ---------------------------------------------------------------------------------- */

static int bind_tcp(const struct sw_endpoint *at, const char *text, struct sw_error *err)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(at->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(at->port)};
	bool is_v4 = !memcmp(at->addr, mapped, sizeof(mapped));
	const int one = 1, zero = 0;
	int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int e;

	memcpy(&v4.sin_addr, at->addr + sizeof(mapped), sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, at->addr, sizeof(v6.sin6_addr));
	if (fd < 0)
		return sw_fail(err, -errno, "control_tcp %s: %s", text, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!is_v4) /* [::] takes IPv4 too */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	e = is_v4 ? bind(fd, (struct sockaddr *)&v4, sizeof(v4))
		  : bind(fd, (struct sockaddr *)&v6, sizeof(v6));
	if (!e && !listen(fd, 64))
		return fd;
	e = errno;
	close(fd);
	return sw_fail(err, -e, "control_tcp %s: %s", text, strerror(e));
}

int sw_control_listen(struct sw_control *c, const struct sw_endpoint *at, const char *token_file,
		      struct sw_error *err)
{
	json_t *text = sw_json_endpoint(at);
	int e, fd;

	c->token_file = strdup(token_file);
	e = c->token_file ? sw_auth_check(c, err) : sw_fail(err, -ENOMEM, "no memory");
	fd = e ? e : bind_tcp(at, json_string_value(text), err);
	json_decref(text);
	if (fd < 0)
		return fd;
	c->tcp = start_http(c, fd, sw_serve_tcp);
	return c->tcp ? 0 : sw_fail(err, -ENOMEM, "no memory");
}

void sw_control_close(struct sw_control *c)
{
	if (!c)
		return;
	if (c->tcp)
		evhttp_free(c->tcp);
	if (c->http)
		evhttp_free(c->http);
	unlink(c->path);
	free(c->token_file);
	free(c);
}
