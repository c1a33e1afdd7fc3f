// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* JSON from outside: bodies of the control API and values of Dynamo's membership. The first byte
 * chooses which. What is wrong has a status and a reason, and changes nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/operate.h"
#include "control/push.h"
#include "control/thresholds.h"
#include "sources/registration.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sw_worker_conf worker_conf = {
	.name = (char *)"w", .has_worker_id = true, .worker_id = 42, .dp_size = -1};
static struct sw_pool_conf pool_conf = {.name = (char *)"p", .model = (char *)"m"};
static struct sw_config conf = {.pools = &pool_conf, .n_pools = 1};
static struct sw_live_worker worker = {.conf = &worker_conf};
static struct sw_live_worker *workers[] = {&worker};
static struct sw_live_pool pool = {.conf = &pool_conf, .workers = workers, .n_workers = 1};
static struct sw_live live = {.conf = &conf, .pools = &pool, .n_pools = 1};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	sw_log_level(SW_ERROR);
	pool.live = &live;
	worker.pool = &pool;
	sw_worker_init(&worker.load, 0, -1);
	return 0;
}

static void check_status(int status, const struct sw_error *err)
{
	if (status && ((status != 400 && status != 404 && status != 422) || !err->text[0]))
		abort();
}

static void ask(unsigned what, const json_t *body)
{
	struct sw_live_pool *first = NULL;
	struct sw_push *loads = NULL;
	struct sw_limits limits = {0};
	struct sw_error err = {""};
	size_t n = 0;
	int status;

	switch (what) {
	case 0: check_status(sw_operate_force(&live, body, 1, &first, &n, &err), &err); break;
	case 1: check_status(sw_operate_drain(&live, body, 1, &first, &n, &err), &err); break;
	case 2:
		status = sw_thresholds_take(body, &limits, &err);
		check_status(status, &err);
		for (int l = 0; !status && l < SW_LIMITS; l++)
			if (limits.set & 1U << l && l == SW_LIM_DECODE &&
			    !sw_limit_valid(SW_LIM_DECODE, limits.decode))
				abort();
		break;
	default:
		status = sw_push_read(&live, body, &loads, &n, &err);
		check_status(status, &err);
		for (size_t i = 0; !status && i < n; i++)
			if (loads[i].worker != &worker || loads[i].n < 1 ||
			    loads[i].n > SW_MAX_RANKS)
				abort();
		sw_push_free(loads, n);
	}
}

static void register_value(unsigned which, const char *text, size_t length)
{
	static const char *const keys[] = {
		"v1/instances/n/c/e/2a",
		"v1/mdc/n/c/e/2a",
		"v1/event_channels/namespace/n/component/c/endpoint/e/topic/kv_metrics/7",
	};
	struct sw_registration *r = NULL;
	struct sw_error err = {""};
	int ret = sw_registration_read(keys[which], text, length, &r, &err);

	if (ret > 0 || (ret == -EBADMSG && !err.text[0]) || (!ret && !r))
		abort();
	if (!ret)
		sw_registration_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *body;
	char *text;

	if (!size)
		return 0;
	text = malloc(size); /* exactly as long as it is, so that reading behind it is seen */
	memcpy(text, data + 1, size - 1);
	if (data[0] % 7 >= 4) {
		register_value(data[0] % 7 - 4, text, size - 1);
	} else {
		body = json_loadb(text, size - 1, JSON_REJECT_DUPLICATES, NULL);
		if (body)
			ask(data[0] % 7, body);
		json_decref(body);
	}
	free(text);
	return 0;
}
