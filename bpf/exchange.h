/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests and responses of one flow, held against each other. */
#ifndef SPILLWAY_BPF_EXCHANGE_H
#define SPILLWAY_BPF_EXCHANGE_H

#include "flow.h"

/* What http1.h asks about, when a head is complete. */
static __always_inline int end_of_request(struct exchange *x, const struct stream *s)
{
	__u64 bit = 1ULL << (x->asked & 63);

	if (x->asked - x->answered >= 64)
		return -1;
	x->heads = s->status == STATUS_HEAD ? x->heads | bit : x->heads & ~bit;
	x->asked++;
	return 1;
}

/* There was a response to a request that came before all that has been seen. */
static __always_inline void answer_older(struct exchange *x)
{
	x->answered = x->asked + 1;
}

static __always_inline int answered_older(const struct exchange *x)
{
	return x->answered == x->asked + 1;
}

static __always_inline int end_of_response(struct exchange *x, const struct stream *s)
{
	__u32 head = x->heads >> (x->answered & 63) & 1;

	if (s->status < 100 || s->status == 101)
		return -1; /* another protocol from here on */
	if (x->asked == x->answered) {
		answer_older(x);
		return -1;
	}
	if (s->status < 200)
		return 0;
	/* while its own request was still coming: whose the rest is, is open */
	if (x->answered + 1 == x->asked && before(x->received, x->in.at))
		return -1;
	x->answered++;
	if (head || s->status == 204 || s->status == 304)
		return 0;
	return s->frame ? 1 : -1; /* without a frame it ends with the connection */
}

static int end_of_head(struct reader *r)
{
	return r->response ? end_of_response(r->exchange, r->stream)
			   : end_of_request(r->exchange, r->stream);
}

/* The reason for an error, by where in the message it stands. */
static __always_inline int why_failed(const struct reader *r)
{
	const struct stream *s = r->stream;

	if (s->line == LINE_START)
		return SW_R_alone_protocol;
	if (s->line != LINE_FIELD)
		return SW_R_alone_framing;
	if (s->field == FIELD_CONNECTION)
		return SW_R_alone_close;
	if (s->part != PART_EMPTY_LF || !r->response) /* not the head as a whole */
		return SW_R_alone_framing;
	return s->status == 101 ? SW_R_alone_close : SW_R_alone_response;
}

#define FOLLOWED     (-1)
#define FOLLOWED_GAP SW_R_alone_gap

/* Reads the payload of a segment, as far as it is new; `out`: of responses. FOLLOWED, or why it
 * cannot be. */
__noinline int STAGE(follow)(ctx_t *ctx, const struct packet *p, struct exchange *x, int out)
{
	struct reader r = {.skb = ctx, .exchange = x, .response = out};
	__u32 skip;

	if (!p || !x)
		return SW_R_alone_framing;
	r.stream = out ? &x->out : &x->in;
	skip = r.stream->at - p->seq;
	if (!before(r.stream->at, p->seq + p->payload))
		return FOLLOWED;
	if ((__s32)skip < 0)
		return FOLLOWED_GAP;
	r.off = p->data + skip;
	r.end = p->data + p->payload;
	return read_stream(&r) ? why_failed(&r) : FOLLOWED;
}

/* Nothing of the two streams is known but where they stand. */
static __always_inline void start_exchange(struct exchange *x, __u32 in, __u32 out)
{
	__builtin_memset(x, 0, sizeof(*x));
	x->in.at = x->received = in;
	x->out.at = out;
}

/* All that was asked has been answered, and neither side has begun anything new. */
static __always_inline int at_rest(const struct exchange *x)
{
	return x->asked == x->answered && between(&x->in) && between(&x->out);
}

#endif
