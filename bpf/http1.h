/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where messages of HTTP/1.1 begin and end in one direction of a connection: start line, fields,
 * Content-Length, chunks. Reads what frames and skips what is counted. All that is not plainly
 * understood is an error, and an error is for ever: whoever asks must then take it that something
 * is under way. Knows nothing of packets but where their bytes are.
 */
#ifndef SPILLWAY_BPF_HTTP1_H
#define SPILLWAY_BPF_HTTP1_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bytes.h"

#define STEPS_MAX  8192	      /* in one packet; more is not understood */
#define REST_WORDS 4	      /* looked at in one step */
#define COUNT_MAX  (1U << 27) /* bytes of a body or chunk; times 16 it is still a __u32 */
#define BLOCK	   64	      /* bytes fetched at a time */
#define WORD_BYTES 24	      /* of a name or value that means something to us, at most */

enum line { /* what the line is that is being read */
	    LINE_START = 0,
	    LINE_FIELD,
	    LINE_SIZE, /* of a chunk */
	    LINE_END,  /* the CR LF after a chunk's data */
	    LINE_TRAILER,
};

enum part {		   /* and where in it we are */
	    PART_WORD = 0, /* its first word */
	    PART_VALUE,	   /* a status, or the value of a field that frames */
	    PART_REST,	   /* means nothing to us */
	    PART_LF,	   /* CR was read */
	    PART_EMPTY_LF, /* and nothing before it */
};

enum field { FIELD_LENGTH = 1, FIELD_CODING, FIELD_CONNECTION, FIELD_EXPECT };

#define FRAME_LENGTH  1
#define FRAME_CHUNKED 2
#define STATUS_HEAD   1 /* in place of a status: the request is a HEAD */
#define STATUS_EXPECT 2 /* it waits for a 100 before its body */

struct stream {
	__u32 at;      /* sequence number of the next byte to read; what lies before is of no use */
	__u32 number;  /* being read: Content-Length, size of a chunk, status */
	__u64 word[3]; /* being read: the last 24 letters, the last one lowest, in lower case */
	__u16 status;
	__u8 line, part, field;
	__u8 frame;  /* FRAME_* */
	__u8 base;   /* of the number being read; 0: it is a word */
	__u8 length; /* of what is being read */
	__u8 block[BLOCK];
};

struct reader { /* one packet */
	struct __sk_buff *skb;
	struct stream *stream;
	struct exchange *exchange;
	__u32 off, end; /* offsets of what is to be read */
	__u32 base;	/* sequence number at offset 0 */
	__u32 block;	/* and of what is in stream->block */
	__u32 response; /* 0: requests are read */
	__u32 failed;
};

/* What is to be done with a head that is complete. 1: a body follows as the head says, 0: none
 * does, negative: not understood. */
static int end_of_head(struct reader *r);

/* Between two messages: nothing of the next one has been read. */
static __always_inline int between(const struct stream *s)
{
	return s->line == LINE_START && s->part == PART_WORD && !s->length;
}

static __always_inline void start_part(struct stream *s, enum part part, __u32 base)
{
	s->part = part;
	s->base = base;
	s->length = 0;
	s->number = base ? 0 : s->number;
	s->word[0] = s->word[1] = s->word[2] = 0;
}

static __always_inline int start_line(struct stream *s, enum line line)
{
	s->line = line;
	s->field = 0;
	start_part(s, PART_WORD, line == LINE_SIZE ? 16 : 0);
	return 0;
}

static __always_inline int start_message(struct stream *s)
{
	s->frame = 0;
	s->number = 0;
	return start_line(s, LINE_START);
}

/* ---- words ---------------------------------------------------------------------------------- */

/* The letter that is number n from the end; the final zero where there is none. */
#define LETTER(t, n)                                                                               \
	((__u64)(t)[sizeof(t) - 1 > (n) ? sizeof(t) - 2 - (n) : sizeof(t) - 1] << (n) % 8 * 8)
#define LETTERS(t, n)                                                                              \
	(LETTER(t, n) | LETTER(t, n + 1) | LETTER(t, n + 2) | LETTER(t, n + 3) |                   \
	 LETTER(t, n + 4) | LETTER(t, n + 5) | LETTER(t, n + 6) | LETTER(t, n + 7))
#define WORD_IS(s, t)                                                                              \
	((s)->word[0] == LETTERS(t, 0) && (s)->word[1] == LETTERS(t, 8) &&                         \
	 (s)->word[2] == LETTERS(t, 16))

/* Digits of the number that is being read, the first one lowest, zeros behind the last one. */
static __always_inline int push_digits(struct stream *s, __u64 digits)
{
	__u32 i;

	for (i = 0; i < BYTES && digits; i++, digits >>= 8) {
		__u8 c = digits;
		__u32 digit = c >= '0' && c <= '9' ? c - '0' : 16;

		if (s->base == 16 && c >= 'a' && c <= 'f')
			digit = c - 'a' + 10;
		if (digit >= s->base)
			return -1;
		s->number = s->number * s->base + digit;
		if (s->number > COUNT_MAX)
			return -1;
	}
	return 0;
}

/* Is this the first byte of a line that does not frame anything? */
static __always_inline int starts_rest(const struct stream *s, __u8 c)
{
	if (s->part != PART_WORD || s->length || c <= ' ')
		return 0;
	c |= 0x20;
	return s->line == LINE_TRAILER ||
	       (s->line == LINE_FIELD && c != 'c' && c != 't' && c != 'e');
}

/* Takes n letters, 1 to 8, the first one lowest. */
static __always_inline int push(struct stream *s, __u64 letters, __u32 n)
{
	int name = s->line == LINE_FIELD && s->part == PART_WORD;
	__u32 half = n * 4, rest = 64 - n * 8; /* bits; a shift by 64 is not defined */

	letters = lower_case(letters);
	if (s->line == LINE_END)
		return -1;
	if (s->length + n > WORD_BYTES) {
		s->part = PART_REST;
		return name ? 0 : -1;
	}
	s->length += n;
	if (s->base)
		return push_digits(s, letters << rest >> rest);
	letters = __builtin_bswap64(letters);
	s->word[2] = s->word[2] << half << half | s->word[1] >> rest;
	s->word[1] = s->word[1] << half << half | s->word[0] >> rest;
	s->word[0] = s->word[0] << half << half | letters >> rest;
	return 0;
}

/* ---- ends of words -------------------------------------------------------------------------- */

static __always_inline int known_method(struct stream *s)
{
	s->status = WORD_IS(s, "head") ? STATUS_HEAD : 0;
	return s->status || WORD_IS(s, "post") || WORD_IS(s, "get") || WORD_IS(s, "put") ||
	       WORD_IS(s, "patch") || WORD_IS(s, "delete") || WORD_IS(s, "options");
}

/* Of the start line: the method, or the version and then the status. */
static __always_inline int end_of_start(struct reader *r, __u8 c)
{
	struct stream *s = r->stream;

	if (!r->response || s->part == PART_VALUE) {
		if (r->response ? s->length != 3 : c != ' ' || !known_method(s))
			return -1;
		if (r->response)
			s->status = s->number;
		s->part = PART_REST;
		return 0;
	}
	if (c != ' ' || !WORD_IS(s, "http/1.1"))
		return -1;
	start_part(s, PART_VALUE, 10);
	return 0;
}

static __always_inline int end_of_name(struct stream *s, __u8 c)
{
	if (c != ':')
		return s->length ? -1 : 0;
	s->field = WORD_IS(s, "content-length")	     ? FIELD_LENGTH
		   : WORD_IS(s, "transfer-encoding") ? FIELD_CODING
		   : WORD_IS(s, "connection")	     ? FIELD_CONNECTION
		   : WORD_IS(s, "expect")	     ? FIELD_EXPECT
						     : 0;
	if (s->field)
		start_part(s, PART_VALUE, s->field == FIELD_LENGTH ? 10 : 0);
	else
		s->part = PART_REST;
	return 0;
}

/* Two lengths, a length and a coding, a coding that we do not know: peers may differ about what
 * they mean. A connection that is to be closed closes by itself. */
static __always_inline int end_of_value(struct stream *s)
{
	if (s->field == FIELD_EXPECT) {
		s->status = STATUS_EXPECT;
		return 0;
	}
	if (s->field == FIELD_CONNECTION)
		return !s->length || WORD_IS(s, "keep-alive") ? 0 : -1;
	if (s->frame || !s->length || (s->field == FIELD_CODING && !WORD_IS(s, "chunked")))
		return -1;
	s->frame = s->field == FIELD_CODING ? FRAME_CHUNKED : FRAME_LENGTH;
	return 0;
}

static __always_inline int end_of_word(struct reader *r, __u8 c)
{
	struct stream *s = r->stream;

	switch (s->line) {
	case LINE_START: return end_of_start(r, c);
	case LINE_FIELD: return s->part == PART_WORD ? end_of_name(s, c) : end_of_value(s);
	case LINE_SIZE: s->part = PART_REST; return s->length ? 0 : -1;
	default: return 0;
	}
}

static __always_inline int ends_word(const struct stream *s, __u8 c)
{
	switch (s->line) {
	case LINE_START: return c == ' ';
	case LINE_FIELD: return s->part == PART_WORD && c == ':';
	case LINE_SIZE: return c == ';' || c == ' ';
	default: return 0;
	}
}

/* ---- ends of lines -------------------------------------------------------------------------- */

static __always_inline int end_of_line(struct reader *r)
{
	struct stream *s = r->stream;
	int empty = s->part == PART_EMPTY_LF, body;

	switch (s->line) {
	case LINE_START: return start_line(s, LINE_FIELD);
	case LINE_FIELD:
		if (!empty)
			return start_line(s, LINE_FIELD);
		body = end_of_head(r);
		if (body < 0)
			return -1;
		if (body && s->frame == FRAME_CHUNKED)
			return start_line(s, LINE_SIZE);
		if (body && s->frame == FRAME_LENGTH)
			s->at += s->number;
		return start_message(s);
	case LINE_SIZE:
		s->at += s->number;
		return start_line(s, s->number ? LINE_END : LINE_TRAILER);
	case LINE_END: return start_line(s, LINE_SIZE);
	default: return empty ? start_message(s) : start_line(s, LINE_TRAILER);
	}
}

/* ---- a packet ------------------------------------------------------------------------------- */

struct step {	    /* where we are in it */
	__u32 at;   /* in the block */
	__u32 left; /* to the packet's end */
};

static __always_inline int fetch_block(struct reader *r, __u32 left)
{
	__u32 more = left - 1; /* bytes beyond the first */

	r->block = r->stream->at;
	if (more >= BLOCK)
		more = BLOCK - 1;
	asm volatile("" : "+r"(more)); /* bound the very register that is passed */
	if (more >= BLOCK)
		return -1;
	return bpf_skb_load_bytes(r->skb, r->block - r->base, r->stream->block, more + 1);
}

/* The next byte; negative: there is none here. */
static __always_inline int next_byte(const struct stream *s, const struct step *p)
{
	return p->left && p->at < BLOCK ? s->block[p->at] : -1;
}

/* By n bytes, or as many as there are. */
static __always_inline __u32 advance(struct step *p, __u32 n)
{
	if (n > p->left)
		n = p->left;
	p->at += n;
	p->left -= n;
	return n;
}

static __always_inline int end_with_cr(struct reader *r)
{
	struct stream *s = r->stream;
	int empty = s->part == PART_WORD && !s->length;
	int err = s->part == PART_REST ? 0 : end_of_word(r, '\r');

	s->part = empty ? PART_EMPTY_LF : PART_LF;
	return err;
}

/* How many of these bytes are part of a word, wherever it stands? ':' and ';', which differ in one
 * bit, end some. */
static __always_inline __u32 count_letters(__u64 bytes)
{
	return before_mark(find_below(bytes, ' ' + 1) | find_byte(bytes | ONES, ';'));
}

/* Letters, the first of which are `bytes`, and what stands behind them. */
static __always_inline int read_word(struct reader *r, __u64 bytes, struct step *p)
{
	struct stream *s = r->stream;
	__u32 n = count_letters(bytes);
	int c;

	if (!n && (bytes & 0xff) > ' ' && !ends_word(s, bytes))
		n = 1;
	n = advance(p, n);
	if (n && push(s, bytes, n))
		return -1;
	c = next_byte(s, p);
	if (s->part == PART_REST || c < 0 || (c > ' ' && !ends_word(s, c)))
		return 0;
	advance(p, 1);
	if (c == '\r')
		return end_with_cr(r);
	if (c < ' ' && c != '\t')
		return -1;
	if (ends_word(s, c))
		return end_of_word(r, c);
	/* before a value; elsewhere peers may differ about it */
	return s->line == LINE_FIELD && s->part == PART_VALUE && !s->length ? 0 : -1;
}

/* What means nothing to us, but for control characters. */
static __always_inline int read_rest(struct reader *r, struct step *p)
{
	__u64 marks = 0;
	__u32 i;
	int c;

	for (i = 0; i < REST_WORDS && !marks && p->at <= BLOCK - BYTES; i++) {
		marks = find_below(*(__u64 *)(r->stream->block + p->at), ' ');
		advance(p, before_mark(marks));
	}
	c = marks ? next_byte(r->stream, p) : -1;
	if (c < 0)
		return 0;
	advance(p, 1);
	if (c == '\r')
		return end_with_cr(r);
	return c == '\t' ? 0 : -1;
}

/* Between steps, where we are is kept in the stream alone: by what lies on the stack a verifier
 * would tell one step from the next, and not come to an end. */
static long read_step(__u32 i, struct reader *r)
{
	struct stream *s = r->stream;
	__u32 off = s->at - r->base;
	struct step p = {.at = s->at - r->block, .left = r->end - off};
	int c;

	(void)i;
	if (off >= r->end)
		return 1;
	if (p.at > BLOCK - BYTES) {
		if (fetch_block(r, p.left))
			goto failed;
		p.at = s->at - r->block;
		if (p.at > BLOCK - BYTES)
			goto failed;
	}
	if (starts_rest(s, s->block[p.at]))
		s->part = PART_REST;
	if (s->part <= PART_VALUE && read_word(r, *(__u64 *)(s->block + p.at), &p))
		goto failed;
	if (s->part == PART_REST && read_rest(r, &p))
		goto failed;
	c = s->part < PART_LF ? -1 : next_byte(s, &p);
	s->at = r->block + p.at + (c >= 0);
	if (c < 0 || (c == '\n' && !end_of_line(r)))
		return 0;
failed:
	r->failed = 1;
	return 1;
}

/* Reads from r->off, where s->at lies, to r->end. 0, or -1: not understood. */
static __always_inline int read_stream(struct reader *r)
{
	r->base = r->stream->at - r->off;
	r->block = r->stream->at - BLOCK;
	bpf_loop(STEPS_MAX, read_step, r, 0);
	return r->failed || r->stream->at - r->base < r->end ? -1 : 0;
}

#endif
