// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Reads a frame that a program has made and says what is wrong with it. What the reply should say
// is left to the caller.

#include "reply.h"
#include "frame.h"

#include <string.h>

static uint16_t get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static const char *parse_ipv4(const uint8_t *ip, size_t len, struct reply *r, size_t *header)
{
	*header = (ip[0] & 15) * 4;
	if (len < 20 || ip[0] >> 4 != 4 || *header < 20 || *header > len)
		return "bad IPv4 header";
	if (get16(ip + 2) != len)
		return "IPv4 total length is not what follows the Ethernet header";
	if (inet_sum(ip, *header, 0) != 0xffff)
		return "wrong IPv4 header checksum";
	if (get16(ip + 6) & 0xbfff)
		return "reply is a fragment";
	if (ip[9] != 6)
		return "reply is not TCP";
	for (size_t i = 20; i < *header; i++)
		if (ip[i])
			return "IPv4 options of the request were sent back";
	r->tos = ip[1];
	r->ttl = ip[8];
	r->ip_options_len = *header - 20;
	memcpy(r->src, ip + 12, 4);
	memcpy(r->dst, ip + 16, 4);
	return NULL;
}

static const char *parse_ipv6(const uint8_t *ip, size_t len, struct reply *r, size_t *header)
{
	*header = 40;
	if (len < 40 || ip[0] >> 4 != 6)
		return "bad IPv6 header";
	if (get16(ip + 4) != len - 40)
		return "IPv6 payload length is not what follows the header";
	if (ip[6] != 6)
		return "reply is not TCP";
	r->tos = get32(ip) >> 20 & 0xff;
	r->ttl = ip[7];
	memcpy(r->src, ip + 8, 16);
	memcpy(r->dst, ip + 24, 16);
	return NULL;
}

static const char *parse_option(const uint8_t *o, struct reply *r)
{
	if (o[0] == 2 && o[1] == 4)
		r->mss = get16(o + 2);
	else if (o[0] == 3 && o[1] == 3)
		r->wscale = o[2];
	else if (o[0] == 4 && o[1] == 2)
		r->sack_ok = true;
	else if (o[0] == 8 && o[1] == 10) {
		r->has_ts = true;
		r->tsval = get32(o + 2);
		r->tsecr = get32(o + 6);
	} else
		return "unknown TCP option or one of a wrong length";
	return NULL;
}

static const char *parse_options(const uint8_t *o, const uint8_t *end, struct reply *r)
{
	const char *wrong = NULL;

	while (o < end && *o != 0 && !wrong) {
		if (*o == 1) {
			o++;
			continue;
		}
		if (end - o < 2 || o[1] < 2 || o[1] > end - o)
			return "TCP option past the data offset";
		wrong = parse_option(o, r);
		o += o[1];
	}
	return wrong;
}

static const char *parse_tcp(const uint8_t *tcp, size_t len, struct reply *r)
{
	size_t header = (tcp[12] >> 4) * 4;

	if (len < 20 || header < 20 || header > len)
		return "bad TCP data offset";
	if (inet_sum(tcp, len, pseudo_sum(r->family, r->src, r->dst, len)) != 0xffff)
		return "wrong TCP checksum";
	if (tcp[12] & 15)
		return "reserved TCP bits set";
	if (get16(tcp + 18))
		return "urgent pointer set";
	r->sport = get16(tcp);
	r->dport = get16(tcp + 2);
	r->seq = get32(tcp + 4);
	r->ack = get32(tcp + 8);
	r->flags = tcp[13];
	r->window = get16(tcp + 14);
	r->payload = tcp + header;
	r->payload_len = len - header;
	return parse_options(tcp + 20, tcp + header, r);
}

const char *reply_parse(const uint8_t *bytes, size_t len, struct reply *r)
{
	const char *wrong;
	size_t at = 12, header;

	*r = (struct reply){.mss = -1, .wscale = -1};
	if (len < 14 + 40)
		return "frame too short for a TCP segment";
	memcpy(r->eth_dst, bytes, 6);
	memcpy(r->eth_src, bytes + 6, 6);
	while (get16(bytes + at) == 0x8100 || get16(bytes + at) == 0x88a8) {
		if (r->n_tags == 3 || len < at + 4 + 42)
			return "too many VLAN tags";
		r->tag[r->n_tags++] = get16(bytes + at + 2);
		at += 4;
	}
	r->family = get16(bytes + at) == 0x0800 ? 4 : get16(bytes + at) == 0x86dd ? 6 : 0;
	at += 2;
	if (!r->family)
		return "neither IPv4 nor IPv6";
	r->ip_len = len - at;
	wrong = r->family == 4 ? parse_ipv4(bytes + at, len - at, r, &header)
			       : parse_ipv6(bytes + at, len - at, r, &header);
	return wrong ? wrong : parse_tcp(bytes + at + header, len - at - header, r);
}
