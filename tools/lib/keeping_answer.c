// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// See keeping_answer.h.

#include "keeping_answer.h"
#include "echo_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum step { SIZE, DATA, AFTER_DATA, TRAILER };

/* ---- texts of shed answers ------------------------------------------------------------------- */

static bool is_known(const struct keeping_job *j, const char *text, size_t n)
{
	for (unsigned i = 0; i < j->n_texts; i++)
		if (j->text_length[i] == n && !memcmp(j->texts[i], text, n))
			return true;
	return false;
}

static void check_text(struct keeping *k)
{
	struct keeping_job *j = k->job;
	const char *text = j->bodies ? k->head + k->head_length : k->head;
	size_t n = k->head + k->head_length + k->got - text;

	if (is_known(j, text, n))
		return;
	if (j->n_texts == j->texts_max) {
		keeping_wrong(k, "a shed answer unlike the others: %.200s", k->head);
		return;
	}
	j->texts[j->n_texts] = malloc(n);
	if (!j->texts[j->n_texts])
		abort();
	memcpy(j->texts[j->n_texts], text, n);
	j->text_length[j->n_texts++] = n;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* What byte `at` of the answer and those behind it have to be; as many as there are in *n. */
static const char *expected(struct keeping *k, size_t at, size_t *n)
{
	static char line[ECHO_LINE_MAX];
	const struct keeping_request *r = &k->under_way[k->first];
	size_t length = echo_line(line, r->tag, r->post ? "POST" : "GET", r->body, true);

	if (at < length) {
		*n = length - at;
		return line + at;
	}
	*n = r->wanted - (at - length);
	return echo_response_body(r->tag) + (at - length);
}

/* Is it the beginning of another answer that is due? Negative: of none. */
static int whose(const struct keeping *k, const char *bytes, size_t n)
{
	char line[ECHO_LINE_MAX];

	for (unsigned i = 0; i < k->n; i++) {
		const struct keeping_request *r = &k->under_way[(k->first + i) % KEEPING_DEPTH_MAX];
		size_t length = echo_line(line, r->tag, r->post ? "POST" : "GET", r->body, true);

		if (n >= length && !memcmp(bytes, line, length))
			return i;
	}
	return -1;
}

static void take_body(struct keeping *k, const char *bytes, size_t n)
{
	if (k->status != 200) {
		if (k->head_length + k->got + n > KEEPING_HEAD_MAX) {
			keeping_wrong(k, "a long answer of status %d", k->status);
			return;
		}
		memcpy(k->head + k->head_length + k->got, bytes, n);
		k->got += n;
		return;
	}
	while (n) {
		size_t there;
		const char *want = expected(k, k->got, &there);

		if (there > n)
			there = n;
		if (!there || memcmp(bytes, want, there)) {
			keeping_wrong(k, "wrong at byte %zu or behind, this is of request %d: %.*s",
				      k->got, whose(k, bytes, n), n < 40 ? (int)n : 40, bytes);
			return;
		}
		k->got += there;
		bytes += there;
		n -= there;
	}
}

static void complete(struct keeping *k)
{
	struct keeping_job *j = k->job;
	size_t missing = 0;

	/* who closes need not wait for all of the request */
	if (k->n == 1 && keeping_unwritten(k) && !(k->status == 529 && k->closing)) {
		keeping_wrong(k, "answered, %d, before it was asked", k->status);
		return;
	}
	if (k->status == 200) {
		expected(k, k->got, &missing);
		if (missing)
			keeping_wrong(k, "%zu bytes are missing", missing);
	} else {
		check_text(k);
	}
	if (k->fd < 0)
		return;
	j->served += k->status == 200;
	j->shed += k->status == 529;
	k->first = (k->first + 1) % KEEPING_DEPTH_MAX;
	k->n--;
	k->head_length = k->got = 0;
	k->status = 0;
}

/* ---- heads ----------------------------------------------------------------------------------- */

static void read_field(struct keeping *k, const char *line)
{
	if (!strncasecmp(line, "Content-Length:", 15))
		k->length = strtoul(line + 15, NULL, 10);
	else if (!strncasecmp(line, "Transfer-Encoding: chunked", 26))
		k->chunked = true;
	else if (!strncasecmp(line, "Connection: close", 17))
		k->closing = true;
}

static void read_head(struct keeping *k)
{
	char text[KEEPING_HEAD_MAX + 1], *rest = text, *line;

	memcpy(text, k->head, k->head_length);
	text[k->head_length] = 0;
	k->length = SIZE_MAX;
	k->chunked = false;
	k->step = SIZE;
	k->line_length = 0;
	if (sscanf(strsep(&rest, "\n"), "HTTP/1.1 %3d ", &k->status) != 1 ||
	    (k->status != 200 && k->status != 529)) {
		keeping_wrong(k, "no answer of ours: %.200s", k->head);
		return;
	}
	while ((line = strsep(&rest, "\n")))
		read_field(k, line);
	if (!k->chunked && k->length == SIZE_MAX)
		keeping_wrong(k, "no length: %.200s", k->head);
}

/* Takes bytes of the head; how many belonged to it. */
static size_t take_head(struct keeping *k, const char *bytes, size_t n)
{
	size_t room = KEEPING_HEAD_MAX - k->head_length, some = n < room ? n : room, before;
	char *end;

	if (!k->n) {
		keeping_wrong(k, "bytes that nobody asked for: %.40s", bytes);
		return n;
	}
	memcpy(k->head + k->head_length, bytes, some);
	before = k->head_length;
	end = memmem(k->head, before + some, "\r\n\r\n", 4);
	if (!end) {
		k->head_length += some;
		if (k->head_length == KEEPING_HEAD_MAX)
			keeping_wrong(k, "a head without an end: %.200s", k->head);
		return some;
	}
	k->head_length = end + 4 - k->head;
	some = k->head_length - before;
	read_head(k);
	return some;
}

/* ---- framing --------------------------------------------------------------------------------- */

/* A line of the framing. 0: it is not complete yet. */
static size_t take_line(struct keeping *k, const char *bytes, size_t n, bool *complete)
{
	size_t i = 0;

	*complete = false;
	while (i < n && !*complete) {
		if (k->line_length + 1 == sizeof(k->line)) {
			keeping_wrong(k, "a chunk that begins with %.40s", k->line);
			return n;
		}
		k->line[k->line_length++] = bytes[i];
		*complete = bytes[i++] == '\n';
	}
	k->line[k->line_length] = 0;
	if (*complete)
		k->line_length = 0;
	return i;
}

static size_t take_chunked(struct keeping *k, const char *bytes, size_t n)
{
	bool line;
	size_t used;
	char *end;

	if (k->step == DATA) {
		used = n < k->chunk ? n : k->chunk;
		take_body(k, bytes, used);
		k->chunk -= used;
		k->step = k->chunk ? DATA : AFTER_DATA;
		return used;
	}
	used = take_line(k, bytes, n, &line);
	if (!line || k->fd < 0)
		return used;
	if (k->step == SIZE) {
		k->chunk = strtoul(k->line, &end, 16);
		k->step = k->chunk ? DATA : TRAILER;
		if (end == k->line)
			keeping_wrong(k, "no size of a chunk: %.40s", k->line);
	} else if (strcmp(k->line, "\r\n")) {
		keeping_wrong(k, "behind a chunk: %.40s", k->line);
	} else if (k->step == AFTER_DATA) {
		k->step = SIZE;
	} else {
		complete(k);
	}
	return used;
}

static size_t take_counted(struct keeping *k, const char *bytes, size_t n)
{
	size_t used = n < k->length - k->got ? n : k->length - k->got;

	take_body(k, bytes, used);
	if (k->fd >= 0 && k->got == k->length)
		complete(k);
	return used;
}

void keeping_take(struct keeping *k, const char *bytes, size_t n)
{
	while (n && k->fd >= 0) {
		size_t used = !k->status   ? take_head(k, bytes, n)
			      : k->chunked ? take_chunked(k, bytes, n)
					   : take_counted(k, bytes, n);

		bytes += used;
		n -= used;
	}
}
