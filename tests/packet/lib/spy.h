/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sees every segment of one connection on the client's device, before any of them is lost there,
 * and sends segments that the client never made. */
#ifndef SPILLWAY_TEST_SPY_H
#define SPILLWAY_TEST_SPY_H

#include "ends.h"

enum { SPY_FIN = 1, SPY_SYN = 2, SPY_RST = 4, SPY_PSH = 8, SPY_ACK = 16 };
enum { SPY_HEADERS = 14 + 40 + 60 };

struct segment {
	bool ours; /* the client's */
	uint8_t flags;
	uint16_t window;
	uint32_t seq, ack;
	uint32_t length; /* of the payload */
	bool stamped;
	uint32_t value, echo; /* timestamps */
	unsigned n_blocks;
	uint32_t block[4][2]; /* SACK */
	uint8_t headers[SPY_HEADERS];
	unsigned l4, data;  /* offsets in there, and of the payload */
	uint8_t start[256]; /* of the payload */
};

struct spy {
	int fd;
	struct ends *e;
	struct segment last;		   /* of the client's, without SACK blocks */
	uint32_t next;			   /* the client's next number */
	unsigned resets, answers, repeats; /* seen so far; repeats: payload of the client's again */
};

struct spy spy_on(struct ends *e);
/* The next segment of the connection, however late. False: none within `ms`. */
bool spy_next(struct spy *s, struct segment *out, int ms);
/* Takes note of all that has gone by. */
void spy_catch_up(struct spy *s);

/* The server closes first, then the client, and nobody sends a RST. */
void ends_cleanly(struct ends *e);

/* A segment as the client would send it now, `back` bytes before the number that is due. */
void spy_send(struct spy *s, uint8_t flags, uint32_t back, const void *payload, size_t n);
void spy_send_ack(struct spy *s, uint32_t ack);
void spy_send_corrupt(struct spy *s, const void *payload, size_t n);

#endif
