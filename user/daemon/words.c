// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* vLLM refuses in other words when it is the backlog of prompt tokens that is full. A pool that is
 * held against that limit and others answers in the words of the one that made it busy. */
#include <string.h>

#include "common/clock.h"
#include "daemon/daemon.h"

#define BACKLOG (1U << SW_LIM_QUEUED_TOKENS)

static bool has_both(const struct sw_live_pool *pool)
{
	enum sw_api api = pool->conf->answer.api;

	return (api == SW_API_VLLM || api == SW_API_VLLM_TOKENS) && pool->limits.set & BACKLOG &&
	       pool->limits.set & ~BACKLOG;
}

/* The limit on requests is named first where both are passed. */
static enum sw_api words_of(const struct sw_live_worker *w)
{
	return w->load.worker_over == BACKLOG ? SW_API_VLLM_TOKENS : SW_API_VLLM;
}

static void put_answers(const struct sw_live_pool *pool, const struct sw_live_plane *plane)
{
	int e = sw_plane_put_answers(plane->plane, (unsigned)(pool - pool->live->pools),
				     &pool->conf->answer);
	char where[128];

	if (e)
		sw_log(SW_ERROR, "pool %s: its answers cannot be exchanged %s: %s",
		       pool->conf->name, sw_plane_where(plane->netns, where, sizeof(where)),
		       strerror(-e));
}

void sw_words_choose(struct sw_live_pool *pool)
{
	struct sw_live *live = pool->live;
	struct sw_answer_spec *answer = &live->conf->pools[pool - live->pools].answer;
	enum sw_api words;

	if (pool->state != SW_POOL_SATURATED || sw_live_forced(pool, sw_now_ms()) ||
	    !has_both(pool))
		return;
	words = words_of(sw_pool_decisive(pool));
	if (words == answer->api)
		return;
	answer->api = words;
	for (size_t i = 0; i < live->n_planes; i++)
		if (live->planes[i].plane)
			put_answers(pool, &live->planes[i]);
	sw_steering_answers(live);
}
