// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Checksums of what comes in: corrupt, still to be completed, one bit wrong anywhere. Those of
// replies are verified wherever there is one, see lib/reply.c.

#include "lib/talk.h"

#include <string.h>

static void bad_checksums(struct lane *l)
{
	static const struct {
		uint32_t sent, got;
		uint8_t flags;
		const char *text;
	} rows[] = {
		{0, 0, TCP_SYN, ""},	       {0, 0, TCP_ACK, REQUEST},
		{0, 0, TCP_ACK | TCP_FIN, ""}, {80, LENGTH, TCP_ACK, "x"},
		{80, LENGTH, TCP_ACK, "xy"},   {80, LENGTH + 1, TCP_ACK | TCP_FIN, ""},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct talk t;
		struct frame f;

		lane_trying(l, "corrupt TCP checksum, row %u", i);
		if (!talk_opened(&t, l))
			continue;
		f = talk_segment(&t, rows[i].sent, rows[i].got, rows[i].flags, rows[i].text,
				 strlen(rows[i].text));
		f.sum = SUM_BAD;
		lane_expect(l, &f, SW_R_pass_checksum, NULL);
		if (l->family == 6)
			continue;
		lane_trying(l, "corrupt IPv4 header checksum, row %u", i);
		f.sum = SUM_GOOD;
		f.bad_ip_sum = true;
		lane_expect(l, &f, SW_R_pass_checksum, NULL);
	}
}

/* A local sender leaves the sum of the pseudo-header: not corrupt. On skbs only TC can tell it from
 * a packet that happens to look so. */
static void partial_checksums(struct lane *l)
{
	struct talk t = talk_new(l);
	struct frame f;

	lane_trying(l, "partial checksum");
	t.syn.sum = SUM_PARTIAL;
	if (l->hook != HOOK_XDP_GENERIC) {
		talk_through(&t);
		return;
	}
	lane_expect(l, &t.syn, SW_R_pass_to_tc, NULL);
	t.syn.sum = SUM_GOOD;
	if (!talk_open(&t))
		return;
	f = talk_request(&t, REQUEST);
	f.sum = SUM_PARTIAL;
	talk_expect(&t, &f, SW_R_pass_to_tc, NULL);
	f = talk_segment(&t, 80, LENGTH, TCP_ACK, "x", 1);
	f.sum = SUM_PARTIAL;
	talk_expect(&t, &f, SW_R_pass_to_tc, NULL);
}

/* One bit wrong, anywhere behind the Ethernet header: no answer. (IPv6 has fields that nothing
 * protects: traffic class, flow label, hop limit.) */
static void flipped_bits(struct lane *l)
{
	struct frame f;
	struct packet p;
	struct result r;
	struct talk t;

	lane_trying(l, "flipped bits");
	if (!talk_opened(&t, l))
		return;
	for (unsigned request = 0; request < 2; request++) {
		f = request ? talk_request(&t, REQUEST) : t.syn;
		frame_build(&f, &p);
		for (size_t at = p.l3; at < p.len; at++) {
			if (l->family == 6 && (at < p.l3 + 4 || at == p.l3 + 7))
				continue;
			for (unsigned bit = 0; bit < 8; bit++) {
				lane_trying(l, "%s, byte %zu, bit %u flipped",
					    request ? "request" : "SYN", at - p.l3, bit);
				p.bytes[at] ^= 1u << bit;
				if (lane_run(l, &p, &r) && reason_class(r.reason) == 'R')
					world_complain(l->w, "%s", world_reason(r.reason));
				p.bytes[at] ^= 1u << bit;
			}
		}
	}
}

LANE_TEST(bad_checksums)
LANE_TEST(partial_checksums)
CHANCE_TEST(flipped_bits)

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_bad_checksums),
		packet_test(test_partial_checksums),
		packet_test(test_flipped_bits),
	};

	return world_run(tests);
}
