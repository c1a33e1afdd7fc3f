// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A packet socket on the client's device; see spy.h.

#include "spy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { V4 = 20, V6 = 40, TCP = 20 };

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

static uint16_t get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static void put32(uint8_t *at, uint32_t n)
{
	n = htonl(n);
	memcpy(at, &n, 4);
}

static void put16(uint8_t *at, uint16_t n)
{
	n = htons(n);
	memcpy(at, &n, 2);
}

struct spy spy_on(struct ends *e)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int size = 8 << 20;
	struct spy s = {.e = e};

	kept_enter(CLIENT);
	at.sll_ifindex = if_nametoindex("spkeep0");
	s.fd = ends_keep(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	setsockopt(s.fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	assert_int_equal(bind(s.fd, (void *)&at, sizeof(at)), 0);
	return s;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_options(struct segment *g)
{
	for (unsigned at = g->l4 + TCP; at < g->data && g->headers[at];) {
		const uint8_t *o = g->headers + at;

		if (o[0] == 1) {
			at++;
			continue;
		}
		if (o[0] == 8) {
			g->stamped = true;
			g->value = get32(o + 2);
			g->echo = get32(o + 6);
		}
		for (unsigned i = 2; o[0] == 5 && i + 8 <= o[1]; i += 8, g->n_blocks++) {
			g->block[g->n_blocks][0] = get32(o + i);
			g->block[g->n_blocks][1] = get32(o + i + 4);
		}
		at += o[1];
	}
}

/* False: not of our connection. */
static bool read_segment(const struct spy *s, const uint8_t *frame, size_t n, struct segment *g)
{
	bool v6 = s->e->family == 6;
	unsigned end;

	g->l4 = ETH_HLEN + (v6 ? V6 : V4);
	if (n < g->l4 + TCP || get16(frame + 12) != (v6 ? ETH_P_IPV6 : ETH_P_IP) ||
	    frame[ETH_HLEN + (v6 ? 6 : 9)] != IPPROTO_TCP)
		return false;
	end = v6 ? g->l4 + get16(frame + ETH_HLEN + 4) : ETH_HLEN + get16(frame + ETH_HLEN + 2);
	if (get16(frame + g->l4 + (g->ours ? 0 : 2)) != s->e->port)
		return false;
	g->data = g->l4 + (frame[g->l4 + 12] >> 4) * 4;
	memcpy(g->headers, frame, g->data);
	g->seq = get32(frame + g->l4 + 4);
	g->ack = get32(frame + g->l4 + 8);
	g->flags = frame[g->l4 + 13];
	g->window = get16(frame + g->l4 + 14);
	g->length = end - g->data;
	memcpy(g->start, frame + g->data,
	       g->length < sizeof(g->start) ? g->length : sizeof(g->start));
	read_options(g);
	return true;
}

static void note(struct spy *s, const struct segment *g)
{
	uint32_t end = g->seq + g->length + !!(g->flags & SPY_FIN) + !!(g->flags & SPY_SYN);

	s->resets += !!(g->flags & SPY_RST);
	if (!g->ours) {
		s->answers += g->length >= 12 && !memcmp(g->start, "HTTP/1.1 529", 12);
		return;
	}
	s->repeats += s->last.l4 && g->length && g->seq != s->next;
	s->next = end;
	if (!g->n_blocks)
		s->last = *g;
}

bool spy_next(struct spy *s, struct segment *out, int ms)
{
	static uint8_t frame[70000];
	struct sockaddr_ll from;
	socklen_t size = sizeof(from);

	while (hears(s->fd, ms)) {
		ssize_t n = recvfrom(s->fd, frame, sizeof(frame), 0, (void *)&from, &size);

		*out = (struct segment){.ours = from.sll_pkttype == PACKET_OUTGOING};
		if (n > 0 && read_segment(s, frame, n, out)) {
			note(s, out);
			return true;
		}
	}
	return false;
}

void spy_catch_up(struct spy *s)
{
	struct segment g;

	while (spy_next(s, &g, 0))
		;
}

void ends_cleanly(struct ends *e)
{
	struct spy s = spy_on(e);

	shutdown(e->server, SHUT_WR);
	hear_end(e->client);
	ends_close(&e->client);
	hear_end(e->server);
	usleep(1000);
	spy_catch_up(&s);
	assert_int_equal(s.resets, 0);
}

/* ---- sending --------------------------------------------------------------------------------- */

static uint32_t sum(const uint8_t *at, size_t n, uint32_t start)
{
	for (size_t i = 0; i < n; i++)
		start += i % 2 ? at[i] : at[i] << 8;
	return start;
}

static uint16_t checksum(const struct segment *g, const uint8_t *frame, size_t n)
{
	bool v6 = g->l4 == ETH_HLEN + V6;
	uint32_t total = sum(frame + ETH_HLEN + (v6 ? 8 : 12), v6 ? 32 : 8, IPPROTO_TCP);

	total = sum(frame + g->l4, n - g->l4, total + n - g->l4);
	total = (total & 0xffff) + (total >> 16);
	return ~((total & 0xffff) + (total >> 16));
}

static void send_frame(struct spy *s, uint8_t flags, uint32_t seq, uint32_t ack,
		       const void *payload, size_t n, bool corrupt)
{
	const struct segment *g = &s->last;
	uint8_t frame[SPY_HEADERS + 2000];
	size_t total = g->data + n;

	assert_true(n <= 2000 && g->l4);
	memcpy(frame, g->headers, g->data);
	memcpy(frame + g->data, payload, n);
	put32(frame + g->l4 + 4, seq);
	put32(frame + g->l4 + 8, ack);
	frame[g->l4 + 13] = flags;
	if (g->l4 == ETH_HLEN + V6) {
		put16(frame + ETH_HLEN + 4, total - g->l4);
	} else {
		put16(frame + ETH_HLEN + 2, total - ETH_HLEN);
		put16(frame + ETH_HLEN + 10, 0);
		uint32_t head = sum(frame + ETH_HLEN, V4, 0);
		put16(frame + ETH_HLEN + 10, ~((head & 0xffff) + (head >> 16)));
	}
	put16(frame + g->l4 + 16, 0);
	put16(frame + g->l4 + 16, checksum(g, frame, total) + corrupt);
	assert_int_equal(send(s->fd, frame, total, 0), total);
}

void spy_send(struct spy *s, uint8_t flags, uint32_t back, const void *payload, size_t n)
{
	spy_catch_up(s);
	send_frame(s, flags, s->next - back, s->last.ack, payload, n, false);
}

void spy_send_ack(struct spy *s, uint32_t ack)
{
	spy_catch_up(s);
	send_frame(s, SPY_ACK, s->next, ack, "", 0, false);
}

void spy_send_corrupt(struct spy *s, const void *payload, size_t n)
{
	spy_catch_up(s);
	send_frame(s, SPY_ACK | SPY_PSH, s->next, s->last.ack, payload, n, true);
}
