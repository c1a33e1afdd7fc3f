/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server side of HTTP/1.x on libevent: connections, keep-alive, request bodies by length,
 * replies in one piece or streamed. Tells at once when a client goes away, which evhttp does not
 * while a reply is pending. What is served is the caller's. */
#ifndef TOOLS_SERVER_H
#define TOOLS_SERVER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>

#define SERVER_BODY_MAX (4u << 20)

struct server;
struct client; /* one connection */

struct server_request {
	const char *method, *path, *query; /* query: behind '?', or "" */
	const char *body;
	size_t length;
};

struct server_calls {
	/* A whole request has arrived. Answer now or later; the strings are gone on return. */
	void (*request)(void *arg, struct client *c, const struct server_request *r);
	/* The client went away before its reply was finished; c is no longer to be used. */
	void (*gone)(void *arg, struct client *c);
	void *arg;
};

struct server *server_new(struct event_base *base, const struct server_calls *calls);
/* Listens on "ADDR:PORT" or "[ADDR6]:PORT"; may be called several times. Negative errno. */
int server_listen(struct server *s, const char *address);

/* The caller's own word on a connection whose reply is pending. */
void client_set_data(struct client *c, void *data);
void *client_data(const struct client *c);

/* A whole reply. */
void client_reply(struct client *c, int status, const char *type, const char *body, size_t length);
/* A streamed one: begin, any number of writes, end. */
void client_stream(struct client *c, const char *type);
void client_write(struct client *c, const char *bytes, size_t length);
void client_end(struct client *c);

#endif
