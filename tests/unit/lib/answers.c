// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Canned responses, rendered and checked; see answers.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "answers.h"

struct sw_answer answers_set[SW_ANSWERS_PER_SET];

struct sw_answer_spec answers_spec(void)
{
	return (struct sw_answer_spec){
		.status = 529,
		.drain_status = 503,
		.api = SW_API_DYNAMO,
		.max_bytes = SW_ANSWER_DEFAULT,
	};
}

uint8_t answers_render(const struct sw_answer_spec *spec)
{
	struct sw_error err = {""};
	uint8_t mask = 0xff;

	memset(answers_set, 0xa5, sizeof(answers_set));
	if (sw_answers_render(spec, answers_set, &mask, &err) != 0)
		fail_msg("refused: %s", err.text);
	return mask;
}

const struct sw_answer *answers_get(enum sw_cause cause, enum sw_family family, unsigned variant)
{
	return &answers_set[SW_ANSWER_INDEX(0, cause, family, variant)];
}

/* The sum of RFC 1071, over big-endian words, in the byte order of this host. */
static uint16_t reference_sum(const unsigned char *bytes, size_t length)
{
	uint64_t sum = 0;

	for (size_t i = 0; i + 1 < length; i += 2)
		sum += (unsigned)bytes[i] << 8 | bytes[i + 1];
	while (sum > 0xffff)
		sum = sum % 0x10000 + sum / 0x10000;
	return htons(sum);
}

const char *answers_check_one(const struct sw_answer *a)
{
	static char text[SW_ANSWER_MAX + 1];
	const char *end, *length;

	assert_in_range(a->length, 1, SW_ANSWER_MAX);
	assert_int_equal(a->length % 2, 0);
	assert_int_equal(a->length, answers_set[0].length);
	assert_int_equal(a->sum, reference_sum((const unsigned char *)a->bytes, a->length));
	for (size_t i = a->length; i < SW_ANSWER_MAX; i++)
		assert_int_equal(a->bytes[i], 0);
	memcpy(text, a->bytes, a->length);
	text[a->length] = '\0';
	end = strstr(text, "\r\n\r\n");
	length = strstr(text, "\r\nContent-Length: ");
	assert_non_null(end);
	assert_non_null(length);
	assert_int_equal(strtoul(length + 18, NULL, 10), strlen(end + 4));
	if (a - answers_set < SW_ANSWERS_KEEP)
		assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
	else
		assert_null(strstr(text, "\r\nConnection:"));
	return end + 4;
}

void answers_check(void)
{
	for (unsigned i = 0; i < SW_ANSWERS_PER_SET; i++)
		answers_check_one(&answers_set[i]);
}

void answers_assert(const struct sw_answer *a, const char *status_line, const char *retry,
		    const char *reason, const char *body)
{
	const char *start = answers_check_one(a);
	char want[2 * SW_ANSWER_MAX];
	int n;

	n = snprintf(want, sizeof(want),
		     "HTTP/1.1 %s\r\nContent-Type: application/json\r\nConnection: close\r\n%s"
		     "x-spillway-reason: %s\r\nContent-Length: %zu\r\n\r\n%-*s",
		     status_line, retry, reason, strlen(start), (int)strlen(start), body);
	if ((uint32_t)n != a->length || memcmp(a->bytes, want, n) != 0)
		fail_msg("got\n%.*s|\nwanted\n%s|", (int)a->length, a->bytes, want);
}
