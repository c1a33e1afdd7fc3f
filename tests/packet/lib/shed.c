// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters and events of what was shed; see shed.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "shed.h"
#include "spillway.skel.h"

static const struct spillway *of;
static uint32_t id;
static struct sw_shed_counts before;
static struct ring_buffer *ring;
static struct sw_shed_event events[SHED_EVENTS_MAX];
static unsigned n_events;

static struct sw_shed_counts read_counts(void)
{
	int n_cpus = libbpf_num_possible_cpus();
	struct sw_shed_counts each[n_cpus], sum = {0};

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(of->maps.counts_shed), &id, each), 0);
	for (int cpu = 0; cpu < n_cpus; cpu++) {
		for (unsigned e = 0; e < SW_API_ENDPOINTS; e++)
			sum.endpoints[e] += each[cpu].endpoints[e];
		sum.untold += each[cpu].untold;
	}
	return sum;
}

static int take(void *arg, void *data, size_t size)
{
	(void)arg;
	assert_int_equal(size, sizeof(*events));
	assert_true(n_events < SHED_EVENTS_MAX);
	memcpy(&events[n_events++], data, size);
	return 0;
}

void shed_rate_unused(void)
{
	uint32_t zero = 0;
	uint64_t unused = 0;

	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(of->maps.shed_sample), &zero, &unused, BPF_ANY), 0);
}

void shed_begin(const struct spillway *skel, unsigned listener)
{
	const struct sw_shed_event *list;

	of = skel;
	id = listener;
	if (!ring)
		ring = ring_buffer__new(bpf_map__fd(of->maps.shed_events), take, NULL, NULL);
	assert_non_null(ring);
	shed_told(&list);
	before = read_counts();
	shed_rate_unused();
}

struct sw_shed_counts shed_counted(void)
{
	struct sw_shed_counts now = read_counts();

	for (unsigned e = 0; e < SW_API_ENDPOINTS; e++)
		now.endpoints[e] -= before.endpoints[e];
	now.untold -= before.untold;
	return now;
}

unsigned shed_told(const struct sw_shed_event **list)
{
	n_events = 0;
	ring_buffer__consume(ring);
	*list = events;
	return n_events;
}

void shed_end(void)
{
	ring_buffer__free(ring);
	ring = NULL;
}

void shed_kind(const struct sw_path *key, enum sw_api_endpoint endpoint)
{
	int map = bpf_map__fd(of->maps.paths);
	struct sw_path_value value;

	assert_int_equal(bpf_map_lookup_elem(map, key, &value), 0);
	value.endpoint = endpoint;
	assert_int_equal(bpf_map_update_elem(map, key, &value, BPF_ANY), 0);
}
