// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the counters that the programs keep for each CPU. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/plane_impl.h"

static int sum(int map, unsigned listener, int cpus, struct sw_counts *each, struct sw_counts *out)
{
	if (bpf_map_lookup_elem(map, &listener, each))
		return -errno;
	memset(out, 0, sizeof(*out));
	for (int cpu = 0; cpu < cpus; cpu++)
		for (int reason = 0; reason < SW_R_COUNT; reason++)
			((__u64 *)out)[reason] += ((__u64 *)&each[cpu])[reason];
	return 0;
}

int sw_plane_counts(struct sw_plane *p, unsigned listener, struct sw_counts *xdp,
		    struct sw_counts *tc)
{
	int cpus = libbpf_num_possible_cpus(), ret = 0;
	struct sw_counts *each;

	if (cpus < 0)
		return cpus;
	each = calloc(cpus, sizeof(*each));
	if (!each)
		return -ENOMEM;
	if (xdp)
		ret = sum(p->maps.counts_xdp, listener, cpus, each, xdp);
	if (tc && !ret)
		ret = sum(p->maps.counts_tc, listener, cpus, each, tc);
	free(each);
	return ret;
}
