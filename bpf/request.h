/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Method and path of a request, and what the policy says of them. The path is read eight bytes at a
 * time up to '?' or ' ' and looked up whole: prefixes lie (/v1/messages is inference,
 * /v1/messages/count_tokens is not). Absolute-form targets, TLS, HTTP/2 and anything else that is
 * not in the map is never shed.
 */
#ifndef SPILLWAY_BPF_REQUEST_H
#define SPILLWAY_BPF_REQUEST_H

#include "parse.h"

enum request_kind {
	REQUEST_UNREAD, /* not HTTP/1, or its path does not end in this segment */
	REQUEST_PASS,	/* must not be shed */
	REQUEST_SHED,	/* may be shed */
};

#define ONES  0x0101010101010101ULL
#define TOPS  0x8080808080808080ULL
#define WORDS (SW_PATH_MAX / 8)

/* What is being read: the key to look up, its text seen as words too. */
struct request {
	union {
		struct sw_path path;
		struct {
			__u32 head; /* set, method, prefix */
			__u32 text[SW_PATH_MAX / 4];
		};
	};
	__u32 target; /* offset of the path in the packet */
	__u32 family; /* of the answer, when it is shed */
};

/* Marks the bytes of x that equal c in their top bits; only the lowest mark is exact. */
static __always_inline __u64 find_byte(__u64 x, __u8 c)
{
	x ^= ONES * c;
	return (x - ONES) & ~x & TOPS;
}

/* Cuts the text at the first '?' or ' ' (with `slash`: or '/'), zeroes what follows, and returns
 * the length before it; SW_PATH_MAX: there is none. Without a branch: the verifier would walk each.
 */
static __always_inline __u32 cut_text(struct request *r, int slash)
{
	__u64 live = ~0ULL;
	__u32 length = 0;
	int i;

	for (i = 0; i < WORDS; i++) {
		__u64 word = r->text[2 * i] | (__u64)r->text[2 * i + 1] << 32;
		__u64 marks = find_byte(word, ' ') | find_byte(word, '?');
		__u64 keep;

		if (slash)
			marks |= find_byte(word, '/');
		/* all ones below the first mark; without one, all ones */
		keep = (((marks & -marks) >> 7) - 1) & live;
		live &= ((marks | -marks) >> 63) - 1;
		length += (keep & ONES) * ONES >> 56;
		word &= keep;
		r->text[2 * i] = word;
		r->text[2 * i + 1] = word >> 32;
	}
	return length;
}

/* Loads at most SW_PATH_MAX bytes of payload at `off` into the text, zero padded. Returns how many.
 */
static __always_inline __u32 load_text(ctx_t *ctx, const struct packet *p, __u32 off,
				       struct request *r)
{
	__u32 left;

	__builtin_memset(r->text, 0, sizeof(r->text));
	if (off >= p->end)
		return 0;
	left = p->end - off;
	if (left > SW_PATH_MAX)
		left = SW_PATH_MAX;
	/* the verifier wants to see 1..64 on the very register that the helper gets */
	asm volatile("" : "+r"(left));
	if (left < 1 || left > SW_PATH_MAX || ctx_load(ctx, off, r->text, left))
		return 0;
	return left;
}

/* The method at the start of the payload and the bytes up to the path. */
static __always_inline enum sw_method read_method(__u64 w, __u32 *skip)
{
#define METHOD(text, m)                                                                            \
	do {                                                                                       \
		const __u64 mask = ~0ULL >> (64 - 8 * (sizeof(text) - 1));                         \
		if ((w & mask) == (*(const __u64 *)(text "\0\0\0\0\0\0\0") & mask)) {              \
			*skip = sizeof(text) - 1;                                                  \
			return m;                                                                  \
		}                                                                                  \
	} while (0)
	METHOD("POST ", SW_METHOD_POST);
	METHOD("GET ", SW_METHOD_GET);
	METHOD("HEAD ", SW_METHOD_HEAD);
	METHOD("PUT ", SW_METHOD_PUT);
	METHOD("DELETE ", SW_METHOD_DELETE);
	METHOD("PATCH ", SW_METHOD_PATCH);
	METHOD("OPTIONS ", SW_METHOD_OPTIONS);
	METHOD("CONNECT ", SW_METHOD_CONNECT);
	METHOD("TRACE ", SW_METHOD_TRACE);
#undef METHOD
	return SW_METHOD_NONE;
}

static __always_inline int look_up(struct request *r)
{
	const struct sw_path_value *v = bpf_map_lookup_elem(&paths, &r->path);

	if (!v)
		return REQUEST_UNREAD;
	r->family = v->family < SW_FAMILIES ? v->family : SW_FAMILY_DEFAULT;
	return v->action == SW_PATH_SHED ? REQUEST_SHED : REQUEST_PASS;
}

#define NO_PREFIX (-1)

/* Does the path start with prefix number i, and is the rest known? REQUEST_UNREAD: it is not;
 * NO_PREFIX: there are no more. */
__noinline int STAGE(try_prefix)(ctx_t *ctx, const struct packet *p, struct request *r, __u32 i)
{
	const struct sw_prefix *prefix = bpf_map_lookup_elem(&prefixes, &i);
	__u32 j, off, name;

	if (!prefix || !prefix->length)
		return NO_PREFIX;
	if (!p || !r || prefix->length > SW_PREFIX_MAX ||
	    load_text(ctx, p, r->target, r) < prefix->length)
		return REQUEST_UNREAD;
	for (j = 0; j < SW_PREFIX_MAX / 4; j++) {
		__u32 want = ((const __u32 *)prefix->bytes)[j];
		__u32 left = prefix->length > 4 * j ? prefix->length - 4 * j : 0;
		__u32 mask = left >= 4 ? ~0U : (1U << 8 * left) - 1;

		if ((r->text[j] ^ want) & mask)
			return REQUEST_UNREAD;
	}
	off = r->target + prefix->length;
	load_text(ctx, p, off, r);
	name = cut_text(r, 1);
	if (!name || name >= SW_PATH_MAX)
		return REQUEST_UNREAD;
	if (!load_text(ctx, p, off + name, r) || cut_text(r, 0) >= SW_PATH_MAX)
		return REQUEST_UNREAD;
	r->path.prefix = i + 1;
	return look_up(r);
}

/* What the policy says of a path that is not in the map as a whole. */
static __always_inline int match_patterns(ctx_t *ctx, const struct packet *p, struct request *r)
{
	__u32 i;
	int kind;

	for (i = 0; i < SW_MAX_PREFIXES; i++) {
		kind = STAGE(try_prefix)(ctx, p, r, i);
		if (kind == NO_PREFIX)
			break;
		if (kind != REQUEST_UNREAD)
			return kind;
	}
	return REQUEST_PASS;
}

static __always_inline int judge_request(ctx_t *ctx, const struct packet *p,
					 const struct sw_listener *l, struct request *r)
{
	__u32 skip = 0, read, length;
	int kind;
	__u64 first;

	if (p->payload < 9 || ctx_load(ctx, p->data, &first, sizeof(first)))
		return REQUEST_UNREAD;
	r->path.method = read_method(first, &skip);
	if (r->path.method == SW_METHOD_NONE)
		return REQUEST_UNREAD;
	if (l->flags & SW_LF_ALL_PATHS)
		return REQUEST_SHED;
	r->path.set = l->paths;
	r->target = p->data + skip;
	read = load_text(ctx, p, r->target, r);
	length = cut_text(r, 0);
	if (length >= SW_PATH_MAX && read < SW_PATH_MAX)
		return REQUEST_UNREAD; /* the segment ended first */
	if (length < SW_PATH_MAX) {
		kind = look_up(r);
		if (kind != REQUEST_UNREAD)
			return kind;
	}
	return match_patterns(ctx, p, r);
}

/* `family` is set when it says REQUEST_SHED. */
__noinline int STAGE(read_request)(ctx_t *ctx, const struct packet *p, const struct sw_listener *l,
				   __u32 *family)
{
	struct request r = {};
	int kind;

	if (!p || !l || !family)
		return REQUEST_UNREAD;
	kind = judge_request(ctx, p, l, &r);
	*family = r.family;
	return kind;
}

#endif
