// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which workers joined and left, as events, from one configuration to the next. The hub is the
 * test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control/hub.h"
#include "daemon/daemon.h"
#include "lib/conf.h"

#define LISTEN "listeners: [{listen: 8000, pool: a}]\n"

static struct sw_live live;
static bool followed = true;
static char told[512];

bool sw_hub_followed(const struct sw_hub *h)
{
	(void)h;
	return followed;
}

void sw_hub_send(struct sw_hub *h, const char *type, json_t *data)
{
	size_t n = strlen(told);
	const char *pool, *worker, *change;
	json_int_t time_ms;

	(void)h;
	assert_string_equal(type, "worker");
	assert_int_equal(json_unpack_ex(data, NULL, JSON_STRICT, "{s:I, s:s, s:s, s:s}", "time_ms",
					&time_ms, "pool", &pool, "worker", &worker, "change",
					&change),
			 0);
	assert_true(time_ms > 1600000000000);
	snprintf(told + n, sizeof(told) - n, "%s/%s %s;", pool, worker, change);
	json_decref(data);
}

static const char *told_from(const char *was, const char *is)
{
	struct sw_config *old = conf_good(was), *new = conf_good(is);

	told[0] = '\0';
	sw_tell_roster(&live, old, new);
	sw_config_free(old);
	sw_config_free(new);
	return told;
}

static const char one[] = LISTEN "pools:\n"
				 "  - {name: a, workers: [{name: x}, {name: y}]}\n";
static const char other[] = LISTEN "pools:\n"
				   "  - {name: b, workers: [{name: x}]}\n"
				   "  - {name: a, workers: [{name: z}, {name: y}]}\n";

static void test_join_and_leave(void **state)
{
	(void)state;
	assert_string_equal(told_from(one, one), "");
	assert_string_equal(told_from(one, other), "a/x left;b/x joined;a/z joined;");
	assert_string_equal(told_from(other, one), "b/x left;a/z left;a/x joined;");
}

static void test_nobody_follows(void **state)
{
	(void)state;
	followed = false;
	assert_string_equal(told_from(one, other), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join_and_leave),
		cmocka_unit_test(test_nobody_follows),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
