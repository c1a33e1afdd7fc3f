/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one clock of everything that ages: CLOCK_MONOTONIC, which the kernel programs read too. */
#ifndef SPILLWAY_CLOCK_H
#define SPILLWAY_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t sw_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static inline uint64_t sw_now_ms(void)
{
	return sw_now_ns() / 1000000ULL;
}

/* For people: milliseconds since 1970. */
static inline uint64_t sw_unix_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000ULL + (uint64_t)ts.tv_nsec / 1000000ULL;
}

#endif
