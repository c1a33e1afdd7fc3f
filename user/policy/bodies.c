// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The words of the built-in bodies; see bodies.h. Byte for byte what each API's clients know. */
#include <stdbool.h>
#include <stddef.h>

#include "policy/bodies.h"

/* For a pool that is full, and for one that is away (draining or without workers). */
static const struct {
	const char *full, *away;
} bodies[] = {
	[SW_API_DYNAMO] =
		{"{\"message\":\"Service temporarily overloaded\",\"type\":\"Overloaded\","
		 "\"code\":{status}}",
		 "{\"message\":\"Service temporarily unavailable\",\"type\":\"Service Unavailable\","
		 "\"code\":{status}}"},
	[SW_API_OPENAI] = {"{\"error\":{\"message\":\"Service temporarily overloaded\","
			   "\"type\":\"overloaded_error\",\"param\":null,\"code\":{status}}}",
			   "{\"error\":{\"message\":\"Service temporarily unavailable\","
			   "\"type\":\"overloaded_error\",\"param\":null,\"code\":{status}}}"},
	[SW_API_ANTHROPIC] = {"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
			      "\"message\":\"Service temporarily overloaded\"}}",
			      "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
			      "\"message\":\"Service temporarily unavailable\"}}"},
	[SW_API_VLLM] =
		{"{\"error\":{\"message\":\"The engine is currently busy and cannot accept new "
		 "requests. Please try again later or on a different instance.\","
		 "\"type\":\"Service Unavailable\",\"param\":null,\"code\":{status}}}",
		 "{\"error\":{\"message\":\"Service temporarily unavailable\","
		 "\"type\":\"Service Unavailable\",\"param\":null,\"code\":{status}}}"},
	[SW_API_SGLANG] = {"{\"object\":\"error\",\"message\":\"The request queue is full.\","
			   "\"type\":\"SERVICE_UNAVAILABLE\",\"param\":null,\"code\":{status}}",
			   "{\"object\":\"error\",\"message\":\"Service temporarily unavailable\","
			   "\"type\":\"SERVICE_UNAVAILABLE\",\"param\":null,\"code\":{status}}"},
	[SW_API_TGI] =
		{"{\"error\":\"Model is overloaded\",\"error_type\":\"overloaded\"}",
		 "{\"error\":\"Service temporarily unavailable\",\"error_type\":\"overloaded\"}"},
	[SW_API_SMG] = {"", "{\"status\":\"not ready\",\"reason\":\"{reason}\"}"},
	[SW_API_VLLM_TOKENS] =
		{"{\"error\":{\"message\":\"The engine has reached its prefill token backlog limit. "
		 "Please try again later or on a different instance.\","
		 "\"type\":\"Service Unavailable\",\"param\":null,\"code\":{status}}}",
		 NULL},
};

const char *sw_builtin_body(enum sw_api api, enum sw_cause cause)
{
	bool away = cause == SW_CAUSE_DRAINING || cause == SW_CAUSE_UNAVAILABLE;

	/* where it is not the backlog, it is not to be said that it were */
	if (api == SW_API_VLLM_TOKENS && cause != SW_CAUSE_SATURATED)
		api = SW_API_VLLM;
	return away ? bodies[api].away : bodies[api].full;
}
