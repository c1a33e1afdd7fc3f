// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SYNs: which are answered, with which options, and what they may never cause. Modes of the pool
// and exemptions are in test_modes.c.

#include "lib/talk.h"

#include <arpa/inet.h>
#include <string.h>

enum { MSS = 1, SACK = 2, STAMP = 4, SCALE = 8 };

static void add_option(struct frame *f, unsigned option)
{
	uint8_t shift = 9;

	switch (option) {
	case MSS: frame_option_mss(f, f->family == 4 ? 1460 : 1440); break;
	case SACK: frame_option(f, 4, NULL, 0); break;
	case STAMP: frame_option_timestamps(f, 4242, 0); break;
	case SCALE: frame_option(f, 3, &shift, 1); break;
	}
}

/* SACK and window scale can only be remembered in a timestamp. A SYN without options gets none. */
static void check_options(struct lane *l, struct talk *t, unsigned offered, unsigned allowed)
{
	const struct reply *r = &t->syn_ack;
	unsigned kept = offered & allowed & STAMP ? offered & allowed : 0;
	int mss = offered & MSS ? (l->family == 4 ? 1460 : 1440) : -1;

	t->no_stamps = !(kept & STAMP);
	if (!talk_open(t))
		return;
	if (r->mss != mss)
		world_complain(l->w, "MSS %d in the SYN-ACK, want %d", r->mss, mss);
	if (r->has_ts != !!(kept & STAMP) || r->sack_ok != !!(kept & SACK))
		world_complain(l->w, "timestamps %d, SACK %d", r->has_ts, r->sack_ok);
	if (r->wscale != (kept & SCALE ? 7 : -1))
		world_complain(l->w, "window scale %d", r->wscale);
	if (r->flags & TCP_ECE)
		world_complain(l->w, "ECN that was not offered");
}

static void options(struct lane *l)
{
	for (unsigned set = 0; set < 16; set++)
		for (unsigned reverse = 0; reverse < 2; reverse++) {
			struct talk t = talk_bare(l);

			lane_trying(l, "SYN with option set %u, %s", set,
				    reverse ? "last first" : "first first");
			t.syn.options_len = 0;
			for (unsigned i = 0; i < 4; i++)
				add_option(&t.syn, set & 1u << (reverse ? 3 - i : i));
			check_options(l, &t, set, MSS | SACK | STAMP | SCALE);
		}
}

/* What the namespace's sysctls forbid is not offered. */
static void levers(struct lane *l)
{
	static const struct {
		uint32_t tcp;
		unsigned allowed;
	} rows[] = {
		{0, 0},
		{SW_TCP_SACK | SW_TCP_WSCALE, SACK | SCALE},
		{SW_TCP_TIMESTAMPS, STAMP},
		{SW_TCP_TIMESTAMPS | SW_TCP_SACK, STAMP | SACK},
		{SW_TCP_TIMESTAMPS | SW_TCP_WSCALE, STAMP | SCALE},
	};
	uint32_t zero = 0;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sw_levers lever = {.tcp = rows[i].tcp, .mss4 = 1460, .mss6 = 1440};
		struct talk t = talk_new(l);

		lane_trying(l, "levers %x", rows[i].tcp);
		world_write(l->w, MAP_LEVERS, &zero, &lever);
		check_options(l, &t, 15, rows[i].allowed | MSS);
	}
}

static void advertised_mss(struct lane *l)
{
	struct sw_levers lever = {.tcp = SW_TCP_TIMESTAMPS, .mss4 = 1111, .mss6 = 2222};
	struct talk t = talk_new(l);
	uint32_t zero = 0;

	world_write(l->w, MAP_LEVERS, &zero, &lever);
	if (talk_open(&t) && t.syn_ack.mss != (l->family == 4 ? 1111 : 2222))
		world_complain(l->w, "MSS %d in the SYN-ACK", t.syn_ack.mss);
}

static void ecn(struct lane *l)
{
	static const struct {
		uint8_t flags;
		bool stamps, lever, want;
	} rows[] = {
		{TCP_ECE | TCP_CWR, true, true, true},
		{TCP_ECE | TCP_CWR, false, true, false},
		{TCP_ECE | TCP_CWR, true, false, false},
		{TCP_ECE, true, true, false},
		{TCP_CWR, true, true, false},
		{0, true, true, false},
	};
	uint32_t zero = 0;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sw_levers lever = {.tcp = SW_TCP_TIMESTAMPS, .mss4 = 1460, .mss6 = 1440};
		struct talk t = rows[i].stamps ? talk_new(l) : talk_bare(l);

		lane_trying(l, "ECN row %u", i);
		lever.tcp |= rows[i].lever ? SW_TCP_ECN : 0;
		world_write(l->w, MAP_LEVERS, &zero, &lever);
		t.syn.flags |= rows[i].flags;
		if (talk_open(&t) && !!(t.syn_ack.flags & TCP_ECE) != rows[i].want)
			world_complain(l->w, "ECE in the SYN-ACK: %d", !rows[i].want);
	}
}

/* A client that cannot take an answer in one segment is left to the kernel. */
static void small_mss(struct lane *l)
{
	int least = l->family == 4 ? 536 : 1220;

	for (int mss = least - 2; mss < least + 2; mss++) {
		struct talk t = talk_bare(l);

		lane_trying(l, "SYN with MSS %d", mss);
		t.syn.options_len = 0;
		frame_option_mss(&t.syn, mss);
		lane_expect(l, &t.syn, mss < least ? SW_R_pass_options : SW_R_syn_ack, NULL);
	}
}

/* TCP Fast Open: data in a SYN is neither read nor acknowledged. */
static void data_in_syn(struct lane *l)
{
	static const uint8_t cookie[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct talk t = talk_new(l);

	lane_trying(l, "SYN with data and a Fast Open cookie");
	frame_option(&t.syn, 34, cookie, sizeof(cookie));
	t.syn.payload = REQUEST;
	t.syn.payload_len = strlen(REQUEST);
	talk_open(&t); /* the acknowledgement number is checked by the lane */
	lane_trying(l, "SYN with a Fast Open cookie request");
	t = talk_bare(l);
	frame_option(&t.syn, 34, NULL, 0);
	talk_open(&t);
}

/* The walk over options ends at the first that is impossible; what stood before it counts. */
static void broken_options(struct lane *l)
{
	static const struct {
		const char *name;
		uint8_t bytes[12];
		unsigned len;
		int mss; /* -1: none was readable */
	} rows[] = {
		{"length 0 behind the MSS", {2, 4, 5, 0xb4, 8, 0, 0, 0}, 8, 1},
		{"length 1 behind the MSS", {2, 4, 5, 0xb4, 8, 1, 0, 0}, 8, 1},
		{"length 0 first", {4, 0, 2, 4, 5, 0xb4, 0, 0}, 8, -1},
		{"length 1 first", {4, 1, 2, 4, 5, 0xb4, 0, 0}, 8, -1},
		{"past the data offset", {2, 4, 5, 0xb4, 8, 10, 0, 0}, 8, 1},
		{"MSS past the data offset", {1, 1, 2, 4}, 4, -1},
		{"kind without length at the end", {2, 4, 5, 0xb4, 1, 1, 1, 8}, 8, 1},
		{"length 255", {2, 4, 5, 0xb4, 8, 255, 0, 0}, 8, 1},
		{"MSS of length 3", {2, 3, 5, 1}, 4, -1},
		{"timestamps of length 8", {2, 4, 5, 0xb4, 8, 8, 0, 0, 0, 1, 0, 0}, 12, 1},
		{"end of options, then MSS", {0, 2, 4, 5, 0xb4, 0, 0, 0}, 8, -1},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct talk t = talk_bare(l);
		struct result r;

		lane_trying(l, "SYN, %s", rows[i].name);
		memcpy(t.syn.options, rows[i].bytes, rows[i].len);
		t.syn.options_len = rows[i].len;
		if (!lane_expect(l, &t.syn, SW_R_syn_ack, &r))
			continue;
		if (r.reply.has_ts || r.reply.sack_ok || (r.reply.mss >= 0) != (rows[i].mss >= 0))
			world_complain(l->w, "MSS %d, timestamps %d", r.reply.mss, r.reply.has_ts);
	}
}

static void sequence_wraps(struct lane *l)
{
	static const uint32_t first[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

	for (unsigned i = 0; i < sizeof(first) / sizeof(*first); i++) {
		struct talk t = talk_new(l);
		struct frame f;

		lane_trying(l, "first sequence number %u", first[i]);
		t.syn.seq = first[i];
		if (!talk_open(&t))
			continue;
		f = talk_request(&t, REQUEST);
		talk_expect(&t, &f, SW_R_shed_saturated, NULL);
	}
}

/* ---- listeners --------------------------------------------------------------------------- */

static void single_address(struct lane *l)
{
	struct frame f = lane_frame(l, TCP_SYN);
	struct sw_port both = {.any4 = ID_MAIN, .any6 = ID_MAIN, .single = 1};
	uint32_t port = PORT_SINGLE;
	struct lane single = *l;

	lane_trying(l, "listener on one address");
	single.id = l->family == 4 ? ID_SINGLE4 : ID_SINGLE6;
	f.dport = PORT_SINGLE;
	lane_expect(&single, &f, SW_R_syn_ack, NULL);
	lane_trying(l, "same port, another address");
	f.dst[l->family == 4 ? 3 : 15] = 2;
	lane_expect(l, &f, SW_R_pass_other, NULL);
	lane_trying(l, "one address and any on the same port");
	world_write(l->w, MAP_PORTS, &port, &both);
	f.dst[l->family == 4 ? 3 : 15] = 1;
	lane_expect(&single, &f, SW_R_syn_ack, NULL);
	f.dst[l->family == 4 ? 3 : 15] = 2;
	lane_expect(l, &f, SW_R_pass_not_local, NULL);
}

static void one_family_only(struct lane *l)
{
	struct sw_port port = {.any4 = l->family == 4 ? 0 : ID_MAIN,
			       .any6 = l->family == 6 ? 0 : ID_MAIN};
	struct frame f = lane_frame(l, TCP_SYN);
	uint32_t number = PORT_MAIN;

	lane_trying(l, "listener of the other family");
	world_write(l->w, MAP_PORTS, &number, &port);
	lane_expect(l, &f, SW_R_pass_other, NULL);
}

static void not_local(struct lane *l)
{
	struct frame f = lane_frame(l, TCP_SYN);

	lane_trying(l, "SYN to an address that is not ours");
	world_local(l->w, l->family, f.dst, false);
	lane_expect(l, &f, SW_R_pass_not_local, NULL);
	if (l->family == 6)
		return;
	lane_trying(l, "SYN to 127.0.0.0/8, which need not be listed");
	inet_pton(AF_INET, "127.9.9.9", f.dst);
	lane_expect(l, &f, SW_R_syn_ack, NULL);
}

static void nobody_listens(struct lane *l)
{
	struct frame f = lane_frame(l, TCP_SYN);

	lane_trying(l, "SYN to a guarded port without a socket");
	f.dport = PORT_DEAF;
	l->id = ID_DEAF;
	lane_expect(l, &f, SW_R_pass_no_listener, NULL);
}

static void other_ports(struct lane *l)
{
	for (uint32_t port = 0; port < 65536; port += port < 7990 || port > 9010 ? 997 : 1) {
		struct frame f = lane_frame(l, TCP_SYN);

		if (port == PORT_MAIN || port == PORT_SINGLE || port == PORT_DEAF)
			continue;
		lane_trying(l, "SYN to port %u", port);
		f.dport = port;
		lane_expect(l, &f, SW_R_pass_other, NULL);
	}
}

LANE_TEST(options)
LANE_TEST(levers)
LANE_TEST(advertised_mss)
LANE_TEST(ecn)
LANE_TEST(small_mss)
LANE_TEST(data_in_syn)
LANE_TEST(broken_options)
LANE_TEST(sequence_wraps)
LANE_TEST(single_address)
LANE_TEST(one_family_only)
LANE_TEST(not_local)
LANE_TEST(nobody_listens)
LANE_TEST(other_ports)

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_options),	  packet_test(test_levers),
		packet_test(test_advertised_mss), packet_test(test_ecn),
		packet_test(test_small_mss),	  packet_test(test_data_in_syn),
		packet_test(test_broken_options), packet_test(test_sequence_wraps),
		packet_test(test_single_address), packet_test(test_one_family_only),
		packet_test(test_not_local),	  packet_test(test_nobody_listens),
		packet_test(test_other_ports),
	};

	return world_run(tests);
}
