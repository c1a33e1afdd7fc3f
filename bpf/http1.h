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

#define STEPS_MAX  8192	      /* in one packet; more is not understood */
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
	__u32 off, end;
	__u32 block;	/* offset of what is in stream->block */
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

static __always_inline int push_digit(struct stream *s, __u8 c)
{
	__u32 digit = c >= '0' && c <= '9' ? c - '0' : 16;

	if (s->base == 16 && c >= 'a' && c <= 'f')
		digit = c - 'a' + 10;
	if (digit >= s->base)
		return -1;
	s->number = s->number * s->base + digit;
	return s->number > COUNT_MAX ? -1 : 0;
}

/* Only names with these first letters frame anything. */
static __always_inline int may_frame(__u8 c)
{
	return c == 'c' || c == 't' || c == 'e';
}

static __always_inline int push(struct stream *s, __u8 c)
{
	int name = s->line == LINE_FIELD && s->part == PART_WORD;

	if (c >= 'A' && c <= 'Z')
		c |= 0x20;
	if (s->line == LINE_END)
		return -1;
	if (s->line == LINE_TRAILER || (name && !s->length && !may_frame(c))) {
		s->part = PART_REST;
		return 0;
	}
	if (s->length == WORD_BYTES) {
		s->part = PART_REST;
		return name ? 0 : -1;
	}
	s->length++;
	if (s->base)
		return push_digit(s, c);
	s->word[2] = s->word[2] << 8 | s->word[1] >> 56;
	s->word[1] = s->word[1] << 8 | s->word[0] >> 56;
	s->word[0] = s->word[0] << 8 | c;
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
			r->off += s->number;
		return start_message(s);
	case LINE_SIZE:
		r->off += s->number;
		return start_line(s, s->number ? LINE_END : LINE_TRAILER);
	case LINE_END: return start_line(s, LINE_SIZE);
	default: return empty ? start_message(s) : start_line(s, LINE_TRAILER);
	}
}

static __always_inline int read_byte(struct reader *r, __u8 c)
{
	struct stream *s = r->stream;
	int err = 0;

	if (s->part >= PART_LF)
		return c == '\n' ? end_of_line(r) : -1;
	if (c == '\r') {
		int empty = s->part == PART_WORD && !s->length;

		if (s->part != PART_REST)
			err = end_of_word(r, c);
		s->part = empty ? PART_EMPTY_LF : PART_LF;
		return err;
	}
	if (c < ' ' && c != '\t')
		return -1;
	if (s->part == PART_REST)
		return 0;
	if (ends_word(s, c))
		return end_of_word(r, c);
	if (c == ' ' || c == '\t') /* before a value; elsewhere peers may differ about it */
		return s->line == LINE_FIELD && s->part == PART_VALUE && !s->length ? 0 : -1;
	return push(s, c);
}

/* ---- a packet ------------------------------------------------------------------------------- */

#define ONES 0x0101010101010101ULL

/* How many bytes come before the first that is below ' '? */
static __always_inline __u32 printable(__u64 word)
{
	__u64 marks = (word - ONES * ' ') & ~word & ONES * 0x80;

	return marks ? ((((marks & -marks) >> 7) - 1) & ONES) * ONES >> 56 : sizeof(word);
}

static __always_inline int fetch_block(struct reader *r)
{
	__u32 more = r->end - r->off - 1; /* bytes beyond the first */

	r->block = r->off;
	if (more >= BLOCK)
		more = BLOCK - 1;
	asm volatile("" : "+r"(more)); /* bound the very register that is passed */
	if (more >= BLOCK)
		return -1;
	return bpf_skb_load_bytes(r->skb, r->off, r->stream->block, more + 1);
}

static long read_step(__u32 i, struct reader *r)
{
	struct stream *s = r->stream;
	__u32 at, plain;

	(void)i;
	if (r->off >= r->end)
		return 1;
	at = r->off - r->block;
	if (at >= BLOCK) {
		if (fetch_block(r))
			goto failed;
		at = 0;
	}
	if (s->part == PART_REST && at <= BLOCK - sizeof(__u64)) {
		plain = printable(*(__u64 *)(s->block + at));
		if (plain) {
			r->off += plain < r->end - r->off ? plain : r->end - r->off;
			return 0;
		}
	}
	r->off++;
	if (!read_byte(r, s->block[at & (BLOCK - 1)]))
		return 0;
failed:
	r->failed = 1;
	return 1;
}

/* Reads from r->off, where s->at lies, to r->end. 0, or -1: not understood. */
static __always_inline int read_stream(struct reader *r)
{
	__u32 base = r->stream->at - r->off;

	r->block = r->off - BLOCK;
	bpf_loop(STEPS_MAX, read_step, r, 0);
	r->stream->at = base + r->off;
	return r->failed || r->off < r->end ? -1 : 0;
}

#endif
