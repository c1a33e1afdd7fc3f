// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The canned responses at their limits: none is longer than it needs to be, and what is too long or
 * out of range is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/answers.h"

/* The longest takes 235 bytes, and at 236 "draining" has no body: 99 bytes behind its headers make
 * 235, 100 make 237. */
static void no_longer_than_needed(void **state)
{
	struct sw_answer_spec spec = answers_spec();

	(void)state;
	answers_render(&spec);
	assert_int_equal(answers_set[0].length, 238);
	assert_memory_equal(answers_get(SW_CAUSE_UNAVAILABLE, SW_FAMILY_ANTHROPIC, 0)->bytes,
			    "HTTP/1.1 503 Service Unavailable\r\n"
			    "Content-Type: application/json\r\n"
			    "Connection: close\r\n"
			    "x-spillway-reason: unavailable\r\n"
			    "Content-Length: 99\r\n"
			    "\r\n"
			    "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
			    "\"message\":\"Service temporarily unavailable\"}}   ",
			    236);
}

/* One space more can take one digit more of Content-Length: no length of body may break the set. */
static void every_length_of_body(void **state)
{
	struct sw_answer_spec spec = answers_spec();
	char body[SW_ANSWER_MAX + 1] = "";
	uint32_t last = 0;

	(void)state;
	spec.max_bytes = SW_ANSWER_MAX;
	spec.body[SW_FAMILY_TGI] = "";
	spec.body[SW_FAMILY_DEFAULT] = body;
	for (size_t n = 1;; n++) {
		struct sw_error err = {""};
		uint8_t mask;
		int ret;

		memset(body, 'x', n);
		ret = sw_answers_render(&spec, answers_set, &mask, &err);
		if (ret == -EMSGSIZE)
			break;
		assert_int_equal(ret, 0);
		answers_check();
		assert_in_range(answers_set[0].length, last, SW_ANSWER_MAX);
		last = answers_set[0].length;
	}
	assert_int_equal(last, SW_ANSWER_MAX);
}

/* ---- what is refused ---- */

static void too_long(void **state)
{
	struct sw_answer_spec spec = answers_spec();
	struct sw_error err = {""};
	char body[600] = "";
	uint8_t mask = 0xee;

	(void)state;
	memset(body, 'x', 396); /* 140 bytes of headers for "unavailable" */
	spec.body[SW_FAMILY_ANTHROPIC] = body;
	answers_render(&spec);
	assert_int_equal(answers_set[0].length, SW_ANSWER_DEFAULT);

	memset(answers_set, 0x5a, sizeof(answers_set));
	memset(body, 'x', 398);
	assert_int_equal(sw_answers_render(&spec, answers_set, &mask, &err), -EMSGSIZE);
	assert_string_equal(err.text,
			    "the \"unavailable\" response with the anthropic body takes 538 bytes, "
			    "2 over the limit of 536: shorten the body or raise the limit, up to "
			    "1024");
	assert_int_equal(mask, 0xee);
	assert_int_equal(answers_set[0].bytes[0], 0x5a);

	spec.max_bytes = 237; /* an odd limit is the even one below it */
	spec.body[SW_FAMILY_ANTHROPIC] = NULL;
	assert_int_equal(sw_answers_render(&spec, answers_set, &mask, &err), -EMSGSIZE);
	spec.max_bytes = 239;
	answers_render(&spec);
}

static void far_too_long(void **state)
{
	struct sw_answer_spec spec = answers_spec();
	struct sw_error err = {""};
	char *body = malloc(200001);
	uint8_t mask;

	(void)state;
	assert_non_null(body);
	memset(body, '{', 200000);
	body[200000] = '\0';
	spec.body[SW_FAMILY_DEFAULT] = body;
	spec.max_bytes = SW_ANSWER_MAX;
	assert_int_equal(sw_answers_render(&spec, answers_set, &mask, &err), -EMSGSIZE);
	assert_non_null(strstr(err.text, "the \"unavailable\" response with the default body"));
	assert_non_null(strstr(err.text, "over the limit of 1024: shorten the body"));
	assert_null(strstr(err.text, "raise"));
	free(body);
}

static void out_of_range(void **state)
{
	struct {
		const char *error;
		struct sw_answer_spec spec;
	} rows[] = {
		{"overload status 199: use 200..999", answers_spec()},
		{"overload status 1000: use 200..999", answers_spec()},
		{"drain status 0: use 200..999", answers_spec()},
		{"Retry-After 5:4: use MIN:MAX in whole seconds with 1 <= MIN <= MAX <= 60",
		 answers_spec()},
		{"Retry-After 5:61: use MIN:MAX in whole seconds with 1 <= MIN <= MAX <= 60",
		 answers_spec()},
		{"a response limit of 1025 bytes: use at most 1024", answers_spec()},
	};

	(void)state;
	rows[0].spec.status = 199;
	rows[1].spec.status = 1000;
	rows[2].spec.drain_status = 0;
	rows[3].spec.retry_after_min = 5;
	rows[3].spec.retry_after_max = 4;
	rows[4].spec.retry_after_min = 5;
	rows[4].spec.retry_after_max = 61;
	rows[5].spec.max_bytes = 1025;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sw_error err = {""};
		uint8_t mask;

		assert_int_equal(sw_answers_render(&rows[i].spec, answers_set, &mask, &err),
				 -EINVAL);
		assert_string_equal(err.text, rows[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_longer_than_needed),
		cmocka_unit_test(every_length_of_body),
		cmocka_unit_test(too_long),
		cmocka_unit_test(far_too_long),
		cmocka_unit_test(out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
