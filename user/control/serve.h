/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of the control interface share: server.c has the sockets, auth.c the token,
 * routes.c the table of what can be asked; longer answers have files of their own.
 */
#ifndef SPILLWAY_SERVE_H
#define SPILLWAY_SERVE_H

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include <sys/un.h>

#include "control/control.h"

#define SW_BODY_LIMIT (64 * 1024)	  /* of a request, in bytes */
#define SW_LOAD_LIMIT (1024 * 1024)	  /* of one that tells loads; it may be of many workers */
#define SW_READ_LIMIT (2 * SW_LOAD_LIMIT) /* past it evhttp refuses by itself, without JSON */

struct sw_control {
	struct evhttp *http, *tcp; /* `tcp` NULL: not asked for */
	struct event_base *base;
	struct sw_live *live;
	sw_control_cb changed;
	sw_control_told_cb told; /* NULL: nobody takes loads */
	char *token_file;
	bool token_open; /* its file can be read by others; that was said */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* Callbacks of evhttp for a request over the unix socket, and over TCP. */
void sw_serve(struct evhttp_request *req, void *control);
void sw_serve_tcp(struct evhttp_request *req, void *control);

/* The body as JSON; NULL: it is none, and was answered with 400. */
json_t *sw_serve_body(struct evhttp_request *req);
/* The query's parameters, to be cleared. */
void sw_serve_query(struct evhttp_request *req, struct evkeyvalq *query);

/* ---- auth.c ------------------------------------------------------------------------------- */

/* Can the token be used? Warns when others can read it. A negative errno: it cannot. */
int sw_auth_check(struct sw_control *c, struct sw_error *err);
/* Does the request have the token? If not, it was answered. */
bool sw_auth_passes(struct sw_control *c, struct evhttp_request *req);

/* ---- routes with files of their own ------------------------------------------------------- */

/* busy_threshold.c */
void sw_get_busy_threshold(struct sw_control *c, struct evhttp_request *req);
void sw_post_busy_threshold(struct sw_control *c, struct evhttp_request *req);
void sw_delete_busy_threshold(struct sw_control *c, struct evhttp_request *req);

#endif
