/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Selectors: which series of a metrics page are meant, by name and labels, and how an operator
 * writes that. What their numbers mean is left to the caller. */
#ifndef SPILLWAY_SELECTOR_H
#define SPILLWAY_SELECTOR_H

#include "common/error.h"
#include "sources/promtext.h"

#define SW_SELECTOR_LABELS 8
#define SW_LABEL_BYTES	   256 /* of a label's value and its NUL */

struct sw_selector {
	const char *name; /* of the series, exactly */
	struct {
		const char *label, *value; /* has this value; "": is absent */
	} match[SW_SELECTOR_LABELS];	   /* up to the first without a label */
};

/* Parses NAME or NAME{LABEL="VALUE",...}, as the series is written on a page. -EINVAL, and the
 * error says what is wrong with it; -ENOMEM. */
int sw_selector_parse(struct sw_selector *out, const char *text, struct sw_error *err);
/* What sw_selector_parse() made. */
void sw_selector_free(struct sw_selector *s);

bool sw_selector_takes(const struct sw_selector *s, const struct sw_sample *sample);
bool sw_selector_same(const struct sw_selector *a, const struct sw_selector *b);

#endif
