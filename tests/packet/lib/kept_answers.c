// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The canned answers of a test of established connections; see kept.h.

#include "kept.h"
#include "spillway.skel.h"

#include <stdio.h>
#include <string.h>

static char texts[SW_CAUSES][SW_FAMILIES][KEPT_ANSWER + 1];

const char *kept_answer(enum sw_cause cause, enum sw_family family)
{
	return texts[cause][family];
}

static void write_answer(uint32_t index, const char *text)
{
	struct sw_answer a = {.length = strlen(text)};
	uint32_t sum = 0;

	memcpy(a.bytes, text, a.length);
	for (unsigned i = 0; i < a.length; i += 2)
		sum += (uint8_t)a.bytes[i] | (uint8_t)a.bytes[i + 1] << 8;
	sum = (sum & 0xffff) + (sum >> 16);
	a.sum = htole16((sum & 0xffff) + (sum >> 16));
	kept_put(kept.skel->maps.answers, &index, &a);
}

void rewrite_answers(const char *word)
{
	static const char head[] = "HTTP/1.1 529 Overloaded\r\nContent-Type: text/plain\r\n"
				   "Content-Length: %3d\r\n\r\n";
	int body = KEPT_ANSWER - (sizeof(head) - 1) + 1; /* %3d is a digit longer than its number */

	for (unsigned i = 0; i < SW_CAUSES * SW_FAMILIES; i++) {
		char *text = texts[i / SW_FAMILIES][i % SW_FAMILIES];
		int n = snprintf(text, KEPT_ANSWER + 1, head, body);

		n += snprintf(text + n, KEPT_ANSWER + 1 - n, "%s cause %d family %d ", word,
			      i / SW_FAMILIES, i % SW_FAMILIES);
		memset(text + n, '.', KEPT_ANSWER - n);
		text[KEPT_ANSWER] = 0;
		for (unsigned variant = 0; variant < SW_VARIANTS; variant++)
			write_answer(SW_ANSWER_INDEX(KEPT_SET, i / SW_FAMILIES, i % SW_FAMILIES,
						     variant) +
					     SW_ANSWERS_KEEP,
				     text);
	}
}

void cut_answers(void)
{
	for (uint32_t i = 0; i < SW_ANSWERS_PER_SET; i++)
		write_answer(KEPT_SET * SW_ANSWERS_PER_SET + i, "HTTP/1.1 529 Overloaded\r\n\r\n.");
}
