/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters that each CPU has its own of. */
#ifndef SPILLWAY_COUNTERS_H
#define SPILLWAY_COUNTERS_H

#include <linux/types.h>
#include <stddef.h>

/* Sums the `n` words of an element over CPUs. */
int sw_counters_sum(int map, unsigned index, __u64 *out, size_t n);

#endif
