// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The framing of HTTP/1.1 that runs in the kernel, fed with what fuzzing makes up: requests and
 * then responses. However a stream is cut into segments, the same messages must be seen in it. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* The two helpers that framing uses, on plain memory. */
static const uint8_t *packet;
static size_t packet_length;

static long load_bytes(const void *skb, __u32 offset, void *to, __u32 length)
{
	(void)skb;
	if (offset > packet_length || length > packet_length - offset)
		abort(); /* the kernel would refuse: the framing must never ask for it */
	memcpy(to, packet + offset, length);
	return 0;
}

#define bpf_skb_load_bytes load_bytes
#define bpf_loop(times, step, context, flags)                                                      \
	do {                                                                                       \
		for (__u32 i_ = 0; i_ < (times) && !(step)(i_, context); i_++)                     \
			;                                                                          \
	} while (0)

struct exchange;
#include "http1.h"

struct exchange {
	struct stream in, out;
	__u32 asked, answered;
	int failed;
};

/* Any request may have a body, any response too unless its status says otherwise. */
static int end_of_head(struct reader *r)
{
	struct stream *s = r->stream;

	if (!r->response) {
		r->exchange->asked++;
		return 1;
	}
	if (s->status < 200)
		return s->status < 100 ? -1 : 0;
	r->exchange->answered++;
	return s->status == 204 || s->status == 304 ? 0 : s->frame ? 1 : -1;
}

/* Feeds bytes [from, to) of a stream as one segment, as exchange.h does. */
static void feed(struct exchange *x, int response, const uint8_t *data, size_t from, size_t to)
{
	struct stream *s = response ? &x->out : &x->in;
	struct reader r = {.stream = s, .exchange = x, .response = response};

	if (x->failed || s->at >= to)
		return;
	packet = data + from;
	packet_length = to - from;
	r.off = s->at > from ? s->at - from : 0;
	r.end = packet_length;
	if (read_stream(&r))
		x->failed = 1;
}

static void check_same(const struct exchange *whole, const struct exchange *cut, size_t size,
		       int response)
{
	const struct stream *a = response ? &whole->out : &whole->in;
	const struct stream *b = response ? &cut->out : &cut->in;

	if (whole->failed != cut->failed || whole->asked != cut->asked ||
	    whole->answered != cut->answered)
		abort();
	if (!whole->failed && (a->at != b->at || a->line != b->line || a->part != b->part ||
			       a->frame != b->frame || a->at < size || between(a) != between(b)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > STEPS_MAX)
		return 0;
	for (int response = 0; response < 2; response++) {
		struct exchange whole = {0}, cut = {0}, bytes = {0};
		size_t at = data[0] * (size - 1) / 256;
		const uint8_t *text = data + 1;
		size_t length = size - 1;

		feed(&whole, response, text, 0, length);
		feed(&cut, response, text, 0, at);
		feed(&cut, response, text, at, length);
		for (size_t i = 0; i < length; i++)
			feed(&bytes, response, text, i, i + 1);
		check_same(&whole, &cut, length, response);
		check_same(&whole, &bytes, length, response);
	}
	return 0;
}
