// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Publishers that send as fast as they can: the loop stays free for others, memory does not grow,
 * and those who send little are heard meanwhile. */
#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "lib/publishing.h"

#define FLOOD_MS  1500
#define MESSAGES  1000000 /* in a flood, at least */
#define LARGE	  (1ULL << 40)
#define WORKERS	  8
#define LATEST_MS 400 /* a beat may be late by, on a busy machine; the loop's deadline is 2 s */
#define GROWTH_KB (24 * 1024)
#define TICK_MS	  10

static atomic_bool stop;
static atomic_ulong sent;

struct flood {
	pthread_t thread;
	void *publisher;
	uint64_t id, workers;
};

/* Where the number behind a key is: those above 32 bits all take 8 bytes. */
static uint8_t *number_of(uint8_t *envelope, size_t length, const char *key)
{
	uint8_t *at = memmem(envelope, length, key, strlen(key));

	assert_non_null(at);
	assert_int_equal(at[strlen(key)], 0xcf);
	return at + strlen(key) + 1;
}

/* To pack each anew would take longer than to send it. */
static void *run(void *arg)
{
	struct flood *f = arg;
	uint8_t last[5 + 512] = {1};
	size_t length = envelope_of(
		(struct event_of){.publisher = f->id, .sequence = LARGE, .worker = LARGE},
		last + 5);
	uint8_t *sequence = number_of(last + 5, length, "sequence");
	uint8_t *worker = number_of(last + 5, length, "worker_id");
	uint64_t id = htobe64(f->id), number;
	const struct frame frames[] = {
		{"kv_metrics", 10}, {&id, 8}, {&number, 8}, {last, 5 + length}};
	uint32_t size = htobe32((uint32_t)length);

	memcpy(last + 1, &size, 4);
	for (uint64_t i = 1; !stop; i++, sent++) {
		uint64_t of = htobe64(LARGE + i % f->workers);

		number = htobe64(LARGE + i);
		memcpy(sequence, &number, 8);
		memcpy(worker, &of, 8);
		publish_frames(f->publisher, frames, 4);
	}
	return NULL;
}

static void start(struct flood *f, void *publisher, uint64_t id, uint64_t workers)
{
	stop = false;
	*f = (struct flood){.publisher = publisher, .id = id, .workers = workers};
	assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
}

/* ---- the beat of somebody else on the loop ---- */

static struct {
	uint64_t last_ms, latest_ms;
	unsigned n;
} beat;

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
	uint64_t now_ms = sw_now_ms();

	(void)fd;
	(void)what;
	(void)arg;
	if (beat.n++ && now_ms - beat.last_ms > beat.latest_ms)
		beat.latest_ms = now_ms - beat.last_ms;
	beat.last_ms = now_ms;
}

/* A sanitizer keeps back what was freed, here as little as it can: memory is measured. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=0:thread_local_quarantine_size_kb=0";
}

static void a_flood_costs_neither_time_nor_memory(void **state)
{
	const struct timeval tick = {.tv_usec = TICK_MS * 1000};
	struct event *timer = event_new(plane_base, -1, EV_PERSIST, on_beat, NULL);
	char address[2][64];
	void *loud = publisher_new(0, address[0]), *quiet = publisher_new(0, address[1]);
	struct sw_events_status status;
	uint64_t quiet_before, meanwhile, begin_ms = sw_now_ms(), took_ms;
	struct flood flood;
	long before_kb;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(sw_events_zmq(plane, address[i], false, &plane_error), 0);
	await_subscribed(loud, "kv_metrics");
	await_subscribed(quiet, "kv_metrics");
	start(&flood, loud, 1, 8);
	plane_run_ms(FLOOD_MS / 3); /* queues are full now */
	before_kb = resident_kb();
	memset(&beat, 0, sizeof(beat));
	event_add(timer, &tick);
	quiet_before = plane_status(1).messages;
	for (uint64_t i = 1; i <= 10; i++) {
		publish(quiet, "kv_metrics",
			(struct event_of){.publisher = 2, .sequence = i, .worker = 99});
		plane_run_ms(FLOOD_MS / 15);
	}
	meanwhile = plane_status(1).messages - quiet_before;
	event_del(timer);
	while (sent < MESSAGES && sw_now_ms() - begin_ms < 60000)
		plane_run_ms(FLOOD_MS / 15);
	stop = true;
	pthread_join(flood.thread, NULL);
	took_ms = sw_now_ms() - begin_ms;
	await_messages(1, quiet_before + 10);
	status = plane_status(0);
	print_message(
		"%lu sent in %lu ms, %lu read, %lu replaced, %u handed on; latest beat %lu ms, "
		"%ld KB\n",
		(unsigned long)sent, (unsigned long)took_ms, (unsigned long)status.messages,
		(unsigned long)status.dropped, heard.n, (unsigned long)beat.latest_ms,
		resident_kb() - before_kb);
	assert_in_range(beat.latest_ms, 0, TICK_MS + LATEST_MS);
	assert_true(resident_kb() - before_kb < GROWTH_KB);
	assert_in_range(sent, MESSAGES, UINT64_MAX);
	assert_in_range(meanwhile, 5, 10);
	assert_int_equal(status.bad, 0);
	assert_true(status.dropped > status.messages / 2);
	event_free(timer);
	publisher_free(loud);
	publisher_free(quiet);
}

/* As when each load leads to much work. */
static void slow_hearing_holds_nobody_up(void **state)
{
	const struct timeval tick = {.tv_usec = TICK_MS * 1000};
	struct event *timer = event_new(plane_base, -1, EV_PERSIST, on_beat, NULL);
	struct flood flood;
	char address[64];
	void *loud = publisher_new(0, address);

	(void)state;
	assert_int_equal(sw_events_zmq(plane, address, false, &plane_error), 0);
	await_subscribed(loud, "kv_metrics");
	heard.slow_us = 1000;
	memset(&beat, 0, sizeof(beat));
	event_add(timer, &tick);
	start(&flood, loud, 1, 100000);
	plane_run_ms(FLOOD_MS / 2);
	stop = true;
	pthread_join(flood.thread, NULL);
	print_message("latest beat %lu ms\n", (unsigned long)beat.latest_ms);
	assert_true(heard.n > 50);
	assert_true(beat.n > 5);
	assert_in_range(beat.latest_ms, 0, TICK_MS + LATEST_MS);
	event_free(timer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PUBLISHING_TEST(a_flood_costs_neither_time_nor_memory),
		PUBLISHING_TEST(slow_hearing_holds_nobody_up),
	};

	sw_log_level(SW_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
