// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What tests of the event plane share, see publishing.h. */
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include <msgpack/sysdep.h>
#include <msgpack/pack.h>

#include "common/clock.h"
#include "publishing.h"

#define AT_LAST_MS 15000 /* a busy machine may need seconds for what takes milliseconds */

struct event_base *plane_base;
struct sw_events *plane;
struct sw_error plane_error;
struct heard heard;

static void *context;
static void *publishers[8]; /* those that a failed test has left */

static void on_event(void *arg, const struct sw_load_event *event)
{
	(void)arg;
	heard.n++;
	heard.last = *event;
	if (heard.slow_us)
		usleep(heard.slow_us);
}

int publishing_setup(void **state)
{
	(void)state;
	memset(&heard, 0, sizeof(heard));
	context = zmq_ctx_new();
	plane_base = event_base_new();
	return sw_events_new(&plane, plane_base, on_event, NULL, &plane_error);
}

int publishing_teardown(void **state)
{
	(void)state;
	/* Publishers first, until they are gone: libzmq 4.3 aborts (session_base.cpp, clean_pipes)
	 * if a subscriber leaves in the middle of a message of one that is being closed. */
	for (size_t i = 0; i < 8; i++)
		publisher_free(publishers[i]);
	zmq_ctx_term(context);
	sw_events_free(plane);
	event_base_free(plane_base);
	return 0;
}

/* ---- events --------------------------------------------------------------------------------- */

struct bytes {
	uint8_t *data;
	size_t length;
};

static int append(void *to, const char *data, size_t length)
{
	struct bytes *b = to;

	memcpy(b->data + b->length, data, length);
	b->length += length;
	return 0;
}

static void pack_text(msgpack_packer *p, const char *text)
{
	msgpack_pack_str(p, strlen(text));
	msgpack_pack_str_body(p, text, strlen(text));
}

static void pack_number(msgpack_packer *p, const char *key, uint64_t value)
{
	pack_text(p, key);
	msgpack_pack_uint64(p, value);
}

static void pack_nil(msgpack_packer *p, const char *key)
{
	pack_text(p, key);
	msgpack_pack_nil(p);
}

size_t envelope_of(struct event_of e, uint8_t out[512])
{
	uint8_t inner[256];
	struct bytes payload = {.data = inner}, envelope = {.data = out};
	msgpack_packer p;

	msgpack_packer_init(&p, &payload, append);
	msgpack_pack_map(&p, 5);
	pack_number(&p, "worker_id", e.worker);
	pack_number(&p, "dp_rank", e.rank);
	pack_nil(&p, "active_decode_blocks");
	pack_nil(&p, "active_prefill_tokens");
	pack_number(&p, "kv_used_blocks", e.used);

	msgpack_packer_init(&p, &envelope, append);
	msgpack_pack_map(&p, 5);
	pack_text(&p, "topic");
	pack_text(&p, "kv_metrics");
	pack_number(&p, "publisher_id", e.publisher);
	pack_number(&p, "sequence", e.sequence);
	pack_number(&p, "published_at", e.published_ms);
	pack_text(&p, "payload");
	msgpack_pack_bin(&p, payload.length);
	msgpack_pack_bin_body(&p, inner, payload.length);
	return envelope.length;
}

/* ---- publishers ----------------------------------------------------------------------------- */

void *publisher_new(unsigned port, char address[64])
{
	void *publisher = zmq_socket(context, ZMQ_PUB);
	size_t size = 64;
	int no = 0;

	zmq_setsockopt(publisher, ZMQ_LINGER, &no, sizeof(no));
	snprintf(address, 64, port ? "tcp://127.0.0.1:%u" : "tcp://127.0.0.1:*", port);
	assert_int_equal(zmq_bind(publisher, address), 0);
	zmq_getsockopt(publisher, ZMQ_LAST_ENDPOINT, address, &size);
	for (size_t i = 0; i < 8; i++) {
		if (!publishers[i]) {
			publishers[i] = publisher;
			break;
		}
	}
	return publisher;
}

void publisher_free(void *publisher)
{
	for (size_t i = 0; publisher && i < 8; i++)
		if (publishers[i] == publisher)
			publishers[i] = NULL;
	if (publisher)
		zmq_close(publisher);
}

void publish_frames(void *publisher, const struct frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++)
		zmq_send(publisher, frames[i].data, frames[i].length, i + 1 < n ? ZMQ_SNDMORE : 0);
}

void publish(void *publisher, const char *topic, struct event_of e)
{
	uint64_t id = htobe64(e.publisher), sequence = htobe64(e.sequence);
	uint8_t last[5 + 512] = {1};
	size_t length = envelope_of(e, last + 5);
	const struct frame frames[] = {
		{topic, strlen(topic)}, {&id, 8}, {&sequence, 8}, {last, 5 + length}};
	uint32_t size = htobe32((uint32_t)length);

	memcpy(last + 1, &size, 4);
	publish_frames(publisher, frames, 4);
}

/* ---- time ----------------------------------------------------------------------------------- */

void plane_run_ms(unsigned ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	event_base_loopexit(plane_base, &tv);
	event_base_dispatch(plane_base);
}

long resident_kb(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

void await_heard(unsigned n)
{
	uint64_t begin_ms = sw_now_ms();

	while (heard.n < n && sw_now_ms() - begin_ms < AT_LAST_MS)
		plane_run_ms(5);
	assert_in_range(heard.n, n, UINT32_MAX);
}

void await_messages(size_t index, uint64_t n)
{
	uint64_t begin_ms = sw_now_ms();

	while (plane_status(index).messages < n && sw_now_ms() - begin_ms < AT_LAST_MS)
		plane_run_ms(5);
	assert_int_equal(plane_status(index).messages, n);
}

/* A publisher sends to nobody until the subscription has come. */
void await_subscribed(void *publisher, const char *topic)
{
	uint64_t begin_ms = sw_now_ms();
	unsigned before = heard.n;

	for (uint64_t i = 1; heard.n == before && sw_now_ms() - begin_ms < AT_LAST_MS; i++) {
		publish(publisher, topic, (struct event_of){.publisher = 1000, .sequence = i});
		plane_run_ms(5);
	}
	assert_int_not_equal(heard.n, before);
	plane_run_ms(20); /* what is under way */
	heard.n = 0;
}

struct sw_events_status plane_status(size_t index)
{
	struct sw_events_status status;

	assert_true(sw_events_status(plane, index, &status));
	return status;
}

struct sw_events_status await_state(size_t index, enum sw_events_state state)
{
	uint64_t begin_ms = sw_now_ms();

	while (plane_status(index).state != state && sw_now_ms() - begin_ms < AT_LAST_MS)
		plane_run_ms(20);
	assert_int_equal(plane_status(index).state, state);
	return plane_status(index);
}
