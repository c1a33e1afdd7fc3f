// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Requests that are shed and served in turn on a wire that loses segments by chance, both ways:
// super-segments as the stack hands them to the device, whose checksums are partial. Every answer
// is the right one.

#include "lib/ends.h"

#include <poll.h>
#include <string.h>

enum { BODY_MAX = 150000 };

/* Timers of 200 ms would make this a test of patience. */
static void be_impatient(int family)
{
	for (enum side side = CLIENT; side < SIDES; side++)
		kept_run(side, "ip -%d route change %s dev spkeep%d proto kernel %s rto_min 20ms",
			 family, family == 4 ? "192.0.2.0/24" : "2001:db8::/64", side,
			 family == 4 ? "scope link" : "metric 256");
}

/* Where does the request end up? The client does not know. */
static bool serves(struct ends *e, const char *request)
{
	struct pollfd p[] = {{.fd = e->server, .events = POLLIN},
			     {.fd = e->client, .events = POLLIN}};

	tell(e->client, request);
	assert_true(poll(p, 2, 15000) > 0);
	if (!p[0].revents) {
		hear(e->client, busy());
		return false;
	}
	hear(e->server, request);
	tell(e->server, OK_RESPONSE);
	hear(e->client, OK_RESPONSE);
	return true;
}

static void lossy(int family, unsigned permille, unsigned turns)
{
	struct ends e = shed_once(family);
	unsigned shed = 0, random = 1;

	lose_some(LOSS_OUT, permille);
	lose_some(LOSS_IN, permille);
	for (unsigned i = 0; i < turns; i++) {
		bool sheds = i % 3;

		random = random * 1103515245 + 12345;
		if (sheds)
			pool_sheds(SW_CAUSE_SATURATED);
		else
			pool_finishes();
		if (serves(&e, i % 2 ? GET_CHAT : a_post(random % BODY_MAX)))
			continue;
		assert_true(sheds);
		shed++;
	}
	assert_true(lose_some(LOSS_OUT, 0) + lose_some(LOSS_IN, 0) > 0);
	assert_true(shed > turns / 3);
	goes_on(&e);
}

static void one_percent(int family)
{
	be_impatient(family);
	lossy(family, 10, 600);
}
FAMILY_TEST(one_percent)

static void five_percent(int family)
{
	be_impatient(family);
	lossy(family, 50, 250);
}
FAMILY_TEST(five_percent)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_one_percent),
		kept_test(test_five_percent),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
