// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A metrics page of any engine: whatever it is, reading it gives reports within bounds or an error
 * with a reason. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sources/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sw_report reports[SW_MAX_RANKS];
	struct sw_engine_hints hints = {.kv_total = 1000};
	char *text;

	if (!size)
		return 0;
	/* exactly as long as it is, so that reading behind it is seen */
	text = malloc(size - 1 ? size - 1 : 1);
	memcpy(text, data + 1, size - 1);
	for (int e = 0; e < SW_ENGINES; e++) {
		struct sw_error err = {""};
		int n = sw_engine_read((enum sw_engine)e, &hints, text, size - 1, reports,
				       SW_MAX_RANKS, &err);

		if (n > SW_MAX_RANKS || (n < 0 && !err.text[0]) || !n)
			abort();
		for (int i = 0; i < n; i++)
			if (reports[i].have >= 1U << SW_SIGNALS)
				abort();
	}
	free(text);
	return 0;
}
