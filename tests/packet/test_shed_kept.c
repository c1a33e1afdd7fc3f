// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What becomes known of a request that is shed on a connection that goes on. Once for each, when
// the answer goes out, whatever its body took.

#include "lib/ends.h"
#include "lib/shed.h"

#include <stdio.h>
#include <string.h>

static const struct sw_path chat = {
	.set = KEPT_SET, .method = SW_METHOD_POST, .path = "/v1/chat/completions"};

static void begin(void)
{
	listener_flags(SW_LF_KEEP);
	pool_sheds(SW_CAUSE_NO_SLOTS);
	shed_begin(kept.skel, KEPT_ID);
	shed_kind(&chat, SW_API_EP_CHAT_COMPLETIONS);
}

static void expect_told(int family, unsigned n)
{
	const struct sw_shed_event *e;
	uint8_t want[16];

	assert_int_equal(shed_told(&e), n);
	ends_address(family, CLIENT, want);
	if (family == 6)
		memset(want + 8, 0, 8);
	else
		want[15] = 0;
	for (; n--; e++) {
		assert_int_equal(e->listener, KEPT_ID);
		assert_int_equal(e->reason, SW_R_shed_no_slots);
		assert_int_equal(e->cause, SW_CAUSE_NO_SLOTS);
		assert_int_equal(e->method, SW_METHOD_POST);
		assert_int_equal(e->endpoint, SW_API_EP_CHAT_COMPLETIONS);
		assert_int_equal(e->kept, 1);
		assert_memory_equal(e->source, want, sizeof(want));
	}
}

/* What one has asked is no part of what the next one asks. */
static void of_two_kinds(int family)
{
	static const struct sw_path messages = {
		.set = KEPT_SET, .method = SW_METHOD_POST, .path = "/v1/messages"};
	struct ends e;

	begin();
	shed_kind(&messages, SW_API_EP_COMPLETIONS);
	e = ends_open(family);
	tell(e.client, "POST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
	hear(e.client, kept_answer(SW_CAUSE_NO_SLOTS, SW_FAMILY_ANTHROPIC));
	tell(e.client, "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
	hear(e.client, kept_answer(SW_CAUSE_NO_SLOTS, SW_FAMILY_DEFAULT));
	assert_int_equal(shed_counted().endpoints[SW_API_EP_COMPLETIONS], 1);
	assert_int_equal(shed_counted().endpoints[SW_API_EP_CHAT_COMPLETIONS], 1);
	shed_kind(&messages, SW_API_EP_OTHER);
}
FAMILY_TEST(of_two_kinds)

static void one_by_one(int family)
{
	struct ends e;

	begin();
	e = ends_open(family);
	for (int i = 0; i < 3; i++) {
		tell(e.client, "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
		hear(e.client, kept_answer(SW_CAUSE_NO_SLOTS, SW_FAMILY_DEFAULT));
	}
	assert_int_equal(shed_counted().endpoints[SW_API_EP_CHAT_COMPLETIONS], 3);
	expect_told(family, 3);
}
FAMILY_TEST(one_by_one)

/* Between head and end of a body other requests of the CPU may be read. */
static void a_body_in_parts(int family)
{
	struct ends e, other;

	begin();
	e = ends_open(family);
	other = ends_open(family);
	tell(e.client, "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 6\r\n\r\nab");
	hear_nothing(e.client);
	tell(other.client, "POST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
	hear(other.client, kept_answer(SW_CAUSE_NO_SLOTS, SW_FAMILY_ANTHROPIC));
	assert_int_equal(shed_counted().endpoints[SW_API_EP_OTHER], 1);
	assert_int_equal(shed_counted().endpoints[SW_API_EP_CHAT_COMPLETIONS], 0);
	shed_begin(kept.skel, KEPT_ID);
	tell(e.client, "cdef");
	hear(e.client, kept_answer(SW_CAUSE_NO_SLOTS, SW_FAMILY_DEFAULT));
	assert_int_equal(shed_counted().endpoints[SW_API_EP_CHAT_COMPLETIONS], 1);
	expect_told(family, 1);
}
FAMILY_TEST(a_body_in_parts)

static void what_is_served(int family)
{
	const struct sw_shed_event *list;
	struct ends e;

	begin();
	pool_armed();
	e = ends_open(family);
	is_served(&e, a_post(100));
	pool_sheds(SW_CAUSE_NO_SLOTS);
	listener_flags(SW_LF_KEEP | SW_LF_OBSERVE);
	is_served(&e, "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
	assert_true(counted_kept(SW_R_would_shed) > 0);
	assert_int_equal(shed_told(&list), 0);
	assert_int_equal(shed_counted().endpoints[SW_API_EP_CHAT_COMPLETIONS], 0);
}
FAMILY_TEST(what_is_served)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_one_by_one),
		kept_test(test_of_two_kinds),
		kept_test(test_a_body_in_parts),
		kept_test(test_what_is_served),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
