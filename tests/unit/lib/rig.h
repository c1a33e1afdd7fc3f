/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A worker with thresholds and a clock, for tests of busy evaluation to tell things to. */
#ifndef SPILLWAY_TEST_RIG_H
#define SPILLWAY_TEST_RIG_H

#include "policy/busy.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct rig {
	struct sw_worker w;
	struct sw_limits l;
	struct sw_ageing a;
	uint64_t now;
};

struct told {
	enum sw_signal signal;
	uint64_t value;
};

/* No thresholds, anti-flap off, stale_after 5 s, on_stale open. */
void rig_init(struct rig *r, uint32_t start_rank, int32_t dp_size);
void rig_decode(struct rig *r, double threshold);
void rig_frac(struct rig *r, double threshold);
void rig_count(struct rig *r, enum sw_limit limit, uint64_t threshold);

/* One report of one rank: TELL(&rig, 0, USED(90), TOTAL(100)). */
int rig_tell(struct rig *r, uint32_t rank, const struct told *told, size_t n);
#define TELL(r, rank, ...)                                                                         \
	rig_tell(r, rank, (const struct told[]){__VA_ARGS__},                                      \
		 ARRAY_SIZE(((struct told[]){__VA_ARGS__})))
#define DECODE(v)  {SW_SIG_DECODE_BLOCKS, v}
#define USED(v)	   {SW_SIG_KV_USED, v}
#define TOTAL(v)   {SW_SIG_KV_TOTAL, v}
#define PREFILL(v) {SW_SIG_PREFILL_TOKENS, v}
#define BATCHED(v) {SW_SIG_MAX_BATCHED, v}
#define RUNNING(v) {SW_SIG_RUNNING, v}
#define WAITING(v) {SW_SIG_WAITING, v}
#define QUEUED(v)  {SW_SIG_QUEUED_TOKENS, v}

/* Evaluates now, or `ms` later. */
bool rig_busy(struct rig *r);
bool rig_busy_after(struct rig *r, uint64_t ms);

#endif
