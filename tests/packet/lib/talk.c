// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The client's side of a conversation: numbers, options and timestamps.

#include "talk.h"

#include <string.h>

struct talk talk_bare(struct lane *l)
{
	struct talk t = {.l = l, .clock = 70000};

	l->w->next_port++;
	t.syn = lane_frame(l, TCP_SYN);
	frame_option_mss(&t.syn, l->family == 4 ? 1460 : 1440);
	return t;
}

struct talk talk_new(struct lane *l)
{
	struct talk t = talk_bare(l);
	uint8_t shift = 7;

	frame_option(&t.syn, 4, NULL, 0);
	frame_option_timestamps(&t.syn, t.clock, 0);
	frame_option(&t.syn, 1, NULL, 0);
	frame_option(&t.syn, 3, &shift, 1);
	return t;
}

/* The timestamp in a frame; false: none. */
static bool timestamp_of(const struct frame *f, uint32_t *value)
{
	const uint8_t *o = f->options, *end = o + f->options_len;

	while (o + 1 < end && *o != 8)
		o += *o <= 1 ? 1 : o[1] < 2 ? end - o : o[1];
	if (end - o < 10)
		return false;
	*value = (uint32_t)o[2] << 24 | o[3] << 16 | o[4] << 8 | o[5];
	return true;
}

const char *talk_timestamps(struct talk *t, const struct frame *f, const struct reply *r)
{
	uint32_t sent;
	bool want = timestamp_of(f, &sent) && !t->no_stamps;

	if (r->has_ts != want)
		return want ? "no timestamps" : "timestamps that were not negotiated";
	if (!want)
		return NULL;
	if (r->tsecr != sent)
		return "timestamp echo";
	if (t->seen && !(f->flags & TCP_SYN) && (int32_t)(r->tsval - t->seen) < 0)
		return "timestamp went backwards";
	t->seen = r->tsval;
	return NULL;
}

bool talk_open(struct talk *t)
{
	struct result r;

	if (!talk_expect(t, &t->syn, SW_R_syn_ack, &r))
		return false;
	t->syn_ack = r.reply;
	t->cookie = r.reply.seq;
	return true;
}

bool talk_opened(struct talk *t, struct lane *l)
{
	*t = talk_new(l);
	return talk_open(t);
}

struct frame talk_segment(struct talk *t, uint32_t sent, uint32_t got, uint8_t flags,
			  const void *payload, size_t len)
{
	struct frame f = t->syn;

	f.seq = t->syn.seq + 1 + sent;
	f.ack = t->cookie + 1 + got;
	f.flags = flags;
	f.payload = payload;
	f.payload_len = len;
	f.options_len = 0;
	if (t->syn_ack.has_ts) {
		frame_option(&f, 1, NULL, 0);
		frame_option(&f, 1, NULL, 0);
		frame_option_timestamps(&f, ++t->clock, t->seen);
	}
	return f;
}

struct frame talk_request(struct talk *t, const char *text)
{
	return talk_segment(t, 0, 0, TCP_PSH | TCP_ACK, text, strlen(text));
}

bool talk_expect(struct talk *t, const struct frame *f, enum sw_reason want, struct result *r)
{
	struct result own;
	const char *wrong;

	r = r ? r : &own;
	if (!lane_expect(t->l, f, want, r))
		return false;
	if (reason_class(r->reason) != 'R')
		return true;
	wrong = talk_timestamps(t, f, &r->reply);
	if (wrong)
		world_complain(t->l->w, "%s (%s)", wrong, world_reason(r->reason));
	return !wrong;
}

bool talk_shed(struct talk *t, struct lane *l, struct result *r)
{
	struct frame f;

	if (!talk_opened(t, l))
		return false;
	f = talk_request(t, REQUEST);
	return talk_expect(t, &f, SW_R_shed_saturated, r);
}

void talk_through(struct talk *t)
{
	static const struct {
		uint32_t got;
		uint8_t flags;
		const char *text;
		enum sw_reason want;
	} rows[] = {
		{0, TCP_ACK, "", SW_R_drop_handshake},
		{0, TCP_ACK | TCP_PSH, REQUEST, SW_R_shed_saturated},
		{LENGTH, TCP_ACK, "x", SW_R_drain_data},
		{LENGTH + 1, TCP_ACK | TCP_FIN, "", SW_R_drain_fin},
	};

	if (!talk_open(t))
		return;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct frame f = talk_segment(t, 0, rows[i].got, rows[i].flags, rows[i].text,
					      strlen(rows[i].text));

		talk_expect(t, &f, rows[i].want, NULL);
	}
}
