// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A daemon that steers and a kernel of arrays; see live.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "live.h"

/* ---- the kernel --------------------------------------------------------------------------- */

struct kernel kernel;
static const struct sw_slot_maps maps = {.members = 1, .steers = 2};

const struct sw_slot_maps *sw_steer_maps(const struct sw_steer *s)
{
	(void)s;
	return &maps;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	unsigned pool = *(const unsigned *)key;

	if (fd == maps.members)
		memcpy(value, &kernel.members[pool], sizeof(struct sw_bits));
	else
		memcpy(value, &kernel.steers[pool], sizeof(struct sw_steer_pool));
	return 0;
}

int sw_steer_set_pool(struct sw_steer *s, unsigned pool, const struct sw_steer_pool *v)
{
	(void)s;
	kernel.steers[pool] = *v;
	return 0;
}

int sw_steer_set_worker(struct sw_steer *s, unsigned id, const struct sw_worker_row *v)
{
	(void)s;
	kernel.writes += memcmp(&kernel.workers[id], v, sizeof(*v)) != 0;
	kernel.workers[id] = *v;
	return 0;
}

int sw_steer_get_worker(const struct sw_steer *s, unsigned id, struct sw_worker_row *out)
{
	(void)s;
	*out = kernel.workers[id];
	return 0;
}

void sw_steer_set_members(struct sw_steer *s, unsigned pool, const struct sw_bits *v)
{
	(void)s;
	kernel.members[pool] = *v;
}

void sw_steer_set_nonbusy(struct sw_steer *s, const struct sw_bits *v)
{
	(void)s;
	kernel.nonbusy = *v;
}

void sw_steer_set_reach4(struct sw_steer *s, const struct sw_bits *v)
{
	(void)s;
	kernel.reach4 = *v;
}

void sw_steer_slot(const struct sw_steer *s, unsigned id, struct sw_slot *out)
{
	(void)s;
	*out = kernel.slots[id];
}

int sw_steer_renew(struct sw_steer *s, unsigned id)
{
	(void)s;
	return kernel.slots[id].inuse ? -EBUSY : 0;
}

bool has(const struct sw_bits *b, int id)
{
	return b->word[id / 64] >> (id % 64) & 1;
}

/* ---- a daemon: two steered pools and a guarded one ----------------------------------------- */

struct sw_worker_conf worker_confs[POOLS][WORKERS];
struct sw_pool_conf pool_confs[POOLS];
struct sw_config conf = {
	.pools = pool_confs, .n_pools = POOLS, .deadline_ms = 2000, .heartbeat_ms = 200};
struct sw_live_worker workers[POOLS][WORKERS];
static struct sw_live_worker *lists[POOLS][WORKERS];
struct sw_live_pool pools[POOLS];
struct sw_live live;
struct sw_steering steering;

static void make_worker(unsigned pool, unsigned i)
{
	static char names[POOLS][WORKERS][8];
	struct sw_worker_conf *c = &worker_confs[pool][i];

	snprintf(names[pool][i], sizeof(names[pool][i]), "w%u%u", pool, i);
	*c = (struct sw_worker_conf){
		.name = names[pool][i], .share = 1, .engine_limit = 4, .queue_limit = 2};
	c->at = (struct sw_endpoint){.addr = {[10] = 0xff, [11] = 0xff, 10, 0, pool, i},
				     .port = 9000};
	workers[pool][i] = (struct sw_live_worker){.conf = c, .pool = &pools[pool], .id = -1};
	lists[pool][i] = &workers[pool][i];
}

int live_setup(void **state)
{
	static const enum sw_steer_by by[POOLS] = {SW_STEER_CONNECT, SW_STEER_LOCAL, SW_STEER_NONE};
	static char names[POOLS][8] = {"qwen", "glm", "plain"};

	(void)state;
	sw_log_level(SW_ERROR);
	memset(&kernel, 0, sizeof(kernel));
	memset(&steering, 0, sizeof(steering));
	free(live.leaving);
	live = (struct sw_live){.conf = &conf,
				.pools = pools,
				.n_pools = POOLS,
				.steer = (struct sw_steer *)&kernel,
				.steering = &steering};
	conf.n_pools = POOLS;
	steering.live = &live;
	for (unsigned p = 0; p < POOLS; p++) {
		for (unsigned i = 0; i < WORKERS; i++)
			make_worker(p, i);
		pool_confs[p] = (struct sw_pool_conf){.name = names[p],
						      .workers = worker_confs[p],
						      .n_workers = WORKERS,
						      .steer.by = by[p],
						      .steer.count = SW_COUNT_CONNECTIONS};
		pools[p] = (struct sw_live_pool){.conf = &pool_confs[p],
						 .limits = pool_confs[p].limits,
						 .live = &live,
						 .workers = lists[p],
						 .n_workers = WORKERS,
						 .row = -1};
	}
	return 0;
}

void apply(void)
{
	struct sw_slots_plan plan;
	struct sw_error err = {0};

	if (sw_slots_plan(&steering, pools, conf.n_pools, &plan, &err))
		fail_msg("%s", err.text);
	sw_steer_narrow(&steering, pools, conf.n_pools, &plan, false);
	for (unsigned p = 0; p < POOLS; p++)
		pools[p].n_workers = pool_confs[p].n_workers;
	live.n_pools = conf.n_pools;
	sw_slots_commit(&steering, &plan);
	sw_slots_write(&steering);
	steering.settled = true;
	sw_steer_write(&steering);
	sw_steer_clear(&steering);
}

void beat(uint64_t later_ms)
{
	sw_slots_write(&steering);
	sw_slots_beat(&steering, sw_now_ms() + later_ms);
	sw_steer_write(&steering);
}
