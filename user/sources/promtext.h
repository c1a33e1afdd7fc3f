/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads Prometheus text exposition, sample by sample, in place: it allocates nothing and keeps
 * nothing. Which series matter, and what they mean, is left to the caller. */
#ifndef SPILLWAY_PROMTEXT_H
#define SPILLWAY_PROMTEXT_H

#include <stdbool.h>
#include <stddef.h>

struct sw_prom {
	const char *at, *end;
	unsigned line;	    /* number of the line read last, from 1 */
	const char *reason; /* after -EBADMSG: what is wrong with that line */
	bool cut;	    /* after -EBADMSG: the line has no end */
};

/* Points into the text, which has to stay. */
struct sw_sample {
	const char *name;
	size_t name_length;
	const char *labels; /* between the braces, checked but still escaped */
	size_t labels_length;
	const char *value_at; /* where the number is written */
	double value;	      /* NaN and infinities are values too */
};

void sw_prom_init(struct sw_prom *p, const char *text, size_t length);

/* Reads up to the next sample: 1 it is in `out`; 0 the page ends; -EBADMSG the line is neither a
 * comment nor a sample, or has no end: a number cut short still looks like a number, so a page
 * that was cut is not believed. */
int sw_prom_next(struct sw_prom *p, struct sw_sample *out);

/* Is this the series of exactly this name? */
bool sw_sample_is(const struct sw_sample *s, const char *name);

/* Copies the unescaped value of a label and a NUL into `out`. An absent label is the empty value,
 * as Prometheus has it. -ENOSPC: does not fit; `out` is empty then. */
int sw_sample_label(const struct sw_sample *s, const char *label, char *out, size_t size);

/* Copies the name and the unescaped value of the label at *at, which begins as s->labels, and moves
 * *at to the next one: 1; 0: there is none. -ENOSPC: one of the two is not under `size` bytes. */
int sw_sample_next_label(const struct sw_sample *s, const char **at, char *name, char *value,
			 size_t size);

/* Reads all of `text` as a number, as the format writes them: 12, 1e3, NaN, +Inf. */
bool sw_prom_number(const char *text, size_t length, double *out);

#endif
