/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The answers of a kept connection: where each ends, and whether each byte of it is right. */
#ifndef TOOLS_KEEPING_ANSWER_H
#define TOOLS_KEEPING_ANSWER_H

#include "keeping.h"

/* Bytes have come. */
void keeping_take(struct keeping *k, const char *bytes, size_t n);

/* Notes an error, the first one in words, and gives the connection up. */
void keeping_wrong(struct keeping *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Is the newest request not written to its end? */
bool keeping_unwritten(const struct keeping *k);

#endif
