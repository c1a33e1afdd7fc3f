// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The canned responses byte for byte: every API, cause and family, padding, Retry-After, limits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "policy/answer.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct sw_answer set[SW_ANSWERS_PER_SET];

static struct sw_answer_spec dynamo(void)
{
	return (struct sw_answer_spec){
		.status = 529,
		.drain_status = 503,
		.api = SW_API_DYNAMO,
		.max_bytes = SW_ANSWER_DEFAULT,
	};
}

static uint8_t render(const struct sw_answer_spec *spec)
{
	struct sw_error err = {""};
	uint8_t mask = 0xff;

	memset(set, 0xa5, sizeof(set));
	if (sw_answers_render(spec, set, &mask, &err) != 0)
		fail_msg("refused: %s", err.text);
	return mask;
}

static const struct sw_answer *answer(enum sw_cause cause, enum sw_family family, unsigned variant)
{
	return &set[SW_ANSWER_INDEX(0, cause, family, variant)];
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

/* What holds for every response of every set. Returns where the body begins. */
static const char *check_shape(const struct sw_answer *a)
{
	static char text[SW_ANSWER_MAX + 1];
	const char *end, *length;

	assert_in_range(a->length, 1, SW_ANSWER_MAX);
	assert_int_equal(a->length % 2, 0);
	assert_int_equal(a->length, set[0].length);
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
	if (a - set < SW_ANSWERS_KEEP)
		assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
	else
		assert_null(strstr(text, "\r\nConnection:"));
	return end + 4;
}

static void check_set(void)
{
	for (unsigned i = 0; i < SW_ANSWERS_PER_SET; i++)
		check_shape(&set[i]);
}

/* A whole response as it must be, for a body that is not empty. */
static void assert_response(const struct sw_answer *a, const char *status_line, const char *retry,
			    const char *reason, const char *body)
{
	const char *start = check_shape(a);
	char want[2 * SW_ANSWER_MAX];
	int n;

	n = snprintf(want, sizeof(want),
		     "HTTP/1.1 %s\r\nContent-Type: application/json\r\nConnection: close\r\n%s"
		     "x-spillway-reason: %s\r\nContent-Length: %zu\r\n\r\n%-*s",
		     status_line, retry, reason, strlen(start), (int)strlen(start), body);
	if ((uint32_t)n != a->length || memcmp(a->bytes, want, n) != 0)
		fail_msg("got\n%.*s|\nwanted\n%s|", (int)a->length, a->bytes, want);
}

/* ---- bodies of each API ---- */

#define UNAVAILABLE "Service temporarily unavailable"
#define VLLM_BUSY(code)                                                                            \
	"{\"error\":{\"message\":\"The engine is currently busy and cannot accept new requests. "  \
	"Please try again later or on a different instance.\",\"type\":\"Service Unavailable\","   \
	"\"param\":null,\"code\":" #code "}}"
#define VLLM_AWAY(code)                                                                            \
	"{\"error\":{\"message\":\"" UNAVAILABLE "\",\"type\":\"Service Unavailable\","            \
	"\"param\":null,\"code\":" #code "}}"

enum { ANTHROPIC = 3, TGI = 7 }; /* places in `expected` that other APIs use too */

static const struct expected {
	const char *name;
	enum sw_api api;
	uint16_t status, drain_status;
	const char *full_line, *full; /* NULL: an empty body */
	const char *drain_line, *draining;
	const char *unavailable;
} expected[] = {
	{"dynamo", SW_API_DYNAMO, 529, 503, "529 Overloaded",
	 "{\"message\":\"Service temporarily overloaded\",\"type\":\"Overloaded\",\"code\":529}",
	 "503 Service Unavailable",
	 "{\"message\":\"" UNAVAILABLE "\",\"type\":\"Service Unavailable\",\"code\":503}",
	 "{\"message\":\"" UNAVAILABLE "\",\"type\":\"Service Unavailable\",\"code\":503}"},
	{"dynamo, other statuses", SW_API_DYNAMO, 200, 502, "200 OK",
	 "{\"message\":\"Service temporarily overloaded\",\"type\":\"Overloaded\",\"code\":200}",
	 "502 Bad Gateway",
	 "{\"message\":\"" UNAVAILABLE "\",\"type\":\"Service Unavailable\",\"code\":502}",
	 "{\"message\":\"" UNAVAILABLE "\",\"type\":\"Service Unavailable\",\"code\":503}"},
	{"openai", SW_API_OPENAI, 529, 529, "529 Overloaded",
	 "{\"error\":{\"message\":\"Service temporarily overloaded\",\"type\":\"overloaded_error\","
	 "\"param\":null,\"code\":529}}",
	 "529 Overloaded",
	 "{\"error\":{\"message\":\"" UNAVAILABLE "\",\"type\":\"overloaded_error\","
	 "\"param\":null,\"code\":529}}",
	 "{\"error\":{\"message\":\"" UNAVAILABLE "\",\"type\":\"overloaded_error\","
	 "\"param\":null,\"code\":503}}"},
	[ANTHROPIC] = {"anthropic", SW_API_ANTHROPIC, 529, 503, "529 Overloaded",
		       "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
		       "\"message\":\"Service temporarily overloaded\"}}",
		       "503 Service Unavailable",
		       "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
		       "\"message\":\"" UNAVAILABLE "\"}}",
		       "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
		       "\"message\":\"" UNAVAILABLE "\"}}"},
	{"vllm", SW_API_VLLM, 503, 504, "503 Service Unavailable", VLLM_BUSY(503),
	 "504 Gateway Timeout", VLLM_AWAY(504), VLLM_AWAY(503)},
	{"vllm, other statuses", SW_API_VLLM, 429, 503, "429 Too Many Requests", VLLM_BUSY(429),
	 "503 Service Unavailable", VLLM_AWAY(503), VLLM_AWAY(503)},
	{"sglang", SW_API_SGLANG, 503, 500, "503 Service Unavailable",
	 "{\"object\":\"error\",\"message\":\"The request queue is full.\","
	 "\"type\":\"SERVICE_UNAVAILABLE\",\"param\":null,\"code\":503}",
	 "500 Internal Server Error",
	 "{\"object\":\"error\",\"message\":\"" UNAVAILABLE "\",\"type\":\"SERVICE_UNAVAILABLE\","
	 "\"param\":null,\"code\":500}",
	 "{\"object\":\"error\",\"message\":\"" UNAVAILABLE "\",\"type\":\"SERVICE_UNAVAILABLE\","
	 "\"param\":null,\"code\":503}"},
	[TGI] = {"tgi", SW_API_TGI, 429, 503, "429 Too Many Requests",
		 "{\"error\":\"Model is overloaded\",\"error_type\":\"overloaded\"}",
		 "503 Service Unavailable",
		 "{\"error\":\"" UNAVAILABLE "\",\"error_type\":\"overloaded\"}",
		 "{\"error\":\"" UNAVAILABLE "\",\"error_type\":\"overloaded\"}"},
	{"smg", SW_API_SMG, 429, 503, "429 Too Many Requests", NULL, "503 Service Unavailable",
	 "{\"status\":\"not ready\",\"reason\":\"draining\"}",
	 "{\"status\":\"not ready\",\"reason\":\"unavailable\"}"},
};

static void check_family(const struct expected *e, enum sw_family family, const char *full,
			 const char *draining, const char *unavailable)
{
	static const char away[] = "503 Service Unavailable";

	for (unsigned v = 0; v < SW_VARIANTS; v++) {
		if (full) {
			assert_response(answer(SW_CAUSE_SATURATED, family, v), e->full_line, "",
					"saturated", full);
			assert_response(answer(SW_CAUSE_NO_SLOTS, family, v), e->full_line, "",
					"no-slots", full);
		}
		assert_response(answer(SW_CAUSE_DRAINING, family, v), e->drain_line, "", "draining",
				draining);
		assert_response(answer(SW_CAUSE_UNAVAILABLE, family, v), away, "", "unavailable",
				unavailable);
	}
}

/* The families of /v1/messages and /generate have their own shape under every API. */
static void every_api_cause_and_family(void **state)
{
	const struct expected *anthropic = &expected[ANTHROPIC], *tgi = &expected[TGI];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct expected *e = &expected[i];
		struct sw_answer_spec spec = dynamo();

		spec.api = e->api;
		spec.status = e->status;
		spec.drain_status = e->drain_status;
		assert_int_equal(render(&spec), 0);
		check_set();
		check_family(e, SW_FAMILY_DEFAULT, e->full, e->draining, e->unavailable);
		check_family(e, SW_FAMILY_ANTHROPIC, anthropic->full, anthropic->draining,
			     anthropic->unavailable);
		check_family(e, SW_FAMILY_TGI, tgi->full, tgi->draining, tgi->unavailable);
	}
}

/* Only the saturated answer speaks of the backlog. */
static void vllm_backlog(void **state)
{
	struct sw_answer_spec spec = dynamo();
	static const char line[] = "503 Service Unavailable";

	(void)state;
	spec.api = SW_API_VLLM_TOKENS;
	spec.status = 503;
	render(&spec);
	check_set();
	assert_response(
		answer(SW_CAUSE_SATURATED, SW_FAMILY_DEFAULT, 0), line, "", "saturated",
		"{\"error\":{\"message\":\"The engine has reached its prefill token backlog "
		"limit. Please try again later or on a different instance.\",\"type\":"
		"\"Service Unavailable\",\"param\":null,\"code\":503}}");
	assert_response(answer(SW_CAUSE_NO_SLOTS, SW_FAMILY_DEFAULT, 0), line, "", "no-slots",
			VLLM_BUSY(503));
	assert_response(answer(SW_CAUSE_DRAINING, SW_FAMILY_DEFAULT, 0), line, "", "draining",
			VLLM_AWAY(503));
	assert_response(answer(SW_CAUSE_UNAVAILABLE, SW_FAMILY_DEFAULT, 0), line, "", "unavailable",
			VLLM_AWAY(503));
}

/* The longest takes 235 bytes, and at 236 "draining" has no body: 99 bytes behind its headers make
 * 235, 100 make 237. */
static void no_longer_than_needed(void **state)
{
	struct sw_answer_spec spec = dynamo();

	(void)state;
	render(&spec);
	assert_int_equal(set[0].length, 238);
	assert_memory_equal(answer(SW_CAUSE_UNAVAILABLE, SW_FAMILY_ANTHROPIC, 0)->bytes,
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

/* A router that answers with nothing: the padding goes into a header. */
static void empty_body(void **state)
{
	static const char head[] = "HTTP/1.1 429 Too Many Requests\r\n"
				   "Connection: close\r\n"
				   "x-spillway-reason: saturated\r\n"
				   "Content-Length: 0\r\n"
				   "x-spillway-pad: ";
	struct sw_answer_spec spec = dynamo();
	const struct sw_answer *a;
	size_t pad;

	(void)state;
	spec.api = SW_API_SMG;
	spec.status = 429;
	render(&spec);
	a = answer(SW_CAUSE_SATURATED, SW_FAMILY_DEFAULT, 0);
	assert_string_equal(check_shape(a), "");
	assert_memory_equal(a->bytes, head, sizeof(head) - 1);
	pad = a->length - (sizeof(head) - 1) - 4;
	assert_int_equal(strspn(a->bytes + sizeof(head) - 1, "-"), pad);
	assert_memory_equal(a->bytes + a->length - 4, "\r\n\r\n", 4);

	for (int i = 0; i < SW_FAMILIES; i++)
		spec.body[i] = ""; /* all empty: the longest has a pad of 0 or 1 */
	render(&spec);
	check_set();
}

/* ---- Retry-After ---- */

static void retry_after(void **state)
{
	static const struct {
		unsigned min, max, mask;
		unsigned seconds[SW_VARIANTS];
	} rows[] = {
		{1, 1, 0, {1, 1, 1, 1, 1, 1, 1, 1}}, {60, 60, 0, {60, 60, 60, 60, 60, 60, 60, 60}},
		{2, 3, 1, {2, 3, 2, 3, 2, 3, 2, 3}}, {1, 3, 1, {1, 3, 1, 3, 1, 3, 1, 3}},
		{1, 4, 3, {1, 2, 3, 4, 1, 2, 3, 4}}, {1, 7, 3, {1, 3, 5, 7, 1, 3, 5, 7}},
		{1, 8, 7, {1, 2, 3, 4, 5, 6, 7, 8}}, {1, 60, 7, {1, 9, 17, 26, 34, 43, 51, 60}},
	};
	struct sw_answer_spec spec = dynamo();
	char retry[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		spec.retry_after_min = rows[i].min;
		spec.retry_after_max = rows[i].max;
		for (int ms = 0; ms < 2; ms++) {
			spec.retry_after_ms = ms;
			assert_int_equal(render(&spec), rows[i].mask);
			check_set();
			for (unsigned v = 0; v < SW_VARIANTS; v++) {
				unsigned s = rows[i].seconds[v];

				snprintf(retry, sizeof(retry),
					 ms ? "Retry-After: %u\r\nretry-after-ms: %u000\r\n"
					    : "Retry-After: %u\r\n",
					 s, s);
				assert_response(answer(SW_CAUSE_NO_SLOTS, SW_FAMILY_DEFAULT, v),
						"529 Overloaded", retry, "no-slots",
						expected[0].full);
			}
		}
	}
	spec = dynamo();
	spec.retry_after_ms = 1; /* no time to tell */
	assert_int_equal(render(&spec), 0);
	assert_response(&set[0], "529 Overloaded", "", "saturated", expected[0].full);
}

/* ---- the operator's own bodies ---- */

static void own_bodies(void **state)
{
	struct sw_answer_spec spec = dynamo();

	(void)state;
	spec.body[SW_FAMILY_DEFAULT] = "{\"s\":{status},\"r\":\"{reason}\",\"x\":\"%s{stat\"}";
	spec.body[SW_FAMILY_TGI] = "{status}{status}";
	render(&spec);
	check_set();
	assert_response(answer(SW_CAUSE_NO_SLOTS, SW_FAMILY_DEFAULT, 0), "529 Overloaded", "",
			"no-slots", "{\"s\":529,\"r\":\"no-slots\",\"x\":\"%s{stat\"}");
	assert_response(answer(SW_CAUSE_UNAVAILABLE, SW_FAMILY_DEFAULT, 7),
			"503 Service Unavailable", "", "unavailable",
			"{\"s\":503,\"r\":\"unavailable\",\"x\":\"%s{stat\"}");
	assert_response(answer(SW_CAUSE_SATURATED, SW_FAMILY_TGI, 0), "529 Overloaded", "",
			"saturated", "529529");
	assert_response(answer(SW_CAUSE_SATURATED, SW_FAMILY_ANTHROPIC, 0), "529 Overloaded", "",
			"saturated", expected[ANTHROPIC].full);
}

/* One space more can take one digit more of Content-Length: no length of body may break the set. */
static void every_length_of_body(void **state)
{
	struct sw_answer_spec spec = dynamo();
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
		ret = sw_answers_render(&spec, set, &mask, &err);
		if (ret == -EMSGSIZE)
			break;
		assert_int_equal(ret, 0);
		check_set();
		assert_in_range(set[0].length, last, SW_ANSWER_MAX);
		last = set[0].length;
	}
	assert_int_equal(last, SW_ANSWER_MAX);
}

/* ---- what is refused ---- */

static void too_long(void **state)
{
	struct sw_answer_spec spec = dynamo();
	struct sw_error err = {""};
	char body[600] = "";
	uint8_t mask = 0xee;

	(void)state;
	memset(body, 'x', 396); /* 140 bytes of headers for "unavailable" */
	spec.body[SW_FAMILY_ANTHROPIC] = body;
	render(&spec);
	assert_int_equal(set[0].length, SW_ANSWER_DEFAULT);

	memset(set, 0x5a, sizeof(set));
	memset(body, 'x', 398);
	assert_int_equal(sw_answers_render(&spec, set, &mask, &err), -EMSGSIZE);
	assert_string_equal(err.text,
			    "the \"unavailable\" response with the anthropic body takes 538 bytes, "
			    "2 over the limit of 536: shorten the body or raise the limit, up to "
			    "1024");
	assert_int_equal(mask, 0xee);
	assert_int_equal(set[0].bytes[0], 0x5a);

	spec.max_bytes = 237; /* an odd limit is the even one below it */
	spec.body[SW_FAMILY_ANTHROPIC] = NULL;
	assert_int_equal(sw_answers_render(&spec, set, &mask, &err), -EMSGSIZE);
	spec.max_bytes = 239;
	render(&spec);
}

static void far_too_long(void **state)
{
	struct sw_answer_spec spec = dynamo();
	struct sw_error err = {""};
	char *body = malloc(200001);
	uint8_t mask;

	(void)state;
	assert_non_null(body);
	memset(body, '{', 200000);
	body[200000] = '\0';
	spec.body[SW_FAMILY_DEFAULT] = body;
	spec.max_bytes = SW_ANSWER_MAX;
	assert_int_equal(sw_answers_render(&spec, set, &mask, &err), -EMSGSIZE);
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
		{"overload status 199: use 200..999", dynamo()},
		{"overload status 1000: use 200..999", dynamo()},
		{"drain status 0: use 200..999", dynamo()},
		{"Retry-After 5:4: use MIN:MAX in whole seconds with 1 <= MIN <= MAX <= 60",
		 dynamo()},
		{"Retry-After 5:61: use MIN:MAX in whole seconds with 1 <= MIN <= MAX <= 60",
		 dynamo()},
		{"a response limit of 1025 bytes: use at most 1024", dynamo()},
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
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sw_error err = {""};
		uint8_t mask;

		assert_int_equal(sw_answers_render(&rows[i].spec, set, &mask, &err), -EINVAL);
		assert_string_equal(err.text, rows[i].error);
	}
}

static void cause_names(void **state)
{
	(void)state;
	assert_string_equal(sw_cause_name(SW_CAUSE_SATURATED), "saturated");
	assert_string_equal(sw_cause_name(SW_CAUSE_NO_SLOTS), "no-slots");
	assert_string_equal(sw_cause_name(SW_CAUSE_DRAINING), "draining");
	assert_string_equal(sw_cause_name(SW_CAUSE_UNAVAILABLE), "unavailable");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_api_cause_and_family),
		cmocka_unit_test(vllm_backlog),
		cmocka_unit_test(no_longer_than_needed),
		cmocka_unit_test(empty_body),
		cmocka_unit_test(retry_after),
		cmocka_unit_test(own_bodies),
		cmocka_unit_test(every_length_of_body),
		cmocka_unit_test(too_long),
		cmocka_unit_test(far_too_long),
		cmocka_unit_test(out_of_range),
		cmocka_unit_test(cause_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
