// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Conversations over a real wire: drivers that leave no room, tags that hardware has taken off,
// skbs in fragments, checksums that are still to be completed. Needs veth.

#include "lib/link.h"
#include "lib/talk.h"
#include "lib/wire.h"

#include <poll.h>
#include <string.h>

#define PATIENCE_MS 5000 /* guests are slow */
#define SILENCE_MS  30

/* Sends the frame; one reply must come back, the right one. */
static bool exchange(struct wire *wire, struct talk *t, const struct frame *f,
		     enum sw_reason reason, unsigned gso_size, struct result *r)
{
	const char *wrong = NULL;
	struct packet p;

	r->reason = reason;
	wire_send(wire, f, &p, gso_size);
	if (!wire_receive(wire, f->sport, r, PATIENCE_MS))
		wrong = "no reply";
	if (!wrong)
		wrong = lane_judge(f, &p, r);
	if (!wrong)
		wrong = talk_timestamps(t, f, &r->reply);
	if (wrong)
		world_complain(wire->w, "%s (want %s)", wrong, world_reason(reason));
	return !wrong;
}

static bool wire_open(struct wire *wire, struct talk *t)
{
	struct result r;

	if (!exchange(wire, t, &t->syn, SW_R_syn_ack, 0, &r))
		return false;
	t->syn_ack = r.reply;
	t->cookie = r.reply.seq;
	return true;
}

static void expect_silence(struct wire *wire, struct talk *t)
{
	struct result r;

	if (wire_receive(wire, t->syn.sport, &r, SILENCE_MS))
		world_complain(wire->w, "a second reply");
}

/* By both hooks together. */
static uint64_t count(struct world *w, enum sw_reason reason)
{
	struct sw_counts xdp, tc;

	world_counts(w, MAP_COUNTS_XDP, ID_MAIN, &xdp);
	world_counts(w, MAP_COUNTS_TC, ID_MAIN, &tc);
	return ((uint64_t *)&xdp)[reason] + ((uint64_t *)&tc)[reason];
}

static void whole_conversation(struct wire *wire, struct talk *t)
{
	struct pollfd server = {.fd = wire->w->listener[t->l->family], .events = POLLIN};
	uint64_t shed = count(wire->w, SW_R_shed_saturated);
	struct result r;
	struct packet p;
	struct frame f;

	if (!wire_open(wire, t))
		return;
	f = talk_segment(t, 0, 0, TCP_ACK, NULL, 0);
	wire_send(wire, &f, &p, 0);
	f = talk_request(t, REQUEST);
	if (!exchange(wire, t, &f, SW_R_shed_saturated, 0, &r))
		return;
	f = talk_segment(t, strlen(REQUEST), LENGTH + 1, TCP_ACK, "rest", 4);
	exchange(wire, t, &f, SW_R_drain_data, 0, &r);
	f = talk_segment(t, strlen(REQUEST) + 4, LENGTH + 1, TCP_ACK | TCP_FIN, NULL, 0);
	exchange(wire, t, &f, SW_R_drain_fin, 0, &r);
	expect_silence(wire, t);
	if (count(wire->w, SW_R_shed_saturated) != shed + 1)
		world_complain(wire->w, "not counted once as shed");
	if (poll(&server, 1, 0))
		world_complain(wire->w, "the server was woken up");
}

static void conversation(struct lane *l)
{
	struct wire wire;
	struct talk t;

	if (!wire_up(&wire, l->w))
		return;
	wire_attach(&wire, l);
	lane_trying(l, "over a wire");
	t = talk_new(l);
	whole_conversation(&wire, &t);
	lane_trying(l, "over a wire, no TCP options");
	t = talk_bare(l);
	whole_conversation(&wire, &t);
	lane_trying(l, "over a wire, checksums to be completed");
	t = talk_new(l);
	t.syn.sum = SUM_PARTIAL;
	whole_conversation(&wire, &t);
	lane_trying(l, "over a wire, IPv4 options");
	t = talk_new(l);
	t.syn.ip_options_len = l->family == 4 ? 40 : 0;
	memset(t.syn.ip_options, 1, 40);
	whole_conversation(&wire, &t);
	wire_down(&wire);
}

static uint64_t left_to_tc(struct world *w)
{
	struct sw_counts xdp;

	world_counts(w, MAP_COUNTS_XDP, ID_MAIN, &xdp);
	return xdp.pass_to_tc;
}

/* The shorter the request, the more an answer has to grow: behind the packet, before it, or, where
 * neither has room, by TC. However it is done, one answer comes, and it is counted as shed once. */
static void growth(struct lane *l)
{
	static const char head[] = "POST /score HTTP/1.1\r\n";
	struct sw_listener large = world_default_listener(ID_MAIN);
	char text[600];
	struct wire wire;

	if (!wire_up(&wire, l->w))
		return;
	wire_attach(&wire, l);
	large.answers = 0;
	large.length = OTHER_LENGTH;
	memset(text, '\n', sizeof(text));
	memcpy(text, head, strlen(head));
	for (unsigned set = 0; set < 2; set++) {
		if (set)
			world_listener(l->w, ID_MAIN, &large);
		for (size_t len = strlen(head); len < sizeof(text); len += 29) {
			uint64_t shed = count(l->w, SW_R_shed_saturated), left = left_to_tc(l->w);
			struct talk t = talk_new(l);
			struct result r;
			struct frame f;

			lane_trying(l, "request of %zu bytes, answer of %u", len,
				    set ? OTHER_LENGTH : LENGTH);
			if (!wire_open(&wire, &t))
				continue;
			f = talk_segment(&t, 0, 0, TCP_ACK | TCP_PSH, text, len);
			exchange(&wire, &t, &f, SW_R_shed_saturated, 0, &r);
			if (count(l->w, SW_R_shed_saturated) != shed + 1)
				world_complain(l->w, "not counted once as shed");
			if (!set && l->hook != HOOK_TC && left_to_tc(l->w) != left)
				world_complain(l->w,
					       "there is room before it, but TC had to do it");
		}
	}
	wire_down(&wire);
}

/* TC sees the outer tag beside the packet, XDP in it; both send it back. */
static void tags(struct lane *l)
{
	struct sw_listener all = world_default_listener(ID_MAIN);
	struct wire wire;

	if (!wire_up(&wire, l->w))
		return;
	wire_attach(&wire, l);
	for (unsigned n = 1; n <= 2; n++) {
		struct talk t = talk_new(l);

		lane_trying(l, "%u VLAN tags on a wire", n);
		all.flags = n == 2 ? SW_LF_ALL_PATHS : 0;
		world_listener(l->w, ID_MAIN, &all);
		t.syn.n_tags = n;
		t.syn.tag[0] = 0x6123;
		t.syn.tag[1] = 0x0042;
		whole_conversation(&wire, &t);
	}
	wire_down(&wire);
}

static size_t headers_of(const struct lane *l)
{
	return 14 + (l->family == 4 ? 20 : 40) + 32;
}

/* As GRO, or a local sender with segmentation offload, delivers a large prompt: one skb, headers
 * linear, all the rest in fragments, checksum partial. Answered as one. */
static void one_super_segment(struct wire *wire, struct lane *l, size_t len)
{
	static char text[FRAME_MAX];
	struct talk t = talk_new(l);
	struct result r;
	struct frame f;

	lane_trying(l, "super-segment of %zu bytes", len);
	memset(text, 'x', sizeof(text));
	memcpy(text, REQUEST, strlen(REQUEST));
	t.syn.sum = SUM_PARTIAL;
	if (!wire_open(wire, &t))
		return;
	wire->linear = headers_of(l);
	f = talk_segment(&t, 0, 0, TCP_ACK, text, len);
	exchange(wire, &t, &f, SW_R_shed_saturated, 1400, &r);
	f = talk_segment(&t, len, LENGTH, TCP_ACK, text, len);
	exchange(wire, &t, &f, SW_R_drain_data, 1400, &r);
	wire->linear = 0;
	expect_silence(wire, &t);
}

static void super_segment(struct lane *l)
{
	struct wire wire;

	if (l->hook == HOOK_XDP || l->hook == HOOK_XDP_REDIRECT || !wire_up(&wire, l->w))
		return;
	wire_attach(&wire, l);
	one_super_segment(&wire, l, 6000);
	one_super_segment(&wire, l,
			  65535 - headers_of(l)); /* the largest that is not cut on its way */
	wire_down(&wire);
}

/* Jumbo frames of which all or only a part of the headers is in the first piece, with a checksum
 * that has to be taken over all pieces. */
static void pieces(struct lane *l)
{
	static char text[4500];
	struct wire wire;

	if (l->hook == HOOK_XDP || l->hook == HOOK_XDP_REDIRECT || !wire_up(&wire, l->w))
		return;
	link_large_frames();
	wire_attach(&wire, l);
	memset(text, 'x', sizeof(text));
	memcpy(text, REQUEST, strlen(REQUEST));
	for (size_t linear = 14; linear < headers_of(l) + 30; linear += 5) {
		struct talk t = talk_new(l);
		struct result r;
		struct frame f;

		lane_trying(l, "large frame, first piece of %zu bytes", linear);
		if (!wire_open(&wire, &t))
			continue;
		wire.linear = linear;
		f = talk_segment(&t, 0, 0, TCP_ACK, text, sizeof(text) - linear % 3);
		exchange(&wire, &t, &f, SW_R_shed_saturated, 0, &r);
		f = talk_segment(&t, 90, LENGTH, TCP_ACK, text, sizeof(text));
		exchange(&wire, &t, &f, SW_R_drain_data, 0, &r);
		wire.linear = 0;
	}
	wire_down(&wire);
}

LANE_TEST(conversation)
LANE_TEST(growth)
LANE_TEST(tags)
LANE_TEST(super_segment)
LANE_TEST(pieces)

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_conversation),	 packet_test(test_growth), packet_test(test_tags),
		packet_test(test_super_segment), packet_test(test_pieces),
	};

	return world_run(tests);
}
