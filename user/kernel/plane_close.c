// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The end of a plane; see plane.h. */
#include <bpf/bpf.h>
#include <time.h>

#include "common/clock.h"
#include "kernel/attach.h"
#include "kernel/keep.h"
#include "kernel/lookup.h"
#include "kernel/pins.h"

/* Packets of conversations that are still under way. */
static uint64_t sum_under_way(struct sw_plane *p)
{
	static const enum sw_reason reasons[] = {
		SW_R_shed_saturated,   SW_R_shed_no_slots,    SW_R_shed_draining,
		SW_R_shed_unavailable, SW_R_shed_no_handover, SW_R_shed_again,
		SW_R_drain_data,       SW_R_drain_fin,	      SW_R_close_silent,
		SW_R_drop_handshake,   SW_R_drop_ack,	      SW_R_drop_order,
		SW_R_handover_path,    SW_R_handover_open,    SW_R_handover_exempt,
		SW_R_handover_unread,
	};
	uint64_t sum = 0;

	for (unsigned id = 1; id < p->listeners; id++) {
		struct sw_counts hook[2];

		if (sw_plane_counts(p, id, &hook[0], &hook[1], NULL))
			continue;
		for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
			sum += ((__u64 *)&hook[0])[reasons[i]] + ((__u64 *)&hook[1])[reasons[i]];
	}
	return sum;
}

/* True when there may be conversations to wait for. */
static bool stop_shedding(struct sw_plane *p)
{
	bool any = false;

	for (unsigned pool = 0; pool < p->pools; pool++) {
		struct sw_pool now;

		if (bpf_map_lookup_elem(p->maps.pools, &pool, &now) || now.mode == SW_MODE_OPEN)
			continue;
		any = true;
		sw_plane_set_pool(p, pool, SW_MODE_FINISH, now.cause, false,
				  sw_now_ns() + SW_LIFETIME_NS);
	}
	return any;
}

static void linger(struct sw_plane *p, unsigned ms)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	uint64_t end = sw_now_ms() + ms, quiet_since = sw_now_ms(), seen = sum_under_way(p);

	while (sw_now_ms() < end && sw_now_ms() - quiet_since < 200) {
		uint64_t sum;

		nanosleep(&pause, NULL);
		sum = sum_under_way(p);
		if (sum != seen)
			quiet_since = sw_now_ms();
		seen = sum;
	}
}

static void say_left(const struct sw_plane *p, unsigned flows)
{
	sw_log(SW_INFO,
	       "%u connections on which requests were shed go on%s%s, translated in the kernel; the "
	       "next spillwayd takes them over, spillwayd --remove ends them",
	       flows, p->netns ? " in " : "", p->netns ? p->netns : "");
}

void sw_plane_close(struct sw_plane *p, unsigned linger_ms)
{
	struct sw_netns_id here;
	uint64_t start = sw_now_ms();
	unsigned flows = 0, waited;
	bool there = false;
	int former;

	if (!p)
		return;
	sw_keep_stop(p);
	if (stop_shedding(p) && linger_ms)
		linger(p, linger_ms);
	waited = sw_now_ms() - start;
	/* Links know where they are; filters have to be looked for, in the right place. */
	if (!sw_netns_enter(p->netns, &former, NULL)) {
		there = !sw_netns_identify(&here) && sw_netns_same(&here, &p->id);
		if (there)
			flows = sw_keep_wait(p, waited < linger_ms ? linger_ms - waited : 0);
		if (there)
			sw_attach_none(p);
		sw_netns_leave(former);
	}
	if (flows)
		say_left(p, flows);
	if (!there || (p->lookup_link < 0 && !flows))
		sw_pins_remove(p);
	sw_plane_free(p);
}

void sw_plane_leave(struct sw_plane *p)
{
	sw_plane_free(p);
}
