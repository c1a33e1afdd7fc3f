// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the counters that the programs keep for each CPU. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/counters.h"
#include "kernel/plane_impl.h"

int sw_counters_sum(int map, unsigned index, __u64 *out, size_t n)
{
	int cpus = libbpf_num_possible_cpus(), ret = 0;
	__u64 *each;

	if (cpus < 0)
		return cpus;
	each = calloc(cpus, n * sizeof(*each));
	if (!each)
		return -ENOMEM;
	if (bpf_map_lookup_elem(map, &index, each))
		ret = -errno;
	memset(out, 0, n * sizeof(*out));
	for (size_t i = 0; i < n * (size_t)cpus; i++)
		out[i % n] += each[i];
	free(each);
	return ret;
}

int sw_plane_shed_counts(struct sw_plane *p, unsigned listener, struct sw_shed_counts *out)
{
	return sw_counters_sum(p->maps.counts_shed, listener, (__u64 *)out,
			       sizeof(*out) / sizeof(__u64));
}

int sw_plane_shed_events(const struct sw_plane *p)
{
	return p->maps.shed_events;
}

int sw_plane_counts(struct sw_plane *p, unsigned listener, struct sw_counts *xdp,
		    struct sw_counts *tc, struct sw_counts *keep)
{
	int ret = 0;

	if (xdp)
		ret = sw_counters_sum(p->maps.counts_xdp, listener, (__u64 *)xdp, SW_R_COUNT);
	if (tc && !ret)
		ret = sw_counters_sum(p->maps.counts_tc, listener, (__u64 *)tc, SW_R_COUNT);
	if (keep && !p->keep.on)
		memset(keep, 0, sizeof(*keep));
	else if (keep && !ret)
		ret = sw_counters_sum(p->keep.counts, listener, (__u64 *)keep, SW_R_COUNT);
	return ret;
}
