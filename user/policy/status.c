// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The HTTP status of an overload answer, from text; see busy.h. Where the text comes from is the
 * configuration's matter.
 */
#include <ctype.h>

#include "policy/busy.h"

#define OVERLOADED 529

uint16_t sw_overload_status(const char *text)
{
	unsigned value = 0;

	if (!text)
		return OVERLOADED;
	while (isspace((unsigned char)*text))
		text++;
	if (*text == '+')
		text++;
	for (; isdigit((unsigned char)*text); text++) {
		value = value * 10 + (*text - '0');
		if (value > UINT16_MAX)
			return OVERLOADED;
	}
	while (isspace((unsigned char)*text))
		text++;
	return *text == '\0' && value >= 200 && value <= 999 ? value : OVERLOADED;
}
