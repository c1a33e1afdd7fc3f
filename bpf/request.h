/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Method and path of a request, and what the policy says of them. The path is read eight bytes at a
 * time up to '?' or ' ' and looked up whole: prefixes lie (/v1/messages is inference,
 * /v1/messages/count_tokens is not). Absolute-form targets, TLS, HTTP/2 and anything else that is
 * not in the map is never shed.
 */
#ifndef SPILLWAY_BPF_REQUEST_H
#define SPILLWAY_BPF_REQUEST_H

#include "bytes.h"
#include "window.h"

enum request_kind {
	REQUEST_UNREAD, /* not HTTP/1, or its path does not end in this segment */
	REQUEST_PASS,	/* must not be shed */
	REQUEST_SHED,	/* may be shed */
};

#define WORDS (SW_PATH_MAX / 8)

/* Takes text from the window into the key up to the first '?' or ' ' (with `slash`: or '/'), zeroes
 * what follows, and returns its length; SW_PATH_MAX: it does not end in so many bytes. Hardly a
 * branch: the verifier would walk each, and paths are short, so the second half is seldom looked
 * at. */
static __always_inline __u32 take_text(struct window *w, __u32 off, int slash)
{
	__u64 live = ~0ULL, word, marks, keep;
	__u32 i, length = 0, last;

	if (off >= WINDOW_MAX)
		return 0;
	for (i = 0; i < WORDS; i++) {
		word = 0;
		if (i % (WORDS / 2) || live) {
			word = *(const __u64 *)(w->bytes + off + 8 * i);
			marks = find_byte(word, ' ') | find_byte(word, '?');
			if (slash)
				marks |= find_byte(word, '/');
			/* all ones below the first mark; without one, all ones */
			keep = (((marks & -marks) >> 7) - 1) & live;
			live &= ((marks | -marks) >> 63) - 1;
			length += (keep & ONES) * ONES >> 56;
			word &= keep;
		}
		w->request.text[2 * i] = word;
		w->request.text[2 * i + 1] = word >> 32;
	}
	/* a zero in the text is no padding: nothing that is known has one */
	last = length - 1;
	asm volatile("" : "+r"(last)); /* bound the very register that is the index */
	if (last < SW_PATH_MAX - 1 && !(w->bytes + off)[last])
		w->request.path.method = SW_METHOD_NONE;
	return length;
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
	r->endpoint = v->endpoint;
	return v->action == SW_PATH_SHED ? REQUEST_SHED : REQUEST_PASS;
}

/* 0xff for each byte of a zero-padded word that is not padding. */
static __always_inline __u32 used_bytes(__u32 x)
{
	return ((((x & 0x7f7f7f7f) + 0x7f7f7f7f) | x) >> 7 & 0x01010101) * 0xff;
}

#define NO_PREFIX (-1)

/* Does the path start with prefix number i, and is the rest known? REQUEST_UNREAD: it is not;
 * NO_PREFIX: there are no more. */
__noinline int STAGE(try_prefix)(__u32 i)
{
	const struct sw_prefix *prefix = bpf_map_lookup_elem(&prefixes, &i);
	struct window *w = this_window();
	struct request *r;
	__u32 j, off, name, differs = 0;

	if (!prefix || !prefix->length)
		return NO_PREFIX;
	if (!w || prefix->length > SW_PREFIX_MAX)
		return REQUEST_UNREAD;
	r = &w->request;
	if (r->target >= WINDOW_MAX)
		return REQUEST_UNREAD;
	for (j = 0; j < SW_PREFIX_MAX / 4; j++) {
		__u32 want = ((const __u32 *)prefix->bytes)[j];
		__u32 have = *(const __u32 *)(w->bytes + r->target + 4 * j);

		differs |= (have ^ want) & used_bytes(want);
	}
	if (differs)
		return REQUEST_UNREAD;
	off = r->target + prefix->length;
	name = take_text(w, off, 1);
	if (!name || name >= SW_PATH_MAX || take_text(w, off + name, 0) >= SW_PATH_MAX)
		return REQUEST_UNREAD;
	r->path.prefix = i + 1;
	return look_up(r);
}

/* What the policy says of a path that is not in the map as a whole. */
static __always_inline int match_patterns(void)
{
	__u32 i;
	int kind;

	for (i = 0; i < SW_MAX_PREFIXES; i++) {
		kind = STAGE(try_prefix)(i);
		if (kind == NO_PREFIX)
			break;
		if (kind != REQUEST_UNREAD)
			return kind;
	}
	return REQUEST_PASS;
}

static __always_inline int judge_request(const struct sw_listener *l, struct window *w)
{
	struct request *r = &w->request;
	__u32 off = r->target, skip = 0, length;
	int kind;

	if (off + 9 > r->end || off > sizeof(struct tcphdr) + 40)
		return REQUEST_UNREAD;
	r->path.method = read_method(*(const __u64 *)(w->bytes + off), &skip);
	if (r->path.method == SW_METHOD_NONE)
		return REQUEST_UNREAD;
	if (l->flags & SW_LF_ALL_PATHS)
		return REQUEST_SHED;
	r->path.set = l->paths;
	r->path.prefix = 0;
	r->target = off + skip;
	length = take_text(w, r->target, 0);
	if (length >= SW_PATH_MAX && r->end - r->target < SW_PATH_MAX)
		return REQUEST_UNREAD; /* the segment ended first */
	if (length < SW_PATH_MAX) {
		kind = look_up(r);
		if (kind != REQUEST_UNREAD)
			return kind;
	}
	return match_patterns();
}

/* `family` is set when it says REQUEST_SHED. */
__noinline int STAGE(read_request)(const struct packet *p, const struct sw_listener *l,
				   __u32 *family)
{
	struct window *w = this_window();
	int kind;

	if (!p || !w || !l || !family)
		return REQUEST_UNREAD;
	w->request.target = p->data - p->l4;
	w->request.end = p->end - p->l4;
	w->request.family = SW_FAMILY_DEFAULT;
	w->request.endpoint = SW_API_EP_OTHER;
	kind = judge_request(l, w);
	*family = w->request.family;
	return kind;
}

#endif
