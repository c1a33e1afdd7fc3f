// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The canned responses byte for byte: every API, cause and family, padding, Retry-After, and the
 * operator's own bodies. Their lengths and what is refused are in test_answer_limits.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/answers.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

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
			answers_assert(answers_get(SW_CAUSE_SATURATED, family, v), e->full_line, "",
				       "saturated", full);
			answers_assert(answers_get(SW_CAUSE_NO_SLOTS, family, v), e->full_line, "",
				       "no-slots", full);
		}
		answers_assert(answers_get(SW_CAUSE_DRAINING, family, v), e->drain_line, "",
			       "draining", draining);
		answers_assert(answers_get(SW_CAUSE_UNAVAILABLE, family, v), away, "",
			       "unavailable", unavailable);
	}
}

/* The families of /v1/messages and /generate have their own shape under every API. */
static void every_api_cause_and_family(void **state)
{
	const struct expected *anthropic = &expected[ANTHROPIC], *tgi = &expected[TGI];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct expected *e = &expected[i];
		struct sw_answer_spec spec = answers_spec();

		spec.api = e->api;
		spec.status = e->status;
		spec.drain_status = e->drain_status;
		assert_int_equal(answers_render(&spec), 0);
		answers_check();
		check_family(e, SW_FAMILY_DEFAULT, e->full, e->draining, e->unavailable);
		check_family(e, SW_FAMILY_ANTHROPIC, anthropic->full, anthropic->draining,
			     anthropic->unavailable);
		check_family(e, SW_FAMILY_TGI, tgi->full, tgi->draining, tgi->unavailable);
	}
}

/* Only the saturated answer speaks of the backlog. It is as long as vLLM's other one, as a client
 * may have been promised that. */
static void vllm_backlog(void **state)
{
	struct sw_answer_spec spec = answers_spec();
	static const char line[] = "503 Service Unavailable";
	uint32_t length;

	(void)state;
	spec.api = SW_API_VLLM;
	spec.status = 503;
	answers_render(&spec);
	length = answers_get(SW_CAUSE_SATURATED, SW_FAMILY_DEFAULT, 0)->length;
	spec.api = SW_API_VLLM_TOKENS;
	answers_render(&spec);
	answers_check();
	assert_int_equal(answers_get(SW_CAUSE_SATURATED, SW_FAMILY_DEFAULT, 0)->length, length);
	answers_assert(answers_get(SW_CAUSE_SATURATED, SW_FAMILY_DEFAULT, 0), line, "", "saturated",
		       "{\"error\":{\"message\":\"The engine has reached its prefill token backlog "
		       "limit. Please try again later or on a different instance.\",\"type\":"
		       "\"Service Unavailable\",\"param\":null,\"code\":503}}");
	answers_assert(answers_get(SW_CAUSE_NO_SLOTS, SW_FAMILY_DEFAULT, 0), line, "", "no-slots",
		       VLLM_BUSY(503));
	answers_assert(answers_get(SW_CAUSE_DRAINING, SW_FAMILY_DEFAULT, 0), line, "", "draining",
		       VLLM_AWAY(503));
	answers_assert(answers_get(SW_CAUSE_UNAVAILABLE, SW_FAMILY_DEFAULT, 0), line, "",
		       "unavailable", VLLM_AWAY(503));
}

/* A router that answers with nothing: the padding goes into a header. */
static void empty_body(void **state)
{
	static const char head[] = "HTTP/1.1 429 Too Many Requests\r\n"
				   "Connection: close\r\n"
				   "x-spillway-reason: saturated\r\n"
				   "Content-Length: 0\r\n"
				   "x-spillway-pad: ";
	struct sw_answer_spec spec = answers_spec();
	const struct sw_answer *a;
	size_t pad;

	(void)state;
	spec.api = SW_API_SMG;
	spec.status = 429;
	answers_render(&spec);
	a = answers_get(SW_CAUSE_SATURATED, SW_FAMILY_DEFAULT, 0);
	assert_string_equal(answers_check_one(a), "");
	assert_memory_equal(a->bytes, head, sizeof(head) - 1);
	pad = a->length - (sizeof(head) - 1) - 4;
	assert_int_equal(strspn(a->bytes + sizeof(head) - 1, "-"), pad);
	assert_memory_equal(a->bytes + a->length - 4, "\r\n\r\n", 4);

	for (int i = 0; i < SW_FAMILIES; i++)
		spec.body[i] = ""; /* all empty: the longest has a pad of 0 or 1 */
	answers_render(&spec);
	answers_check();
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
	struct sw_answer_spec spec = answers_spec();
	char retry[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		spec.retry_after_min = rows[i].min;
		spec.retry_after_max = rows[i].max;
		for (int ms = 0; ms < 2; ms++) {
			spec.retry_after_ms = ms;
			assert_int_equal(answers_render(&spec), rows[i].mask);
			answers_check();
			for (unsigned v = 0; v < SW_VARIANTS; v++) {
				unsigned s = rows[i].seconds[v];

				snprintf(retry, sizeof(retry),
					 ms ? "Retry-After: %u\r\nretry-after-ms: %u000\r\n"
					    : "Retry-After: %u\r\n",
					 s, s);
				answers_assert(answers_get(SW_CAUSE_NO_SLOTS, SW_FAMILY_DEFAULT, v),
					       "529 Overloaded", retry, "no-slots",
					       expected[0].full);
			}
		}
	}
	spec = answers_spec();
	spec.retry_after_ms = 1; /* no time to tell */
	assert_int_equal(answers_render(&spec), 0);
	answers_assert(&answers_set[0], "529 Overloaded", "", "saturated", expected[0].full);
}

/* ---- the operator's own bodies ---- */

static void own_bodies(void **state)
{
	struct sw_answer_spec spec = answers_spec();

	(void)state;
	spec.body[SW_FAMILY_DEFAULT] = "{\"s\":{status},\"r\":\"{reason}\",\"x\":\"%s{stat\"}";
	spec.body[SW_FAMILY_TGI] = "{status}{status}";
	answers_render(&spec);
	answers_check();
	answers_assert(answers_get(SW_CAUSE_NO_SLOTS, SW_FAMILY_DEFAULT, 0), "529 Overloaded", "",
		       "no-slots", "{\"s\":529,\"r\":\"no-slots\",\"x\":\"%s{stat\"}");
	answers_assert(answers_get(SW_CAUSE_UNAVAILABLE, SW_FAMILY_DEFAULT, 7),
		       "503 Service Unavailable", "", "unavailable",
		       "{\"s\":503,\"r\":\"unavailable\",\"x\":\"%s{stat\"}");
	answers_assert(answers_get(SW_CAUSE_SATURATED, SW_FAMILY_TGI, 0), "529 Overloaded", "",
		       "saturated", "529529");
	answers_assert(answers_get(SW_CAUSE_SATURATED, SW_FAMILY_ANTHROPIC, 0), "529 Overloaded",
		       "", "saturated", expected[ANTHROPIC].full);
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
		cmocka_unit_test(empty_body),
		cmocka_unit_test(retry_after),
		cmocka_unit_test(own_bodies),
		cmocka_unit_test(cause_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
