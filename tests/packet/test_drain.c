// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Everything but the request itself: handshake, what is in flight behind the request, repeats, and
// the rest of the conversation once the client has the answer.

#include "lib/talk.h"

#include <bpf/bpf.h>
#include <string.h>

static const char body[1460] = "the rest of a long prompt";

static void expect_segment(struct talk *t, uint32_t sent, uint32_t got, uint8_t flags, size_t len,
			   enum sw_reason want)
{
	struct frame f = talk_segment(t, sent, got, flags, len ? body : NULL, len);

	lane_trying(t->l, "segment %u bytes in, %u of ours acknowledged, flags %02x, %zu bytes",
		    sent, got, flags, len);
	talk_expect(t, &f, want, NULL);
}

/* ---- before the answer ------------------------------------------------------------------- */

static void handshake(struct lane *l)
{
	struct talk t;

	if (!talk_opened(&t, l))
		return;
	expect_segment(&t, 0, 0, TCP_ACK, 0, SW_R_drop_handshake);
	expect_segment(&t, 0, 0, TCP_ACK | TCP_PSH, 0, SW_R_drop_handshake);
	/* a window update or a duplicate behind it is no request either */
	expect_segment(&t, 0, 0, TCP_ACK, 0, SW_R_drop_handshake);
}

/* Data of which the first part is missing is not acknowledged, so that it comes again. */
static void out_of_order(struct lane *l)
{
	static const uint32_t places[] = {1, 2, 100, 1448, 2920, 100000, 0x7fffffff, 0xffffffff};

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct talk t;

		if (!talk_opened(&t, l))
			continue;
		expect_segment(&t, places[i], 0, TCP_ACK, 500, SW_R_drop_order);
		expect_segment(&t, places[i], 0, TCP_ACK | TCP_FIN, 500, SW_R_drop_order);
		expect_segment(&t, places[i], 0, TCP_ACK | TCP_FIN, 0, SW_R_drop_order);
	}
}

/* It begins like a request but is not where the request has to be. */
static void request_in_a_later_segment(struct lane *l)
{
	struct talk t;
	struct frame f;

	lane_trying(l, "a request 1448 bytes in");
	if (!talk_opened(&t, l))
		return;
	f = talk_segment(&t, 1448, 0, TCP_ACK, REQUEST, strlen(REQUEST));
	talk_expect(&t, &f, SW_R_drop_order, NULL);
}

static void closed_without_request(struct lane *l)
{
	struct talk t;

	if (!talk_opened(&t, l))
		return;
	expect_segment(&t, 0, 0, TCP_ACK, 0, SW_R_drop_handshake);
	expect_segment(&t, 0, 0, TCP_ACK | TCP_FIN, 0, SW_R_close_silent);
	expect_segment(&t, 0, 0, TCP_ACK | TCP_FIN, 0, SW_R_close_silent);
	expect_segment(&t, 1, 1, TCP_ACK, 0, SW_R_drop_ack);
}

/* ---- repeats ----------------------------------------------------------------------------- */

static bool same_answer(const struct result *a, const struct result *b)
{
	return a->reply.seq == b->reply.seq && a->reply.payload_len == b->reply.payload_len &&
	       a->reply.flags == b->reply.flags &&
	       !memcmp(a->reply.payload, b->reply.payload, a->reply.payload_len);
}

/* The same bytes again, counted once as shed; also when the memory of it is gone. */
static void retransmission(struct lane *l)
{
	struct result first, again;
	struct talk t;
	struct frame f;

	if (!talk_shed(&t, l, &first))
		return;
	for (unsigned i = 0; i < 4; i++) {
		lane_trying(l, "retransmission %u", i + 1);
		if (i == 2)
			world_forget(l->w);
		f = talk_request(&t, REQUEST);
		if (talk_expect(&t, &f, i == 2 ? SW_R_shed_saturated : SW_R_shed_again, &again) &&
		    (!same_answer(&first, &again) || again.reply.ack != first.reply.ack))
			world_complain(l->w, "not the same answer");
	}
}

/* What is decided stays decided while it is remembered: the cause, the body, that it is shed. */
static void retransmission_after_a_change(struct lane *l)
{
	static const char text[] = "POST /v1/messages HTTP/1.1\r\n\r\n";
	struct result first, again;
	struct talk t;
	struct frame f;

	world_pool(l->w, SW_MODE_SHED, SW_CAUSE_DRAINING, 60000);
	if (!talk_opened(&t, l))
		return;
	f = talk_request(&t, text);
	if (!talk_expect(&t, &f, SW_R_shed_draining, &first))
		return;
	lane_trying(l, "retransmission when the cause is another");
	world_pool(l->w, SW_MODE_SHED, SW_CAUSE_NO_SLOTS, 60000);
	f = talk_request(&t, text);
	if (talk_expect(&t, &f, SW_R_shed_again, &again) && !same_answer(&first, &again))
		world_complain(l->w, "not the same answer");
	lane_trying(l, "retransmission when the pool has room again");
	world_pool(l->w, SW_MODE_FINISH, SW_CAUSE_SATURATED, 60000);
	f = talk_request(&t, text);
	if (talk_expect(&t, &f, SW_R_shed_again, &again) && !same_answer(&first, &again))
		world_complain(l->w, "not the same answer");
	lane_trying(l, "retransmission when the memory is gone too");
	world_forget(l->w);
	f = talk_request(&t, text);
	talk_expect(&t, &f, SW_R_handover_open, NULL);
}

/* In flight behind the request: the answer again, acknowledging all that came in order. */
static void in_flight(struct lane *l)
{
	uint32_t at = strlen(REQUEST);
	struct result first, again;
	struct talk t;
	struct frame f;

	if (!talk_shed(&t, l, &first))
		return;
	for (unsigned i = 0; i < 3; i++, at += 1000) {
		lane_trying(l, "segment %u behind the request", i + 1);
		f = talk_segment(&t, at, 0, TCP_ACK, body, 1000);
		if (talk_expect(&t, &f, SW_R_shed_again, &again) && !same_answer(&first, &again))
			world_complain(l->w, "not the same answer");
	}
	lane_trying(l, "a segment with a hole before it");
	f = talk_segment(&t, at + 1000, 0, TCP_ACK, body, 1000);
	talk_expect(&t, &f, SW_R_drop_order, NULL);
	lane_trying(l, "the FIN behind the data");
	f = talk_segment(&t, at, 0, TCP_ACK | TCP_FIN, NULL, 0);
	talk_expect(&t, &f, SW_R_shed_again, &again);
}

/* A repeat of an early part is answered with all that is known to have come. Not by the lane's
 * rule for acknowledgements, so it is judged here. */
static void repeat_of_an_early_part(struct lane *l)
{
	uint32_t first = strlen(REQUEST), end = first + 1000;
	struct packet p;
	struct result r;
	struct talk t;
	struct frame f;

	if (!talk_shed(&t, l, &r))
		return;
	f = talk_segment(&t, first, 0, TCP_ACK, body, 1000);
	talk_expect(&t, &f, SW_R_shed_again, NULL);
	lane_trying(l, "the request again after more was acknowledged");
	f = talk_request(&t, REQUEST);
	frame_build(&f, &p);
	if (!lane_run(l, &p, &r))
		return;
	if (r.reason != SW_R_shed_again || reply_parse(r.bytes, r.len, &r.reply))
		world_complain(l->w, "%s", world_reason(r.reason));
	else if (r.reply.ack != t.syn.seq + 1 + end)
		world_complain(l->w, "acknowledges %d, want %u", (int)(r.reply.ack - t.syn.seq - 1),
			       end);
}

/* A port that is used again soon is another conversation, not a repeat. */
static void reused_port(struct lane *l)
{
	struct talk t = talk_new(l);
	struct frame f;

	for (unsigned i = 0; i < 64; i++) {
		lane_trying(l, "port used again, %u", i);
		t.syn.seq += 0x9e3779b1;
		t.seen = 0;
		if (!talk_open(&t))
			continue;
		f = talk_request(&t, REQUEST);
		talk_expect(&t, &f, SW_R_shed_saturated, NULL);
	}
}

/* The entry that a shed leaves behind is what abi.h says. */
static void memory(struct lane *l)
{
	struct sw_recent found = {}, entry;
	unsigned entries = 0;
	struct result r;
	struct talk t;

	world_forget(l->w);
	if (!talk_shed(&t, l, &r))
		return;
	for (uint32_t i = 0; i < SW_RECENT; i++) {
		bpf_map_lookup_elem(l->w->map[MAP_RECENT], &i, &entry);
		if (!entry.mark && !entry.next)
			continue;
		found = entry;
		entries++;
	}
	if (entries != 1 || (found.mark ^ (t.cookie + 1)) >> 4 || found.next != r.reply.ack)
		world_complain(l->w, "%u entries, mark %x, next %x", entries, found.mark,
			       found.next);
	if ((found.mark & 15) != (SW_CAUSE_SATURATED << 2 | SW_FAMILY_DEFAULT))
		world_complain(l->w, "cause and family %x", found.mark & 15);
}

/* ---- after the answer -------------------------------------------------------------------- */

static void drain(struct lane *l)
{
	uint32_t at = strlen(REQUEST);
	struct result r;
	struct talk t;

	if (!talk_shed(&t, l, &r))
		return;
	for (uint32_t got = LENGTH; got <= LENGTH + 1; got++) {
		expect_segment(&t, at, got, TCP_ACK, 0, SW_R_drop_ack);
		expect_segment(&t, at, got, TCP_ACK, 1, SW_R_drain_data);
		expect_segment(&t, at + 1, got, TCP_ACK, 1448, SW_R_drain_data);
		expect_segment(&t, at + 70000, got, TCP_ACK | TCP_PSH, 1448, SW_R_drain_data);
		/* a keep-alive or window probe with a byte from before */
		expect_segment(&t, at - 1, got, TCP_ACK, 1, SW_R_drain_data);
		expect_segment(&t, at + 9, got, TCP_ACK | TCP_FIN, 7, SW_R_drain_fin);
		expect_segment(&t, at, got, TCP_ACK | TCP_FIN, 0, SW_R_drain_fin);
		expect_segment(&t, at + 1, got, TCP_ACK, 0, SW_R_drop_ack);
		expect_segment(&t, at, got, TCP_RST, 0, SW_R_pass_reset);
		expect_segment(&t, at, got, TCP_RST | TCP_ACK, 0, SW_R_pass_reset);
	}
}

/* Draining needs no memory at all. */
static void drain_without_memory(struct lane *l)
{
	struct talk t;

	if (!talk_opened(&t, l))
		return;
	expect_segment(&t, 5, LENGTH, TCP_ACK, 100, SW_R_drain_data);
	expect_segment(&t, 105, LENGTH + 1, TCP_ACK | TCP_FIN, 0, SW_R_drain_fin);
}

/* Any other amount of acknowledged bytes is no phase of a conversation. */
static void other_amounts(struct lane *l)
{
	struct talk t;

	if (!talk_opened(&t, l))
		return;
	for (uint32_t got = 2; got < 2048; got++)
		if (got != LENGTH && got != LENGTH + 1)
			expect_segment(&t, 80, got, TCP_ACK, 40, SW_R_pass_unknown);
}

/* An answer of the previous length is still known for as long as the listener says. */
static void length_changed(struct lane *l)
{
	struct sw_listener now = world_default_listener(ID_MAIN);
	struct result r;
	struct talk t;

	if (!talk_shed(&t, l, &r))
		return;
	now.answers = 0;
	now.length = OTHER_LENGTH;
	now.old_length = LENGTH;
	now.old_until_ns = world_now() + 60000000000ULL;
	world_listener(l->w, ID_MAIN, &now);
	for (uint32_t got = LENGTH; got <= LENGTH + 1; got++) {
		expect_segment(&t, 80, got, TCP_ACK, 40, SW_R_drain_data);
		expect_segment(&t, 80, got, TCP_ACK | TCP_FIN, 0, SW_R_drain_fin);
		expect_segment(&t, 80, got - LENGTH + OTHER_LENGTH, TCP_ACK, 9, SW_R_drain_data);
	}
	now.old_until_ns = world_now() - 100000000;
	world_listener(l->w, ID_MAIN, &now);
	expect_segment(&t, 80, LENGTH, TCP_ACK, 40, SW_R_pass_unknown);
	expect_segment(&t, 80, OTHER_LENGTH, TCP_ACK, 40, SW_R_drain_data);
}

LANE_TEST(handshake)
CHANCE_TEST(out_of_order)
CHANCE_TEST(request_in_a_later_segment)
LANE_TEST(closed_without_request)
LANE_TEST(retransmission)
LANE_TEST(retransmission_after_a_change)
LANE_TEST(in_flight)
LANE_TEST(repeat_of_an_early_part)
LANE_TEST(reused_port)
LANE_TEST(memory)
LANE_TEST(drain)
LANE_TEST(drain_without_memory)
CHANCE_TEST(other_amounts)
CHANCE_TEST(length_changed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_handshake),
		packet_test(test_out_of_order),
		packet_test(test_request_in_a_later_segment),
		packet_test(test_closed_without_request),
		packet_test(test_retransmission),
		packet_test(test_retransmission_after_a_change),
		packet_test(test_in_flight),
		packet_test(test_repeat_of_an_early_part),
		packet_test(test_reused_port),
		packet_test(test_memory),
		packet_test(test_drain),
		packet_test(test_drain_without_memory),
		packet_test(test_other_amounts),
		packet_test(test_length_changed),
	};

	return world_run(tests);
}
