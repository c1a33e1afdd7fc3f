// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The worker of the busy tests; see rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

void rig_init(struct rig *r, uint32_t start_rank, int32_t dp_size)
{
	*r = (struct rig){
		.l = {.release_ratio = 1.0},
		.a = {.stale_after_ms = 5000, .on_stale = SW_STALE_OPEN},
		.now = 100000,
	};
	sw_worker_init(&r->w, start_rank, dp_size);
}

void rig_decode(struct rig *r, double threshold)
{
	r->l.set |= 1u << SW_LIM_DECODE;
	r->l.decode = threshold;
}

void rig_frac(struct rig *r, double threshold)
{
	r->l.set |= 1u << SW_LIM_PREFILL_FRAC;
	r->l.prefill_frac = threshold;
}

void rig_count(struct rig *r, enum sw_limit limit, uint64_t threshold)
{
	r->l.set |= 1u << limit;
	r->l.count[limit] = threshold;
}

int rig_tell(struct rig *r, uint32_t rank, const struct told *told, size_t n)
{
	struct sw_report report = {.rank = rank};

	for (size_t i = 0; i < n; i++) {
		report.have |= 1u << told[i].signal;
		report.value[told[i].signal] = told[i].value;
	}
	return sw_worker_report(&r->w, &r->l, &report, r->now);
}

bool rig_busy(struct rig *r)
{
	bool busy = sw_worker_eval(&r->w, &r->l, &r->a, r->now);

	assert_int_equal(busy, r->w.busy);
	return busy;
}

bool rig_busy_after(struct rig *r, uint64_t ms)
{
	r->now += ms;
	return rig_busy(r);
}
