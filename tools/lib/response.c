// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Judges HTTP responses by what they promise: framing by length, chunks or close; JSON that
// parses and repeats the status of its response; event streams that end with [DONE].

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "response.h"

struct head {
	const char *text; /* status line and header lines, each with its CRLF */
	size_t length;	  /* without the empty line that ends the head */
};

/* Finds a header's value: a pointer into the head and the length up to the end of the line. */
static const char *header(const struct head *h, const char *name, size_t *length)
{
	const char *end = h->text + h->length;
	const char *line = memchr(h->text, '\n', h->length);
	size_t n = strlen(name);

	while (line && ++line < end) {
		const char *eol = memchr(line, '\r', end - line);
		const char *value = line + n + 1;

		if (eol && (size_t)(eol - line) > n && line[n] == ':' &&
		    !strncasecmp(line, name, n)) {
			while (value < eol && *value == ' ')
				value++;
			*length = eol - value;
			return value;
		}
		line = memchr(line, '\n', end - line);
	}
	return NULL;
}

static bool header_begins(const struct head *h, const char *name, const char *want)
{
	size_t length;
	const char *value = header(h, name, &length);

	return value && length >= strlen(want) && !strncasecmp(value, want, strlen(want));
}

/* Walks the chunks of a body. Complete: *body_length is its length without framing, *used the
 * bytes it took. With `unframe` the chunks are moved together on the way. */
static enum response_verdict walk_chunks(char *bytes, size_t length, bool unframe,
					 size_t *body_length, size_t *used)
{
	size_t at = 0, out = 0;

	for (;;) {
		char *eol = memmem(bytes + at, length - at, "\r\n", 2);
		char *after;
		unsigned long size;

		if (!eol)
			return length - at > 16 ? RESPONSE_WRONG : RESPONSE_MORE;
		if (!isxdigit((unsigned char)bytes[at]))
			return RESPONSE_WRONG;
		size = strtoul(bytes + at, &after, 16);
		if (after != eol && *after != ';')
			return RESPONSE_WRONG;
		at = eol + 2 - bytes;
		if (size > length || length - at < size + 2)
			return RESPONSE_MORE;
		if (memcmp(bytes + at + size, "\r\n", 2))
			return RESPONSE_WRONG;
		if (unframe)
			memmove(bytes + out, bytes + at, size);
		out += size;
		at += size + 2;
		if (!size)
			break;
	}
	*body_length = out;
	*used = at;
	return RESPONSE_COMPLETE;
}

/* A body must keep the word of its head. */
static bool body_sound(const struct head *h, const struct response *r)
{
	static const char done[] = "data: [DONE]\n\n";
	size_t n = sizeof(done) - 1;

	if (header_begins(h, "Content-Type", "text/event-stream"))
		return r->length >= n && !memcmp(r->body + r->length - n, done, n);
	if (header_begins(h, "Content-Type", "application/json")) {
		json_t *all = json_loadb(r->body, r->length, JSON_DECODE_ANY, NULL);
		json_t *error = json_object_get(all, "error");
		json_t *code = json_object_get(error ? error : all, "code");
		bool sound =
			all && (!json_is_integer(code) || json_integer_value(code) == r->status);

		json_decref(all);
		return sound;
	}
	return true;
}

static enum response_verdict judge_body(const struct head *h, char *body, size_t length, bool eof,
					struct response *out)
{
	enum response_verdict v;
	size_t digits, used = length;
	const char *promised = header(h, "Content-Length", &digits);

	out->body = body;
	out->length = length;
	if (out->status == 204 || out->status == 304) {
		out->length = used = 0;
		v = RESPONSE_COMPLETE;
	} else if (header_begins(h, "Transfer-Encoding", "chunked")) {
		v = walk_chunks(body, length, false, &out->length, &used);
		if (v == RESPONSE_COMPLETE)
			walk_chunks(body, used, true, &out->length, &used);
	} else if (promised) {
		out->length = used = strtoul(promised, NULL, 10);
		v = length < used ? RESPONSE_MORE : RESPONSE_COMPLETE;
	} else {
		out->closes = true;
		v = eof ? RESPONSE_COMPLETE : RESPONSE_MORE;
	}

	if (v == RESPONSE_COMPLETE && (used != length || !body_sound(h, out)))
		return RESPONSE_WRONG;
	return v == RESPONSE_MORE && eof ? RESPONSE_SHORT : v;
}

enum response_verdict response_judge(char *bytes, size_t length, bool eof, struct response *out)
{
	*out = (struct response){0};
	for (;;) {
		struct head h = {.text = bytes};
		char *end = memmem(bytes, length, "\r\n\r\n", 4);
		size_t prefix = length < 7 ? length : 7;

		if (memcmp(bytes, "HTTP/1.", prefix))
			return RESPONSE_WRONG;
		if (!end)
			return eof ? RESPONSE_SHORT : RESPONSE_MORE;
		h.length = end + 2 - bytes;
		if (h.length < 14 || !isdigit((unsigned char)bytes[9]))
			return RESPONSE_WRONG;
		out->status = atoi(bytes + 9);
		if (out->status < 100 || out->status > 999)
			return RESPONSE_WRONG;
		length -= end + 4 - bytes;
		bytes = end + 4;
		if (out->status >= 200) {
			out->closes = header_begins(&h, "Connection", "close");
			return judge_body(&h, bytes, length, eof, out);
		}
		out->status = 0;
	}
}
