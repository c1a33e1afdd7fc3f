/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One connection that is kept, and what goes over it: requests of all sizes, cut anywhere, several
 * under way at a time if that is wanted, and each answer checked to the byte. The answers of a
 * server that sheds are canned: there are only so many texts, and what is not one of them is wrong.
 */
#ifndef TOOLS_KEEPING_H
#define TOOLS_KEEPING_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define KEEPING_DEPTH_MAX 16
#define KEEPING_TEXTS_MAX 64
#define KEEPING_HEAD_MAX  4096

struct keeping_job { /* what all connections share */
	struct sockaddr_storage to;
	socklen_t to_length;
	const char *path;
	unsigned depth;	    /* requests under way on a connection, at most */
	size_t body_max;    /* of either direction */
	unsigned lifetime;  /* requests of a connection on average; 0: no end */
	unsigned texts_max; /* texts of shed answers */
	bool bodies;	    /* only their bodies count: a proxy writes other heads */
	bool whole;	    /* no request is cut */
	uint64_t left;	    /* requests still to be begun */
	uint64_t random;    /* state */

	uint64_t served, shed, opened, errors, hangs, sent_bytes, got_bytes;
	char first_error[400];
	char *texts[KEEPING_TEXTS_MAX]; /* of shed answers, as they came up */
	size_t text_length[KEEPING_TEXTS_MAX];
	unsigned n_texts;
};

struct keeping_request {
	uint64_t tag;
	bool post;
	size_t body, wanted; /* bytes there and back */
	char head[200];
	size_t head_length;
};

struct keeping {
	struct keeping_job *job;
	int fd;		 /* -1: none */
	uint64_t number; /* of the connection */
	unsigned asked, ends_after;
	bool connecting, closing; /* no more requests: the server will close, or has to */

	/* those under way, oldest first; the newest may not have been written to its end */
	struct keeping_request under_way[KEEPING_DEPTH_MAX];
	unsigned first, n, target;
	size_t written;	     /* of the newest */
	size_t cut;	     /* where it is cut next */
	uint64_t hold_until; /* us: nothing is written before that */
	bool writing;

	/* the response that is coming in */
	char head[KEEPING_HEAD_MAX];
	size_t head_length, got, length; /* of the body, if known */
	int status;			 /* 0: the head is not complete */
	bool chunked;
	size_t chunk;  /* left of it */
	char line[80]; /* chunk framing, or a trailer */
	size_t line_length;
	uint8_t step;
	uint64_t moved; /* us: last progress */
};

/* A new connection, in place of what there was. */
void keeping_open(struct keeping *k, struct keeping_job *job, uint64_t now);
/* Does what can be done now. `in`, `out`: the socket is readable, writable. */
void keeping_go(struct keeping *k, bool in, bool out, uint64_t now);
/* Does it want to write now? */
bool keeping_wants_out(const struct keeping *k, uint64_t now);
/* Nothing under way and nothing left to ask. */
bool keeping_idle(const struct keeping *k);
/* Gives it up, as nothing has moved for too long. */
void keeping_hang(struct keeping *k, uint64_t now);

#endif
