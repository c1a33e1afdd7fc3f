// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Dynamo's membership: what keys and values say, good and bad, and the table of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "sources/members.h"

#define ID	 "17216e63492ef21f"
#define INSTANCE "v1/instances/dynamo/backend/generate/" ID
#define MODEL	 "v1/mdc/dynamo/backend/generate/" ID
#define CHANNEL	 "v1/event_channels/namespace/dynamo/component/backend/topic/kv_metrics/"
#define AT(tcp)	 "{\"type\":\"Endpoint\",\"instance_id\":1,\"transport\":{\"tcp\":\"" tcp "\"}}"
#define CARD(name, config)                                                                         \
	"{\"type\":\"Model\",\"card_json\":{\"display_name\":\"" name                              \
	"\",\"runtime_config\":{" config "}}}"

/* ---- one key ---- */

static struct sw_registration *read_good(const char *key, const char *value)
{
	struct sw_registration *r = NULL;
	struct sw_error err = {""};

	if (sw_registration_read(key, value, strlen(value), &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static void an_instance_is_read(void **state)
{
	struct sw_registration *r = read_good(INSTANCE, AT("10.0.0.5:9000/7/generate"));

	(void)state;
	assert_int_equal(r->kind, SW_REG_INSTANCE);
	assert_string_equal(r->namespace, "dynamo");
	assert_string_equal(r->component, "backend");
	assert_string_equal(r->endpoint, "generate");
	assert_true(r->id == 0x17216e63492ef21fULL);
	assert_string_equal(r->address, "10.0.0.5:9000");
	sw_registration_free(r);
	r = read_good("v1/instances/d/b/g/ffffffffffffffff",
		      "{\"instance_id\":18446744073709551615,\"transport\":{\"nats_tcp\":\"x\"}}");
	assert_true(r->id == UINT64_MAX);
	assert_null(r->address);
	sw_registration_free(r);
	r = read_good(INSTANCE, AT("tcp://[fd00::1]:9000"));
	assert_string_equal(r->address, "[fd00::1]:9000");
	sw_registration_free(r);
}

static void a_model_is_read(void **state)
{
	struct sw_registration *r =
		read_good(MODEL, CARD("org/llama", "\"total_kv_blocks\":4096,\"max_num_seqs\":256,"
						   "\"max_num_batched_tokens\":8192,"
						   "\"data_parallel_start_rank\":2,"
						   "\"data_parallel_size\":4,\"other\":[1]"));

	(void)state;
	assert_int_equal(r->kind, SW_REG_MODEL);
	assert_string_equal(r->model, "org/llama");
	assert_int_equal(r->kv_blocks, 4096);
	assert_int_equal(r->max_batched, 8192);
	assert_int_equal(r->start_rank, 2);
	assert_int_equal(r->dp_size, 4);
	sw_registration_free(r);
}

static void what_cannot_be_true_is_not_told(void **state)
{
	struct sw_registration *r =
		read_good(MODEL, CARD("m", "\"total_kv_blocks\":-1,\"max_num_seqs\":null,"
					   "\"max_num_batched_tokens\":1e300,"
					   "\"data_parallel_start_rank\":\"2\","
					   "\"data_parallel_size\":65"));

	(void)state;
	assert_int_equal(r->kv_blocks, 0);
	assert_int_equal(r->max_batched, 0);
	assert_int_equal(r->start_rank, 0);
	assert_int_equal(r->dp_size, -1);
	sw_registration_free(r);
}

static void channels_are_read(void **state)
{
	struct sw_registration *r = read_good(
		CHANNEL "7",
		"{\"transport\":{\"kind\":\"Zmq\",\"config\":{\"endpoint\":\"tcp://h:5555\"}}}");

	(void)state;
	assert_int_equal(r->kind, SW_REG_CHANNEL);
	assert_int_equal(r->channel, SW_CHANNEL_ZMQ);
	assert_string_equal(r->channels[0], "tcp://h:5555");
	assert_int_equal(r->id, 7);
	sw_registration_free(r);
	r = read_good(CHANNEL "8",
		      "{\"transport\":{\"kind\":\"Nats\",\"config\":{\"subject_prefix\":"
		      "\"namespace.dynamo.component.backend\"}}}");
	assert_int_equal(r->channel, SW_CHANNEL_NATS);
	sw_registration_free(r);
	r = read_good(CHANNEL "9", "{\"transport\":{\"kind\":\"ZmqBroker\",\"config\":{"
				   "\"xsub_endpoints\":[\"tcp://a:1\"],"
				   "\"xpub_endpoints\":[\"tcp://a:2\",5,\"tcp://b:2\"]}}}");
	assert_int_equal(r->channel, SW_CHANNEL_ZMQ_BROKER);
	assert_int_equal(r->n_channels, 2);
	assert_string_equal(r->channels[1], "tcp://b:2");
	sw_registration_free(r);
}

static void other_keys_do_not_matter(void **state)
{
	static const char *const keys[] = {
		"v1/kv_routers/x",
		"",
		"v1/",
		"v2/instances/a/b/c/1",
		MODEL "/an-adapter",
		"v1/event_channels/namespace/d/topic/kv-events/7",
	};
	struct sw_registration *r = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_equal(sw_registration_read(keys[i], "not JSON", 8, &r, NULL), -ENOENT);
}

static void bad_ones_are_refused(void **state)
{
	static char huge[SW_VALUE_MAX + 2], deep[60000], key[SW_KEY_MAX + 200];
	const struct {
		const char *key, *value, *error;
	} table[] = {
		{"v1/instances/a/b/1", "{}", "not of the form"},
		{"v1/instances/a/b/c/1/2", "{}", "not of the form"},
		{"v1/instances/a/b/c/xyz", "{}", "not of the form"},
		{"v1/instances/a/b/c/11112222333344445", "{}", "not of the form"},
		{"v1/instances//b/c/1", "{}", "empty, too long or not printable"},
		{"v1/instances/a/b \n/c/1", "{}", "not printable"},
		{"v1/event_channels/namespace/d/kv_metrics/7", "{}", "names no topic"},
		{CHANNEL "g", "{}", "publisher's id"},
		{CHANNEL "7", "{}", "no kind or address"},
		{CHANNEL "7", "{\"transport\":{\"kind\":\"Zmq\",\"config\":{\"endpoint\":7}}}",
		 "no kind or address"},
		{INSTANCE, "", "no JSON object"},
		{INSTANCE, "[]", "another type"},
		{INSTANCE, "{\"transport\":", "no JSON object"},
		{INSTANCE, "{\"a\":1,\"a\":2}", "duplicate"},
		{INSTANCE, "{\"a\":\"\xff\"}", "unable to decode"},
		{INSTANCE, huge, "over 64 kB"},
		{INSTANCE, deep, "depth"},
		{MODEL, "{}", "display_name"},
		{MODEL, CARD("", ""), "display_name"},
		{MODEL, CARD("two words", ""), "display_name"},
		{key, "{}", "over 512 bytes"},
	};
	struct sw_registration *r = NULL;

	(void)state;
	memset(huge, ' ', SW_VALUE_MAX + 1);
	memset(deep, '[', sizeof(deep) - 1);
	memset(key, 'a', sizeof(key) - 1);
	memcpy(key, "v1/instances/", 13);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct sw_error err = {""};

		assert_int_equal(sw_registration_read(table[i].key, table[i].value,
						      strlen(table[i].value), &r, &err),
				 -EBADMSG);
		if (!strstr(err.text, table[i].error))
			fail_msg("%zu: '%s' without '%s'", i, err.text, table[i].error);
		assert_null(r);
	}
}

/* ---- the table ---- */

static struct event_base *base;
static struct sw_members *members;
static int changes;

static void on_change(void *arg)
{
	(void)arg;
	changes++;
}

static int setup(void **state)
{
	(void)state;
	sw_log_level(SW_ERROR);
	base = event_base_new();
	changes = 0;
	members = sw_members_new(base, on_change, NULL);
	return !members;
}

static int teardown(void **state)
{
	(void)state;
	sw_members_free(members);
	event_base_free(base);
	return 0;
}

static void put(const char *key, const char *value)
{
	sw_members_put(members, key, value, strlen(value));
}

/* Runs what is due. Returns how often a change was told. */
static int settle(void)
{
	int before = changes;

	event_base_dispatch(base); /* ends when no timer is left */
	return changes - before;
}

static size_t count(void)
{
	size_t n;

	free(sw_members_list(members, &n));
	return n;
}

static void a_member_is_an_instance_with_a_model(void **state)
{
	struct sw_member *list;
	size_t n;

	(void)state;
	put(INSTANCE, AT("10.0.0.5:9000"));
	put("v1/instances/dynamo/backend/clear_kv_blocks/" ID, AT("10.0.0.5:9000"));
	put("v1/mdc/dynamo/backend/generate/1", CARD("m", ""));
	assert_int_equal(count(), 0);
	put(MODEL, CARD("m", ""));
	list = sw_members_list(members, &n);
	assert_int_equal(n, 1);
	assert_string_equal(list[0].instance->address, "10.0.0.5:9000");
	assert_string_equal(list[0].model->model, "m");
	free(list);
	sw_members_delete(members, INSTANCE);
	assert_int_equal(count(), 0);
}

static void changes_are_told_together(void **state)
{
	char key[64];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "v1/instances/d/b/g/%x", i);
		put(key, AT("10.0.0.5:9000"));
		snprintf(key, sizeof(key), "v1/mdc/d/b/g/%x", i);
		put(key, CARD("m", ""));
	}
	assert_int_equal(settle(), 1);
	assert_int_equal(count(), 1000);
}

static void a_change_waits_for_a_second_at_most(void **state)
{
	const uint64_t start_ms = sw_now_ms();
	struct timeval step = {.tv_usec = 30000};
	int late = 0; /* on a busy machine */
	char value[128];

	(void)state;
	for (int i = 0; sw_now_ms() - start_ms < 1300; i++) { /* never quiet for 100 ms */
		uint64_t put_ms = sw_now_ms();

		snprintf(value, sizeof(value), AT("10.0.0.%d:9000"), i % 250);
		put(INSTANCE, value);
		event_base_loopexit(base, &step);
		event_base_dispatch(base);
		late += sw_now_ms() - put_ms > 90;
	}
	assert_in_range(changes, 1, 1 + late);
}

static void what_says_the_same_is_no_change(void **state)
{
	(void)state;
	put(INSTANCE, AT("10.0.0.5:9000"));
	put(CHANNEL "7",
	    "{\"transport\":{\"kind\":\"Zmq\",\"config\":{\"endpoint\":\"tcp://h:5555\"}}}");
	put("v1/other", "x");
	assert_int_equal(settle(), 1);
	put(INSTANCE, " " AT("10.0.0.5:9000"));
	sw_members_delete(members, MODEL);
	assert_int_equal(settle(), 0);
	put(CHANNEL "7",
	    "{\"transport\":{\"kind\":\"Zmq\",\"config\":{\"endpoint\":\"tcp://h:5556\"}}}");
	assert_int_equal(settle(), 1);
	put(INSTANCE, AT("10.0.0.6:9000"));
	assert_int_equal(settle(), 1);
	sw_members_delete(members, INSTANCE);
	assert_int_equal(settle(), 1);
}

static void a_malformed_value_changes_nothing(void **state)
{
	(void)state;
	put(INSTANCE, AT("10.0.0.5:9000"));
	put(MODEL, CARD("m", ""));
	assert_int_equal(settle(), 1);
	put(MODEL, "{");
	put("v1/instances/d/b/g/1", "{");
	assert_int_equal(settle(), 0);
	assert_int_equal(count(), 1);
	assert_int_equal(sw_members_counts(members)->bad, 2);
	assert_int_equal(sw_members_counts(members)->told, 4);
	assert_non_null(strstr(sw_members_counts(members)->error.text, "g/1: the value is no"));
}

static void all_can_be_replaced(void **state)
{
	(void)state;
	put(INSTANCE, AT("10.0.0.5:9000"));
	put(MODEL, CARD("m", ""));
	put("v1/instances/d/b/g/1", AT("10.0.0.6:9000"));
	settle();
	sw_members_begin(members);
	put(INSTANCE, AT("10.0.0.5:9000"));
	sw_members_begin(members); /* the first one came to nothing */
	put(MODEL, "{");	   /* it is there, whatever it says */
	put(INSTANCE, AT("10.0.0.5:9000"));
	assert_int_equal(settle(), 0);
	sw_members_end(members);
	assert_int_equal(settle(), 1);
	assert_int_equal(count(), 1);
	sw_members_begin(members);
	sw_members_end(members);
	assert_int_equal(count(), 0);
}

static void the_table_is_bounded(void **state)
{
	char key[64];

	(void)state;
	for (int i = 0; i < SW_MEMBERS_MAX + 5; i++) {
		snprintf(key, sizeof(key), "v1/instances/d/b/g/%x", i);
		put(key, AT("10.0.0.5:9000"));
	}
	assert_int_equal(sw_members_counts(members)->dropped, 5);
	sw_members_delete(members, "v1/instances/d/b/g/1");
	put("v1/instances/d/b/g/ffffff", AT("10.0.0.5:9000"));
	assert_int_equal(sw_members_counts(members)->dropped, 5);
	settle();
}

static void channels_are_listed(void **state)
{
	struct sw_channel *list;
	size_t n;

	(void)state;
	put(CHANNEL "7",
	    "{\"transport\":{\"kind\":\"Zmq\",\"config\":{\"endpoint\":\"tcp://h:5555\"}}}");
	put(CHANNEL "9", "{\"transport\":{\"kind\":\"ZmqBroker\",\"config\":{"
			 "\"xpub_endpoints\":[\"tcp://a:2\",\"tcp://b:2\"]}}}");
	put(INSTANCE, AT("10.0.0.5:9000"));
	list = sw_members_channels(members, &n);
	assert_int_equal(n, 3);
	assert_int_equal(list[0].kind, SW_CHANNEL_ZMQ);
	assert_string_equal(list[2].address, "tcp://b:2");
	free(list);
}

#define TABLE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_instance_is_read),
		cmocka_unit_test(a_model_is_read),
		cmocka_unit_test(what_cannot_be_true_is_not_told),
		cmocka_unit_test(channels_are_read),
		cmocka_unit_test(other_keys_do_not_matter),
		cmocka_unit_test(bad_ones_are_refused),
		TABLE_TEST(a_member_is_an_instance_with_a_model),
		TABLE_TEST(changes_are_told_together),
		TABLE_TEST(a_change_waits_for_a_second_at_most),
		TABLE_TEST(what_says_the_same_is_no_change),
		TABLE_TEST(a_malformed_value_changes_nothing),
		TABLE_TEST(all_can_be_replaced),
		TABLE_TEST(the_table_is_bounded),
		TABLE_TEST(channels_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
