// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the daemon says of requests that are shed: lines in the log when a spell of them begins,
// goes on and ends, and events for those that its own responders have answered. Kernel and hub are
// the test's.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/hub.h"
#include "control/totals.h"
#include "daemon/shed.h"

static struct sw_pool_conf pool_conf = {.name = (char *)"qwen", .answer = {.status = 529}};
static struct sw_listener_conf listener = {.port = 8000};
static struct sw_config conf = {
	.pools = &pool_conf, .n_pools = 1, .listeners = &listener, .n_listeners = 1};
static struct sw_live_gate gate;
static struct sw_live_plane plane = {.gates = &gate};
static struct sw_live live;
static struct sw_live_pool pool;
static struct sw_totals totals;
static unsigned reads;
static bool followed;
static char last_type[32];
static json_t *last;
static unsigned n_sent;

/* ---- kernel and hub ------------------------------------------------------------------------ */

void sw_totals_read(const struct sw_live *l, size_t index, struct sw_totals *out)
{
	assert_ptr_equal(l, &live);
	assert_int_equal(index, 0);
	reads++;
	*out = totals;
}

bool sw_hub_followed(const struct sw_hub *h)
{
	(void)h;
	return followed;
}

void sw_hub_send(struct sw_hub *h, const char *type, json_t *data)
{
	(void)h;
	assert_non_null(data);
	json_decref(last);
	last = data;
	snprintf(last_type, sizeof(last_type), "%s", type);
	n_sent++;
}

/* ---- the log ------------------------------------------------------------------------------- */

static FILE *log_file;
static int true_stderr;

static void log_begin(void)
{
	fflush(stderr);
	true_stderr = dup(STDERR_FILENO);
	log_file = tmpfile();
	dup2(fileno(log_file), STDERR_FILENO);
}

/* What was logged since then, behind time and level. */
static const char *log_end(void)
{
	static char text[2048];
	size_t n;
	char *line;

	fflush(stderr);
	dup2(true_stderr, STDERR_FILENO);
	close(true_stderr);
	rewind(log_file);
	n = fread(text, 1, sizeof(text) - 1, log_file);
	fclose(log_file);
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	line = strstr(text, "info: ");
	return line ? line + 6 : text;
}

static const char *look(uint64_t now_ms)
{
	log_begin();
	sw_spells_look(live.shed, now_ms);
	return log_end();
}

/* ---- spells -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	struct sw_error err;

	(void)state;
	unsetenv("JOURNAL_STREAM");
	gate.gate.mode = SW_MODE_SHED;
	plane.plane = (struct sw_plane *)&plane;
	pool = (struct sw_live_pool){.conf = &pool_conf, .live = &live, .row = -1};
	live = (struct sw_live){
		.conf = &conf, .pools = &pool, .n_pools = 1, .planes = &plane, .n_planes = 1};
	memset(&totals, 0, sizeof(totals));
	followed = false;
	reads = n_sent = 0;
	assert_int_equal(sw_shed_new(&live, &err), 0);
	assert_string_equal(look(0), "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (live.shed)
		sw_shed_free(&live);
	json_decref(last);
	last = NULL;
	return 0;
}

static void a_spell(void **state)
{
	(void)state;
	totals.packets.xdp.shed_saturated = 2;
	totals.packets.keep.shed_no_slots = 1;
	assert_string_equal(look(1000),
			    "pool qwen: shedding has begun: 3 requests (saturated 2, no-slots 1)");
	for (uint64_t s = 2; s <= 60; s++) {
		totals.packets.tc.shed_draining += 10;
		assert_string_equal(look(s * 1000), "");
	}
	totals.packets.tc.shed_no_handover++;
	assert_string_equal(look(61000), "pool qwen: shedding goes on: 591 requests (draining 590, "
					 "no-handover 1) in the last 60 s; 594 in 60 s in all");
	for (uint64_t s = 62; s < 66; s++)
		assert_string_equal(look(s * 1000), "");
	assert_string_equal(look(66000),
			    "pool qwen: shedding has ended: 594 requests (saturated 2, "
			    "no-slots 1, draining 590, no-handover 1) in 60 s");
	assert_string_equal(look(67000), "");
	totals.packets.tc.shed_unavailable++;
	assert_string_equal(look(68000),
			    "pool qwen: shedding has begun: 1 request (unavailable 1)");
}

static void a_short_pause_ends_nothing(void **state)
{
	(void)state;
	totals.packets.xdp.shed_saturated = 1;
	look(1000);
	assert_string_equal(look(5000), "");
	totals.packets.xdp.shed_saturated = 2;
	assert_string_equal(look(5900), "");
	assert_string_equal(look(10000), "");
	assert_string_equal(look(10900),
			    "pool qwen: shedding has ended: 2 requests (saturated 2) in 5 s");
}

/* After a reload other listeners may be counted for the pool. */
static void a_new_configuration(void **state)
{
	(void)state;
	totals.packets.xdp.shed_saturated = 1;
	look(1000);
	totals.packets.xdp.shed_saturated = 1000;
	sw_shed_renew(&live);
	assert_string_equal(look(2000), "");
	totals.packets.xdp.shed_saturated = 1001;
	look(3000);
	assert_string_equal(look(8000),
			    "pool qwen: shedding has ended: 2 requests (saturated 2) in 2 s");
}

static void the_end_of_the_daemon(void **state)
{
	(void)state;
	totals.packets.xdp.shed_saturated = 7;
	look(1000);
	log_begin();
	sw_shed_free(&live);
	assert_string_equal(log_end(),
			    "pool qwen: shedding has ended: 7 requests (saturated 7) in 0 s");
	assert_null(live.shed);
}

static void an_open_pool_costs_nothing(void **state)
{
	(void)state;
	gate.gate.mode = SW_MODE_OPEN;
	reads = 0;
	look(1000);
	assert_int_equal(reads, 0);
	gate.gate.mode = SW_MODE_FINISH;
	look(2000);
	assert_int_equal(reads, 1);
}

static void what_is_left_out(void **state)
{
	(void)state;
	totals.packets.shed.untold = 100;
	look(1000);
	assert_int_equal(n_sent, 0);
	followed = true;
	look(2000);
	assert_int_equal(n_sent, 0);
	totals.packets.shed.untold = 130;
	look(3000);
	assert_int_equal(n_sent, 1);
	assert_string_equal(last_type, "dropped");
	assert_int_equal(json_integer_value(json_object_get(last, "count")), 30);
	assert_string_equal(json_string_value(json_object_get(last, "pool")), "qwen");
}

/* ---- where they come from ------------------------------------------------------------------ */

static void prefix_of(const char *text, uint8_t out[16])
{
	assert_int_equal(inet_pton(AF_INET6, text, out), 1);
}

static void sources_are_prefixes(void **state)
{
	uint8_t prefix[16];
	char text[64];

	(void)state;
	prefix_of("::ffff:192.0.2.0", prefix);
	sw_source_text(prefix, text, sizeof(text));
	assert_string_equal(text, "192.0.2.0/24");
	prefix_of("2001:db8:1:2::", prefix);
	sw_source_text(prefix, text, sizeof(text));
	assert_string_equal(text, "2001:db8:1:2::/64");
}

/* Whoever asks a quarter of all is named, however many others there are. */
static void the_heaviest_source_is_named(void **state)
{
	struct sw_spell *spell = sw_spell_of(live.shed, "qwen");
	uint8_t heavy[16], other[16];

	(void)state;
	prefix_of("::ffff:10.1.2.0", heavy);
	prefix_of("2001:db8::", other);
	for (unsigned i = 0; i < 4000; i++) {
		other[6] = (uint8_t)(i >> 8);
		other[7] = (uint8_t)i;
		sw_sources_add(&spell->sources, i < 20 || i % 4 ? other : heavy);
	}
	totals.packets.xdp.shed_saturated = 4000;
	assert_string_equal(look(1000), "pool qwen: shedding has begun: 4000 requests (saturated "
					"4000), most from 10.1.2.0/24");
}

/* ---- our own responders -------------------------------------------------------------------- */

static const char *text_of(const char *key)
{
	return json_string_value(json_object_get(last, key));
}

static int connection(int *client)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	socklen_t size = sizeof(at);
	int server = socket(AF_INET, SOCK_STREAM, 0), fd;

	assert_int_equal(bind(server, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&at, &size), 0);
	*client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(*client, (struct sockaddr *)&at, size), 0);
	fd = accept(server, NULL, NULL);
	close(server);
	return fd;
}

static void what_responders_answer(void **state)
{
	int client, fd = connection(&client);

	(void)state;
	followed = true;
	sw_shed_answered(&pool, fd, SW_METHOD_POST, SW_API_EP_EMBEDDINGS, SW_CAUSE_NO_SLOTS);
	assert_int_equal(pool.answered[SW_API_EP_EMBEDDINGS], 1);
	assert_int_equal(n_sent, 1);
	assert_string_equal(last_type, "shed");
	assert_string_equal(text_of("pool"), "qwen");
	assert_string_equal(text_of("reason"), "no-slots");
	assert_int_equal(json_integer_value(json_object_get(last, "status")), 529);
	assert_string_equal(text_of("method"), "POST");
	assert_string_equal(text_of("endpoint"), "embeddings");
	assert_string_equal(text_of("source"), "127.0.0.0/24");
	assert_memory_equal(text_of("listener"), "127.0.0.1:", 10);
	assert_true(json_is_false(json_object_get(last, "kept")));
	close(client);
	close(fd);
}

static void responders_keep_to_the_rate(void **state)
{
	int client, fd = connection(&client);
	unsigned told;

	(void)state;
	followed = true;
	for (unsigned i = 0; i < 200; i++)
		sw_shed_answered(&pool, fd, SW_METHOD_GET, SW_API_EP_OTHER, SW_CAUSE_SATURATED);
	told = n_sent;
	assert_true(told >= SW_SHED_BURST && told < SW_SHED_BURST + 30);
	assert_int_equal(pool.answered[SW_API_EP_OTHER], 200);
	look(1000);
	assert_string_equal(last_type, "dropped");
	assert_int_equal(json_integer_value(json_object_get(last, "count")), 200 - told);
	close(client);
	close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_spell),
		TEST(a_short_pause_ends_nothing),
		TEST(a_new_configuration),
		TEST(the_end_of_the_daemon),
		TEST(an_open_pool_costs_nothing),
		TEST(what_is_left_out),
		TEST(sources_are_prefixes),
		TEST(the_heaviest_source_is_named),
		TEST(what_responders_answer),
		TEST(responders_keep_to_the_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
