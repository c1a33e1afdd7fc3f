// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters of listeners by reason, and what they add up to in requests. */
#include <string.h>

#include "control/status.h"

const char *const sw_reason_names[SW_R_COUNT] = {
#define X(n, name, class, text) [n] = #name,
	SW_REASONS(X)
#undef X
};

/* Is the reason's class GIVE? */
static const bool gives[SW_R_COUNT] = {
#define CLASS_PASS		false
#define CLASS_DROP		false
#define CLASS_REPLY		false
#define CLASS_GIVE		true
#define X(n, name, class, text) [n] = CLASS_##class,
	SW_REASONS(X)
#undef X
};

uint64_t sw_count(const struct sw_counts *c, unsigned reason)
{
	uint64_t values[SW_R_COUNT];

	memcpy(values, c, sizeof(values)); /* the struct is one __u64 for each reason, by number */
	return values[reason];
}

void sw_totals_read(const struct sw_live *live, size_t index, struct sw_totals *out)
{
	const struct sw_live_plane *plane = sw_live_plane_of(live, &live->conf->listeners[index]);

	memset(out, 0, sizeof(*out));
	if (!plane || !plane->plane ||
	    sw_plane_counts(plane->plane, index + 1, &out->xdp, &out->tc) < 0)
		return;
	for (unsigned r = 0; r < SW_R_COUNT; r++) {
		uint64_t n = sw_count(&out->xdp, r) + sw_count(&out->tc, r);

		if (r >= SW_R_shed_saturated && r <= SW_R_shed_no_handover)
			out->shed += n; /* shed_again repeats an answer, it sheds nothing more */
		else if (gives[r])
			out->handed_over += n;
		else if (r == SW_R_would_shed)
			out->would_shed += n;
	}
}
