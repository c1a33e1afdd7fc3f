// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// See echo_text.h.

#include "echo_text.h"

#include <inttypes.h>
#include <stdio.h>

#define STARTS (1u << 21)

static uint64_t table[(STARTS + ECHO_BODY_MAX) / sizeof(uint64_t)];

uint64_t echo_mix(uint64_t n)
{
	n += 0x9e3779b97f4a7c15ULL;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ULL;
	n = (n ^ n >> 27) * 0x94d049bb133111ebULL;
	return n ^ n >> 31;
}

void echo_init(void)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		table[i] = echo_mix(i);
}

const char *echo_request_body(uint64_t tag)
{
	return (const char *)table + echo_mix(tag) % STARTS;
}

const char *echo_response_body(uint64_t tag)
{
	return (const char *)table + echo_mix(~tag) % STARTS;
}

size_t echo_chunk(uint64_t tag)
{
	return tag % 4 ? 0 : 1 + tag / 4 % 20000;
}

size_t echo_line(char out[ECHO_LINE_MAX], uint64_t tag, const char *method, size_t length,
		 bool intact)
{
	return snprintf(out, ECHO_LINE_MAX, "%016" PRIx64 " %.8s %zu %s\n", tag, method, length,
			intact ? "intact" : "CORRUPT");
}
