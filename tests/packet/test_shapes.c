// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Shapes of packets: tags, header lengths, padding, truncation, fragments, extension headers, other
// protocols. What is not a sound TCP segment to a listener passes byte-identical. Checksums are in
// test_checksum.c.

#include "lib/talk.h"

#include <string.h>

static const uint8_t nops[40] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
				 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* ---- link layer ---------------------------------------------------------------------------- */

static void vlan_tags(struct lane *l)
{
	struct sw_listener all = world_default_listener(ID_MAIN);
	unsigned handed = l->hook == HOOK_TC ? 0 : 1; /* tags behind which a hand-over works */

	all.flags = SW_LF_ALL_PATHS;
	for (unsigned tags = 0; tags <= 2; tags++) {
		struct talk t = talk_new(l);

		lane_trying(l, "%u VLAN tags, everything may be shed", tags);
		world_listener(l->w, ID_MAIN, &all);
		t.syn.n_tags = tags;
		t.syn.tag[0] = 0x6123; /* with a priority */
		t.syn.tag[1] = 0x0fff;
		talk_through(&t);
		lane_trying(l, "priority tag, %u tags", tags);
		t = talk_new(l);
		t.syn.n_tags = tags;
		t.syn.tag[0] = 0xe000;
		talk_through(&t);

		lane_trying(l, "%u VLAN tags, some requests must pass", tags);
		all.flags = 0;
		world_listener(l->w, ID_MAIN, &all);
		t = talk_new(l);
		t.syn.n_tags = tags;
		t.syn.tag[0] = 100;
		if (tags <= handed)
			talk_through(&t);
		else
			lane_expect(l, &t.syn, SW_R_pass_options, NULL);
		all.flags = SW_LF_ALL_PATHS;
	}
}

static void three_tags(struct lane *l)
{
	struct frame f = lane_frame(l, TCP_SYN);

	lane_trying(l, "3 VLAN tags");
	f.n_tags = 3;
	lane_expect(l, &f, SW_R_pass_other, NULL);
}

static void other_ethertypes(struct lane *l)
{
	static const uint16_t types[] = {0x0806, 0x8847, 0x8864, 0x88cc, 0x9100, 0x0004, 0x86dc};
	struct frame f = lane_frame(l, TCP_SYN);
	struct packet p;
	struct result r;

	frame_build(&f, &p);
	for (unsigned i = 0; i < sizeof(types) / sizeof(*types); i++) {
		lane_trying(l, "ethertype %04x", types[i]);
		p.bytes[12] = types[i] >> 8;
		p.bytes[13] = types[i] & 0xff;
		if (lane_run(l, &p, &r) && r.reason != SW_R_pass_other)
			world_complain(l->w, "%s", world_reason(r.reason));
	}
}

/* Junk behind the IP packet is no payload. */
static void padding(struct lane *l)
{
	for (unsigned pad = 60; pad <= 180; pad += 15) {
		struct talk t = talk_bare(l);

		lane_trying(l, "frames padded to %u bytes", pad);
		t.syn.pad_to = pad;
		talk_through(&t);
	}
}

/* ---- IP ------------------------------------------------------------------------------------ */

/* IPv4 options of every length; and headers that only claim them. */
static void ihl(struct lane *l)
{
	if (l->family == 6)
		return;
	for (int words = 0; words < 16; words++) {
		struct talk t = talk_new(l);
		struct packet p;

		lane_trying(l, "IHL %d", words);
		if (words < 5) {
			t.syn.ihl = words;
			lane_expect(l, &t.syn, SW_R_pass_malformed, NULL);
			continue;
		}
		t.syn.ip_options_len = 4 * words - 20;
		memcpy(t.syn.ip_options, nops, sizeof(nops));
		talk_through(&t);
		lane_trying(l, "IHL %d, which is not true", words);
		t = talk_new(l);
		t.syn.ihl = words;
		frame_build(&t.syn, &p);
		if (words > 5)
			lane_passes(l, &p);
	}
}

static void ip_version(struct lane *l)
{
	for (unsigned version = 0; version < 16; version++) {
		struct frame f = lane_frame(l, TCP_SYN);
		struct packet p;
		struct result r;

		if ((int)version == l->family)
			continue;
		lane_trying(l, "IP version %u", version);
		frame_build(&f, &p);
		p.bytes[p.l3] = version << 4 | (p.bytes[p.l3] & 15);
		if (lane_run(l, &p, &r) && r.reason != SW_R_pass_malformed)
			world_complain(l->w, "%s", world_reason(r.reason));
	}
}

static void fragments(struct lane *l)
{
	static const struct {
		const char *name;
		uint16_t field;
		enum sw_reason want;
	} rows[] = {
		{"first fragment", 0x2000, SW_R_pass_fragment},
		{"middle fragment", 0x20b9, SW_R_pass_fragment},
		{"last fragment", 0x00b9, SW_R_pass_fragment},
		{"overlapping fragment", 0x0001, SW_R_pass_fragment},
		{"fragment with DF", 0x6000, SW_R_pass_fragment},
		{"DF not set", 0x0000, SW_R_syn_ack},
		{"DF set", 0x4000, SW_R_syn_ack},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows) && l->family == 4; i++) {
		struct talk t = talk_new(l);

		lane_trying(l, "%s", rows[i].name);
		t.syn.fragment = rows[i].field;
		lane_expect(l, &t.syn, rows[i].want, NULL);
	}
}

static void extension_headers(struct lane *l)
{
	static const uint8_t known[] = {0, 43, 44, 51, 60, 135, 139, 140};
	struct frame f = lane_frame(l, TCP_SYN);

	for (unsigned i = 0; i < sizeof(known) && l->family == 6; i++) {
		lane_trying(l, "extension header %u", known[i]);
		f.n_ext = 1;
		f.ext[0] = known[i];
		lane_expect(l, &f, known[i] == 44 ? SW_R_pass_fragment : SW_R_pass_exthdr, NULL);
		lane_trying(l, "extension headers %u and 60", known[i]);
		f.n_ext = 2;
		f.ext[1] = 60;
		lane_expect(l, &f, known[i] == 44 ? SW_R_pass_fragment : SW_R_pass_exthdr, NULL);
	}
}

/* Of all 256 protocols only TCP is answered. */
static void other_protocols(struct lane *l)
{
	struct frame f = lane_frame(l, TCP_SYN);
	struct packet p;

	for (unsigned protocol = 0; protocol < 256; protocol++) {
		if (protocol == 6)
			continue;
		lane_trying(l, "protocol %u", protocol);
		f.protocol = protocol;
		frame_build(&f, &p);
		lane_passes(l, &p);
		if (protocol == 17 || protocol == 1 || protocol == 58 || protocol == 132)
			lane_expect(l, &f, SW_R_pass_other, NULL);
	}
}

/* The IP length is the truth: longer than the frame is malformed, shorter cuts the segment. */
static void ip_length(struct lane *l)
{
	int segment = 40; /* TCP header and options of a SYN */

	for (int lie = -70; lie < 40; lie++) {
		struct talk t = talk_new(l);
		struct packet p;
		struct result r;

		if (lie == 0)
			continue;
		lane_trying(l, "IP length off by %d", lie);
		t.syn.lie = lie;
		frame_build(&t.syn, &p);
		if (!lane_run(l, &p, &r))
			continue;
		/* cut within the options, the checksum is over other bytes */
		if (reason_class(r.reason) != 'P')
			world_complain(l->w, "%s", world_reason(r.reason));
		if ((lie > 0 || lie < 20 - segment) && r.reason != SW_R_pass_malformed)
			world_complain(l->w, "%s", world_reason(r.reason));
	}
}

static void truncated(struct lane *l)
{
	struct frame f[4];
	struct packet p;
	struct result r;
	struct talk t;

	lane_trying(l, "truncated");
	if (!talk_opened(&t, l))
		return;
	f[0] = t.syn;
	f[1] = talk_request(&t, REQUEST);
	f[2] = talk_segment(&t, 80, LENGTH, TCP_ACK | TCP_FIN, NULL, 0);
	f[3] = t.syn;
	f[3].n_tags = 2;
	for (unsigned i = 0; i < 4; i++) {
		size_t whole;

		frame_build(&f[i], &p);
		for (whole = p.len, p.len = 14; p.len < whole; p.len++) {
			lane_trying(l, "frame %u truncated to %zu of %zu bytes", i, p.len, whole);
			if (lane_run(l, &p, &r) && r.reason != SW_R_pass_malformed)
				world_complain(l->w, "%s", world_reason(r.reason));
		}
	}
}

/* ---- TCP ----------------------------------------------------------------------------------- */

static void data_offset(struct lane *l)
{
	for (int words = 0; words < 16; words++) {
		struct talk t = talk_bare(l);

		lane_trying(l, "data offset %d", words);
		t.syn.options_len = 0;
		if (words < 5) {
			t.syn.doff = words;
			lane_expect(l, &t.syn, SW_R_pass_malformed, NULL);
			continue;
		}
		memcpy(t.syn.options, nops, sizeof(nops));
		t.syn.options_len = 4 * words - 20;
		if (words > 5) { /* an MSS at the end of them */
			memcpy(t.syn.options + t.syn.options_len - 4, "\2\4\5\xa0", 4);
			talk_through(&t);
		}
		lane_trying(l, "data offset %d, which is not there", words);
		t = talk_bare(l);
		t.syn.options_len = 0;
		t.syn.doff = words;
		if (words > 5)
			lane_expect(l, &t.syn, SW_R_pass_malformed, NULL);
	}
}

/* The same in a request: payload begins where the data offset says. */
static void data_offset_of_request(struct lane *l)
{
	for (int words = 0; words < 16; words++) {
		struct talk t = talk_bare(l);
		struct frame f;

		lane_trying(l, "request with data offset %d", words);
		if (!talk_open(&t))
			continue;
		f = talk_request(&t, REQUEST);
		if (words < 5) {
			f.doff = words;
			lane_expect(l, &f, SW_R_pass_malformed, NULL);
			continue;
		}
		memcpy(f.options, nops, sizeof(nops));
		f.options_len = 4 * words - 20;
		talk_expect(&t, &f, SW_R_shed_saturated, NULL);
	}
}

LANE_TEST(vlan_tags)
LANE_TEST(three_tags)
LANE_TEST(other_ethertypes)
LANE_TEST(padding)
LANE_TEST(ihl)
LANE_TEST(ip_version)
LANE_TEST(fragments)
LANE_TEST(extension_headers)
LANE_TEST(other_protocols)
LANE_TEST(ip_length)
LANE_TEST(truncated)
LANE_TEST(data_offset)
LANE_TEST(data_offset_of_request)

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_vlan_tags),
		packet_test(test_three_tags),
		packet_test(test_other_ethertypes),
		packet_test(test_padding),
		packet_test(test_ihl),
		packet_test(test_ip_version),
		packet_test(test_fragments),
		packet_test(test_extension_headers),
		packet_test(test_other_protocols),
		packet_test(test_ip_length),
		packet_test(test_truncated),
		packet_test(test_data_offset),
		packet_test(test_data_offset_of_request),
	};

	return world_run(tests);
}
