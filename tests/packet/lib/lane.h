/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a packet through a program and checks all that holds for every packet: one counter moved,
 * by one; verdict and counter agree; what passed is byte-identical; what came back is a sound
 * mirror image of what was sent. A lane is one program and one IP version: each table runs in all.
 */
#ifndef SPILLWAY_TEST_LANE_H
#define SPILLWAY_TEST_LANE_H

#include "frame.h"
#include "reply.h"
#include "world.h"

struct lane {
	struct world *w;
	enum hook hook;
	int family;
	unsigned id;	   /* the listener whose counter is to move */
	unsigned gso_size; /* TC: the packet is a GRO super-segment of pieces of this size */
};

struct result {
	enum sw_reason reason;
	unsigned listener;
	uint8_t bytes[FRAME_MAX];
	size_t len;
	struct reply reply;	       /* of a REPLY */
	unsigned set, family, variant; /* of the canned answer in it */
};

/* Calls `test` for each program and IP version, on defaults each time; again when it failed, up to
 * `tries` times, of which the last one counts. */
void each_lane(void **state, void (*test)(struct lane *l), int tries);
#define LANE_TEST(f)                                                                               \
	static void test_##f(void **state)                                                         \
	{                                                                                          \
		each_lane(state, f, 1);                                                            \
	}
/* For tests that count on numbers to be unrelated. Cookies have few bits to spare: a segment that
 * should be a stranger's is explained by another period's hash once in some 10,000 times. */
#define CHANCE_TEST(f)                                                                             \
	static void test_##f(void **state)                                                         \
	{                                                                                          \
		each_lane(state, f, 3);                                                            \
	}

/* A frame from client to server without options or payload, to the lane's main listener. */
struct frame lane_frame(const struct lane *l, uint8_t flags);
/* Says what is being tried; messages of failures begin with it. */
void lane_trying(struct lane *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Runs raw bytes, checks counter, verdict and identity of what passes. False: refused by the
 * kernel's test run (too short to be a packet) or failed a check. */
bool lane_run(struct lane *l, const struct packet *p, struct result *r);
/* Runs raw bytes that must pass, whatever the reason. */
void lane_passes(struct lane *l, const struct packet *p);
/* Runs a frame and checks the reason, and a reply against the frame. Reasons of class GIVE mean
 * what they do outside a test run: XDP leaves the packet to TC, and TC's hand-over, which a test
 * run refuses, becomes shed_no_handover. `r` may be NULL. */
bool lane_expect(struct lane *l, const struct frame *f, enum sw_reason want, struct result *r);

/* What is wrong with a reply, given the frame and its reason in `r`; NULL: nothing. */
const char *lane_judge(const struct frame *f, const struct packet *p, struct result *r);

/* The class of a reason: 'P'ass, 'D'rop, 'R'eply or 'G'ive. */
char reason_class(enum sw_reason reason);

#endif
