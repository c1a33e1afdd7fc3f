// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* In which of vLLM's two wordings a saturated pool answers, and who is told. Planes and responders
 * are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "daemon/daemon.h"

#define REQUESTS (1U << SW_LIM_QUEUED_REQS)
#define BACKLOG	 (1U << SW_LIM_QUEUED_TOKENS)

static struct sw_pool_conf pools_conf[2];
static struct sw_config conf = {.pools = pools_conf, .n_pools = 2};
static struct sw_live_plane planes[2];
static struct sw_live_pool pools[2];
static struct sw_live live = {
	.conf = &conf, .pools = pools, .n_pools = 2, .planes = planes, .n_planes = 2};
static struct sw_live_worker workers[2], *list[] = {&workers[0], &workers[1]};
static unsigned put, renewed;

int sw_plane_put_answers(struct sw_plane *p, unsigned pool, const struct sw_answer_spec *spec)
{
	assert_ptr_equal(p, planes[1].plane);
	assert_int_equal(pool, 1);
	assert_ptr_equal(spec, &pools_conf[1].answer);
	put++;
	return 0;
}

void sw_steering_answers(struct sw_live *l)
{
	assert_ptr_equal(l, &live);
	renewed++;
}

/* A saturated pool with both limits, whose second worker became busy last. */
static int setup(void **state)
{
	(void)state;
	memset(workers, 0, sizeof(workers));
	memset(pools, 0, sizeof(pools));
	put = renewed = 0;
	planes[1].plane = (struct sw_plane *)&planes; /* the first one's namespace is not there */
	pools_conf[1].answer.api = SW_API_VLLM;
	pools[1] = (struct sw_live_pool){.conf = &pools_conf[1],
					 .live = &live,
					 .limits.set = REQUESTS | BACKLOG,
					 .workers = list,
					 .n_workers = 2,
					 .state = SW_POOL_SATURATED};
	workers[0].load.busy = workers[1].load.busy = true;
	workers[0].busy_since_ms = 1;
	workers[1].busy_since_ms = 2;
	return 0;
}

static void says(enum sw_api words, unsigned times)
{
	sw_words_choose(&pools[1]);
	assert_int_equal(pools_conf[1].answer.api, words);
	assert_int_equal(put, times);
	assert_int_equal(renewed, times);
}

static void the_last_busy_workers_words(void **state)
{
	(void)state;
	workers[0].load.worker_over = BACKLOG;
	workers[1].load.worker_over = REQUESTS;
	says(SW_API_VLLM, 0);
	workers[1].load.worker_over = BACKLOG;
	says(SW_API_VLLM_TOKENS, 1);
	says(SW_API_VLLM_TOKENS, 1);
	workers[1].load.worker_over = BACKLOG | REQUESTS;
	says(SW_API_VLLM, 2);
	workers[0].busy_since_ms = 3;
	says(SW_API_VLLM_TOKENS, 3);
	workers[0].load.worker_over = 0; /* its ranks' limits */
	says(SW_API_VLLM, 4);
}

static void otherwise_they_stay(void **state)
{
	(void)state;
	workers[1].load.worker_over = BACKLOG;
	pools[1].state = SW_POOL_OPEN;
	says(SW_API_VLLM, 0);
	pools[1].state = SW_POOL_SATURATED;
	pools[1].force = SW_FORCE_SATURATED;
	pools[1].force_until_ms = sw_now_ms() + 60000;
	says(SW_API_VLLM, 0);
	pools[1].force = SW_FORCE_AUTO;
	pools_conf[1].answer.api = SW_API_OPENAI;
	says(SW_API_OPENAI, 0);
	pools_conf[1].answer.api = SW_API_VLLM_TOKENS;
	pools[1].limits.set = BACKLOG; /* it has no others */
	workers[1].load.worker_over = 0;
	says(SW_API_VLLM_TOKENS, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_last_busy_workers_words, setup),
		cmocka_unit_test_setup(otherwise_they_stay, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
