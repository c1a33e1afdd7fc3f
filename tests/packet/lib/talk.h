/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A conversation as the client sees it: opened by a SYN, continued by segments at any place of
 * either stream. The cookie is only what came back in the SYN-ACK; nothing here can compute one.
 */
#ifndef SPILLWAY_TEST_TALK_H
#define SPILLWAY_TEST_TALK_H

#include "lane.h"

#define REQUEST                                                                                    \
	"POST /v1/chat/completions HTTP/1.1\r\nHost: llm\r\nContent-Type: application/json\r\n"    \
	"Content-Length: 23\r\n\r\n{\"model\":\"m\",\"n\":\"x y\"}"
#define HEALTH "GET /health HTTP/1.1\r\nHost: llm\r\n\r\n"

struct talk {
	struct lane *l;
	struct frame syn;
	struct reply syn_ack;
	uint32_t cookie;
	uint32_t clock; /* the client's timestamps */
	uint32_t seen;	/* the newest timestamp of ours */
	bool no_stamps; /* those that the client offers are to be refused */
};

/* From a fresh port, with the SYN that Linux sends: MSS, SACK, timestamps, window scale 7. */
struct talk talk_new(struct lane *l);
/* The same without options but an MSS. */
struct talk talk_bare(struct lane *l);
/* Sends the SYN. False: there was no SYN-ACK, and the failure is noted. */
bool talk_open(struct talk *t);
/* talk_new() and talk_open(). */
bool talk_opened(struct talk *t, struct lane *l);

/* The segment `sent` bytes into the client's stream, when it has `got` bytes of ours. */
struct frame talk_segment(struct talk *t, uint32_t sent, uint32_t got, uint8_t flags,
			  const void *payload, size_t len);
/* The first segment with a text in it. */
struct frame talk_request(struct talk *t, const char *text);

/* lane_expect(), and timestamps that fit the conversation. */
bool talk_expect(struct talk *t, const struct frame *f, enum sw_reason want, struct result *r);

/* What is wrong with the timestamps of a reply to `f`: there when the client sent one, echoing it,
 * never going backwards. NULL: nothing. */
const char *talk_timestamps(struct talk *t, const struct frame *f, const struct reply *r);

/* The whole of it up to the answer. */
bool talk_shed(struct talk *t, struct lane *l, struct result *r);

/* All of it from the SYN on, each frame in the shape of `t->syn`. */
void talk_through(struct talk *t);

#endif
