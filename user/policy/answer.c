// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rendering of the canned responses; see answer.h. Which of them a request gets is decided in the
 * kernel, which status and shape a preset means in the configuration.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "policy/bodies.h"

#define PAD_HEADER "x-spillway-pad: "

/* One response before its padding: HEAD, digits of Content-Length, CRLF, pad header when the body
 * is empty, CRLF, body. */
struct draft {
	char head[256]; /* ends in "Content-Length: " */
	char body[SW_ANSWER_MAX];
	size_t head_length;
	size_t body_length; /* may be over sizeof(body): then it is too long in any case */
};

struct variants {
	unsigned count; /* a power of two */
	unsigned seconds[SW_VARIANTS];
};

const char *sw_cause_name(enum sw_cause cause)
{
	static const char *const names[SW_CAUSES] = {
		[SW_CAUSE_SATURATED] = "saturated",
		[SW_CAUSE_NO_SLOTS] = "no-slots",
		[SW_CAUSE_DRAINING] = "draining",
		[SW_CAUSE_UNAVAILABLE] = "unavailable",
	};

	return cause < SW_CAUSES ? names[cause] : "?";
}

static const char *family_name(enum sw_family family)
{
	static const char *const names[SW_FAMILIES] = {
		[SW_FAMILY_DEFAULT] = "default",
		[SW_FAMILY_ANTHROPIC] = "anthropic",
		[SW_FAMILY_TGI] = "tgi",
	};

	return names[family];
}

static const char *reason_phrase(unsigned status)
{
	switch (status) {
	case 200: return "OK";
	case 429: return "Too Many Requests";
	case 500: return "Internal Server Error";
	case 502: return "Bad Gateway";
	case 503: return "Service Unavailable";
	case 504: return "Gateway Timeout";
	default: return "Overloaded";
	}
}

static unsigned status_of(const struct sw_answer_spec *spec, enum sw_cause cause)
{
	switch (cause) {
	case SW_CAUSE_DRAINING: return spec->drain_status;
	case SW_CAUSE_UNAVAILABLE: return 503;
	default: return spec->status;
	}
}

static const char *body_of(const struct sw_answer_spec *spec, enum sw_cause cause,
			   enum sw_family family)
{
	enum sw_api api = family == SW_FAMILY_ANTHROPIC ? SW_API_ANTHROPIC
			  : family == SW_FAMILY_TGI	? SW_API_TGI
							: spec->api;

	return spec->body[family] ? spec->body[family] : sw_builtin_body(api, cause);
}

/* Replaces {status} and {reason}. Returns the whole length; what does not fit is not stored. */
static size_t expand(const char *text, unsigned status, const char *reason, char *out, size_t size)
{
	char number[12];
	const struct {
		const char *word, *value;
	} words[] = {{"{status}", number}, {"{reason}", reason}};
	size_t length = 0;

	snprintf(number, sizeof(number), "%u", status);
	while (*text) {
		const char *piece = text;
		size_t piece_length = 1, step = 1;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			if (strncmp(text, words[i].word, strlen(words[i].word)) != 0)
				continue;
			piece = words[i].value;
			piece_length = strlen(piece);
			step = strlen(words[i].word);
		}
		if (length + piece_length <= size)
			memcpy(out + length, piece, piece_length);
		length += piece_length;
		text += step;
	}
	return length;
}

/* Values from min to max, both ends included, evenly apart: as many as are distinct, up to
 * SW_VARIANTS, rounded down to a power of two so that the kernel picks one with a mask. */
static struct variants spread(const struct sw_answer_spec *spec)
{
	unsigned width = spec->retry_after_max - spec->retry_after_min;
	struct variants v = {.count = 1, .seconds = {spec->retry_after_min}};

	if (spec->retry_after_min == 0)
		return v;
	while (v.count < SW_VARIANTS && v.count * 2 <= width + 1)
		v.count *= 2;
	for (unsigned i = 1; i < v.count; i++)
		v.seconds[i] = spec->retry_after_min + width * i / (v.count - 1);
	return v;
}

static enum sw_cause cause_of(unsigned index)
{
	return index % SW_ANSWERS_KEEP / (SW_FAMILIES * SW_VARIANTS);
}

static enum sw_family family_of(unsigned index)
{
	return index / SW_VARIANTS % SW_FAMILIES;
}

/* The response at `index`: an SW_ANSWER_INDEX(0, ...), or one that keeps the connection. */
static void make_draft(const struct sw_answer_spec *spec, const struct variants *v, unsigned index,
		       struct draft *d)
{
	enum sw_cause cause = cause_of(index);
	enum sw_family family = family_of(index);
	unsigned seconds = v->seconds[index % v->count];
	unsigned status = status_of(spec, cause);
	const char *reason = sw_cause_name(cause);
	char retry[64] = "";

	d->body_length =
		expand(body_of(spec, cause, family), status, reason, d->body, sizeof(d->body));
	if (seconds && spec->retry_after_ms)
		snprintf(retry, sizeof(retry), "Retry-After: %u\r\nretry-after-ms: %u000\r\n",
			 seconds, seconds);
	else if (seconds)
		snprintf(retry, sizeof(retry), "Retry-After: %u\r\n", seconds);
	d->head_length = snprintf(
		d->head, sizeof(d->head),
		"HTTP/1.1 %u %s\r\n%s%s%sx-spillway-reason: %s\r\nContent-Length: ", status,
		reason_phrase(status), d->body_length ? "Content-Type: application/json\r\n" : "",
		index < SW_ANSWERS_KEEP ? "Connection: close\r\n" : "", retry, reason);
}

static size_t digits_of(size_t n)
{
	return n < 10 ? 1 : 1 + digits_of(n / 10);
}

/* Bytes of a response with `content` bytes behind the headers. */
static size_t total_of(const struct draft *d, size_t content)
{
	size_t pad = d->body_length ? 0 : strlen(PAD_HEADER "\r\n");

	return d->head_length + digits_of(content) + strlen("\r\n") + pad + strlen("\r\n") +
	       content;
}

/* How large Content-Length must be for a response of `total` bytes; false: there is no such size,
 * because one space more would also take one digit more. An empty body fits any length. */
static bool content_for(const struct draft *d, size_t total, size_t *content)
{
	*content = d->body_length;
	if (d->body_length == 0)
		return total >= total_of(d, 0);
	while (total_of(d, *content) < total)
		(*content)++;
	return total_of(d, *content) == total;
}

static void put(struct sw_answer *a, const char *bytes, size_t n)
{
	memcpy(a->bytes + a->length, bytes, n);
	a->length += n;
}

static void fill(struct sw_answer *a, char byte, size_t n)
{
	memset(a->bytes + a->length, byte, n);
	a->length += n;
}

static void write_answer(const struct draft *d, size_t total, struct sw_answer *out)
{
	char number[24];
	size_t content = 0;

	content_for(d, total, &content);
	memset(out, 0, sizeof(*out));
	put(out, d->head, d->head_length);
	put(out, number, snprintf(number, sizeof(number), "%zu\r\n", content));
	if (d->body_length == 0) {
		put(out, PAD_HEADER, strlen(PAD_HEADER));
		fill(out, '-', total - total_of(d, 0));
		put(out, "\r\n", 2);
	}
	put(out, "\r\n", 2);
	put(out, d->body, d->body_length);
	fill(out, ' ', content - d->body_length);
}

/* See the comment at struct sw_answer. The length is even, so no byte is left over. */
static uint32_t sum_of(const struct sw_answer *a)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < a->length; i += 2) {
		uint16_t word;

		memcpy(&word, a->bytes + i, sizeof(word));
		sum += word;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static int check_spec(const struct sw_answer_spec *spec, struct sw_error *err)
{
	if (spec->status < 200 || spec->status > 999)
		return sw_fail(err, -EINVAL, "overload status %u: use 200..999", spec->status);
	if (spec->drain_status < 200 || spec->drain_status > 999)
		return sw_fail(err, -EINVAL, "drain status %u: use 200..999", spec->drain_status);
	if (spec->retry_after_min &&
	    (spec->retry_after_max < spec->retry_after_min || spec->retry_after_max > 60))
		return sw_fail(err, -EINVAL,
			       "Retry-After %u:%u: use MIN:MAX in whole seconds with "
			       "1 <= MIN <= MAX <= 60",
			       spec->retry_after_min, spec->retry_after_max);
	if (spec->max_bytes > SW_ANSWER_MAX)
		return sw_fail(err, -EINVAL, "a response limit of %u bytes: use at most %u",
			       spec->max_bytes, SW_ANSWER_MAX);
	return 0;
}

static int too_long(const struct sw_answer_spec *spec, unsigned index, size_t total,
		    struct sw_error *err)
{
	enum sw_cause cause = cause_of(index);
	enum sw_family family = family_of(index);
	char raise[64] = "";

	if (spec->max_bytes < SW_ANSWER_MAX)
		snprintf(raise, sizeof(raise), " or raise the limit, up to %d", SW_ANSWER_MAX);
	return sw_fail(err, -EMSGSIZE,
		       "the \"%s\" response with the %s body takes %zu bytes, %zu over the limit "
		       "of %u: shorten the body%s",
		       sw_cause_name(cause), family_name(family), total, total - spec->max_bytes,
		       spec->max_bytes, raise);
}

static bool all_fit(const struct sw_answer_spec *spec, const struct variants *v, size_t total)
{
	struct draft d;
	size_t content;

	for (unsigned i = 0; i < SW_ANSWERS_PER_SET; i++) {
		make_draft(spec, v, i, &d);
		if (!content_for(&d, total, &content))
			return false;
	}
	return true;
}

/* The smallest even length that every response can be padded to, or one over the limit. `worst`
 * gets the response that is longest by itself. */
static size_t common_length(const struct sw_answer_spec *spec, const struct variants *v,
			    unsigned *worst)
{
	struct draft d;
	size_t total = 0;

	for (unsigned i = 0; i < SW_ANSWERS_PER_SET; i++) {
		make_draft(spec, v, i, &d);
		if (total_of(&d, d.body_length) > total) {
			total = total_of(&d, d.body_length);
			*worst = i;
		}
	}
	total += total % 2;
	while (total <= spec->max_bytes && !all_fit(spec, v, total))
		total += 2;
	return total;
}

int sw_answers_render(const struct sw_answer_spec *spec, struct sw_answer out[SW_ANSWERS_PER_SET],
		      uint8_t *variants_mask, struct sw_error *err)
{
	int failed = check_spec(spec, err);
	struct sw_answer_spec sizes = *spec;
	unsigned worst = 0;
	struct variants v;
	struct draft d;
	size_t total;

	if (failed)
		return failed;
	v = spread(spec);
	/* vLLM's two wordings take the same room, so that one can take the other's place */
	if (sizes.api == SW_API_VLLM_TOKENS)
		sizes.api = SW_API_VLLM;
	total = common_length(&sizes, &v, &worst);
	if (total > spec->max_bytes)
		return too_long(spec, worst, total, err);
	for (unsigned i = 0; i < SW_ANSWERS_PER_SET; i++) {
		make_draft(spec, &v, i, &d);
		write_answer(&d, total, &out[i]);
		out[i].sum = sum_of(&out[i]);
	}
	*variants_mask = v.count - 1;
	return 0;
}
