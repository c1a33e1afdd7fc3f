/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a frame that a program has made, as a strict receiver would: every length, both checksums
 * and each TCP option must be right. Shares nothing with the programs' own parser.
 */
#ifndef SPILLWAY_TEST_REPLY_H
#define SPILLWAY_TEST_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reply {
	uint8_t eth_dst[6], eth_src[6];
	unsigned n_tags;
	uint16_t tag[3];
	int family;
	uint8_t src[16], dst[16];
	uint8_t tos, ttl;
	unsigned ip_options_len;
	size_t ip_len; /* bytes from the IP header to the end */

	uint16_t sport, dport, window;
	uint32_t seq, ack;
	uint8_t flags;
	int mss, wscale; /* -1: not there */
	bool sack_ok, has_ts;
	uint32_t tsval, tsecr;
	const uint8_t *payload;
	size_t payload_len;
};

/* NULL, or what is wrong with the frame. `r->payload` points into `bytes`. */
const char *reply_parse(const uint8_t *bytes, size_t len, struct reply *r);

#endif
