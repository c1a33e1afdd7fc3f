// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a plane took over from a daemon before this one; see plane.h. */
#include <bpf/bpf.h>

#include "kernel/plane_impl.h"

bool sw_plane_in_conversation(const struct sw_plane *p)
{
	for (unsigned pool = 0; pool < SW_MAX_POOLS; pool++) {
		struct sw_pool now;

		if (!bpf_map_lookup_elem(p->maps.pools, &pool, &now) && now.mode != SW_MODE_OPEN)
			return true;
	}
	return false;
}
