/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Clients of the virtual port of counting.h that answer late, or not at all: a packet socket plays
 * them. */
#ifndef SPILLWAY_TEST_CLIENTS_H
#define SPILLWAY_TEST_CLIENTS_H

#include "counting.h"
#include "local.h"
#include "talk.h"

#define PATIENCE_MS 5000 /* guests are slow */

struct client {
	struct frame syn;
	uint32_t seq; /* of the SYN-ACK */
};

/* For cmocka: each test begins with nothing counted, and ends with all slots free. */
int clients_begin(void **state);
int clients_end(void **state);
#define clients_test(f) cmocka_unit_test_setup_teardown(f, clients_begin, clients_end)

/* A client whose SYN is yet to be sent, from a fresh port. */
void client_new(struct client *c);

/* `n` workers with so many slots each. */
void employ(unsigned n, uint32_t cap, uint32_t half_open);

void client_send(const struct frame *f);

/* Sends a SYN from a fresh port, or again; true: there was a SYN-ACK, and no RST. */
bool client_knock(struct client *c);
/* Unanswered SYNs, from a port each: how many got in. */
unsigned clients_knock(struct client *c, unsigned n);
void client_reply(const struct client *c, uint8_t flags, const char *text);
void client_complete(const struct client *c);
void client_abort(const struct client *c);

#endif
