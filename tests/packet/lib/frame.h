/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Builds Ethernet frames with a TCP segment in them from a plain description, right by default and
 * wrong on request in one field at a time. Knows nothing of the programs under test.
 */
#ifndef SPILLWAY_TEST_FRAME_H
#define SPILLWAY_TEST_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX 65600 /* over a wire; BPF_PROG_TEST_RUN takes about 3500 */

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_ACK = 16, TCP_URG = 32 };
enum { TCP_ECE = 64, TCP_CWR = 128 };

enum frame_sum {
	SUM_GOOD,
	SUM_BAD,
	SUM_PARTIAL, /* as a local sender leaves it: the bare sum of the pseudo-header */
};

#define RIGHT (-1) /* the value that fits the rest of the frame */

struct frame {
	int family; /* 4 or 6 */
	unsigned n_tags;
	uint16_t tag[3]; /* in-band VLAN tags, outermost first */
	uint8_t src[16], dst[16];
	uint8_t tos, ttl;

	uint8_t ip_options[40]; /* IPv4 */
	unsigned ip_options_len;
	int ihl;	   /* RIGHT, or what the header says */
	uint16_t fragment; /* IPv4: flags and offset */
	bool bad_ip_sum;
	uint8_t ext[4]; /* IPv6: next-header values of 8-byte extension headers */
	unsigned n_ext;
	uint8_t protocol;
	int lie; /* added to the IP length field */

	uint16_t sport, dport, window;
	uint32_t seq, ack;
	uint8_t flags;
	int doff; /* RIGHT, or what the header says */
	uint8_t options[40];
	unsigned options_len;
	const void *payload;
	size_t payload_len;
	enum frame_sum sum;

	size_t pad_to; /* junk behind the IP packet up to this frame length */
};

struct packet {
	uint8_t bytes[FRAME_MAX];
	size_t len;
	size_t l3, l4, payload; /* offsets */
};

/* One's-complement sum of `len` bytes as big-endian words on top of `sum`, folded. */
uint16_t inet_sum(const void *bytes, size_t len, uint32_t sum);
/* The part of the sum that comes from addresses, protocol and segment length. */
uint16_t pseudo_sum(int family, const uint8_t *src, const uint8_t *dst, size_t segment);

void frame_build(const struct frame *f, struct packet *p);

/* Appends a TCP option; a `kind` of 0 or 1 is a single byte. */
void frame_option(struct frame *f, uint8_t kind, const void *value, unsigned len);
void frame_option_mss(struct frame *f, uint16_t mss);
void frame_option_timestamps(struct frame *f, uint32_t val, uint32_t ecr);

#endif
