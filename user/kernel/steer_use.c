// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the kernel keeps for a pool as a whole, for those who watch; see steer.h. */
#include <bpf/bpf.h>
#include <errno.h>

#include "kernel/steer.h"

int sw_steer_use(const struct sw_steer *s, unsigned pool, struct sw_pool_use *out)
{
	const __u32 key = pool;

	return bpf_map_lookup_elem(sw_steer_maps(s)->pool_use, &key, out) ? -errno : 0;
}
