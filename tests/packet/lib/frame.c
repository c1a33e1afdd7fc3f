// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Builds Ethernet frames with a TCP segment in them. What a field says and what is really there
// can differ on request; everything else is made to fit.

#include "frame.h"

#include <assert.h>
#include <string.h>

static const uint8_t client_mac[6] = {0x02, 0, 0, 0, 0, 0xc1};
static const uint8_t server_mac[6] = {0x02, 0, 0, 0, 0, 0x5e};

static uint8_t *put16(uint8_t *at, uint16_t v)
{
	at[0] = v >> 8;
	at[1] = v & 0xff;
	return at + 2;
}

static uint8_t *put32(uint8_t *at, uint32_t v)
{
	return put16(put16(at, v >> 16), v & 0xffff);
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t len)
{
	if (len)
		memcpy(at, bytes, len);
	return at + len;
}

uint16_t inet_sum(const void *bytes, size_t len, uint32_t sum)
{
	const uint8_t *b = bytes;

	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? b[i] : b[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

uint16_t pseudo_sum(int family, const uint8_t *src, const uint8_t *dst, size_t segment)
{
	size_t size = family == 4 ? 4 : 16;

	return inet_sum(src, size, inet_sum(dst, size, 6 + segment));
}

static size_t segment_length(const struct frame *f)
{
	return 20 + (f->options_len + 3) / 4 * 4 + f->payload_len;
}

static uint8_t *put_ethernet(const struct frame *f, uint8_t *at)
{
	at = put(at, server_mac, 6);
	at = put(at, client_mac, 6);
	for (unsigned i = 0; i < f->n_tags; i++) {
		at = put16(at, i + 1 < f->n_tags ? 0x88a8 : 0x8100);
		at = put16(at, f->tag[i]);
	}
	return put16(at, f->family == 4 ? 0x0800 : 0x86dd);
}

static uint8_t *put_ipv4(const struct frame *f, uint8_t *ip)
{
	unsigned length = 20 + (f->ip_options_len + 3) / 4 * 4;

	memset(ip, 0, length);
	ip[0] = 0x40 | (f->ihl == RIGHT ? length / 4 : (unsigned)f->ihl);
	ip[1] = f->tos;
	put16(ip + 2, length + segment_length(f) + f->lie);
	put16(ip + 4, 0x1234);
	put16(ip + 6, f->fragment);
	ip[8] = f->ttl;
	ip[9] = f->protocol;
	put(ip + 12, f->src, 4);
	put(ip + 16, f->dst, 4);
	put(ip + 20, f->ip_options, f->ip_options_len);
	put16(ip + 10, ~inet_sum(ip, length, 0));
	if (f->bad_ip_sum)
		ip[10] ^= 0x40;
	return ip + length;
}

/* Extension headers are 8 bytes each; a fragment header says "whole packet, in one fragment". */
static uint8_t *put_ipv6(const struct frame *f, uint8_t *ip)
{
	uint8_t *at;

	put32(ip, 0x60000000 | f->tos << 20 | 0x12345);
	put16(ip + 4, 8 * f->n_ext + segment_length(f) + f->lie);
	ip[6] = f->n_ext ? f->ext[0] : f->protocol;
	ip[7] = f->ttl;
	put(ip + 8, f->src, 16);
	at = put(ip + 24, f->dst, 16);
	for (unsigned i = 0; i < f->n_ext; i++, at += 8) {
		memset(at, 0, 8);
		at[0] = i + 1 < f->n_ext ? f->ext[i + 1] : f->protocol;
	}
	return at;
}

static uint8_t *put_tcp(const struct frame *f, uint8_t *tcp)
{
	unsigned length = 20 + (f->options_len + 3) / 4 * 4;
	unsigned doff = f->doff == RIGHT ? length / 4 : (unsigned)f->doff;
	uint16_t pseudo = pseudo_sum(f->family, f->src, f->dst, segment_length(f)), sum;

	memset(tcp, 0, length);
	put16(tcp, f->sport);
	put16(tcp + 2, f->dport);
	put32(tcp + 4, f->seq);
	put32(tcp + 8, f->ack);
	tcp[12] = doff << 4;
	tcp[13] = f->flags;
	put16(tcp + 14, f->window);
	put(tcp + 20, f->options, f->options_len);
	put(tcp + length, f->payload, f->payload_len);
	if (f->sum == SUM_PARTIAL) {
		put16(tcp + 16, pseudo);
		return tcp + length;
	}
	sum = inet_sum(tcp, segment_length(f), pseudo);
	if ((sum ^ pseudo) == 0xffff) { /* would look like a partial one, by chance */
		put16(tcp + 14, f->window - 2);
		sum = inet_sum(tcp, segment_length(f), pseudo);
	}
	put16(tcp + 16, ~sum ^ (f->sum == SUM_BAD ? 1 : 0));
	return tcp + length;
}

void frame_build(const struct frame *f, struct packet *p)
{
	uint8_t *at = put_ethernet(f, p->bytes);

	assert(f->payload_len <= FRAME_MAX - 130);
	p->l3 = at - p->bytes;
	at = f->family == 4 ? put_ipv4(f, at) : put_ipv6(f, at);
	p->l4 = at - p->bytes;
	at = put_tcp(f, at);
	p->payload = at - p->bytes;
	p->len = p->payload + f->payload_len;
	for (; p->len < f->pad_to; p->len++)
		p->bytes[p->len] = 0xa5;
}

void frame_option(struct frame *f, uint8_t kind, const void *value, unsigned len)
{
	assert(f->options_len + 2 + len <= sizeof(f->options));
	f->options[f->options_len++] = kind;
	if (kind <= 1)
		return;
	f->options[f->options_len++] = 2 + len;
	put(f->options + f->options_len, value, len);
	f->options_len += len;
}

void frame_option_mss(struct frame *f, uint16_t mss)
{
	uint8_t value[2];

	put16(value, mss);
	frame_option(f, 2, value, 2);
}

void frame_option_timestamps(struct frame *f, uint32_t val, uint32_t ecr)
{
	uint8_t value[8];

	put32(put32(value, val), ecr);
	frame_option(f, 8, value, 8);
}
